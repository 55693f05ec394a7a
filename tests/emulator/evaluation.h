// SPDX-License-Identifier: Apache-2.0
// tests/emulator/evaluation.h - what one instruction makes of columns of numbers, on the emulator.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/emulator/kernel.h"

namespace tartan::test {

/// Sources of one register: "b8", "b16", "b32" or "b64".
struct Column {
  std::string type;
  std::vector<std::uint64_t> values;
};

struct Evaluation {
  std::vector<std::uint64_t> out;
  std::string complaint;
  NumericTrust trust;
};

/// The results of `instruction`, whose sources are s0, s1, ..., and whose result is d, of type
/// `result`; all columns are equally long.
inline Evaluation evaluate(const std::string& instruction, const std::string& result,
                           const std::vector<Column>& sources,
                           const std::string& target = "sm_107a") {
  const std::size_t count = sources.at(0).values.size(), blocks = (count + 31) / 32;
  std::string tables, loads, registers = ".reg ." + result + " d;\n";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto& [type, values] = sources[i];
    tables += fmt::format(".global .align 8 .{} t{}[{}] = {{", type, i, 32 * blocks);
    for (std::size_t k = 0; k < 32 * blocks; ++k)
      tables += fmt::format("{}{}", k ? "," : "", k < count ? values[k] : 0);
    tables += "};\n";
    registers += fmt::format(".reg .{} s{};\n", type, i);
    loads += fmt::format(
        "mov.u64 base, t{0};\nmul.wide.u32 at, i, {1};\nadd.u64 at, base, at;\nld.global.{2} s{0}, "
        "[at];\n",
        i, std::stoi(type.substr(1)) / 8, type);
  }
  const std::string text =
      ".version 9.5\n.target " + target + "\n.address_size 64\n" + tables +
      ".visible .entry k(.param .u64 out)\n{\n.reg .b64 base, at;\n.reg .b32 i, j, n;\n" +
      registers +
      "mov.u32 i, %tid.x;\nmov.u32 j, %ctaid.x;\nmov.u32 n, %ntid.x;\nmad.lo.u32 i, j, n, i;\n" +
      loads + instruction +
      "\nld.param.u64 base, [out];\nmul.wide.u32 at, i, 8;\nadd.u64 at, base, at;\n" +
      fmt::format("st.global.{} [at], d;\nret;\n}}\n", result);
  const KernelRun run = run_text(
      text, {.grid = {static_cast<std::uint32_t>(blocks)}, .block = {32}}, 2 * 32 * blocks);
  Evaluation out{.out = {}, .complaint = run.complaint, .trust = run.report.trust};
  for (std::size_t i = 0; run.launched && i < count; ++i)
    out.out.push_back(run.out[2 * i] | std::uint64_t{run.out[2 * i + 1]} << 32);
  return out;
}

}  // namespace tartan::test
