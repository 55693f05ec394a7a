// SPDX-License-Identifier: Apache-2.0
// Schedules of the GEMM kernel: warp-specialized, persistent, stream-K.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;
using testing_gemm::Product;

struct Sizes {
  int m, n, k;
};
constexpr const char* targets[] = {"sm_80", "sm_90"};
constexpr Sizes all_sizes[] = {
    {64, 64, 64}, {1, 7, 16}, {65, 127, 200}, {200, 63, 1}, {127, 200, 65}};

int wrong_elements(const Product& product, unsigned blocks) {
  Launch launch = product.launch();
  launch.grid = {blocks};
  int out = 0;
  for (const char* target : targets)  // copies by threads, and by TMA
    out += product.wrong(
        testing_gemm::run(kernels::gemm(product.options), testing_gemm::target(target), launch));
  return out;
}

TEST(GemmSchedule, ProducersCopyForConsumers) {
  for (const auto& [m, n, k] : all_sizes)
    for (const int producers : {1, 2, 4})
      for (const Major b_major : {Major::col, Major::row}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}, {} warps fill", m, n, k, producers));
        Gemm options{.b_major = b_major, .stages = 1 + producers, .producers = producers};
        const Product product(options, m, n, k);
        EXPECT_EQ(wrong_elements(product, product.options.blocks(m, n)), 0);
      }
}

TEST(GemmSchedule, PersistentBlocksComputeSeveralTiles) {
  for (const auto& [m, n, k] : all_sizes)
    for (const unsigned blocks : {1u, 2u, 5u, 64u})
      for (const int producers : {0, 1}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}, {} blocks, {}", m, n, k, blocks, producers));
        Gemm options{.persistent = true, .producers = producers};
        EXPECT_EQ(wrong_elements(Product(options, m, n, k), blocks), 0);
      }
}

// wgmma from shared memory. Elements are small integers, so that sums are exact in any order.
TEST(GemmSchedule, WgmmaMultiplies) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  int products = 0;
  for (const auto& [m, n, k] : {Sizes{128, 64, 64}, {1, 8, 16}, {72, 136, 200}, {200, 64, 8}})
    for (const Type type : {f16, bf16, Type::s8, f32, Type::e4m3, Type::e5m2})
      for (const Major a_major : {Major::row, Major::col})
        for (const Major b_major : {Major::col, Major::row}) {
          SCOPED_TRACE(fmt::format("{} {} {}: {} x {} x {}", name(type), name(a_major),
                                   name(b_major), m, n, k));
          Gemm options{.a = type, .b = type, .a_major = a_major, .b_major = b_major};
          if (type == Type::s8) options.accumulator = options.c = s32;
          options.tile = {.m = 128, .n = 64, .k = 64, .warps_m = 8, .warps_n = 1};
          options.producers = 4;
          const Product product(options, m, n, k);
          const Kernel gemm = kernels::gemm(product.options);
          const Target target = testing_gemm::target_of("sm_90a");
          EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, product.launch())), 0);
          // 8-bit and 32-bit elements are multiplied along k only, on all targets.
          const bool along_k = a_major == Major::row && b_major == Major::col;
          EXPECT_EQ(compile(gemm, target)->ptx.find("\twgmma.mma_async") != std::string::npos,
                    bits(type) == 16 || along_k);
          ++products;
        }
  EXPECT_EQ(products, 96);
}

// Five boxes per warp, with room for two: the next tile's first box may reuse the memory of the
// last one.
TEST(GemmSchedule, TmaStoresConsecutiveTiles) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  for (const int stages : {2, 5}) {
    Gemm options{.stages = stages};
    options.tile = {.m = 128, .n = 160, .k = 64, .warps_m = 8, .warps_n = 1};
    options.persistent = true, options.producers = 4;
    const Product product(options, 300, 328, 136);
    Launch launch = product.launch();
    launch.grid = {2};
    const Kernel gemm = kernels::gemm(product.options);
    const Target target = testing_gemm::target_of("sm_90a");
    EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, launch)), 0);
    const std::string text = explain(compile(gemm, target)->choices);
    const std::string batch =
        fmt::format("each warp stages {} of its 5 boxes at a time", stages == 2 ? 5 : 1);
    EXPECT_NE(text.find(batch), std::string::npos) << text;
  }
}

// Where stages leave little room beside them, a CTA of one tile stages C in their memory: all boxes
// of a warp or warpgroup at once, also of a transpose, of two m64 for each warpgroup, and in
// clusters whose last tiles do not exist.
TEST(GemmSchedule, StagesTheOnlyTileInTheRing) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  const struct {
    Type type;
    int m, n, warps, stages, cluster_columns;
    bool swap;
    const char* batch;
  } cases[] = {{bf16, 256, 160, 8, 4, 1, false, "each warp stages 6 of its 6 boxes"},
               {bf16, 256, 152, 8, 4, 2, true, "each warpgroup stages 4 of its 4 boxes"},
               {Type::e4m3, 192, 200, 12, 4, 2, true, "each warpgroup stages 2 of its 2 boxes"},
               {f32, 128, 192, 8, 5, 1, false, "each warp stages 6 of its 6 boxes"}};
  for (const auto& [type, m, n, warps, stages, columns, swap, batch] : cases) {
    SCOPED_TRACE(fmt::format("{} {}x{}, swap {}", name(type), m, n, swap));
    Gemm options{.a = type, .b = type, .c = type == Type::e4m3 ? bf16 : type, .stages = stages};
    options.tile = {.m = m, .n = n, .k = 1024 / bits(type), .warps_m = warps, .warps_n = 1};
    options.producers = 4, options.cluster_columns = columns, options.swap = swap;
    const Product product(options, 200, 408, 7 * 1024 / bits(type) + 32, true);
    const Kernel gemm = kernels::gemm(product.options);
    const Target target = testing_gemm::target_of("sm_90a");
    EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, product.launch())), 0);
    const std::string text = explain(compile(gemm, target)->choices);
    EXPECT_NE(text.find(batch), std::string::npos) << text;
    EXPECT_EQ(text.find("fragment by fragment"), std::string::npos) << text;
  }
}

// The stages of a row-major B of any width are not swizzled, and begin where no box may.
TEST(GemmSchedule, StagesBesideARingThatIsNotAligned) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  Gemm options{.c = f32, .b_major = Major::row, .stages = 5, .producers = 4};
  options.tile = {.m = 48, .n = 136, .k = 112, .warps_m = 3, .warps_n = 1};
  const Product product(options, 40, 208, 32);
  const Kernel gemm = kernels::gemm(product.options);
  EXPECT_EQ(
      product.wrong(testing_gemm::run(gemm, testing_gemm::target_of("sm_90a"), product.launch())),
      0);
}

// Of six stages and more, a stage is released when the products of the next one have been issued.
TEST(GemmSchedule, ReleasesAStageLate) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  const Target target = testing_gemm::target_of("sm_90a");
  for (const int warps : {4, 8})
    for (const int stages : {5, 6, 9})
      for (const int k : {8, 64, 72, 6 * 64, 20 * 64})
        for (const bool persistent : {false, true})
          for (const bool fixed : {false, true}) {
            SCOPED_TRACE(fmt::format("{} warps, {} stages, k = {}, {} {}", warps, stages, k,
                                     persistent, fixed));
            Gemm options{.stages = stages, .persistent = persistent, .producers = 4};
            options.tile = {.m = 16 * warps, .n = 32, .k = 64, .warps_m = warps, .warps_n = 1};
            const Product product(options, 200, 72, k, fixed);
            const Kernel gemm = kernels::gemm(product.options);
            Launch launch = product.launch();
            if (persistent) launch.grid = {3};
            EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, launch)), 0);
            const auto compiled = compile(gemm, target);
            EXPECT_EQ(compiled->ptx.find("wgmma.wait_group.sync.aligned 1;") != std::string::npos,
                      stages > 5);
          }
}

// Boxes of C with rows of different lengths, some of an odd number of chunks, stored by TMA and by
// warps.
TEST(GemmSchedule, TilesOfAnyWidthAreStoredByBoxes) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  for (const auto& [c, width] : {std::pair{bf16, 80},
                                 {bf16, 208},
                                 {bf16, 120},
                                 {bf16, 72},
                                 {f32, 56},
                                 {Type::e4m3, 224},
                                 {Type::e4m3, 176}})
    for (const int n : {424, 421}) {
      SCOPED_TRACE(fmt::format("{} {}: {} columns", name(c), width, n));
      Gemm options{.c = c, .stages = 2};
      options.tile = {.m = 64, .n = width, .k = 64, .warps_m = 4, .warps_n = 1};
      options.producers = 4, options.persistent = true;
      const Product product(options, 72, n, 64);
      const Kernel gemm = kernels::gemm(product.options);
      const Target target = testing_gemm::target_of("sm_90a");
      const std::string text = explain(compile(gemm, target)->choices);
      const std::string way = n % (128 / bits(c)) ? "rows of boxes" : "cp.async.bulk.tensor, boxes";
      EXPECT_NE(text.find("store to C: " + way), std::string::npos) << text;
      Launch launch = product.launch();
      launch.grid = {3};
      const auto sum = [&](int i, int j) { return product.sum(i, j); };
      const double rounding = bits(c) == 8 ? 1. / 16 : 0;
      EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, launch), sum, rounding), 0);
    }
}

// A warpgroup that requests more registers than the others release would wait forever.
TEST(GemmSchedule, SetmaxnregSuitsAnyNumberOfWarpgroups) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  for (const int warpgroups : {2, 3, 4, 6})
    for (const int producers : {4, 8}) {
      SCOPED_TRACE(fmt::format("{} warpgroups compute, {} warps fill", warpgroups, producers));
      Gemm options{.stages = 2};
      // So wide that a consumer needs registers of producers.
      const int warps = 4 * warpgroups + producers, columns = warps <= 12   ? 256
                                                              : warps <= 16 ? 160
                                                              : warps <= 20 ? 96
                                                                            : 64;
      options.tile = {.m = 64 * warpgroups, .n = columns, .k = 64, .warps_m = 4 * warpgroups};
      options.tile.warps_n = 1;
      options.producers = producers;
      const Product product(options, 64 * warpgroups, 64, 136);
      const Kernel gemm = kernels::gemm(product.options);
      const Target target = testing_gemm::target_of("sm_90a");
      EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, product.launch())), 0);
      EXPECT_NE(compile(gemm, target)->ptx.find("setmaxnreg.inc"), std::string::npos);
    }
}

TEST(GemmSchedule, TunedForHopper) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  const Target target = testing_gemm::target_of("sm_90a");
  const struct {
    int m, n, k, tile_m, tile_n;
    bool persistent;
  } cases[] = {{8192, 8192, 8192, 128, 256, true},
               {2048, 2048, 2048, 128, 256, false},
               {2048, 1280, 8192, 128, 160, false},  // one round of all multiprocessors
               {1536, 1536, 1536, 128, 144, false},
               {896, 1280, 2048, 128, 72, false},   // transposed: 13 by 10 tiles
               {696, 1872, 3840, 128, 88, false},   // 8 by 15, on 128-byte lines
               {496, 3192, 3712, 128, 104, false},  // 5 by 25, of at most 512 rows
               {1024, 1024, 1024, 128, 64, false},
               {768, 768, 768, 64, 80, false},
               {512, 512, 512, 64, 32, false},
               {128, 4096, 4096, 64, 64, false},
               {40, 8192, 8192, 64, 40, false},
               // 17 columns of 256 would be five waves, as 20 of 208 are.
               {4096, 4098, 4096, 128, 208, true},
               // Rows off 128-byte lines; two m64 for each warpgroup.
               {4095, 4097, 4104, 256, 192, true},
               {1272, 3912, 4976, 256, 152, false}};
  for (const auto& [m, n, k, tile_m, tile_n, persistent] : cases) {
    const Gemm options = kernels::tuned(Gemm{.m = m, .n = n, .k = k}, target);
    EXPECT_EQ(options.tile.m, tile_m) << m << " x " << n;
    EXPECT_EQ(options.tile.n, tile_n) << m << " x " << n;
    EXPECT_EQ(options.persistent, persistent) << m << " x " << n;
    const bool off_lines = k % 64 != 0;
    EXPECT_EQ(options.cluster_columns, off_lines ? 2 : 1) << m << " x " << n;
    EXPECT_EQ(options.cluster, 1) << m << " x " << n;
    const auto compiled = compile(kernels::gemm(options), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_NE(compiled->ptx.find("wgmma.mma_async"), std::string::npos);
  }
  EXPECT_EQ(kernels::tuned(Gemm{}, *Target::parse("sm_90")).producers, 0);
  for (const Type type : {bf16, f32, Type::s8, Type::e4m3}) {
    Gemm options{.m = 136, .n = 264, .k = 200};
    options.a = options.b = type;
    if (type == Type::s8) options.accumulator = options.c = s32;
    const Product product(kernels::tuned(options, target), 136, 264, 200, true);
    EXPECT_EQ(
        product.wrong(testing_gemm::run(kernels::gemm(product.options), target, product.launch())),
        0);
  }
  // Tiles of every width, with as many stages as fit.
  for (const int n : {1024, 1280, 1536, 2048}) {
    const Gemm options = kernels::tuned(Gemm{.m = 1024, .n = n, .k = 1024}, target);
    const Product product(options, 136, options.tile.n + 8, 600, true);
    EXPECT_EQ(
        product.wrong(testing_gemm::run(kernels::gemm(product.options), target, product.launch())),
        0);
  }
}

// The cost model's choice, with the GPU that stands for the target.
TEST(GemmSchedule, TunedForOtherTargets) {
  const struct {
    const char* target;
    Type type;
    int size, tile_m, tile_n;
  } cases[] = {{"sm_80", f16, 4096, 128, 256},   {"sm_89", f16, 4096, 128, 192},
               {"sm_80", f16, 2048, 128, 64},    {"sm_120", bf16, 1024, 64, 96},
               {"sm_90", Type::s8, 512, 32, 64}, {"sm_86", f32, 4096, 64, 64},
               {"sm_90a", f16, 16, 64, 16},      {"sm_80", f16, 16, 16, 64},
               {"sm_89", bf16, 24, 32, 32},      {"sm_90a", Type::e4m3, 16, 64, 16}};
  for (const auto& [name, type, size, tile_m, tile_n] : cases) {
    SCOPED_TRACE(fmt::format("{} {} {}", name, tartan::name(type), size));
    const Target target = testing_gemm::target_of(name);
    Gemm options{.m = size, .n = 4096, .k = 4096, .a = type, .b = type};
    if (size > 32) options.n = size;
    if (type == Type::s8) options.accumulator = options.c = s32;
    const Gemm tuned = kernels::tuned(options, target);
    EXPECT_EQ(tuned.tile.m, tile_m);
    EXPECT_EQ(tuned.tile.n, tile_n);
    if (testing_gemm::gpu() && testing_gemm::gpu()->arch().text() != name) continue;
    const Product product(tuned, std::min(size, 136), 264, 400, true);
    const auto got = testing_gemm::run(kernels::gemm(product.options), target, product.launch());
    EXPECT_EQ(product.wrong(got), 0);
  }
  EXPECT_EQ(kernels::tuned(Gemm{}, *Target::parse("sm_75")).stages, Gemm{}.stages);
}

// The arguments C and the partial tiles; returns the one that `out` names.
struct Shared {
  const Product& product;
  Bytes c, parts;

  Launch launch(bool want_parts) const {
    Launch out = product.launch();
    out.grid = {static_cast<unsigned>(product.options.stream_blocks)};
    out.arguments = [this, want_parts](Device& device, Arguments& arguments,
                                       std::vector<Buffer>& buffers) {
      product.add_inputs(device, arguments, buffers);
      buffers.push_back(product.add_output(device, arguments));
      buffers.push_back(*device.allocate(
          static_cast<std::size_t>(product.options.workspace_elements(product.m, product.n) * 4)));
      EXPECT_TRUE(buffers.back().fill(0xFF));
      arguments.add(buffers.back());
      return want_parts ? buffers.back() : buffers[buffers.size() - 2];
    };
    return out;
  }
  Launch sum() const {
    Launch out = product.launch();
    out.arguments = [this](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
      arguments.add(product.m).add(product.n).add(product.k);
      buffers.push_back(testing_gemm::buffer_of(device, parts));
      arguments.add(buffers.back());
      Buffer result = testing_gemm::buffer_of(device, c);
      arguments.add(result);
      return result;
    };
    return out;
  }
};

void expect_shared(const Gemm& options, int m, int n, int k, const Target& target) {
  SCOPED_TRACE(fmt::format("{} x {} x {}, {} blocks, {}", m, n, k, options.stream_blocks,
                           options.producers));
  const Product product(options, m, n, k);
  const Kernel gemm = kernels::gemm(product.options);
  Shared shared{product, {}, {}};
  shared.c = testing_gemm::run(gemm, target, shared.launch(false));
  shared.parts = testing_gemm::run(gemm, target, shared.launch(true));
  Bytes out = testing_gemm::run(kernels::gemm_sum(product.options), target, shared.sum());
  out.resize(std::min(out.size(), shared.c.size()));
  EXPECT_EQ(product.wrong(out), 0);
}

TEST(GemmSchedule, BlocksShareTiles) {
  for (const auto& [m, n, k] : all_sizes)
    for (const int blocks : {1, 3, 7, 16})
      for (const int producers : {0, 2})
        expect_shared({.stream_blocks = blocks, .producers = producers}, m, n, k,
                      testing_gemm::target(targets[producers / 2]));
}

// Of rows that are read line by line.
TEST(GemmSchedule, BlocksShareTilesOfLines) {
  for (const int blocks : {3, 7}) {
    Gemm options{.stream_blocks = blocks};
    options.tile.k = 64;
    expect_shared(options, 99, 70, 331, testing_gemm::target("sm_80"));
  }
}

TEST(GemmSchedule, RejectsInvalidOptions) {
  const auto refused = [](const Gemm& options) {
    const auto compiled = compile(kernels::gemm(options), testing_gemm::target_of("sm_80"));
    return compiled ? std::string("compiled") : compiled.diags().text();
  };
  EXPECT_NE(refused({.splits = 2, .stream_blocks = 4}).find("exclude each other"),
            std::string::npos);
  EXPECT_NE(refused({.stream_blocks = 4, .batched = true}).find("unsupported for batched products"),
            std::string::npos);
  EXPECT_NE(refused({.producers = 40}).find("at most 1024 threads in total"), std::string::npos);
  Gemm in_turn;
  in_turn.tile.products = 3;
  EXPECT_NE(refused(in_turn).find("tile.products = 3: warpgroups"), std::string::npos);
  // Before sm_80 no thread can wait for another's copies: all threads copy.
  const auto compiled = compile(kernels::gemm({.producers = 4}), testing_gemm::target_of("sm_75"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->block, 128);
}

}  // namespace
}  // namespace tartan
