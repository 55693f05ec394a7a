// SPDX-License-Identifier: Apache-2.0
#include "library/offline/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "compiler/isa/target_hint.h"
#include "compiler/support/nearest.h"
#include "dsl/state/names.h"

namespace tartan::TARTAN_ABI::offline {
namespace {

struct Words {
  std::vector<std::string> targets;
  std::string ptx;
};

void add_options(CLI::App& app, Words& words, Options& options) {
  app.add_option("--target", words.targets, "Target, such as sm_90a; once for each target")
      ->type_name("T")
      ->take_all();
  app.add_option("--ptx", words.ptx,
                 "PTX version of the modules (8.0); default: the first that supports everything "
                 "the kernels use, at least 7.8")
      ->type_name("V");
  app.add_option("--name", options.name,
                 "Name of the PTX files and of the header's namespace; default: the program's")
      ->type_name("NAME");
  app.add_option("-o", options.folder, "Write the PTX of each target to DIR/NAME.TARGET.ptx")
      ->type_name("DIR");
  app.add_option("--header", options.header,
                 "Write a C++17 header: the PTX, and functions that prepare launches")
      ->type_name("FILE");
  app.add_option("--bundle", options.bundle,
                 "Write a bundle of all targets (fatbin), which cuModuleLoadData loads")
      ->type_name("FILE");
  app.add_option("--ptxas", options.ptxas,
                 "NVIDIA's assembler: the bundle also has machine code for each target")
      ->type_name("PROGRAM");
  app.add_option("--root", options.root,
                 "Name source files below DIR relative to it; others by their file name alone")
      ->type_name("DIR");
  app.add_option("--depfile", options.depfile,
                 "Write what the files depend on, as make and Ninja read it")
      ->type_name("FILE");
  app.add_flag("--list", options.list, "List the kernels, and write nothing");
  app.footer("Exit codes: 0 written, 1 a kernel does not compile, 2 usage or I/O");
}

// The message for arguments that CLI11 refuses.
std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const auto extra = app.remaining(true);
  if (!dynamic_cast<const CLI::ExtrasError*>(&error) || extra.empty()) return error.what();
  const std::string& word = extra.front();
  if (!word.starts_with('-')) return fmt::format("unexpected argument {}", word);
  std::vector<std::string_view> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  const std::string name = word.substr(0, word.find('='));
  const std::string_view bare = std::string_view(name).substr(name.starts_with("--") ? 2 : 1);
  return fmt::format("unknown option {}{}", name, nearest_hint(bare, known, "--"));
}

void read_targets(const Words& words, Options& options, Diags& diags) {
  const auto wrong = [&](std::string message) {
    diags.report("usage"_rule, {}, std::move(message));
  };
  for (const std::string& each : words.targets) {
    const auto arch = Arch::parse(each);
    if (!arch || !find_arch(*arch))
      wrong(fmt::format("--target {}: unknown target{}", each, target_hint(each)));
    else if (std::ranges::find(options.targets, *arch) != options.targets.end())
      wrong(fmt::format("--target {}: it is named twice", each));
    else options.targets.push_back(*arch);
  }
  if (words.targets.empty()) wrong("--target is required: expected one such as sm_80");
  if (words.ptx.empty()) return;
  options.ptx = Version::parse(words.ptx);
  if (!options.ptx || !options.ptx->exists()) {
    wrong(fmt::format("--ptx {}: expected a version such as 8.0", words.ptx));
    return;
  }
  for (const Arch& each : options.targets)
    if (const Version first = find_arch(each)->first; *options.ptx < first)
      wrong(fmt::format("--ptx {}: {} requires PTX {}", words.ptx, each.text(), first.text()));
}

// The program's name, with _ for what no identifier has.
std::string program_name(std::string_view path) {
  std::string out(path.substr(path.rfind('/') + 1));
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

void check_files(const Options& options, Diags& diags) {
  if (options.folder.empty() && options.header.empty() && options.bundle.empty())
    diags.report("usage"_rule, {}, "nothing to write: expected -o, --header or --bundle");
  if (!options.ptxas.empty() && options.bundle.empty())
    diags.report("usage"_rule, {}, "--ptxas: machine code is in bundles; add --bundle FILE");
  std::vector<std::string> files;
  for (const std::string& each : {options.header, options.bundle, options.depfile}) {
    if (each.empty()) continue;
    if (std::ranges::find(files, each) != files.end())
      diags.report("usage"_rule, {},
                   fmt::format("expected different files, found {} for two of them", each));
    files.push_back(each);
  }
}

}  // namespace

Result<std::variant<Options, Helped>> parse(int argc, const char* const* argv) {
  const std::string program = argc > 0 ? argv[0] : "generate";
  CLI::App app("Compiles its kernels to PTX", program.substr(program.rfind('/') + 1));
  Words words;
  Options options;
  add_options(app, words, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return Diags::one("usage"_rule, {}, complaint(app, error));
    app.exit(error);
    return std::variant<Options, Helped>(Helped{});
  }
  if (options.list) return std::variant<Options, Helped>(options);
  Diags diags;
  for (const CLI::Option* each : app.get_options())
    if (each->count() > 0 && each->get_items_expected_max() > 0 && each->results().back().empty())
      diags.report("usage"_rule, {},
                   fmt::format("{}: expected a value, found an empty one", each->get_name()));
  read_targets(words, options, diags);
  check_files(options, diags);
  if (options.name.empty()) options.name = program_name(program);
  if (!detail::is_identifier(options.name) || options.name.find('$') != std::string::npos)
    diags.report("usage"_rule, {},
                 fmt::format("--name {}: expected letters, digits and _, not starting with a digit",
                             options.name));
  if (!diags.ok()) return diags;
  return std::variant<Options, Helped>(std::move(options));
}

}  // namespace tartan::TARTAN_ABI::offline
