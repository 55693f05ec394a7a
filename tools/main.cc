// SPDX-License-Identifier: Apache-2.0
// The `tartan` command.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <system_error>

#include "tartan/version.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/terminal.h"

namespace {

using namespace tartan::tools;
using tartan::operator""_rule;

std::string version_text() {
  const std::string_view generator = tartan::code_generator();
  return fmt::format("tartan {}{}", tartan::version(),
                     generator.empty() ? "" : fmt::format(" ({})", generator));
}

int not_written(const char* why) {
  return fail(exit_usage, tartan::Diags::one("file"_rule, {},
                                             fmt::format("cannot write standard output: {}", why)));
}

int run(CLI::App& app, int argc, char** argv) {
  int exit_code = exit_ok;
  add_check(app, exit_code);
  add_print(app, exit_code);
  add_isa(app, exit_code);
  add_layout(app, exit_code);
  add_run(app, exit_code);
  add_equal(app, exit_code);
  add_replay(app, exit_code);
#ifdef TARTAN_LLVM
  add_emit(app, exit_code);
#endif
  if (const auto refused = parse_command_line(app, argc, argv)) exit_code = *refused;
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout.good();
  return written ? exit_code : not_written(errno ? std::strerror(errno) : "write error");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Validated PTX for NVIDIA's matrix instructions: generate, check, run, draw"};
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.fallthrough();  // options of all commands may follow the command's name
  app.add_option_function<std::string>("--color", set_colour,
                                       "Colors: always, never, or auto (on a terminal only)")
      ->check(CLI::IsMember({"always", "never", "auto"}))
      ->trigger_on_parse();
  try {
    return run(app, argc, argv);
  } catch (const std::system_error& error) {  // of fmt::print
    return not_written(error.code().message().c_str());
  } catch (const std::bad_alloc&) {
    return fail(exit_usage, tartan::Diags::one("out-of-memory"_rule, {}, "out of host memory"));
  }
}
