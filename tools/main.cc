// SPDX-License-Identifier: Apache-2.0
// The `tartan` command.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <system_error>

#include "tools/application.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/terminal.h"

namespace {

using namespace tartan::tools;
using tartan::operator""_rule;

int not_written(const char* why) {
  return fail(exit_usage, tartan::Diags::one("file"_rule, {},
                                             fmt::format("cannot write standard output: {}", why)));
}

int run(CLI::App& app, int argc, char** argv) {
  int exit_code = exit_ok;
  add_commands(app, exit_code);
  if (const auto refused = parse_command_line(app, argc, argv)) exit_code = *refused;
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout.good();
  return written ? exit_code : not_written(errno ? std::strerror(errno) : "write error");
}

}  // namespace

int main(int argc, char** argv) {
  tartan::detail::hold_standard_streams();
  CLI::App app;
  try {
    return run(app, argc, argv);
  } catch (const std::system_error& error) {  // of fmt::print
    return not_written(error.code().message().c_str());
  } catch (const std::bad_alloc&) {
    return fail(exit_usage, tartan::Diags::one("out-of-memory"_rule, {}, "out of host memory"));
  }
}
