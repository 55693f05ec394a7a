// SPDX-License-Identifier: Apache-2.0
// What launch() and arguments_of() take from a compiled kernel, and which arguments they reject.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

constexpr int rows = 64;

// Copies tiles of A to C, by TMA if the target has it. Rows of A are declared to begin at multiples
// of 16 bytes.
Kernel copy_kernel() {
  return kernel("copies", {.block = rows, .producers = 1}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32, 4);
    auto A = k.global("A", s32, row_major(m, n)), C = k.global("C", s32, row_major(m, n));
    auto s = k.shared("s", s32, RingLayout{row_major(rows, 8), 2});
    k.roles([&] {
      const Scalar row = k.block_x();
      k.pipeline(
          {.stages = 2}, ceil_div(n, 8),
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({row, t}, {rows, 8}), s[stage]);
          },
          [&](Scalar t, Scalar stage) {
            k.copy(s[stage], C.tile({row, t}, {rows, 8}));
          });
    });
  });
}

Compiled compiled(const char* target) {
  auto out = compile(copy_kernel(), testing_gemm::target_of(target));
  EXPECT_TRUE(out) << out.diags().text();
  return *out;
}

std::string complaints(const Result<Arguments>& arguments) {
  return arguments ? "" : arguments.diags().text();
}

Arguments all(std::int32_t m, std::int32_t n, std::uint64_t a, std::uint64_t c) {
  return Arguments().add(m).add(n).add(a).add(c);
}

TEST(Launch, FillsInWhatTheKernelNeeds) {
  constexpr int m = 100, n = 20;
  Device& device = testing_gemm::emulator();
  for (const char* target : {"sm_80", "sm_90a"}) {
    SCOPED_TRACE(target);
    const Compiled copies = compiled(target);
    EXPECT_EQ(copies.maps.empty(), std::string_view(target) == "sm_80");
    std::vector<std::int32_t> values(m * n);
    for (int i = 0; i < m * n; ++i) values[static_cast<std::size_t>(i)] = i + 1;
    Buffer a = *device.allocate(m * n * 4), c = *device.allocate(m * n * 4);
    ASSERT_TRUE(a.write(values) && c.fill(0xff));
    auto kernel = device.load(copies.ptx, copies.name)->kernel(copies.name);
    const Stream stream = *device.stream();
    const auto launched =
        launch(*kernel, copies, {2}, Arguments().add(m).add(n).add(a).add(c), &stream);
    ASSERT_TRUE(launched) << launched.diags().text();
    ASSERT_TRUE(device.synchronize());
    EXPECT_EQ(*c.read_all<std::int32_t>(), values);
    EXPECT_FALSE(launch(*kernel, copies, {0}, all(m, n, a.address(), c.address())));
    EXPECT_FALSE(launch(*kernel, copies, {2}, Arguments()));
  }
}

TEST(Launch, ChecksNumberAndSizeOfArguments) {
  EXPECT_EQ(complaints(arguments_of(compiled("sm_90a"), Arguments().add(1).add(2))),
            "error: wrong number of arguments: kernel copies expects 4 arguments, found 2; "
            "arguments_of() adds tensor maps [launch-arguments]\n");
  EXPECT_EQ(complaints(arguments_of(compiled("sm_80"), Arguments())),
            "error: wrong number of arguments: kernel copies expects 4 arguments, found 0 "
            "[launch-arguments]\n");
  for (const char* target : {"sm_80", "sm_90a"})
    EXPECT_EQ(complaints(arguments_of(
                  compiled(target),
                  Arguments().add(std::uint64_t{64}).add(8).add(std::uint64_t{256}).add(1.0F))),
              "error: argument 0 (m) of kernel copies: expected 4 bytes, found 8 "
              "[launch-arguments]\nerror: argument 3 (C) of kernel copies: expected 8 bytes, found "
              "4 [launch-arguments]\n");
}

// Each error of a map is preceded by the matrix's name, and all errors are reported.
TEST(Launch, NamesTheMatrixThatTmaCannotRead) {
  const Compiled copies = compiled("sm_90a");
  EXPECT_EQ(arguments_of(copies, all(64, 8, 256, 256))->size(), 5u);
  EXPECT_EQ(complaints(arguments_of(copies, all(64, 8, 264, 256))),
            "error: A (parameter 2): address: 0x108 is not a multiple of 16 [tensor-map]\n");
  EXPECT_EQ(complaints(arguments_of(copies, all(0, 7, 256, 256))),
            "error: argument 1 (n) of kernel copies: expected a multiple of 4, found 7 "
            "[launch-arguments]\n");
}

// C = A * B with a block for each tile; sizes are arguments, A's and B's rows multiples of 8.
Kernel product_kernel(int producers, int cluster = 1, int m = 0) {
  const KernelOptions options{.block = 128, .producers = producers, .cluster = cluster};
  return kernel("product", options, [m](Builder& k) {
    const Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
    const Scalar rows = m ? Scalar(m) : k.param("m", s32), cols = k.param("n", s32, 4),
                 depth = k.param("k", s32, 8);
    auto A = k.global("A", f16, row_major(rows, depth)),
         B = k.global("B", f16, col_major(depth, cols));
    auto C = k.global("C", f32, row_major(rows, cols));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(2)), sB = k.shared("sB", f16, mma.shared_b(2));
    auto sum = mma.accumulator();
    auto [row, col] = k.block_tile(rows, cols, tile);
    const auto fill = [&, row = row, col = col](Scalar t, Scalar stage) {
      k.copy(A.tile({row, t}, {64, 64}), sA[stage]);
      k.copy(B.tile({t, col}, {64, 64}), sB[stage]);
    };
    const auto use = [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); };
    k.roles([&, row = row, col = col] {
      k.pipeline({.stages = 2}, ceil_div(depth, 64), fill, use);
      k.store(C.tile({row, col}, {64, 64}), sum);
    });
  });
}

// What a launch of the product says on the emulator; `c` is C afterwards.
std::string launched(const Compiled& product, Dim3 grid, int m, int n, int k,
                     std::vector<float>* c = nullptr) {
  Device& device = testing_gemm::emulator();
  device.clear_findings();
  const auto bytes = [](int count) { return static_cast<std::size_t>(std::max(count, 8)); };
  Buffer a = *device.allocate(bytes(2 * m * k)), b = *device.allocate(bytes(2 * n * k)),
         out = *device.allocate(bytes(4 * m * n));
  EXPECT_TRUE(a.fill(0x3C) && b.fill(0x3C) && out.fill(0xFF));
  Arguments arguments;
  if (product.params.size() == 6) arguments.add(m);
  arguments.add(n).add(k).add(a).add(b).add(out);
  auto kernel = device.load(product.ptx, product.name)->kernel(product.name);
  if (const auto status = launch(*kernel, product, grid, arguments); !status)
    return status.diags().text();
  if (const auto status = device.synchronize(); !status) return status.diags().text();
  if (c) *c = *out.read_all<float>();
  return device.findings().empty() ? "" : device.findings()[0].message;
}

TEST(Launch, OneBehaviourOnAllTargets) {
  for (const char* target : {"sm_75", "sm_80", "sm_90", "sm_90a", "sm_120"}) {
    SCOPED_TRACE(target);
    const auto product = compile(product_kernel(4), testing_gemm::target_of(target));
    ASSERT_TRUE(product) << product.diags().text();
    EXPECT_EQ(launched(*product, {6}, 100, 132, 72), "");
    // Each tile has its block, and each block its tile.
    for (const unsigned blocks : {5u, 7u}) {
      const std::string text = launched(*product, {blocks}, 100, 132, 72);
      EXPECT_NE(text.find(fmt::format("error: block_tile(): a block for each tile: expected 6 "
                                      "blocks along x, found {} [launch-arguments]",
                                      blocks)),
                std::string::npos)
          << text;
      EXPECT_NE(text.find("launch_test.cc:"), std::string::npos) << text;
    }
    // A promise that the launch breaks.
    EXPECT_EQ(launched(*product, {6}, 100, 132, 68),
              "error: argument 2 (k) of kernel product: expected a multiple of 8, found 68 "
              "[launch-arguments]\n");
    EXPECT_EQ(launched(*product, {6}, 100, 130, 72),
              "error: argument 1 (n) of kernel product: expected a multiple of 4, found 130 "
              "[launch-arguments]\n");
    // A product of nothing is 0.
    std::vector<float> c;
    EXPECT_EQ(launched(*product, {6}, 100, 132, 0, &c), "");
    EXPECT_EQ(c, std::vector<float>(100 * 132));
  }
}

// Clusters that the rows of tiles do not fill: the tiles below the result are neither read nor
// written.
TEST(Launch, TilesBelowTheResult) {
  for (const char* target : {"sm_90", "sm_90a"}) {
    SCOPED_TRACE(target);
    const auto product = compile(product_kernel(4, 2, 192), testing_gemm::target_of(target));
    ASSERT_TRUE(product) << product.diags().text();
    EXPECT_EQ(launched(*product, {4}, 192, 64, 64), "");
    EXPECT_NE(launched(*product, {3}, 192, 64, 64).find("expected 4 blocks"), std::string::npos);
  }
}

// The index of a block, or of a k-tile, as that of a tile that divides its matrix.
TEST(Launch, TilesBeyondTheMatrix) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    SCOPED_TRACE(target);
    const auto copies =
        compile(kernel("copies", {.block = 32, .producers = 1},
                       [](Builder& k) {
                         auto steps = k.param("steps", s32), n = k.param("n", s32, 8);
                         auto A = k.global("A", f32, row_major(64, n)),
                              C = k.global("C", f32, row_major(64, n));
                         auto s = k.shared("s", f32, RingLayout{row_major(16, 8), 2});
                         k.roles([&] {
                           const Scalar row = k.block_y();
                           k.pipeline(
                               {.stages = 2}, steps,
                               [&](Scalar t, Scalar stage) {
                                 k.copy(A.tile({row, t}, {16, 8}), s[stage]);
                               },
                               [&](Scalar t, Scalar stage) {
                                 k.copy(s[stage], C.tile({row, t}, {16, 8}));
                               });
                         });
                       }),
                testing_gemm::target_of(target));
    ASSERT_TRUE(copies) << copies.diags().text();
    Device& device = testing_gemm::emulator();
    Buffer a = *device.allocate(64 * 32 * 4), c = *device.allocate(64 * 32 * 4);
    auto kernel = device.load(copies->ptx, copies->name)->kernel(copies->name);
    const auto says = [&](unsigned blocks, int steps) {
      const auto status =
          launch(*kernel, *copies, {1, blocks}, Arguments().add(steps).add(32).add(a).add(c));
      EXPECT_TRUE(device.synchronize());
      return status ? "" : status.diags().text();
    };
    EXPECT_EQ(says(4, 4), "");
    EXPECT_EQ(says(2, 3), "");
    EXPECT_NE(says(5, 4).find("rows of tiles of C: expected at most 4 blocks along y, found 5"),
              std::string::npos);
    EXPECT_NE(says(4, 5).find(
                  "columns of tiles of C: expected at most 4 as the end of its loop or pipeline, "
                  "found 5"),
              std::string::npos);
  }
}

// Tiles that do not divide their matrix would be zeros beyond it.
TEST(Launch, TilesThatALoopReaches) {
  struct Loop {
    int step, ahead;
    bool elements;  // it counts elements, not tiles
    int rows, n;
    const char* says;  // nothing: it is right
  };
  const Loop loops[] = {
      {1, 0, false, 100, 36, nullptr},
      {1, 0, true, 100, 36, "columns of tiles of A: expected at most 5 as the end of its loop"},
      {8, 0, true, 100, 36, "columns of tiles of A: expected at most 12 as the end of its loop"},
      {1, 1, false, 100, 36, "columns of tiles of A: expected at most 4 as the end of its loop"},
      {2, 1, false, 100, 32, nullptr},
      {1, 0, false, 100, 0, nullptr},
      {1, 1, false, 100, 0, nullptr},
      {1, 0, false, 60, 36, "rows of tiles of A: expected at most 4 blocks along y, found 7"},
  };
  for (const Loop& with : loops) {
    SCOPED_TRACE(fmt::format("step {} ahead {} n {}", with.step, with.ahead, with.n));
    const auto copies =
        compile(kernel("copies", {.block = 32},
                       [&](Builder& k) {
                         auto m = k.param("m", s32), n = k.param("n", s32, 4);
                         auto A = k.global("A", f32, row_major(m, n));
                         auto s = k.shared("s", f32, row_major(16, 8));
                         k.loop(0, with.elements ? n : ceil_div(n, 8), with.step, [&](Scalar t) {
                           k.barrier();
                           k.copy(A.tile({k.block_y(), t + with.ahead}, {16, 8}), s);
                         });
                       }),
                testing_gemm::target_of("sm_80"));
    ASSERT_TRUE(copies) << copies.diags().text();
    Device& device = testing_gemm::emulator();
    Buffer a = *device.allocate(100 * 40 * 4);
    auto kernel = device.load(copies->ptx, copies->name)->kernel(copies->name);
    const auto status =
        launch(*kernel, *copies, {1, 7}, Arguments().add(with.rows).add(with.n).add(a));
    EXPECT_TRUE(device.synchronize());
    EXPECT_EQ(static_cast<bool>(status), !with.says) << (status ? "" : status.diags().text());
    if (!with.says || status) continue;
    EXPECT_NE(status.diags().text().find(with.says), std::string::npos) << status.diags().text();
  }
}

TEST(Launch, ReportsErrorsOfAllMaps) {
  const kernels::Gemm options =
      kernels::tuned(kernels::Gemm{.m = 0, .n = 0, .k = 0}, testing_gemm::target_of("sm_90a"));
  const auto gemm = compile(kernels::gemm(options), testing_gemm::target_of("sm_90a"));
  ASSERT_TRUE(gemm) << gemm.diags().text();
  const auto arguments = Arguments().add(64).add(64).add(64);
  const std::string text = complaints(arguments_of(*gemm, Arguments(arguments)
                                                              .add(std::uint64_t{264})
                                                              .add(std::uint64_t{520})
                                                              .add(std::uint64_t{1024})));
  EXPECT_EQ(text,
            "error: A (parameter 3): address: 0x108 is not a multiple of 16 [tensor-map]\nerror: B "
            "(parameter 4): address: 0x208 is not a multiple of 16 [tensor-map]\n");
}

}  // namespace
}  // namespace tartan
