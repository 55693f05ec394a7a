// SPDX-License-Identifier: Apache-2.0
// tests/support/shell.h - runs a command line, for tests of the command.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace tartan::test {

struct Ran {
  int code = -1;    // the exit status; -1 if it ended otherwise
  std::string out;  // standard output, and standard error if the command redirects it there
};

inline Ran shell(const std::string& command) {
  Ran out;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return out;
  std::array<char, 65536> buffer;
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe))
    out.out.append(buffer.data(), size);
  const int status = pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

}  // namespace tartan::test
