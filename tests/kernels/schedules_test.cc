// SPDX-License-Identifier: Apache-2.0
// The built-in kernels are right under seeded schedules, TARTAN_SEEDS of them, and one run decides
// all others.
#include <cstdlib>
#include <memory>

#include "runtime/emulator/schedules/exploration.h"
#include "tests/kernels/attention_backward_run.h"
#include "tests/kernels/decode_run.h"
#include "tests/kernels/delta_rule_run.h"
#include "tests/kernels/gemm_run.h"
#include "tests/kernels/mixed_gemm_run.h"
#include "tests/kernels/mla_decode_run.h"
#include "tests/kernels/small_products_run.h"

namespace tartan {
namespace {

using kernels::Attention;
using kernels::Gemm;
using testing_gemm::Product;

int seeds() {
  const char* wanted = std::getenv("TARTAN_SEEDS");
  return wanted ? std::atoi(wanted) : 12;
}

Device under(int seed) {
  return *Device::open("emulator", {.schedule = fmt::format("{}", seed), .checks = Checks::all});
}

/// What stands in the way of one run's decision.
std::string obstacles(const std::function<void(Device&)>& run) {
  const auto exploration = std::make_shared<detail::Exploration>();
  exploration->proves = true;
  Device device = *Device::open("emulator", {.exploration = exploration, .checks = Checks::all});
  run(device);
  std::string out;
  for (const detail::Obstacle& each : exploration->obstacles) out += each.text + "\n";
  return out;
}

/// Three stages, four k-tiles, two tiles of C along each axis.
struct Case {
  const char* name;
  const char* target;
  Gemm options;
  int k = 4 * 64;
};

std::vector<Case> cases() {
  Gemm copies{.stages = 3};
  Gemm hopper{.a = bf16, .b = bf16, .c = f32, .stages = 3, .producers = 1};
  hopper.tile = {.m = 128, .n = 64, .k = 64, .warps_m = 8, .warps_n = 1};
  Gemm pair = hopper;
  pair.cluster = 2;
  Gemm loops = hopper;
  loops.persistent = true;
  Gemm split = hopper;
  split.cluster_splits = 2;
  Gemm turned = hopper;
  turned.swap = true;
  return {{"cp.async", "sm_80", copies},
          {"TMA and wgmma", "sm_90a", hopper},
          {"a cluster of two", "sm_90a", pair},
          {"persistent", "sm_90a", loops},
          {"split-K in a cluster", "sm_90a", split},
          {"swapped", "sm_90a", turned}};
}

void expect_product(Device& device, const Case& each) {
  const Product product(each.options, 256, 128, each.k);
  const auto compiled =
      compile(kernels::gemm(product.options), testing_gemm::target_of(each.target));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(product.wrong(testing_gemm::run_on(device, *compiled, product.launch())), 0);
}

TEST(Schedules, ProductsAreRightUnderSeeds) {
  for (const Case& each : cases())
    for (int seed = 0; seed < seeds(); ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", each.name, seed));
      Device device = under(seed);
      expect_product(device, each);
    }
}

TEST(Schedules, OneRunDecidesProducts) {
  for (const Case& each : cases())
    EXPECT_EQ(obstacles([&](Device& device) { expect_product(device, each); }), "") << each.name;
}

const testing_attention::Lengths size{.queries = 128, .keys = 256, .heads = 1, .kv_heads = 1};

void expect_attention(Device& device, const char* target) {
  const Attention options{.head_dim = 64};
  testing_attention::expect_attention(device, testing_gemm::target_of(target), options, size,
                                      testing_attention::Inputs(options, size));
}

TEST(Schedules, AttentionIsRightUnderSeeds) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (int seed = 0; seed < seeds(); ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", target, seed));
      Device device = under(seed);
      expect_attention(device, target);
    }
}

TEST(Schedules, OneRunDecidesAttention) {
  for (const char* target : {"sm_80", "sm_90a"})
    EXPECT_EQ(obstacles([&](Device& device) { expect_attention(device, target); }), "") << target;
}

// A block with three tiles.
void expect_persistent_attention(Device& device) {
  const Target target = testing_gemm::target_of("sm_90a");
  const Attention options = kernels::tuned(Attention{.head_dim = 64, .causal = true}, target);
  ASSERT_TRUE(options.persistent);
  const testing_attention::Lengths three{.queries = 450, .keys = 300, .blocks = 1};
  testing_attention::expect_attention(device, target, options, three,
                                      testing_attention::Inputs(options, three));
}

TEST(Schedules, PersistentAttentionIsRightUnderSeeds) {
  for (int seed = 0; seed < seeds() / 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Device device = under(seed);
    expect_persistent_attention(device);
  }
}

TEST(Schedules, OneRunDecidesPersistentAttention) {
  EXPECT_EQ(obstacles([&](Device& device) { expect_persistent_attention(device); }), "");
}

// Two blocks of keys, through all stages twice.
void expect_gradients(Device& device, const char* target, int keys) {
  kernels::AttentionBackward options{.head_dim = 64};
  if (std::string_view(target) == "sm_90a") options.producers = 4, options.stages = 2;
  testing_attention::expect_gradients(device, testing_gemm::target_of(target), options,
                                      {.queries = 150, .keys = keys});
}

TEST(Schedules, GradientsAreRightUnderSeeds) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (int seed = 0; seed < seeds() / 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", target, seed));
      Device device = under(seed);
      expect_gradients(device, target, 100);
    }
}

// Of one block: sums of several depend on the order of additions.
TEST(Schedules, OneRunDecidesGradientsByOneBlock) {
  for (const char* target : {"sm_80", "sm_90a"})
    EXPECT_EQ(obstacles([&](Device& device) { expect_gradients(device, target, 60); }), "")
        << target;
}

// Through all stages twice, a page that ends within a step, an empty sequence.
void expect_decode(Device& device, const char* target, int queries, unsigned blocks) {
  kernels::Decode options{.head_dim = 64, .queries = queries, .page = 16, .keys_per_step = 32};
  if (std::string_view(target) == "sm_90a") options.producers = 1;
  testing_decode::expect_decode(device, testing_gemm::target_of(target), options,
                                {{230, 0}, 1, blocks});
}

// Blocks come to their common results in any order.
TEST(Schedules, DecodingIsRightUnderSeeds) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int queries : {1, 3})
      for (int seed = 0; seed < seeds() / 6; ++seed) {
        SCOPED_TRACE(fmt::format("{}, {} queries, seed {}", target, queries, seed));
        Device device = under(seed);
        expect_decode(device, target, queries, 3);
      }
}

TEST(Schedules, OneRunDecidesDecodingByOneBlock) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int queries : {1, 3})
      EXPECT_EQ(obstacles([&](Device& device) { expect_decode(device, target, queries, 1); }), "")
          << target;
}

// Both stages, a page that ends within a step, two tiles of rows.
void expect_mla_decode(Device& device, std::vector<int> lengths, int heads, unsigned blocks) {
  const Target target = testing_gemm::target_of("sm_90a");
  const kernels::MlaDecode options{.heads = heads, .page = 16};
  testing_mla_decode::expect_mla(device, target, tuned(options, target),
                                 {std::move(lengths), blocks});
}

TEST(Schedules, LatentDecodingIsRightUnderSeeds) {
  for (int seed = 0; seed < seeds() / 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Device device = under(seed);
    expect_mla_decode(device, {150, 0, 70}, 66, 4);
  }
}

TEST(Schedules, OneRunDecidesLatentDecodingByOneBlock) {
  EXPECT_EQ(obstacles([](Device& device) { expect_mla_decode(device, {150, 0}, 3, 1); }), "");
}

// Through all stages twice, chunks that end within the sequence, an empty one.
void expect_delta_rule(Device& device, const char* target, bool channels) {
  const Target own = testing_gemm::target_of(target);
  testing_delta_rule::expect_prefill(
      device, own, tuned(kernels::DeltaRule{.key_dim = 64, .value_dim = 64}, own),
      {.key_dim = 64, .value_dim = 64, .channel_gates = channels, .lengths = {390, 0, 10}});
}

TEST(Schedules, DeltaRuleIsRightUnderSeeds) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const bool channels : {false, true})
      for (int seed = 0; seed < seeds() / 6; ++seed) {
        SCOPED_TRACE(fmt::format("{}, seed {}", target, seed));
        Device device = under(seed);
        expect_delta_rule(device, target, channels);
      }
}

TEST(Schedules, OneRunDecidesDeltaRule) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const bool channels : {false, true})
      EXPECT_EQ(obstacles([&](Device& device) { expect_delta_rule(device, target, channels); }), "")
          << target << channels;
}

TEST(Schedules, OneRunDecidesDeltaRuleTokenByToken) {
  EXPECT_EQ(obstacles([](Device& device) {
              testing_delta_rule::expect_decode(
                  device, testing_gemm::target_of("sm_90a"), {},
                  {.key_dim = 64, .value_dim = 64, .lengths = {3, 3}});
            }),
            "");
}

// Of one warp each, and of four.
TEST(Schedules, OneRunDecidesSmallProducts) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int size : {32, 64}) {
      const kernels::SmallProducts options{.m = size, .n = size, .k = size};
      EXPECT_EQ(obstacles([&](Device& device) {
                  const Target own = testing_gemm::target_of(target);
                  testing_small_products::expect_products(device, own, tuned(options, own), 5);
                }),
                "")
          << target;
    }
}

// Through all stages twice, warps that divide k, tiles that CTAs share.
void expect_mixed(Device& device, const char* target, unsigned blocks) {
  kernels::MixedGemm options{.tile_m = 8, .tile_n = 32, .tile_k = 128, .warps_n = 2};
  options.stages = 2, options.producers = std::string_view(target) == "sm_90a" ? 1 : 0;
  testing_mixed_gemm::expect_mixed(device, testing_gemm::target_of(target), options,
                                   {3, 40, 600, blocks});
}

TEST(Schedules, MixedProductsAreRightUnderSeeds) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (int seed = 0; seed < seeds() / 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", target, seed));
      Device device = under(seed);
      expect_mixed(device, target, 3);
    }
}

TEST(Schedules, OneRunDecidesMixedProductsByOneBlock) {
  for (const char* target : {"sm_80", "sm_90a"})
    EXPECT_EQ(obstacles([&](Device& device) { expect_mixed(device, target, 1); }), "") << target;
}

}  // namespace
}  // namespace tartan
