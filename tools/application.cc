// SPDX-License-Identifier: Apache-2.0
#include "tools/application.h"

#include <fmt/format.h>

#include "tartan/version.h"
#include "tools/commands.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

std::string version_text() {
  const std::string_view generator = code_generator();
  return fmt::format("tartan {}{}", version(),
                     generator.empty() ? "" : fmt::format(" ({})", generator));
}

}  // namespace

void add_commands(CLI::App& app, int& exit_code) {
  app.description("Validated PTX for NVIDIA's matrix instructions: generate, check, run, draw");
  app.set_version_flag("-V,--version", version_text());
  app.require_subcommand(1);
  app.fallthrough();  // options of all commands may follow the command's name
  app.add_option_function<std::string>("--color", set_colour,
                                       "Colors: always, never, or auto (on a terminal only)")
      ->check(CLI::IsMember({"always", "never", "auto"}))
      ->trigger_on_parse();
  add_check(app, exit_code);
  add_print(app, exit_code);
  add_isa(app, exit_code);
  add_layout(app, exit_code);
  add_run(app, exit_code);
  add_manifest(app, exit_code);
  add_equal(app, exit_code);
  add_explore(app, exit_code);
  add_replay(app, exit_code);
  add_cache(app, exit_code);
#ifdef TARTAN_LLVM
  add_emit(app, exit_code);
  add_tune(app, exit_code);
#endif
}

}  // namespace tartan::tools
