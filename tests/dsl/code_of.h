// SPDX-License-Identifier: Apache-2.0
// Shared by tests that compare the code of two descriptions: the PTX without the lines of C++ that
// it names, which differ.
//
//   EXPECT_EQ(test::code_of(before, "sm_90a"), test::code_of(now, "sm_90a"));
#pragma once

#include <gtest/gtest.h>
#include <tartan/tartan.h>

#include <sstream>
#include <string>

namespace tartan::test {

inline std::string code_of(const Kernel& kernel, const char* target) {
  const auto compiled = compile(kernel, Target::parse(target)->arch);
  EXPECT_TRUE(compiled) << compiled.diags().text();
  if (!compiled) return "";
  std::istringstream lines(compiled->ptx);
  std::string out;
  for (std::string line; std::getline(lines, line);)
    if (line.find(".loc") == line.npos && line.find("//") == line.npos &&
        line.find(".file") == line.npos)
      out += line + '\n';
  return out;
}

}  // namespace tartan::test
