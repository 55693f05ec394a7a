// SPDX-License-Identifier: Apache-2.0
// GEMM by tcgen05 on sm_100a and its like: the naive loop's numbers, in several orders of warps and
// with all checks.
#include "tests/kernels/gemm_finished.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Launch;
using testing_gemm::Product;
using testing_gemm::target_of;

// Compiles for the target, whose text has products by tcgen05, and compares.
void compare(const char* on, const Product& product, unsigned blocks = 0) {
  // sm_107a has a later PTX version than tests take elsewhere.
  const bool newer = std::string_view(on) == "sm_107a";
  const auto compiled =
      compile(kernels::gemm(product.options), newer ? *Target::parse(on) : target_of(on));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(compiled->ptx.find("tcgen05.mma"), std::string::npos);
  EXPECT_EQ(compiled->ptx.find("mma.sync"), std::string::npos);
  Launch launch = product.launch();
  if (blocks) launch.grid = {blocks};
  for (const char* schedule : {"", "1", "2"}) {
    DeviceOptions options{.hardware = "sm_100a", .checks = Checks::all};
    if (*schedule) options.schedule = schedule;
    Device device = *Device::open("emulator", options);
    EXPECT_EQ(product.wrong(testing_gemm::run_on(device, *compiled, launch)), 0) << schedule;
  }
}

Gemm of_tile(Tile tile, int stages) {
  Gemm out{.stages = stages};
  out.tile = tile, out.producers = 4;
  return out;
}

// One warpgroup or two, of 128 or 64 rows each.
TEST(GemmTensor, RowsOfAWarpgroup) {
  for (const int warps : {4, 8})
    for (const int rows : {64, 128})
      for (const int columns : {16, 48, 128}) {
        SCOPED_TRACE(fmt::format("{} warps, {} rows, {} columns", warps, rows, columns));
        const Gemm options = of_tile(
            {.m = warps / 4 * rows, .n = columns, .k = 64, .warps_m = warps, .warps_n = 1}, 3);
        compare("sm_100a", Product(options, 200, 120, 264));
      }
}

TEST(GemmTensor, AwkwardSizes) {
  for (const int stages : {1, 2, 5})
    for (const auto& [m, n, k] :
         {std::array{1, 8, 8}, {130, 72, 64}, {128, 64, 1000}, {257, 136, 320}}) {
      SCOPED_TRACE(fmt::format("{} stages, {} x {} x {}", stages, m, n, k));
      compare("sm_100a",
              Product(of_tile({.m = 128, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1}, stages), m,
                      n, k));
    }
}

TEST(GemmTensor, EveryType) {
  for (const auto& [a, b] : {std::pair{f16, f16},
                             {bf16, bf16},
                             {f32, f32},
                             {Type::e4m3, Type::e4m3},
                             {Type::e5m2, Type::e4m3},
                             {Type::s8, Type::s8},
                             {Type::u8, Type::s8}})
    for (const int k : {32, 656}) {
      SCOPED_TRACE(fmt::format("{} and {}, k = {}", name(a), name(b), k));
      Gemm options =
          of_tile({.m = 128, .n = 96, .k = 1024 / bits(a), .warps_m = 4, .warps_n = 1}, 3);
      options.a = a, options.b = b;
      if (bits(a) == 8 && !info(a).floating) options.accumulator = options.c = s32;
      compare("sm_100a", Product(options, 200, 136, k));
    }
}

// Sums of 16 bits, and elements of six and four bits, which take a byte each in shared memory.
TEST(GemmTensor, SmallSumsAndElements) {
  for (const auto& [a, b] : {std::pair{f16, f16},
                             {Type::e4m3, Type::e5m2},
                             {Type::e3m2, Type::e2m3},
                             {Type::e2m1, Type::e4m3},
                             {Type::e2m1, Type::e2m1}})
    for (const Type sum : {f32, f16}) {
      SCOPED_TRACE(fmt::format("{} and {} into {}", name(a), name(b), name(sum)));
      Gemm options = of_tile({.m = 128,
                              .n = 64,
                              .k = std::max(bits(a), bits(b)) == 16 ? 64 : 128,
                              .warps_m = 4,
                              .warps_n = 1},
                             3);
      options.a = a, options.b = b, options.accumulator = options.c = sum;
      compare("sm_100a", Product(options, 200, 72, 272));
    }
}

TEST(GemmTensor, EveryOrder) {
  for (const Major of_a : {Major::row, Major::col})
    for (const Major of_b : {Major::row, Major::col})
      for (const int step : {32, 64, 128}) {
        SCOPED_TRACE(fmt::format("{} {}, k {}", name(of_a), name(of_b), step));
        Gemm options = of_tile({.m = 128, .n = 128, .k = step, .warps_m = 4, .warps_n = 1}, 2);
        options.a_major = of_a, options.b_major = of_b, options.a = options.b = bf16;
        compare("sm_100a", Product(options, 264, 200, 200));
      }
}

TEST(GemmTensor, EveryTarget) {
  for (const char* const on : {"sm_100a", "sm_100f", "sm_103a", "sm_107a", "sm_110a"})
    compare(on, Product(of_tile({.m = 128, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1}, 3), 200,
                        136, 200));
}

// Persistent CTAs, ping-pong, parts of k, clusters.
TEST(GemmTensor, EverySchedule) {
  const Tile tile{.m = 128, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
  const auto run = [&](const char* what, unsigned blocks, const auto& change) {
    SCOPED_TRACE(what);
    Gemm options = of_tile(tile, 3);
    change(options);
    compare("sm_100a", Product(options, 300, 200, 264), blocks);
  };
  run("persistent", 2, [](Gemm& o) { o.persistent = true; });
  run("ping-pong", 2, [](Gemm& o) { o.persistent = true, o.tile.products = 2; });
  run("swap", 0, [](Gemm& o) { o.swap = true; });
  run("row by row", 0, [](Gemm& o) { o.cluster = 2; });
  run("clusters of rows and columns", 0, [](Gemm& o) { o.cluster = 4, o.cluster_columns = 2; });
  run("persistent clusters", 4,
      [](Gemm& o) { o.cluster = 2, o.persistent = true, o.tile.products = 2; });
  run("bf16 results", 0, [](Gemm& o) { o.c = bf16; });
}

// CTAs take over tiles of CTAs that have not started; on other targets each has its own.
TEST(GemmTensor, Dynamic) {
  const auto options = [](int products, int cluster) {
    Gemm out =
        of_tile({.m = 128, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1, .products = products}, 3);
    out.persistent = out.dynamic = true, out.cluster = cluster;
    return out;
  };
  for (const int products : {1, 2})
    for (const int cluster : {1, 2, 4}) {
      SCOPED_TRACE(fmt::format("{} warpgroups in turn, clusters of {}", products, cluster));
      const Product product(options(products, cluster), 600, 200, 264);
      const auto compiled = compile(kernels::gemm(product.options), target_of("sm_100a"));
      ASSERT_TRUE(compiled) << compiled.diags().text();
      EXPECT_NE(compiled->ptx.find("clusterlaunchcontrol.try_cancel"), std::string::npos);
      compare("sm_100a", product);
    }
  const Product product(options(2, 2), 600, 200, 264);
  const auto compiled = compile(kernels::gemm(product.options), target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->ptx.find("clusterlaunchcontrol"), std::string::npos);
  Device device = *Device::open("emulator", {.hardware = "sm_90a", .checks = Checks::all});
  EXPECT_EQ(product.wrong(testing_gemm::run_on(device, *compiled, product.launch())), 0);
}

TEST(GemmTensor, DynamicNeedsProducersAndOneProduct) {
  const auto refusal = [](const Gemm& options) {
    const auto compiled = compile(kernels::gemm(options), target_of("sm_100a"));
    return compiled ? std::string() : compiled.diags().text();
  };
  Gemm options = of_tile({.m = 128, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1}, 3);
  options.dynamic = true;
  EXPECT_NE(refusal(options).find("require persistent and producers"), std::string::npos);
  options.persistent = options.batched = true;
  EXPECT_NE(refusal(options).find("dynamic excludes batched"), std::string::npos);
}

}  // namespace
}  // namespace tartan
