// SPDX-License-Identifier: Apache-2.0
// fp8 accumulation in full f32: the tensor cores' accumulators are promoted every few k-tiles.
#include <unistd.h>

#include <cmath>

#include "tests/kernels/gemm_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Product;

constexpr int m = 64, n = 16, depth = 4096, tile_k = 256;

// ---- A model of sm_90a's wgmma.

double cut(double x, int lowest) { return std::ldexp(std::trunc(std::ldexp(x, -lowest)), lowest); }

// c and 32 products: all truncated to 13 bits below the largest exponent and summed exactly; the
// sum is truncated to 14 bits. (The exponent of a product is the sum of its factors'.)
double add_products(double c, const std::vector<std::pair<int, int>>& factors) {
  int most = c != 0 ? std::ilogb(c) : -1000;
  for (const auto& [x, y] : factors) most = std::max(most, std::ilogb(x) + std::ilogb(y));
  double sum = cut(c, most - 13);
  for (const auto& [x, y] : factors) sum += cut(x * y, most - 13);
  return sum != 0 ? cut(sum, std::ilogb(sum) - 13) : 0;
}

double model(const Product& product, int i, int j) {
  const int promote = product.options.promote;
  float sum = 0;
  double part = 0;
  for (int first = 0; first < product.k; first += 32) {
    std::vector<std::pair<int, int>> factors;
    for (int x = first; x < first + 32; ++x)
      factors.push_back({product.a_at(i, x), product.b_at(x, j)});
    part = add_products(part, factors);
    if (promote && (first + 32) % (promote * tile_k) == 0)
      sum += static_cast<float>(part), part = 0;
  }
  return sum + static_cast<float>(part);
}

// ---- Positive numbers, so that sums only grow.

Product positive(const Gemm& options) {
  Product out(options, m, n, depth);
  for (std::size_t i = 0; i < out.a.size(); ++i)
    out.a[i] = 1 + static_cast<int>(i * 7 + i / 5 * 3 + i / 4096) % 15;
  for (std::size_t i = 0; i < out.b.size(); ++i)
    out.b[i] = 1 + static_cast<int>(i * 11 + i / 7 * 5 + i / 4096) % 15;
  return out;
}

double mean_error(const Product& product, const Bytes& got) {
  const auto values = testing_numbers::decode(f32, got);
  double out = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n && values.size() == static_cast<std::size_t>(m * n); ++j) {
      const double exact = product.sum(i, j);
      out += std::fabs(values[static_cast<std::size_t>(i * n + j)] - exact) / exact / (m * n);
    }
  return out;
}

Gemm fp8(int promote) {
  Gemm out{.a = Type::e4m3, .b = Type::e4m3, .promote = promote, .producers = 4};
  out.tile = {.m = 64, .n = n, .k = tile_k, .warps_m = 4, .warps_n = 1};
  return out;
}

TEST(GemmPromote, ErrorsFallAndAreTheModels) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  std::vector<double> errors;
  for (const int promote : {0, 1, 3, 4}) {
    SCOPED_TRACE(promote);
    const Product product = positive(fp8(promote));
    const Bytes got = testing_gemm::run(kernels::gemm(product.options),
                                        testing_gemm::target_of("sm_90a"), product.launch());
    EXPECT_EQ(product.wrong(got, [&](int i, int j) { return model(product, i, j); }), 0);
    errors.push_back(mean_error(product, got));
    RecordProperty(fmt::format("promote_{}", promote), fmt::format("{:.3g}", errors.back()));
  }
  EXPECT_GT(errors[0], 20 * errors[1]);
  EXPECT_LT(errors[1], errors[2]);
  EXPECT_LT(errors[2], errors[3]);
  EXPECT_LT(errors[3], errors[0]);
}

// mma.sync, with and without producers; sm_89 adds like wgmma.
TEST(GemmPromote, SmallNumbersAreExact) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm < 89) GTEST_SKIP();
  for (const int promote : {1, 2, 5})
    for (const int producers : {0, 1})
      for (const auto& [rows, cols, k] : {std::array{1, 7, 16}, {65, 127, 200}, {64, 64, 640}}) {
        SCOPED_TRACE(fmt::format("{}, {}: {} x {} x {}", promote, producers, rows, cols, k));
        for (const Type type : {f16, Type::e5m2}) {
          Gemm options{.a = type, .b = type, .promote = promote, .producers = producers};
          options.tile.k = 32;
          const Product product(options, rows, cols, k);
          EXPECT_EQ(
              product.wrong(testing_gemm::run(kernels::gemm(product.options),
                                              testing_gemm::target("sm_89"), product.launch())),
              0);
        }
      }
}

TEST(GemmPromote, ErrorsFallWithoutWarpgroupsToo) {
  if (testing_gemm::gpu()) GTEST_SKIP() << "a GPU adds as it does, whatever the text is for";
  std::vector<double> errors;
  for (const int promote : {0, 2}) {
    const Product product = positive(fp8(promote));
    errors.push_back(
        mean_error(product, testing_gemm::run(kernels::gemm(product.options),
                                              testing_gemm::target_of("sm_89"), product.launch())));
  }
  EXPECT_GT(errors[0], 10 * errors[1]);
}

TEST(GemmPromote, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const int promote : {1, 2})
    for (const int cols : {64, 128}) {
      Gemm options = fp8(promote);
      options.tile = {.m = 128, .n = cols, .k = 128, .warps_m = 8, .warps_n = 1};
      const auto compiled = compile(kernels::gemm(options), testing_gemm::target_of("sm_90a"));
      ASSERT_TRUE(compiled) << compiled.diags().text();
      EXPECT_NE(compiled->ptx.find("\twgmma.mma_async"), std::string::npos);
      test::expect_good_registers(
          compiled->ptx, "sm_90a",
          testing::TempDir() + std::to_string(getpid()) + "_tartan_promote");
    }
}

TEST(GemmPromote, RejectsInvalidOptions) {
  for (const Gemm& options : {Gemm{.promote = -1}, Gemm{.accumulator = f16, .promote = 1}}) {
    const auto compiled = compile(kernels::gemm(options), testing_gemm::target_of("sm_80"));
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.diags()[0].id, "kernel-option");
  }
}

TEST(GemmPromote, AddTakesTilesOfOneShape) {
  const Kernel adds = kernel("adds", {.block = 32}, [](Builder& k) {
    const auto kind = m16n8k16(f16, f16, f32);
    const Tile tile{.m = 16, .n = 16, .k = 16, .warps_m = 1, .warps_n = 1};
    Tile wide = tile;
    wide.n = 32;
    const auto x = k.tiled_mma(kind, tile), y = k.tiled_mma(kind, wide);
    (void)(x.accumulator() + y.accumulator());
  });
  const auto compiled = compile(adds, testing_gemm::target_of("sm_80"));
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.diags()[0].id, "fragment-mismatch");
}

}  // namespace
}  // namespace tartan
