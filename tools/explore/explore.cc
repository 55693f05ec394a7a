// SPDX-License-Identifier: Apache-2.0
// tools/explore/explore.cc - tartan explore: a kernel as a page.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "compiler/support/counted.h"
#include "runtime/references.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/explore/page.h"
#include "tools/progress.h"
#include "tools/terminal.h"
#ifdef TARTAN_LLVM
#include "tools/built_in.h"
#include "tools/emit_manifest.h"
#endif

namespace tartan::tools {
namespace {

namespace fs = std::filesystem;
using explore::Subject;

#ifdef TARTAN_LLVM
struct ExploreWords : BuiltInWords {
#else
struct ExploreWords {
  std::string kernel;
#endif
  std::string output;
  std::uint64_t max_steps = DeviceOptions{}.max_steps;
  double timeout = 0;
};

bool is_manifest(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && text[at] == '{';
}

Result<Subject> of_manifest(const Source& source) {
  auto manifest = parse_manifest(source);
  if (!manifest) return manifest.diags();
  if (const Diags wrong = expect_references(*manifest); !wrong.ok()) return wrong;
  Subject out{.title = manifest->kernel, .ptx = std::make_shared<const Source>(manifest->ptx)};
  out.decisions = explore::decisions_of_comments(out.ptx->text());
  out.manifest = std::move(*manifest);
  return out;
}

Subject of_text(Source source) {
  Subject out{.title = fs::path(source.name()).filename().string(),
              .ptx = std::make_shared<const Source>(std::move(source)),
              .not_run = "a PTX file does not say how it is launched: give its manifest instead"};
  out.decisions = explore::decisions_of_comments(out.ptx->text());
  return out;
}

#ifdef TARTAN_LLVM

// The launch that `emit --manifest` writes.
Result<Manifest> launch_of(const Compiled& compiled, const builtins::LaunchExample& example) {
  const auto text = launch_manifest(compiled, example, "kernel.ptx", "kernel.json");
  if (!text) return text.diags();
  std::string folder = (fs::temp_directory_path() / "tartan_explore_XXXXXX").string();
  if (!mkdtemp(folder.data()))
    return {"file"_rule,
            fmt::format("cannot write a folder in {}", fs::temp_directory_path().string())};
  const Status written = write_file(folder + "/kernel.ptx", compiled.ptx);
  auto manifest = written ? parse_manifest(Source(folder + "/kernel.json", *text))
                          : Result<Manifest>(written.diags());
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (!manifest) return manifest;
  manifest->name = compiled.name + ".json";
  manifest->ptx = Source(compiled.name + ".ptx", compiled.ptx);
  return manifest;
}

// Exit code beside the diagnostics.
Result<Subject> of_kernel(const ExploreWords& words, const CLI::App& command, int& code) {
  const auto described = describe(words, command);
  if (!described) return described.diags();
  complain(described->warnings.text());
  const auto compiled = compile(words, *described);
  if (!compiled) {
    code = exit_failed;
    return compiled.diags();
  }
  Subject out{.title = words.kernel,
              .ptx = std::make_shared<const Source>(compiled->name + ".ptx", compiled->ptx)};
  for (const Choice& each : compiled->choices)
    out.decisions.push_back({.file = each.place.file,
                             .line = each.place.line,
                             .what = each.what,
                             .taken = each.taken,
                             .reason = each.reason,
                             .refused = each.refused});
  auto launch =
      launch_of(*compiled, builtins::LaunchExample(words.kernels, words.kernel, *described,
                                                   *compiled, multiprocessors_of(words)));
  if (launch) out.manifest = std::move(*launch);
  else out.not_run = launch.diags()[0].message;
  return out;
}

// A file is a kernel already: nothing of it is chosen or compiled.
Diags refused_of_file(const ExploreWords& words, const CLI::App& command) {
  Diags out;
  for (const std::string& each : given_options(words, command))
    out.report("usage"_rule, {},
               fmt::format("--{}: an option of built-in kernels; {} is a file, which is shown as "
                           "it is",
                           each, words.kernel == "-" ? "standard input" : words.kernel));
  return out;
}

bool names_kernel(const ExploreWords& words) {
  std::error_code error;
  return words.kernels.find(words.kernel) ||
         (words.kernel != "-" && !fs::exists(words.kernel, error));
}

#endif

Result<Subject> subject_of(const ExploreWords& words, const CLI::App& command, int& code) {
#ifdef TARTAN_LLVM
  if (names_kernel(words)) return of_kernel(words, command, code);
#endif
  (void)command, (void)code;
  auto source = read_source(words.kernel);
  if (!source) return source.diags();
#ifdef TARTAN_LLVM
  if (const Diags refused = refused_of_file(words, command); !refused.ok()) return refused;
#endif
  if (is_manifest(source->text())) return of_manifest(*source);
  return of_text(std::move(*source));
}

int explore_kernel(const ExploreWords& words, const CLI::App& command) {
  exit_on_interrupt();
  int code = exit_usage;
  const auto subject = subject_of(words, command, code);
  if (!subject) return fail(code, subject.diags());
  Progress progress("blocks");
  const explore::Page page = explore::page_of(
      *subject,
      {.max_steps = words.max_steps,
       .timeout = words.timeout,
       .checks = Checks::all,
       .profile = true,
       .progress = [&](std::uint64_t done, std::uint64_t all) { progress.set(done, all); }});
  const std::string text = explore::html(page);
  if (words.output == "-") fmt::print("{}", text);
  else if (const Status written = write_file(words.output, text); !written)
    return fail(exit_usage, written.diags());
  if (page.errors > 0)
    complain(fmt::format("{}: {}: {}{}\n",
                         printable(words.output == "-" ? subject->title : words.output),
                         detail::counted(page.errors, "error"),
                         page.errors > 1 ? "the first: " : "", printable(page.first)));
  return page.refused ? exit_usage : page.errors > 0 ? exit_failed : exit_ok;
}

}  // namespace

void add_explore(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ExploreWords>();
  CLI::App* command = app.add_subcommand(
      "explore", "Write a page (HTML) of a kernel: sources, choices, findings, pictures, numbers");
  command
      ->add_option(
          "WHAT", words->kernel,
          "A PTX file, a manifest of `tartan run` (which is run on the emulator), the name "
          "of a built-in kernel (with its options), or - for standard input")
      ->required()
      ->type_name("FILE|KERNEL");
  command->add_option("-o", words->output, "Output file; - is standard output")->required();
  add_step_limit(*command, words->max_steps,
                 "Stop the emulator after this many instructions of one warp");
  add_time_limit(*command, words->timeout,
                 "Stop the emulator, and each of NVIDIA's tools, after this many seconds; 0: no "
                 "limit (tools: 300)");
#ifdef TARTAN_LLVM
  command->add_option("--target", words->target,
                      "Target architecture; default: that of --gpu, else sm_80");
  command->add_option("--ptx", words->ptx,
                      "PTX version of the module (8.0); default: the first that supports "
                      "everything the kernel uses, at least 7.8");
  add_built_in_options(*command, *words);
#endif
  command->footer(
      "Machine code and registers are shown where ptxas and nvdisasm are found: in "
      "CUDA_HOME,\nelse "
      "PATH, else /usr/local/cuda\nExit codes: 0 written, 1 written, and the page shows an error, "
      "2 "
      "usage or I/O, or\nwritten, and the page says what is wrong with the PTX, or unsupported");
  command->callback([=, &exit_code] { exit_code = explore_kernel(*words, *command); });
}

}  // namespace tartan::tools
