// SPDX-License-Identifier: Apache-2.0
// Attention with NaN, infinities, large scores and no keys.
#include "tests/kernels/attention_run.h"

namespace tartan {
namespace {

using kernels::Attention;
using testing_attention::Inputs;
using testing_attention::Lengths;

Device& emulator() {
  static Device device = *Device::open("emulator");
  return device;
}

// The emulator and, if it runs text for the target, a GPU.
std::vector<Device*> devices(const Target& target) {
  static auto gpu = Device::open("cuda");
  std::vector<Device*> out = {&emulator()};
  if (!gpu) return out;
  const int sm = gpu->arch().sm;
  if (target.arch.suffix ? target.arch.sm == sm : target.arch.sm <= sm) out.push_back(&*gpu);
  return out;
}

void expect_attention(const Target& target, const Attention& options, const Lengths& size,
                      const Inputs& in) {
  for (Device* device : devices(target))
    testing_attention::expect_attention(*device, target, options, size, in);
}

struct Bits {
  std::uint16_t nan, infinity, minus_infinity;
};
Bits bits_of(Type type) {
  return type == f16 ? Bits{0x7E00, 0x7C00, 0xFC00} : Bits{0x7FC0, 0x7F80, 0xFF80};
}

// On targets without cp.async, with it, and with wgmma; all keys, and causal.
void everywhere(Type type, const std::function<void(const Target&, const Attention&)>& run) {
  for (const char* name : {"sm_75", "sm_80", "sm_90a"})
    for (const bool causal : {false, true}) {
      if (type == bf16 && std::string_view(name) == "sm_75") continue;
      const Target target = *Target::parse(name);
      run(target, kernels::tuned(kernels::Attention{.head_dim = 32, .type = type, .causal = causal},
                                 target));
    }
}

constexpr Lengths lengths{150, 150};

std::size_t element(const Attention& options, int row, int column) {
  return static_cast<std::size_t>(row) * Inputs::width(options) + static_cast<std::size_t>(column);
}

TEST(AttentionValues, NanPropagatesToRowsThatSeeIt) {
  for (const Type type : {f16, bf16})
    everywhere(type, [&](const Target& target, const Attention& options) {
      const Bits special = bits_of(type);
      Inputs key(options, lengths);
      key.k.set(element(options, 70, 3), special.nan);
      expect_attention(target, options, lengths, key);
      Inputs query(options, lengths);
      query.q.set(element(options, 7, 0), special.nan);
      query.q.set(element(options, 90, 5), special.infinity);
      query.q.set(element(options, 149, 31), special.minus_infinity);
      expect_attention(target, options, lengths, query);
      const auto got = testing_attention::run(emulator(), target, options, lengths, query);
      for (const int row : {7, 90, 149}) EXPECT_TRUE(std::isnan(got.o[element(options, row, 9)]));
      EXPECT_FALSE(std::isnan(got.o[element(options, 8, 9)]));
    });
}

// A key whose scores are minus infinity has no weight; a row with only such scores is zero.
TEST(AttentionValues, MinusInfinityWeighsNothing) {
  everywhere(f16, [&](const Target& target, const Attention& options) {
    Inputs in(options, lengths);
    const Bits special = bits_of(f16);
    for (int i = 0; i < lengths.queries; ++i) in.q.set(element(options, i, 0), 0.5);
    for (const int key : {0, 1, 64, 120})
      in.k.set(element(options, key, 0), special.minus_infinity);
    expect_attention(target, options, lengths, in);
    Inputs row(options, lengths);
    row.q.set(element(options, 80, 0), special.minus_infinity);
    for (int j = 0; j < lengths.keys; ++j) row.k.set(element(options, j, 0), 0.25 + j % 3);
    expect_attention(target, options, lengths, row);
    const auto got = testing_attention::run(emulator(), target, options, lengths, row);
    EXPECT_EQ(got.o[element(options, 80, 4)], 0);
    EXPECT_EQ(got.lse[80], -std::numeric_limits<double>::infinity());
  });
}

// Scores of one product each: q times k(key).
Inputs scores(const Attention& options, double q, const std::function<double(int)>& k,
              const Lengths& size = lengths) {
  Inputs in(options, size);
  for (int i = 0; i < size.queries; ++i)
    for (int c = 0; c < options.head_dim; ++c) in.q.set(element(options, i, c), c == 0 ? q : 0.0);
  for (int j = 0; j < size.keys; ++j)
    for (int c = 0; c < options.head_dim; ++c)
      in.k.set(element(options, j, c), c == 0 ? k(j) : 0.0);
  return in;
}

// Up to the range of f32, where a product with the scale has no fraction bits.
TEST(AttentionValues, LargeScores) {
  everywhere(bf16, [&](const Target& target, const Attention& options) {
    for (const double q : {-0x1p40, 0x1p40, -0x1p61, 0x1p61}) {
      SCOPED_TRACE(q);
      const auto by_fives = [](int key) { return 0x1p62 * (1 + (key + 2) % 5); };
      const Inputs in = scores(options, q, by_fives);
      expect_attention(target, options, lengths, in);
    }
  });
  everywhere(f16, [&](const Target& target, const Attention& options) {
    Inputs in = scores(options, 64, [](int key) { return 2048 + 2.0 * (key * 7 % 4); });
    in.scale = 1.0F / 32;  // scores of 4096, 4100, 4104, 4108
    expect_attention(target, options, lengths, in);
    in.scale = 1.0F / 128;  // and a quarter of that
    expect_attention(target, options, lengths, in);
  });
}

// Scores that grow from key to key, so that a row's maximum moves in some steps, or in each.
TEST(AttentionValues, MaximaThatGrow) {
  const auto grow = [](const Target& target, const Attention& options, const Lengths& size) {
    for (const double growth : {0x1p-6, 0x1p-3, 1.0, 8.0}) {
      SCOPED_TRACE(growth);
      Inputs in = scores(
          options, 1, [&](int key) { return growth * (key - 40); }, size);
      in.scale = 1;
      expect_attention(target, options, size, in);
    }
  };
  everywhere(
      f16, [&](const Target& target, const Attention& options) { grow(target, options, lengths); });
  const Target target = *Target::parse("sm_90a");
  for (const Attention& each :
       {Attention{.head_dim = 128}, Attention{.head_dim = 128, .causal = true},
        Attention{.head_dim = 128, .causal = true, .window = true, .sinks = true}})
    grow(target, kernels::tuned(each, target), {130, 500});
}

TEST(AttentionValues, NoKeys) {
  for (const Lengths& size : {Lengths{70, 0}, {1, 0, 2, 1, 2}})
    everywhere(f16, [&](const Target& target, const Attention& options) {
      expect_attention(target, options, size, Inputs(options, size));
    });
}

// As kernels/attention.h says: NaN in V reaches the rows that see its key, and may reach other rows
// of blocks that process it, but no more.
TEST(AttentionValues, NanInAValueStaysInItsBlocks) {
  everywhere(f16, [&](const Target& target, const Attention& options) {
    SCOPED_TRACE(target.text());
    const Lengths size{400, 400};
    Inputs in(options, size);
    const auto clean = testing_attention::reference(options, size, in);
    constexpr int key = 300, column = 5;
    in.v.set(element(options, key, column), bits_of(f16).nan);
    const auto got = testing_attention::run(emulator(), target, options, size, in);
    ASSERT_EQ(got.o.size(), clean.o.size());
    const int tile = options.tile_queries();
    for (int i = 0; i < size.queries; ++i)
      for (int c = 0; c < options.head_dim; ++c) {
        const double value = got.o[element(options, i, c)];
        const bool sees = !options.causal || i >= key, unseen = options.causal && i < key - tile;
        if (c == column && sees) {
          EXPECT_TRUE(std::isnan(value)) << i;
        }
        if (c != column || unseen) {
          EXPECT_NEAR(value, clean.o[element(options, i, c)], 0x1p-9) << i << " " << c;
        }
      }
  });
}

}  // namespace
}  // namespace tartan
