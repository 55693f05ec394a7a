// SPDX-License-Identifier: Apache-2.0
// tests/support/printed.h - invariants of modules that are parsed and printed again.
#pragma once

#include <unistd.h>

#include "tartan/ptx/parser.h"
#include "tests/support/machine_code.h"

namespace tartan::test {

inline ptx::Module parsed(const std::string& name, const std::string& text, Diags& diags) {
  return ptx::parse(std::make_shared<const Source>(name, text), diags);
}

/// The module's printed text is a fixed point of parsing and printing.
inline void expect_fixed_point(const std::string& name, const ptx::Module& module) {
  Diags diags;
  const std::string printed = ptx::print(module);
  EXPECT_EQ(ptx::print(parsed("printed", printed, diags)), printed) << name;
  EXPECT_TRUE(diags.ok()) << name << "\n" << diags.text();
}

/// NVIDIA's assembler generates the same code from the text and from its printed form.
inline void expect_same_code(const std::string& name, const std::string& text) {
  const std::string base = testing::TempDir() + "tartan_printed_" + std::to_string(getpid());
  Diags diags;
  const ptx::Module module = parsed(name, text, diags);
  ASSERT_FALSE(module.targets.empty()) << name;
  std::ofstream(base + ".ptx") << text;
  std::ofstream(base + "_printed.ptx") << ptx::print(module);
  const std::string arch(module.targets.front());
  const auto before = assemble(base, arch), after = assemble(base + "_printed", arch);
  EXPECT_GE(before.size(), module.kernels().size()) << name;
  EXPECT_TRUE(before == after) << name << " assembles to something else after printing";
  for (const char* end : {".ptx", "_printed.ptx"}) std::remove((base + end).c_str());
}

}  // namespace tartan::test
