// SPDX-License-Identifier: Apache-2.0
// The epilogue, split-K, and batches.
#include <unistd.h>

#include "tests/kernels/gemm_finished.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::Activation;
using kernels::Epilogue;
using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::every_part;
using testing_gemm::Finished;
using testing_gemm::Launch;
using testing_gemm::Product;

int wrong(const Gemm& options, int m, int n, int k, double tolerance = 0) {
  return Finished{Product(options, m, n, k)}.wrong(tolerance);
}

// NaN in one row of A: its row of C is NaN for every activation, if C's type has a NaN.
TEST(GemmEpilogue, NanIsKept) {
  for (const auto& [accumulator, c] :
       {std::pair{f32, f32}, {f32, f16}, {f32, bf16}, {f32, Type::e4m3}, {f32, s8}, {f64, f64}})
    for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu,
                                        Activation::silu, Activation::sigmoid}) {
      if (c == f64 && activation > Activation::relu) continue;
      SCOPED_TRACE(fmt::format("{}, activation {}", name(c), static_cast<int>(activation)));
      Gemm options{.accumulator = accumulator, .c = c, .epilogue = {.activation = activation}};
      if (c == f64) options.a = options.b = f64;
      const Product product(options, 16, 16, 16);
      Launch launch = product.launch();
      launch.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
        product.add_inputs(device, arguments, buffers);
        const std::size_t line = 16 * static_cast<std::size_t>(bits(options.a)) / 8;
        EXPECT_TRUE(buffers[0].write(Bytes(line, std::byte{0xFF}), 3 * line));
        return product.add_output(device, arguments);
      };
      const bool exact = activation <= Activation::relu;  // the others approximate
      const Bytes got = testing_gemm::run(kernels::gemm(product.options),
                                          testing_gemm::target("sm_89"), launch, exact);
      const auto values = testing_numbers::decode(c, got);
      ASSERT_EQ(values.size(), 256u);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool nan = i / 16 == 3;
        if (c == s8) {
          EXPECT_TRUE(!nan || values[i] == -128) << i << ": " << values[i];  // the least
          continue;
        }
        const bool found =
            c == Type::e4m3 ? (got[i] & std::byte{0x7F}) == std::byte{0x7F} : std::isnan(values[i]);
        EXPECT_EQ(found, nan) << i << ": " << values[i];
      }
    }
}

TEST(GemmEpilogue, EveryOperation) {
  const Epilogue parts[] = {{.alpha = true},
                            {.alpha = true, .beta = true},
                            {.row_scales = true},
                            {.column_scales = true, .bias = true},
                            {.activation = Activation::relu},
                            {.bias = true, .activation = Activation::relu, .residual = true},
                            every_part};
  int round = 0;
  for (const Epilogue& epilogue : parts) {
    SCOPED_TRACE(round);
    EXPECT_EQ(wrong({.epilogue = epilogue}, 65, 63 + round % 2, 40), 0);
    EXPECT_EQ(
        wrong({.a = f64, .b = f64, .accumulator = f64, .c = f64, .epilogue = epilogue}, 33, 65, 17),
        0);
    ++round;
  }
}

// tanh.approx is good to 2^-11, ex2.approx and rcp.approx to some units in the last place.
TEST(GemmEpilogue, Activations) {
  EXPECT_EQ(
      wrong({.epilogue = {.alpha = true, .column_scales = true, .activation = Activation::gelu}},
            64, 65, 16, 1.5e-3),
      0);
  EXPECT_EQ(
      wrong({.epilogue = {.row_scales = true, .activation = Activation::silu}}, 7, 200, 63, 1e-5),
      0);
  EXPECT_EQ(
      wrong({.epilogue = {.bias = true, .activation = Activation::sigmoid}}, 33, 64, 40, 1e-5), 0);
}

TEST(GemmEpilogue, SmallResults) {
  // Scales of 1/8 leave halves: the tie goes to the even neighbour. Sums beyond the range clamp.
  Gemm options{.a = s8, .b = s8, .accumulator = s32, .c = s8, .epilogue = {.column_scales = true}};
  EXPECT_EQ(wrong(options, 65, 66, 64), 0);
  EXPECT_EQ(wrong(options, 63, 65, 200), 0);
  options.c = Type::u8, options.epilogue.bias = true;
  EXPECT_EQ(wrong(options, 16, 127, 64), 0);
  options.c = f16;
  EXPECT_EQ(wrong(options, 64, 65, 16), 0);
  options = {
      .accumulator = f16, .c = f16, .epilogue = {.bias = true, .activation = Activation::relu}};
  EXPECT_EQ(wrong(options, 64, 63, 16), 0);
  options = {.a = bf16, .b = bf16, .c = bf16, .epilogue = {.bias = true, .residual = true}};
  EXPECT_EQ(wrong(options, 63, 64, 65), 0);
}

int wrong_on(const char* target, const Gemm& options, int m, int n, int k) {
  SCOPED_TRACE(fmt::format("{} to {} on {}: {} x {} x {}", name(options.a), name(options.c), target,
                           m, n, k));
  return Finished{Product(options, m, n, k)}.wrong(0, target);
}

// Sums of the first type's products exceed 448; the scales make ties, and numbers below 2^-6.
TEST(GemmEpilogue, EightBitFloats) {
  constexpr Type e4m3 = Type::e4m3, e5m2 = Type::e5m2;
  for (const char* target : {"sm_89", "sm_90", "sm_120"}) {
    EXPECT_EQ(wrong_on(target, {.a = e4m3, .b = e4m3, .c = e4m3}, 65, 63, 127), 0);
    EXPECT_EQ(wrong_on(target, {.a = e4m3, .b = e5m2, .c = e5m2}, 16, 200, 64), 0);
    EXPECT_EQ(
        wrong_on(target, {.a = e5m2, .b = e5m2, .c = e4m3, .epilogue = every_part}, 33, 66, 40), 0);
    EXPECT_EQ(
        wrong_on(target, {.c = f16, .epilogue = {.alpha = true, .residual = true}}, 64, 65, 40), 0);
    EXPECT_EQ(
        wrong_on(target, {.c = e5m2, .epilogue = {.alpha = true, .residual = true}}, 64, 65, 40),
        0);
  }
}

TEST(GemmEpilogue, RejectsEightBitFloatsOnOldTargets) {
  const auto compiled = compile(kernels::gemm({.c = Type::e4m3}), testing_gemm::target_of("sm_86"));
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.diags().text().find("cvt.rn.satfinite.e4m3x2.f32, which requires sm_89"),
            std::string::npos)
      << compiled.diags().text();
}

TEST(GemmEpilogue, RejectsInvalidOptions) {
  for (const Gemm& options :
       {Gemm{.a = s8, .b = s8, .accumulator = s32, .c = s32, .epilogue = {.alpha = true}},
        Gemm{.a = f64,
        .b = f64,
        .accumulator = f64,
        .c = f64,
        .epilogue = {.activation = Activation::gelu}},
        Gemm{.c = Type::e4m3}, Gemm{.c = Type::e2m1}}) {
    const auto compiled = compile(kernels::gemm(options), testing_gemm::target_of("sm_80"));
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.diags()[0].id, "kernel-option");
  }
}

// Common fp8 use on Hopper: row and column scales, accumulators promoted to full f32 or not.
TEST(GemmEpilogue, ScalesAfterWgmma) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  const Target target = testing_gemm::target_of("sm_90a");
  for (const Type c : {bf16, Type::e4m3, f16, f32})
    for (const int promote : {0, 1, 2})
      for (const auto& [m, n, k] : {std::array{128, 128, 256}, {72, 136, 400}, {1, 16, 16}}) {
        SCOPED_TRACE(fmt::format("{}, {}: {} x {} x {}", name(c), promote, m, n, k));
        Gemm options{.a = Type::e4m3, .b = Type::e4m3, .c = c, .promote = promote};
        options.epilogue = {.row_scales = true, .column_scales = true};
        options.tile = {.m = 128, .n = 64, .k = 128, .warps_m = 8, .warps_n = 1};
        options.producers = 4;
        const Finished finished{Product(options, m, n, k)};
        const Kernel gemm = kernels::gemm(finished.product.options);
        EXPECT_NE(compile(gemm, target)->ptx.find("\twgmma.mma_async"), std::string::npos);
        EXPECT_EQ(finished.product.wrong(testing_gemm::run(gemm, target, finished.launch()),
                                         [&](int i, int j) { return finished.expected(i, j); }),
                  0);
      }
}

// Wrong elements of split-K with a workspace, by two launches.
// Of split-K: gives the workspace.
Launch launch_of_parts(const Product& product) {
  Launch parts = product.launch();
  parts.grid.y = static_cast<unsigned>(product.options.splits);
  parts.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
    product.add_inputs(device, arguments, buffers);
    Buffer out = *device.allocate(
        static_cast<std::size_t>(product.options.workspace_elements(product.m, product.n)) * 4);
    EXPECT_TRUE(out.fill(0xFF));
    arguments.add(out);
    return out;
  };
  return parts;
}

int wrong_by_splits(const Gemm& options, int m, int n, int k, const char* name) {
  const Finished finished{Product(options, m, n, k)};
  const Product& product = finished.product;
  const Target target = testing_gemm::target_of(name);
  const Bytes workspace =
      testing_gemm::run(kernels::gemm(product.options), target, launch_of_parts(product));
  Launch sum = product.launch();
  sum.grid = {static_cast<unsigned>((m * n + 255) / 256)};
  sum.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
    arguments.add(product.m).add(product.n);
    buffers.push_back(testing_gemm::buffer_of(device, workspace));
    arguments.add(buffers.back());
    Buffer out = product.add_output(device, arguments);
    finished.add_extras(device, arguments, buffers);
    return out;
  };
  return product.wrong(testing_gemm::run(kernels::gemm_sum(product.options), target, sum),
                       [&](int i, int j) { return finished.expected(i, j); });
}

// Element (i, j) of part `split` in the workspace, as docs/kernels.md has it: of rows and columns
// rounded up to whole tiles.
std::int64_t place_in_workspace(const Gemm& options, int m, int n, int split, int i, int j) {
  const int of_m = options.swap ? options.tile.n : options.tile.m,
            of_n = options.swap ? options.tile.m : options.tile.n;
  const std::int64_t rows = (m + of_m - 1) / of_m * of_m, columns = (n + of_n - 1) / of_n * of_n;
  if (options.swap) return (i * std::int64_t{options.splits} + split) * columns + j;
  return (split * rows + i) * columns + j;
}

TEST(GemmEpilogue, WorkspaceOfSplits) {
  constexpr int m = 70, n = 133, k = 264;
  for (const bool swap : {false, true})
    for (const int splits : {2, 3})
      for (const bool warpgroups : {false, true}) {
        SCOPED_TRACE(fmt::format("{} parts, swap {}, {}", splits, swap, warpgroups));
        Gemm options{.splits = splits};
        options.swap = swap;
        options.tile = {.m = 64, .n = 32, .k = 64, .warps_m = 2, .warps_n = 2};
        if (warpgroups) options.tile.warps_m = 4, options.tile.warps_n = 1, options.producers = 4;
        const Product product(options, m, n, k);
        const Bytes got = testing_gemm::run(
            kernels::gemm(product.options),
            testing_gemm::target_of(warpgroups ? "sm_90a" : "sm_80"), launch_of_parts(product));
        const auto parts = testing_numbers::decode(f32, got);
        int wrong = 0;
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int split = 0; split < splits; ++split)
              sum += parts.at(
                  static_cast<std::size_t>(place_in_workspace(options, m, n, split, i, j)));
            wrong += sum != product.sum(i, j);
          }
        EXPECT_EQ(wrong, 0);
      }
}

TEST(GemmEpilogue, SplitK) {
  for (const auto& [splits, k] : {std::pair{2, 65}, {3, 200}, {5, 64}})
    for (const bool swap : {false, true}) {
      SCOPED_TRACE(fmt::format("{} parts of {}, swap {}", splits, k, swap));
      Gemm options{.epilogue = {.alpha = true, .bias = true}, .splits = splits, .swap = swap};
      options.tile = {.m = 64, .n = 32, .k = 32, .warps_m = 2, .warps_n = 2};
      EXPECT_EQ(wrong_by_splits(options, 65, 70, k, "sm_80"), 0);
    }
}

// Partial sums of the transpose are stored as C is. CTAs of clusters beyond the last tile too.
TEST(GemmEpilogue, SplitKOfTheTransposeByWarpgroups) {
  for (const auto& [columns, m, n, k] :
       {std::array{72, 65, 200, 712}, {24, 70, 136, 264}, {8, 3, 70, 520}, {96, 90, 133, 136}})
    for (const int splits : {2, 3})
      for (const int cluster : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} columns, {} parts, cluster {}", columns, splits, cluster));
        Gemm options{.a = bf16, .b = bf16, .c = bf16, .epilogue = every_part, .splits = splits};
        options.epilogue.beta = false;  // of an old C, which no test writes here
        options.tile = {.m = 64, .n = columns, .k = 64, .warps_m = 4, .warps_n = 1};
        options.producers = 4, options.swap = true;
        options.cluster = cluster, options.cluster_columns = cluster;
        EXPECT_EQ(wrong_by_splits(options, m, n, k, "sm_90a"), 0);
      }
}

// The same products as a batch, by so many CTAs along x. 0: one for each tile.
void expect_batches(const Gemm& options, const char* target, int m, int n, int k, unsigned blocks) {
  constexpr int count = 3;
  SCOPED_TRACE(fmt::format("{}: {} x {} x {}, {} blocks", target, m, n, k, blocks));
  const Product product(options, m, n, k);
  // The same matrices, with a batch stride of one row more than their size.
  const auto spread = [](const Bytes& one, std::size_t stride) {
    Bytes out;
    for (int i = 0; i < count; ++i) {
      out.insert(out.end(), one.begin(), one.end());
      out.resize(stride * static_cast<std::size_t>(i + 1));
    }
    return out;
  };
  const std::int64_t stride_a = m * k + k, stride_b = n * k + k, stride_c = m * n + n;
  Launch launch = product.launch();
  launch.grid = {blocks ? blocks : product.options.blocks(m, n), 1, count};
  launch.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
    arguments.add(m).add(n).add(k).add(stride_a).add(stride_b).add(stride_c);
    for (const auto& [type, values, stride] :
         {std::tuple{f16, product.a, stride_a}, {f16, product.b, stride_b}}) {
      buffers.push_back(testing_gemm::buffer_of(
          device,
          spread(testing_numbers::encode(type, values), static_cast<std::size_t>(stride) * 2)));
      arguments.add(buffers.back());
    }
    Buffer out = *device.allocate(static_cast<std::size_t>(count * stride_c) * 4);
    EXPECT_TRUE(out.fill(0xFF));
    arguments.add(out);
    return out;
  };
  const Bytes got =
      testing_gemm::run(kernels::gemm(product.options), testing_gemm::target_of(target), launch);
  ASSERT_EQ(got.size(), static_cast<std::size_t>(count * stride_c) * 4);
  for (int i = 0; i < count; ++i) {
    const auto begin = got.begin() + i * stride_c * 4;
    EXPECT_EQ(product.wrong(Bytes(begin, begin + m * n * 4)), 0);
    EXPECT_TRUE(std::all_of(begin + m * n * 4, begin + stride_c * 4,
                            [](std::byte b) { return b == std::byte{0xFF}; }));
  }
}

TEST(GemmEpilogue, Batches) {
  expect_batches({.batched = true}, testing_gemm::gpu() ? "sm_90a" : "sm_80", 17, 24, 40, 0);
}

// A CTA has tiles of one product of the batch; the warpgroups take them in turn.
TEST(GemmEpilogue, BatchesInPingPong) {
  Gemm options{.stages = 3, .persistent = true, .producers = 4, .batched = true};
  options.tile = {.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1, .products = 2};
  for (const unsigned blocks : {1u, 2u, 5u})
    for (const int k : {8, 200}) expect_batches(options, "sm_90a", 130, 136, k, blocks);
}

// The epilogue fits in registers beside the accumulators. `spills`: the bytes that remain.
TEST(GemmEpilogue, FitsInRegisters) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  const Epilogue residual{.residual = true},
      scaled{
          .row_scales = true, .column_scales = true, .bias = true, .activation = Activation::relu},
      everything{.alpha = true,
                 .beta = true,
                 .row_scales = true,
                 .column_scales = true,
                 .bias = true,
                 .activation = Activation::gelu,
                 .residual = true};
  const Gemm large{.m = 4096, .n = 4096, .k = 4096}, any{.m = 0, .n = 0, .k = 0};
  const auto to = [](Gemm options, Type c) { return options.c = c, options; };
  const auto of = [](Gemm options, Type type, Type sums) {
    return options.a = options.b = type, options.accumulator = sums, options.multiple = 16, options;
  };
  Gemm a_col_major = any, shared = any, few = large;
  a_col_major.a_major = Major::col, shared.stream_blocks = 132, few.m = 64;
  struct Row {
    const char* target;
    Gemm options;
    Epilogue epilogue;
    int spills = 0;
  };
  const Row rows[] = {{"sm_90a", large, residual},
                      {"sm_90a", to(large, bf16), scaled},
                      {"sm_90a", any, scaled},
                      {"sm_90a", large, everything},
                      {"sm_90a", to(any, bf16), everything},
                      {"sm_90a", few, everything},
                      {"sm_90a", to(of(any, Type::e4m3, f32), Type::e4m3), everything},
                      {"sm_90a", to(of(any, s8, s32), s8), everything},
                      {"sm_90a", to(shared, bf16), everything},
                      {"sm_80", to(any, bf16), everything},
                      {"sm_86", a_col_major, {.row_scales = true}},
                      {"sm_80", to(shared, bf16), everything, 64},
                      {"sm_90", of(any, Type::e4m3, f32), everything, 12},
                      {"sm_120a", to(of(any, Type::e4m3, f32), Type::e4m3), everything}};
  const std::string at = testing::TempDir() + std::to_string(getpid()) + "_tartan_epilogue";
  for (const Row& row : rows) {
    Gemm options = row.options;
    options.epilogue = row.epilogue;
    const Target target = testing_gemm::target_of(row.target);
    const auto compiled = compile(kernels::gemm(tuned(options, target)), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_LE(test::spilled_bytes(compiled->ptx, row.target, at), row.spills)
        << "row " << &row - rows << ", " << row.target;
  }
}

}  // namespace
}  // namespace tartan
