// SPDX-License-Identifier: Apache-2.0
// Products with k = 0 at run time: sums are 0 and the epilogue runs, and neither A nor B is read.
#include "tartan/kernels/block_scaled.h"
#include "tartan/kernels/sparse.h"
#include "tartan/kernels/wmma_gemm.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;

constexpr int m = 72, n = 136;

// A product whose sizes are multiples of a k-tile: no bounds checks.
struct Nothing {
  Gemm options;
  bool sparse = false;
  const char* target = "sm_80";
  unsigned blocks = 0;

  Kernel kernel() const { return sparse ? kernels::sparse_gemm(options) : kernels::gemm(options); }
  Buffer old(Device& device) const {
    return testing_gemm::buffer_of(
        device, testing_numbers::encode(options.c, std::vector<int>(std::size_t{m} * n, 5)));
  }
  // Any read of A and B is a fault, or gives NaN.
  void add_inputs(Device& device, Arguments& arguments, std::vector<Buffer>& buffers) const {
    arguments.add(m).add(n).add(0);
    for (int i = 0; i < (sparse ? 3 : 2); ++i) {
      buffers.push_back(*device.allocate(16));
      EXPECT_TRUE(buffers.back().fill(0xFF));
      arguments.add(buffers.back());
    }
  }
  Launch launch(bool want_parts = false) const {
    const unsigned x = blocks ? blocks : options.blocks(m, n);
    return {{x, static_cast<unsigned>(options.splits)},
            [this, want_parts](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
              add_inputs(device, arguments, buffers);
              const bool divided = options.splits > 1 || options.stream_blocks > 0;
              if (divided) {
                buffers.push_back(*device.allocate(
                    static_cast<std::size_t>(options.workspace_elements(m, n)) * 4));
                EXPECT_TRUE(buffers.back().fill(0xFF));
              }
              const Buffer parts = divided ? buffers.back() : Buffer{};
              if (options.splits > 1) return arguments.add(parts), parts;
              Buffer c = old(device);
              arguments.add(c);
              if (options.epilogue.beta) arguments.add(3.0F);
              if (divided) arguments.add(parts);
              buffers.push_back(c);
              return want_parts ? parts : c;
            }};
  }
  // The reduction of the splits, with C's old contents.
  Launch sum(const Bytes& parts) const {
    return {{options.stream_blocks ? options.blocks(m, n) : (m * n + 255) / 256},
            [this, &parts](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
              arguments.add(m).add(n);
              if (options.stream_blocks) arguments.add(0);
              buffers.push_back(testing_gemm::buffer_of(device, parts));
              Buffer c = old(device);
              arguments.add(buffers.back()).add(c);
              if (options.epilogue.beta) arguments.add(3.0F);
              return c;
            }};
  }

  void expect(double value) const {
    SCOPED_TRACE(fmt::format("{} {}, {} splits, {} blocks{}", target, name(options.a),
                             options.splits, options.stream_blocks, sparse ? ", sparse" : ""));
    const Target compiled_for = testing_gemm::target_of(target);
    const bool on_gpu = testing_gemm::runs_on_gpu(compiled_for);
    Bytes got = testing_gemm::run(kernel(), compiled_for, launch(), on_gpu);
    if (options.splits > 1)
      got = testing_gemm::run(kernels::gemm_sum(options), compiled_for, sum(got), on_gpu);
    const auto values = testing_numbers::decode(options.c, got);
    ASSERT_EQ(values.size(), std::size_t{m} * n);
    EXPECT_EQ(std::count(values.begin(), values.end(), value), m * n) << values[0];
    if (options.stream_blocks == 0) return;
    // Whole tiles only: nothing is added to them.
    const Bytes parts = testing_gemm::run(kernel(), compiled_for, launch(true), false);
    const auto after = testing_numbers::decode(
        options.c, testing_gemm::run(kernels::gemm_sum(options), compiled_for, sum(parts), false));
    EXPECT_EQ(std::count(after.begin(), after.end(), 5.0), m * n);
  }
};

Gemm unknown(Gemm options) {
  options.m = options.n = options.k = 0;
  options.multiple = 128, options.multiple_c = 8;
  return options;
}

TEST(GemmNothing, SumsAreZero) {
  Gemm threads = unknown({}), engine = threads, warpgroups = threads;
  threads.tile = engine.tile = {.m = 64, .n = 64, .k = 64, .warps_m = 2, .warps_n = 2};
  engine.producers = 2;
  warpgroups.tile = {.m = 128, .n = 64, .k = 64, .warps_m = 8, .warps_n = 1};
  warpgroups.producers = 4;
  int products = 0;
  for (const auto& [target, options] : {std::pair{"sm_75", threads},
                                        {"sm_80", threads},
                                        {"sm_80", engine},
                                        {"sm_90", engine},
                                        {"sm_90a", warpgroups},
                                        {"sm_120", threads}})
    for (const bool sparse : {false, true})
      for (const bool beta : {false, true})
        for (const int way : {0, 1, 2, 3}) {
          if (sparse && std::string_view(target) == "sm_75") continue;
          Nothing product{options, sparse, target};
          product.options.epilogue.beta = beta;
          if (way == 1) product.options.splits = 3;
          if (way == 2) product.options.stream_blocks = product.blocks = 5;
          if (way == 3) product.options.persistent = true, product.blocks = 2;
          product.expect(beta ? 15 : 0);
          ++products;
        }
  EXPECT_EQ(products, 88);
}

TEST(GemmNothing, InPingPong) {
  Gemm options = unknown({.persistent = true, .producers = 4});
  options.tile = {.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1, .products = 2};
  for (const char* target : {"sm_80", "sm_90a"})
    for (const unsigned blocks : {1u, 2u, 7u})
      for (const bool beta : {false, true}) {
        options.epilogue.beta = beta;
        Nothing{.options = options, .target = target, .blocks = blocks}.expect(beta ? 15 : 0);
      }
}

TEST(GemmNothing, OtherTypes) {
  for (const Type type : {f32, bf16, s8, f64}) {
    Gemm options = unknown({.a = type, .b = type});
    if (type == s8) options.accumulator = options.c = s32;
    if (type == f64) options.accumulator = options.c = f64;
    Nothing{options}.expect(0);
  }
  Gemm promoted = unknown({.a = Type::e4m3, .b = Type::e4m3, .promote = 2});
  Nothing{.options = promoted, .target = "sm_89"}.expect(0);
}

TEST(GemmNothing, ScaledAndWmma) {
  const auto launch = [&](Dim3 grid, int inputs) {
    return Launch{grid, [=](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
                    arguments.add(m).add(n).add(0);
                    for (int i = 0; i < inputs; ++i) {
                      buffers.push_back(*device.allocate(16));
                      EXPECT_TRUE(buffers.back().fill(0xFF));
                      arguments.add(buffers.back());
                    }
                    Buffer c = *device.allocate(std::size_t{m} * n * 4);
                    EXPECT_TRUE(c.fill(0xFF));
                    arguments.add(c);
                    return c;
                  }};
  };
  const auto zeros = [](const Bytes& got) {
    const auto values = testing_numbers::decode(f32, got);
    return std::count(values.begin(), values.end(), 0.0);
  };
  const kernels::BlockScaled scaled{.m = 0, .n = 0, .k = 0, .multiple = 128};
  EXPECT_EQ(
      zeros(testing_gemm::run(kernels::block_scaled(scaled), testing_gemm::target_of("sm_120a"),
                              launch({scaled.blocks(m, n)}, 4), false)),
      m * n);
  const kernels::WmmaGemm wmma{.multiple = 128};
  const Tile tile = kernels::wmma_tile(wmma);
  const unsigned blocks = static_cast<unsigned>((m + tile.m - 1) / tile.m) *
                          static_cast<unsigned>((n + tile.n - 1) / tile.n);
  EXPECT_EQ(zeros(testing_gemm::run(kernels::wmma_gemm(wmma), testing_gemm::target_of("sm_80"),
                                    launch({blocks}, 2), false)),
            m * n);
}

}  // namespace
}  // namespace tartan
