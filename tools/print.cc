// SPDX-License-Identifier: Apache-2.0
// tools/print.cc - tartan print: PTX text in its canonical form.
#include <fmt/format.h>

#include <memory>

#include "tartan/ptx/parser.h"
#include "tools/commands.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct PrintWords {
  std::string file, output = "-";
  ptx::PrintOptions options;
};

int print(const PrintWords& words) {
  auto source = read_source(words.file);
  if (!source) return fail(exit_usage, source.diags());
  Diags diags;
  const auto module = ptx::parse(std::make_shared<const Source>(std::move(*source)), diags);
  if (!diags.ok()) return fail(exit_usage, diags);
  const std::string text = ptx::print(module, words.options);
  if (words.output == "-") {
    fmt::print("{}", text);
    return exit_ok;
  }
  const Status written = write_file(words.output, text);
  return written ? exit_ok : fail(exit_usage, written.diags());
}

}  // namespace

void add_print(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<PrintWords>();
  CLI::App* command = app.add_subcommand("print",
                                         "Print PTX in canonical form: one statement per line, no "
                                         "comments; printing it again changes nothing");
  command->add_option("FILE", words->file, "A PTX file; - reads standard input")->required();
  command->add_flag("--strip-debug", words->options.strip_debug,
                    "Omit .loc, .file, .section and the target option debug");
  command->add_option("-o", words->output, "Output file; - is standard output")
      ->capture_default_str();
  command->footer("Exit codes: 0 printed, 2 the text is not PTX, usage or I/O");
  command->callback([words, &exit_code] { exit_code = print(*words); });
}

}  // namespace tartan::tools
