// SPDX-License-Identifier: Apache-2.0
// tests/emulator/kernel.h - runs a kernel of a few lines of PTX on the emulator.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace tartan::test {

struct KernelRun {
  std::vector<std::uint32_t> out;
  std::vector<Finding> findings;
  Report report;
  bool launched = false;
  std::string complaint;  // the error of load, kernel or launch
};

inline std::string kernel_text(const std::string& body, const std::string& declarations = {}) {
  return ".version 8.6\n.target sm_90\n.address_size 64\n" + declarations +
         "\n.visible .entry k(.param .u64 out)\n{\n.reg .pred p, q;\n.reg .b32 r<20>;\n.reg .b64 "
         "rd<20>;\n.reg .f32 f<8>;\n"
         "ld.param.u64 rd0, [out];\nmov.u32 r0, %tid.x;\nmul.wide.u32 rd1, r0, 4;\nadd.s64 rd1, "
         "rd0, rd1;\n" +
         body + "\nret;\n}\n";
}

/// Waits for a phase of an mbarrier; `label` names the loop.
inline std::string wait(const std::string& barrier, const std::string& label, int parity = 0) {
  return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 p, [" + barrier + "], " +
         std::to_string(parity) + ";\n@!p bra " + label + ";\n";
}

/// Runs kernel k of `ptx`. rd0 is the output buffer of `words` words, rd1 the lane's own word in
/// it, r0 %tid.x.
inline KernelRun run_text(const std::string& ptx, Launch launch, std::size_t words,
                          const DeviceOptions& options = {}) {
  KernelRun run;
  auto engine = emulator::make_engine(options);
  EXPECT_TRUE(static_cast<bool>(engine));
  auto module = (*engine)->load(ptx, "test.ptx");
  if (!module) return run.complaint = module.diags().text(), run;
  auto kernel = (*module)->kernel("k");
  if (!kernel) return run.complaint = kernel.diags().text(), run;
  const auto buffer = (*engine)->allocate(4 * words);
  EXPECT_TRUE(static_cast<bool>(buffer));
  EXPECT_TRUE(static_cast<bool>((*engine)->fill(*buffer, 4 * words, 0)));
  const Status launched = (*kernel)->launch(launch, Arguments().add(*buffer), nullptr);
  if (!launched) return run.complaint = launched.diags().text(), run;
  run.launched = true;
  const bool fine = static_cast<bool>((*engine)->synchronize());
  run.out.resize(words);
  EXPECT_TRUE(
      static_cast<bool>((*engine)->read(*buffer, std::as_writable_bytes(std::span(run.out)))));
  run.findings = (*engine)->findings();
  run.report = (*engine)->report();
  EXPECT_EQ(fine, std::ranges::none_of(run.findings, [](const Finding& each) {
              return each.level == Level::Error;
            }));
  return run;
}

inline KernelRun run_body(const std::string& body, Launch launch = {.grid = {1}, .block = {32}},
                          std::size_t words = 1024, const DeviceOptions& options = {},
                          const std::string& declarations = {}) {
  return run_text(kernel_text(body, declarations), launch, words, options);
}

/// The number of the first line of kernel_text(body) that contains `what`.
inline int line_of(const std::string& body, const std::string& what,
                   const std::string& declarations = {}) {
  const std::string text = kernel_text(body, declarations);
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos);
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

}  // namespace tartan::test
