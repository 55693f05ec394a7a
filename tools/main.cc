// SPDX-License-Identifier: Apache-2.0
// The `tartan` command.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <system_error>

#include "tartan/version.h"
#include "tools/commands.h"

namespace {

using namespace tartan::tools;

std::vector<const CLI::App*> commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The first word, where it should be a command and is none.
const char* unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return nullptr;
  for (const CLI::App* each : commands(app))
    if (each->check_name(argv[1])) return nullptr;
  return argv[1];
}

int complain(const CLI::App& app, const char* word) {
  std::string known;
  for (const CLI::App* each : commands(app))
    known += (known.empty() ? "" : ", ") + each->get_name();
  std::cerr << "error: there is no command " << word << "; there are " << known << " [usage]\n";
  return exit_usage;
}

int not_written(const char* why) {
  std::cerr << "error: cannot write standard output: " << why << " [file]\n";
  return exit_usage;
}

int run(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_ok : exit_usage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Validated PTX for NVIDIA's matrix instructions: generate, check, run, picture"};
  app.set_version_flag("--version", std::string(tartan::version()));
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  int exit_code = exit_ok;
  add_check(app, exit_code);
  add_isa(app, exit_code);
  add_layout(app, exit_code);
  add_run(app, exit_code);
  add_replay(app, exit_code);
#ifdef TARTAN_LLVM
  add_emit(app, exit_code);
#endif
  if (const char* word = unknown_command(app, argc, argv)) return complain(app, word);
  try {
    const int code = run(app, argc, argv, exit_code);
    errno = 0;
    std::cout.flush();
    const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout.good();
    return written ? code : not_written(errno ? std::strerror(errno) : "write error");
  } catch (const std::system_error& error) {  // of fmt::print
    return not_written(error.code().message().c_str());
  }
}
