// SPDX-License-Identifier: Apache-2.0
// The `tartan` command.
#include "tartan/version.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Validated PTX for NVIDIA's matrix instructions: generate, check, run, picture"};
  app.set_version_flag("--version", std::string(tartan::version()));
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  int exit_code = tartan::tools::exit_ok;
  tartan::tools::add_check(app, exit_code);
  tartan::tools::add_isa(app, exit_code);
  tartan::tools::add_layout(app, exit_code);
  tartan::tools::add_run(app, exit_code);
  tartan::tools::add_replay(app, exit_code);
#ifdef TARTAN_LLVM
  tartan::tools::add_emit(app, exit_code);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? tartan::tools::exit_ok : tartan::tools::exit_usage;
  }
  return exit_code;
}
