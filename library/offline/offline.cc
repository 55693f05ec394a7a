// SPDX-License-Identifier: Apache-2.0
#include "tartan/offline.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "compiler/support/messages.h"
#include "library/offline/assembler.h"
#include "library/offline/launch_header.h"
#include "library/offline/module_text.h"
#include "library/offline/options.h"
#include "tartan/bundle.h"
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI {
namespace offline {
namespace {

constexpr int exit_ok = 0, exit_failed = 1, exit_usage = 2;

struct File {
  std::string path, contents;
};

// Prints the errors; the exit code tells a wrong kernel from a file or program that is not there.
int fail(const Diags& diags) {
  detail::complain(diags.text());
  return std::ranges::any_of(diags,
                             [](const Diag& each) {
                               return each.id == "usage"_rule.id || each.id == "file"_rule.id;
                             })
             ? exit_usage
             : exit_failed;
}

int list(const std::vector<Kernel>& kernels) {
  for (const Kernel& each : kernels)
    fmt::print("{:<24} {}:{}\n", each.name(), source_name(each.place().file, ""),
               each.place().line);
  return exit_ok;
}

// Mistakes that do not need a target.
Diags check(const std::vector<Kernel>& kernels) {
  Diags diags;
  if (kernels.empty())
    diags.report("usage"_rule, {}, "offline_main(): expected kernels, found none");
  std::set<std::string> names;
  for (const Kernel& each : kernels)
    if (!names.insert(each.name()).second)
      diags.report("duplicate-name"_rule, each.place(),
                   fmt::format("kernel {}: two kernels of one module have this name", each.name()));
  return diags;
}

// Adds what is not there: a mistake that all targets have is reported once.
void add_new(Diags& to, const Diags& found) {
  for (const Diag& each : found) {
    const auto same = [&](const Diag& other) {
      return other.id == each.id && other.place == each.place && other.message == each.message;
    };
    if (std::ranges::none_of(to, same)) to.add(each);
  }
}

Result<std::vector<TargetModule>> compile_all(const std::vector<Kernel>& kernels,
                                              const Options& options) {
  Diags errors = check(kernels), warnings;
  if (!errors.ok()) return errors;
  std::vector<TargetModule> modules;
  for (const Arch& arch : options.targets) {
    TargetModule module{.arch = arch};
    for (const Kernel& each : kernels) {
      auto compiled = options.ptx ? compile(each, Target(arch, *options.ptx)) : compile(each, arch);
      if (!compiled) {
        add_new(errors, compiled.diags());
        continue;
      }
      add_new(warnings, compiled->warnings);
      module.kernels.push_back(std::move(*compiled));
    }
    modules.push_back(std::move(module));
  }
  detail::complain(warnings.text());
  if (!errors.ok()) return errors;
  for (TargetModule& each : modules) {
    auto text = module_text(each.kernels, options.root);
    if (text) each.ptx = *std::move(text);
    else add_new(errors, text.diags());
  }
  if (!errors.ok()) return errors;
  return modules;
}

Result<Bundle> bundle_of(const std::vector<TargetModule>& modules, const std::string& ptxas) {
  Diags errors;
  std::vector<BundleImage> images;
  for (const TargetModule& each : modules) {
    images.push_back({each.arch, false, each.ptx});
    if (ptxas.empty()) continue;
    auto cubin = assemble(ptxas, each.ptx, each.arch);
    if (cubin) images.push_back({each.arch, true, *std::move(cubin)});
    else add_new(errors, cubin.diags());
  }
  if (!errors.ok()) return errors;
  return Bundle(std::move(images));
}

// A path as make reads it.
std::string escaped(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == '\\') out += '\\';
    if (c == '$') out += '$';
    out += c;
  }
  return out;
}

// The files, the program that wrote them and what it was linked and run with.
std::string depfile(const std::vector<File>& files, const Options& options) {
  std::vector<std::string> from;
  std::error_code none;
  const auto add = [&](const std::filesystem::path& path) {
    if (std::filesystem::exists(path, none)) from.push_back(path.string());
  };
  add(std::filesystem::read_symlink("/proc/self/exe", none));
  Dl_info library = {};
  if (::dladdr(reinterpret_cast<const void*>(&offline_main), &library) && library.dli_fname) {
    const auto path = std::filesystem::canonical(library.dli_fname, none);
    if (from.empty() || path != from.front()) add(path);
  }
  if (!options.ptxas.empty()) add(options.ptxas);
  std::string out;
  for (const File& each : files) out += (out.empty() ? "" : " ") + escaped(each.path);
  out += ':';
  for (const std::string& each : from) out += " \\\n  " + escaped(each);
  return out + '\n';
}

Result<std::vector<File>> files_of(const std::vector<TargetModule>& modules,
                                   const Options& options) {
  std::vector<File> out;
  if (!options.folder.empty())
    for (const TargetModule& each : modules)
      out.push_back(
          {fmt::format("{}/{}.{}.ptx", options.folder, options.name, each.arch.text()), each.ptx});
  if (!options.header.empty()) {
    auto header = launch_header(options.name, modules, options.root);
    if (!header) return header.diags();
    out.push_back({options.header, *std::move(header)});
  }
  if (!options.bundle.empty()) {
    const auto bundle = bundle_of(modules, options.ptxas);
    if (!bundle) return bundle.diags();
    out.push_back({options.bundle, bundle->bytes()});
  }
  if (!options.depfile.empty()) out.push_back({options.depfile, depfile(out, options)});
  return out;
}

int generate(const std::vector<Kernel>& kernels, const Options& options) {
  const auto modules = compile_all(kernels, options);
  if (!modules) return fail(modules.diags());
  const auto files = files_of(*modules, options);
  if (!files) return fail(files.diags());
  if (!options.folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error)
      return fail(Diags::one(
          "file"_rule, {},
          fmt::format("cannot make the folder {}: {}", options.folder, error.message())));
  }
  for (const File& each : *files)
    if (const Status written = write_file(each.path, each.contents); !written)
      return fail(written.diags());
  return exit_ok;
}

}  // namespace
}  // namespace offline

int offline_main(int argc, const char* const* argv, const std::vector<Kernel>& kernels) {
  const auto parsed = offline::parse(argc, argv);
  if (!parsed) return offline::fail(parsed.diags());
  const auto* const options = std::get_if<offline::Options>(&*parsed);
  if (!options) return offline::exit_ok;
  return options->list ? offline::list(kernels) : offline::generate(kernels, *options);
}

}  // namespace tartan::TARTAN_ABI
