// SPDX-License-Identifier: Apache-2.0
// tests/kernels/scaled_gemm_run.h - a product with fine scales, its launch, and what it should be.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "tests/kernels/gemm_run.h"
#include "tests/kernels/scaled_values.h"

namespace tartan::testing_scaled_gemm {

using kernels::Grouping;
using kernels::ScaledGemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;
using testing_gemm::target_of;
using testing_scaled::block;
using testing_scaled::blocks_of;
using testing_scaled::bytes_of;
using testing_scaled::element;
using testing_scaled::scale;

inline constexpr float untouched = -7;

struct Scaled {
  ScaledGemm options;
  int m, n, k, groups;
  std::vector<int> list;  // of rows or groups, as the grouping has it
  std::vector<host::e4m3> a, b;
  std::vector<float> scales_a, scales_b;
  int line;  // of SA

  Scaled(const ScaledGemm& wanted, int rows, int cols, int depth, std::vector<int> of = {},
         int experts = 1, bool fixed = true)
      : options(wanted), m(rows), n(cols), k(depth), groups(experts), list(std::move(of)) {
    options.m = fixed ? m : 0, options.n = fixed ? n : 0;
    options.k = fixed || options.grouping == Grouping::masked ? k : 0;
    line = (m + 3) / 4 * 4;
    const int stacked = masked() ? groups : 1;
    for (int i = 0; i < stacked * m * k; ++i) a.push_back(element(i));
    for (int i = 0; i < groups * n * k; ++i) b.push_back(element(i + (1 << 20)));
    for (int i = 0; i < stacked * line * blocks_of(k); ++i) scales_a.push_back(scale(i));
    for (int i = 0; i < groups * blocks_of(n) * blocks_of(k); ++i)
      scales_b.push_back(scale(i + (1 << 21)));
  }

  bool masked() const { return options.grouping == Grouping::masked; }
  /// The group of a row of C (all of them, one below the other); -1: the row is not computed.
  int group_of(int row) const {
    if (options.grouping == Grouping::none) return 0;
    if (!masked()) return list[static_cast<std::size_t>(row)];
    return row % m < list[static_cast<std::size_t>(row / m)] ? row / m : -1;
  }
  int rows() const { return masked() ? groups * m : m; }

  float expected(int row, int col) const {
    const int group = group_of(row);
    if (group < 0) return untouched;
    // The CTAs that divide k-tiles, whose sums are added in their order.
    const int parts = options.cluster_splits,
              stages = (blocks_of(k) + options.blocks_k - 1) / options.blocks_k;
    const auto begin = [&](int part) {
      return (part * (stages / parts) + std::min(part, stages % parts)) * options.blocks_k;
    };
    float total = 0;
    for (int part = 0; part < parts; ++part) {
      const float sum = sum_of(row, col, group, begin(part), begin(part + 1));
      total = part ? total + sum : sum;
    }
    return total;
  }

  /// Of k-tiles, those that exist.
  float sum_of(int row, int col, int group, int first, int end) const {
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    const std::int64_t stacked = masked() ? row / m : 0;
    float sum = 0;
    for (int t = first; t < std::min(end, blocks_of(k)); ++t) {
      double product = 0;
      for (int x = t * block; x < std::min(k, (t + 1) * block); ++x)
        product += double(float(a[at(std::int64_t{row} * k + x)])) *
                   double(float(b[at((std::int64_t{group} * n + col) * k + x)]));
      const float scale =
          scales_a[at((stacked * blocks_of(k) + t) * line + (masked() ? row % m : row))] *
          scales_b[at((std::int64_t{group} * blocks_of(n) + col / block) * blocks_of(k) + t)];
      sum = std::fma(static_cast<float>(product), scale, sum);
    }
    return sum;
  }

  Launch launch(int blocks = 0) const {
    const unsigned grid = blocks ? static_cast<unsigned>(blocks) * options.cluster
                                 : options.grid_x(m, n, 8, masked() ? groups : 1);
    return {{grid}, [this](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
              for (const auto& [fixed, value] :
                   {std::pair{options.m, m}, {options.n, n}, {options.k, k}})
                if (!fixed) arguments.add(value);
              if (masked()) arguments.add(groups);
              const auto add = [&](const Bytes& bytes) {
                buffers.push_back(testing_gemm::buffer_of(device, bytes));
                arguments.add(buffers.back());
              };
              add(bytes_of(a)), add(bytes_of(scales_a)), add(bytes_of(b)), add(bytes_of(scales_b));
              Buffer c = testing_gemm::buffer_of(device, initial());
              arguments.add(c);
              if (options.grouping != Grouping::none) add(bytes_of(list));
              return c;
            }};
  }
  std::size_t elements() const { return static_cast<std::size_t>(rows()) * n; }
  Bytes initial() const {
    if (options.c == f32) return bytes_of(std::vector<float>(elements(), untouched));
    return bytes_of(std::vector<host::bf16>(elements(), host::bf16(untouched)));
  }
  float rounded(float x) const { return options.c == f32 ? x : float(host::bf16(x)); }

  /// What differs first; empty if nothing does.
  std::string wrong(const Bytes& bytes) const {
    const std::size_t each = options.c == f32 ? 4 : 2;
    if (bytes.size() < elements() * each) return "no output";
    for (int row = 0; row < rows(); ++row)
      for (int col = 0; col < n; ++col) {
        const std::size_t i = static_cast<std::size_t>(row) * n + col;
        float got = 0;
        if (each == 4) {
          std::memcpy(&got, &bytes[i * 4], 4);
        } else {
          host::bf16 half(0);
          std::memcpy(&half, &bytes[i * 2], 2);
          got = float(half);
        }
        const float want = rounded(expected(row, col));
        if (got != want && !(std::isnan(got) && std::isnan(want)))
          return fmt::format("({}, {}): expected {}, got {}", row, col, want, got);
      }
    return {};
  }

  std::string run(const char* target = "sm_90a", int blocks = 0) const {
    return wrong(testing_gemm::run(kernels::scaled_gemm(options), target_of(target), launch(blocks),
                                   std::string_view(target) == "sm_90a"));
  }
};

inline ScaledGemm of_tile(int m, int n, int warps, int stages = 2) {
  ScaledGemm out{.stages = stages};
  out.tile.m = m, out.tile.n = n, out.tile.warps_m = warps;
  return out;
}

// Each group's rows are padded to 128; a group without rows; padding between and at the end.
inline std::vector<int> rows_of(const std::vector<int>& counts) {
  std::vector<int> out;
  for (std::size_t group = 0; group < counts.size(); ++group) {
    for (int i = 0; i < counts[group]; ++i) out.push_back(static_cast<int>(group));
    while (out.size() % block) out.push_back(-1);
  }
  return out;
}

}  // namespace tartan::testing_scaled_gemm
