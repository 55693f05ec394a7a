// SPDX-License-Identifier: Apache-2.0
// Products in a row, each of which multiplies the result of the one before it: as programmatic
// dependent launches they may begin before that one has ended, and must wait for it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <optional>
#include <random>

#include "tests/support/engine.h"
#include "tests/support/numbers.h"

namespace tartan {
namespace {

using kernels::Gemm;

constexpr int products = 3;

// Of small integers, so few of them that f16 has every sum: n = k.
struct Chain {
  int m, n;
  std::vector<int> a, b;

  Chain(int rows, int columns) : m(rows), n(columns) {
    std::mt19937 random(static_cast<unsigned>(rows * 7 + columns));
    const auto fill = [&](std::vector<int>& out, int count) {
      for (int i = 0; i < count; ++i)
        out.push_back(random() % 8 ? 0 : static_cast<int>(random() % 3) - 1);
    };
    fill(a, m * n), fill(b, n * n);
  }

  std::vector<double> expected() const {
    std::vector<int> from = a, to(a.size());
    const auto at = [&](std::vector<int>& x, int row, int col) -> int& {
      return x[static_cast<std::size_t>(row) * static_cast<std::size_t>(n) +
               static_cast<std::size_t>(col)];
    };
    for (int i = 0; i < products; ++i, from = to)
      for (int row = 0; row < m; ++row)
        for (int col = 0; col < n; ++col) {
          int sum = 0;
          for (int depth = 0; depth < n; ++depth)
            sum += at(from, row, depth) *
                   b[static_cast<std::size_t>(col) * static_cast<std::size_t>(n) +
                     static_cast<std::size_t>(depth)];
          at(to, row, col) = sum;
        }
    return {from.begin(), from.end()};
  }
};

struct Step {
  Compiled compiled;
  LoadedKernel kernel;

  static std::optional<Step> of(Device& device, const Kernel& described) {
    auto compiled = compile(described, *Target::parse("sm_90a"));
    EXPECT_TRUE(compiled) << compiled.diags().text();
    if (!compiled) return {};
    const auto module = device.load(compiled->ptx, compiled->name);
    EXPECT_TRUE(module) << module.diags().text();
    if (!module) return {};
    auto kernel = module->kernel(compiled->name);
    return Step{std::move(*compiled), std::move(*kernel)};
  }

  void launch(Dim3 grid, const Arguments& arguments) {
    const Launch launch{.grid = grid,
                        .block = {static_cast<unsigned>(compiled.block)},
                        .dynamic_shared = static_cast<unsigned>(compiled.dynamic_shared),
                        .programmatic = true};
    const auto launched = kernel.launch(launch, *arguments_of(compiled, arguments));
    EXPECT_TRUE(launched) << launched.diags().text();
  }
};

// What the chain gives; findings fail the test.
std::vector<double> run(const Gemm& options, const Chain& chain) {
  Device device = test::open_engine({.hardware = "sm_90a", .checks = Checks::all});
  const auto buffer = [&](const std::vector<int>& values) {
    const std::vector<std::byte> bytes = testing_numbers::encode(f16, values);
    Buffer out = *device.allocate(bytes.size());
    EXPECT_TRUE(out.write(bytes));
    return out;
  };
  const Buffer b = buffer(chain.b),
               parts = *device.allocate(
                   static_cast<std::size_t>(options.workspace_elements(chain.m, chain.n)) * 4);
  std::vector<Buffer> results{buffer(chain.a)};
  for (int i = 0; i < products; ++i) results.push_back(*device.allocate(chain.a.size() * 2));
  auto first = Step::of(device, kernels::gemm(options));
  const bool divides = options.splits > 1;
  auto second = divides ? Step::of(device, kernels::gemm_sum(options)) : std::nullopt;
  if (!first || (divides && !second)) return {};
  constexpr int few = 4;  // multiprocessors, so that a CTA has several tiles
  for (std::size_t i = 0; i < products; ++i) {
    const Buffer &from = results[i], &to = results[i + 1];
    first->launch({options.grid_x(chain.m, chain.n, few), static_cast<unsigned>(options.splits)},
                  Arguments().add(from).add(b).add(divides ? parts : to));
    if (divides)
      second->launch({static_cast<unsigned>((chain.m * chain.n + 255) / 256)},
                     Arguments().add(parts).add(to));
  }
  const auto status = device.synchronize();
  EXPECT_TRUE(status) << status.diags().text();
  for (const Finding& finding : device.findings())
    ADD_FAILURE() << finding.id << ": " << finding.message;
  return testing_numbers::decode(f16, *results.back().read_all<std::byte>());
}

Gemm tiles(int m, int n, int warps_m, int producers) {
  return {.c = f16,
          .tile = {.m = m, .n = n, .k = 64, .warps_m = warps_m, .warps_n = 1},
          .stages = 3,
          .producers = producers};
}

void expect_right(const char* which, Gemm options, int m, int n) {
  SCOPED_TRACE(fmt::format("{}: {} x {} x {}", which, m, n, n));
  options.m = m, options.n = options.k = n;
  const Chain chain(m, n);
  EXPECT_EQ(run(options, chain), chain.expected());
}

// TMA, cp.async and copies of elements by producers, copies by all warps, no shared memory, more
// tiles than CTAs, clusters, splits, a second launch.
TEST(GemmChain, WaitsForTheLaunchInFront) {
  expect_right("TMA", tiles(64, 64, 4, 4), 70, 128);
  expect_right("cp.async", tiles(64, 64, 4, 4), 70, 132);
  expect_right("elements", tiles(64, 64, 4, 4), 70, 131);
  expect_right("all warps", tiles(64, 64, 4, 0), 70, 128);
  Gemm direct{.c = f16, .tile = {.m = 2, .n = 8, .k = 0, .warps_m = 1, .warps_n = 2}, .stages = 2};
  direct.direct = true;
  expect_right("direct", direct, 2, 128);
  Gemm persistent = tiles(64, 32, 4, 4);
  persistent.persistent = true;
  expect_right("persistent", persistent, 100, 192);
  persistent.tile.products = 2;
  expect_right("in turn", persistent, 100, 192);
  Gemm cluster = tiles(64, 32, 4, 4);
  cluster.cluster = cluster.cluster_columns = 2;
  expect_right("cluster", cluster, 140, 128);
  Gemm splits = tiles(64, 64, 4, 4);
  splits.cluster_splits = 2;
  expect_right("cluster_splits", splits, 70, 256);
  splits.cluster_splits = 1, splits.splits = 2;
  expect_right("splits", splits, 70, 256);
}

}  // namespace
}  // namespace tartan
