// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/register_sweep.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "tests/support/text_files.h"

namespace tartan::test {
namespace {

using Words = std::map<std::string, std::string>;

int number(const Words& words, const std::string& name) {
  const auto at = words.find(name);
  return at == words.end() ? 0 : std::atoi(at->second.c_str());
}

Type type(const Words& words, const std::string& name) {
  const auto at = words.find(name);
  const auto found = at == words.end() ? std::nullopt : parse_type(at->second);
  EXPECT_TRUE(found) << name;
  return found.value_or(f16);
}

kernels::Epilogue epilogue(const std::string& parts) {
  kernels::Epilogue out;
  for (const std::string& part : split(parts, "+")) {
    out.alpha |= part == "alpha", out.beta |= part == "beta", out.bias |= part == "bias";
    out.row_scales |= part == "row_scales", out.column_scales |= part == "column_scales";
    out.residual |= part == "residual";
    if (part == "relu") out.activation = kernels::Activation::relu;
    if (part == "gelu") out.activation = kernels::Activation::gelu;
    if (part == "silu") out.activation = kernels::Activation::silu;
  }
  return out;
}

Kernel gemm(const Words& words) {
  kernels::Gemm out{.m = 0, .n = 0, .k = 0};
  out.a = out.b = type(words, "a"), out.accumulator = type(words, "sums"), out.c = type(words, "c");
  out.multiple = 16, out.multiple_c = 4;
  std::sscanf(words.at("tile").c_str(), "%dx%dx%d", &out.tile.m, &out.tile.n, &out.tile.k);
  std::sscanf(words.at("warps").c_str(), "%dx%d", &out.tile.warps_m, &out.tile.warps_n);
  out.stages = number(words, "stages"), out.producers = number(words, "producers");
  out.promote = number(words, "promote"), out.persistent = words.contains("persistent");
  if (words.contains("epilogue")) out.epilogue = epilogue(words.at("epilogue"));
  return kernels::gemm(out);
}

Kernel attention(const Words& words) {
  return kernels::attention({.head_dim = number(words, "head"),
                             .type = type(words, "type"),
                             .causal = words.contains("causal"),
                             .packed = words.contains("packed"),
                             .queries_per_block = number(words, "queries"),
                             .keys_per_step = number(words, "keys"),
                             .warps = number(words, "warps"),
                             .stages = number(words, "stages"),
                             .producers = number(words, "producers")});
}

}  // namespace

std::vector<RegisterRow> register_rows(const std::string& path) {
  std::vector<RegisterRow> out;
  for (const std::string& line : split(read_file(path), "\n")) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t arrow = line.find(" -> ");
    const std::string configuration = line.substr(0, arrow);
    const std::vector<std::string> parts = split(configuration);
    Words words;
    for (std::size_t i = 2; i < parts.size(); ++i) {
      const std::size_t sign = parts[i].find('=');
      words[parts[i].substr(0, sign)] = sign == std::string::npos ? "" : parts[i].substr(sign + 1);
    }
    Registers recorded;
    const std::string verdict = arrow == std::string::npos ? "" : line.substr(arrow + 4);
    recorded.refused = verdict == "refused";
    if (!recorded.refused && !verdict.empty()) {
      EXPECT_EQ(
          std::sscanf(verdict.c_str(), "%d registers, %d bytes", &recorded.used, &recorded.spilled),
          2)
          << line;
    }
    out.push_back({configuration, parts.at(1), parts[0] == "gemm" ? gemm(words) : attention(words),
                   recorded});
  }
  return out;
}

}  // namespace tartan::test
