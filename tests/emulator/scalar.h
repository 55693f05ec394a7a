// SPDX-License-Identifier: Apache-2.0
// tests/emulator/scalar.h - tests/data/emulator/scalar.txt as kernels: one instruction per line,
// all run on the same edge values.
//
//   b32 b32 b32 | add.s32 d, a, b;        types of d, a, b, c; then PTX text, which may use
//   predicates p and q as well
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace tartan::test {

inline constexpr int scalar_lanes = 64;

struct ScalarCase {
  std::string text;          // the instruction
  bool approximate = false;  // ~ precedes it: from a hardware table, not exact
  int d = 32;                // bits of the destination
  std::vector<int> sources;  // bits of a, b, c
};

inline std::vector<ScalarCase> read_scalar_cases(const std::string& path) {
  std::vector<ScalarCase> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t bar = line.find('|');
    if (bar == std::string::npos) continue;
    ScalarCase one;
    std::vector<int> widths;
    for (std::size_t at = line.find('b'); at < bar; at = line.find('b', at + 1))
      widths.push_back(std::stoi(line.substr(at + 1)));
    one.approximate = line[bar + 2] == '~';
    one.text = line.substr(bar + 2 + (one.approximate ? 1 : 0));
    one.d = widths.front();
    one.sources.assign(widths.begin() + 1, widths.end());
    out.push_back(one);
  }
  return out;
}

// Source `which` of a lane: edges first, then noise.
inline std::uint64_t scalar_input(int width, int which, int lane) {
  static constexpr std::array<std::uint16_t, 16> short_edges = {
      0,      0x8000, 1,      0xFFFF, 0x7FFF, 0x3C00, 0xBC00, 0x7C00,
      0xFC00, 0x7E01, 0x03FF, 0x0400, 0x7BFF, 0x3F80, 0x0083, 0x7F80};
  static constexpr std::array<std::uint32_t, 20> edges = {
      0,          0x80000000, 1,          0xFFFFFFFF, 0x7FFFFFFF, 0x3F800000, 0xBF800000,
      0x7F800000, 0xFF800000, 0x7FC00001, 0xFF812345, 0x007FFFFF, 0x00800000, 0x7F7FFFFF,
      0x3F7FFFFF, 0x4B000001, 0x33FFFFFF, 31,         32,         0x40490FDB};
  static constexpr std::array<std::uint64_t, 16> long_edges = {0,
                                                               0x8000000000000000,
                                                               1,
                                                               ~std::uint64_t{0},
                                                               0x7FFFFFFFFFFFFFFF,
                                                               0x3FF0000000000000,
                                                               0x7FF0000000000000,
                                                               0xFFF0000000000000,
                                                               0x7FF0000000000001,
                                                               0xFFF8000000012345,
                                                               0x000FFFFFFFFFFFFF,
                                                               0x0010000000000000,
                                                               0x7FEFFFFFFFFFFFFF,
                                                               0x36A0000000000001,
                                                               0x47EFFFFFE0000001,
                                                               0x40DFFFC000000000};
  std::uint64_t hash = static_cast<std::uint64_t>(lane * 4 + which + 1) * 0x9E3779B97F4A7C15;
  hash ^= hash >> 29;
  hash *= 0xBF58476D1CE4E5B9;
  hash ^= hash >> 32;
  const bool edge = hash % 8 < (which == 0 ? 4 : 3);
  const std::uint64_t pick = hash >> 8;
  if (!edge && width == 32 && pick % 3 == 0)
    return std::bit_cast<std::uint32_t>(
        static_cast<float>(static_cast<int>(hash >> 40 & 0x3FF) - 512) * 0.37f);
  if (!edge && width == 64 && pick % 3 == 0)
    return std::bit_cast<std::uint64_t>((static_cast<double>(hash >> 40 & 0xFFFFF) - 500000.0) *
                                        1.37);
  if (width == 16) return edge ? short_edges[pick % short_edges.size()] : hash >> 17 & 0xFFFF;
  if (width == 32) return edge ? edges[pick % edges.size()] : hash >> 13 & 0xFFFFFFFF;
  return edge ? long_edges[pick % long_edges.size()] : hash;
}

// A module with a kernel k<i> for each case: out[lane] = the instruction on in[which * 64 + lane].
inline std::string scalar_module(const std::vector<ScalarCase>& cases) {
  std::string ptx = ".version 8.6\n.target sm_90\n.address_size 64\n";
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const ScalarCase& one = cases[i];
    ptx += ".visible .entry k" + std::to_string(i) +
           "(.param .u64 in, .param .u64 out)\n{\n.reg .pred p, q;\n.reg .b64 at, to, wide;\n.reg "
           ".b32 lane;\n";
    ptx += ".reg .b" + std::to_string(one.d) + " d;\n";
    for (std::size_t s = 0; s < one.sources.size(); ++s)
      ptx += ".reg .b" + std::to_string(one.sources[s]) + " " +
             std::string(1, static_cast<char>('a' + s)) + ";\n";
    ptx +=
        "mov.u32 lane, %tid.x;\nmul.wide.u32 wide, lane, 8;\nld.param.u64 at, [in];\nadd.s64 at, "
        "at, wide;\nld.param.u64 to, [out];\nadd.s64 to, to, wide;\n";
    for (std::size_t s = 0; s < one.sources.size(); ++s)
      ptx += "ld.global.b" + std::to_string(one.sources[s]) + " " +
             std::string(1, static_cast<char>('a' + s)) + ", [at+" +
             std::to_string(s * 8 * scalar_lanes) + "];\n";
    ptx += "mov.b" + std::to_string(one.d) + " d, 0;\n" + one.text + "\n";
    ptx += "st.global.b" + std::to_string(one.d) + " [to], d;\nret;\n}\n";
  }
  return ptx;
}

// Runs all cases: 64 results each; nothing if a step fails (the test has then failed).
inline std::vector<std::vector<std::uint64_t>> run_scalar_cases(
    detail::Engine& engine, const std::vector<ScalarCase>& cases) {
  std::vector<std::vector<std::uint64_t>> out;
  const auto module = engine.load(scalar_module(cases), "scalar.ptx");
  EXPECT_TRUE(static_cast<bool>(module)) << module.diags().text();
  const auto in = engine.allocate(3 * 8 * scalar_lanes), result = engine.allocate(8 * scalar_lanes);
  if (!module || !in || !result) return out;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<std::uint64_t> inputs(3 * scalar_lanes), outputs(scalar_lanes);
    for (std::size_t s = 0; s < cases[i].sources.size(); ++s)
      for (int lane = 0; lane < scalar_lanes; ++lane)
        inputs[s * scalar_lanes + static_cast<std::size_t>(lane)] =
            scalar_input(cases[i].sources[s], static_cast<int>(s), lane);
    const auto kernel = (*module)->kernel("k" + std::to_string(i));
    EXPECT_TRUE(static_cast<bool>(kernel)) << cases[i].text << "\n" << kernel.diags().text();
    if (!kernel) {
      out.push_back(outputs);
      continue;
    }
    EXPECT_TRUE(static_cast<bool>(engine.write(*in, std::as_bytes(std::span(inputs)))));
    EXPECT_TRUE(static_cast<bool>(engine.fill(*result, 8 * scalar_lanes, 0)));
    const Status launched = (*kernel)->launch({.grid = {1}, .block = {scalar_lanes}},
                                              Arguments().add(*in).add(*result), nullptr);
    EXPECT_TRUE(static_cast<bool>(launched)) << cases[i].text << "\n" << launched.diags().text();
    EXPECT_TRUE(static_cast<bool>(engine.synchronize()));
    EXPECT_TRUE(
        static_cast<bool>(engine.read(*result, std::as_writable_bytes(std::span(outputs)))));
    out.push_back(outputs);
  }
  engine.free(*in);
  engine.free(*result);
  return out;
}

}  // namespace tartan::test
