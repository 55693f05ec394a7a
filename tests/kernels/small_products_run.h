// SPDX-License-Identifier: Apache-2.0
// tests/kernels/small_products_run.h - runs batches of small products on small integers, whose sums
// are exact in any order, and compares them with the naive loop.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tartan/kernels/small_products.h"
#include "tests/kernels/two_launches.h"
#include "tests/support/numbers.h"

namespace tartan::testing_small_products {

using S = kernels::SmallProducts;
using Bytes = std::vector<std::byte>;

// Whole numbers, so few that sums of 64 products are exact in the type of C.
inline std::vector<int> elements(const S& with, std::size_t count, unsigned seed) {
  const int range = with.c == bf16 ? 3 : with.c == f64 ? 2001 : 9;
  std::vector<int> out;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    out.push_back(static_cast<int>(seed >> 8) % range - range / 2);
  }
  return out;
}

struct Batch {
  S with;
  int count;
  std::vector<int> a, b;  // in memory order

  Batch(const S& options, int batch) : with(options), count(batch) {
    const auto of = [&](int rows, int cols) {
      return static_cast<std::size_t>(count) * rows * cols;
    };
    a = elements(with, of(with.m, with.k), 1), b = elements(with, of(with.k, with.n), 2);
  }

  double expected(int p, int i, int j) const {
    std::int64_t out = 0;
    for (int x = 0; x < with.k; ++x) {
      const int in_a = with.a_major == Major::row ? i * with.k + x : x * with.m + i,
                in_b = with.b_major == Major::row ? x * with.n + j : j * with.k + x;
      out += std::int64_t{a[static_cast<std::size_t>(p) * with.m * with.k + in_a]} *
             b[static_cast<std::size_t>(p) * with.k * with.n + in_b];
    }
    return static_cast<double>(out);
  }
};

inline constexpr std::byte untouched{0xFF};

// C of as many products as there is room for, and what lies behind; nothing after an error.
inline Bytes run(Device& device, const Compiled& compiled, const Bytes& a, const Bytes& b,
                 std::size_t room, int batch, unsigned blocks) {
  const auto buffer = [&](const Bytes& bytes) {
    Buffer out = *device.allocate(std::max<std::size_t>(bytes.size(), 16));
    EXPECT_TRUE(bytes.empty() || out.write(bytes));
    return out;
  };
  const Buffer from_a = buffer(a), from_b = buffer(b);
  Buffer c = *device.allocate(room);
  auto module = device.load(compiled.ptx, compiled.name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  LoadedKernel loaded = *module->kernel(compiled.name);
  const Arguments arguments = Arguments().add(batch).add(from_a).add(from_b).add(c);
  return test::two_launches(device, loaded, compiled, blocks, arguments, c);
}

inline std::string text(const S& with) {
  return fmt::format("{}x{}x{} {} to {}, {}, {} major, {} x {} warps, {} products, {} ahead",
                     with.m, with.n, with.k, name(with.type), name(with.c), name(with.a_major),
                     name(with.b_major), with.warps_m, with.warps_n, with.products, with.ahead);
}

// `beyond`: blocks that have nothing to do.
inline void expect_products(Device& device, const Target& target, const S& with, int count,
                            unsigned beyond = 0) {
  SCOPED_TRACE(fmt::format("{}, batch {}, on {}", text(with), count, target.text()));
  const auto compiled = compile(kernels::small_products(with), target);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  const Batch batch(with, count);
  constexpr std::size_t guard = 256;
  const std::size_t own = static_cast<std::size_t>(count) * with.m * with.n * bits(with.c) / 8;
  Bytes got = run(device, *compiled, testing_numbers::encode(with.type, batch.a),
                  testing_numbers::encode(with.type, batch.b), own + guard, count,
                  with.blocks(count) + beyond);
  ASSERT_EQ(got.size(), own + guard);
  EXPECT_EQ(std::count(got.end() - guard, got.end(), untouched), static_cast<long>(guard));
  got.resize(own);
  const std::vector<double> values = testing_numbers::decode(with.c, got);
  int wrong = 0;
  std::size_t at = 0;
  for (int p = 0; p < count; ++p)
    for (int i = 0; i < with.m; ++i)
      for (int j = 0; j < with.n; ++j, ++at) {
        const double want = batch.expected(p, i, j);
        if (values[at] == want) continue;
        if (++wrong == 1)
          ADD_FAILURE() << fmt::format("product {} ({}, {}): {}, expected {}", p, i, j, values[at],
                                       want);
      }
  EXPECT_EQ(wrong, 0);
}

}  // namespace tartan::testing_small_products
