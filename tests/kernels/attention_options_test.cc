// SPDX-License-Identifier: Apache-2.0
// Attention's options: sliding windows, caps of scores, sinks; on the emulator and a GPU, if there
// is one, against double precision.
#include <unistd.h>

#include "tests/kernels/attention_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::Attention;
using kernels::Softcap;
using testing_attention::expect_attention;
using testing_attention::Inputs;
using testing_attention::Lengths;

constexpr int largest = std::numeric_limits<int>::max();
constexpr float infinity = std::numeric_limits<float>::infinity();
// Of f16.
constexpr std::uint16_t nan_bits = 0x7E00, infinity_bits = 0x7C00, minus_infinity_bits = 0xFC00;

Device& emulator() {
  static Device device = *Device::open("emulator");
  return device;
}

bool runs(const Device& gpu, const Target& target) {
  return target.arch.suffix ? target.arch.sm == gpu.arch().sm : target.arch.sm <= gpu.arch().sm;
}

// On targets without cp.async, with it, and with wgmma.
void everywhere(
    Device& device, const Attention& options, const Lengths& size,
    const std::function<void(Inputs&)>& change = [](Inputs&) {}) {
  for (const char* name : {"sm_75", "sm_80", "sm_90a"}) {
    const Target target = *Target::parse(name);
    if (options.type == bf16 && target.arch.sm == 75) continue;
    const bool on_gpu = device.name() != emulator().name();
    if (on_gpu && (target.arch.sm == 75 || !runs(device, target))) continue;
    const Attention fastest = tuned(options, target);
    Inputs in(fastest, size);
    change(in);
    expect_attention(device, target, fastest, size, in);
  }
}

// More keys than queries, and fewer; heads that share keys; a part of a block, and several.
const std::vector<Lengths> lengths = {{1, 1},    {1, 200},        {65, 65, 4, 2, 2}, {127, 127},
                                      {200, 63}, {63, 300, 3, 1}, {300, 300}};

std::vector<Attention> all_options() {
  std::vector<Attention> out;
  for (const bool causal : {false, true})
    for (const Softcap softcap : {Softcap::none, Softcap::by_exp, Softcap::by_tanh})
      for (const bool sinks : {false, true})
        for (const bool window : {false, true})
          if (causal || !window)
            out.push_back({.causal = causal, .window = window, .softcap = softcap, .sinks = sinks});
  return out;
}

// Each combination at some lengths.
void run_all(Device& device) {
  std::size_t next = 0;
  for (Attention options : all_options())
    for (int round = 0; round < 2; ++round, ++next) {
      options.head_dim = next % 3 ? 64 : 128, options.type = next % 2 ? f16 : bf16;
      everywhere(device, options, lengths[next % lengths.size()]);
    }
}

// Windows of no key, of some, of whole steps and of all, of as many keys as numbers can say.
void run_windows(Device& device, const std::vector<int>& windows) {
  for (const int window : windows)
    for (const Lengths& size : {Lengths{300, 300}, {70, 400, 2, 1}, {400, 70}})
      everywhere(device, {.head_dim = 32, .causal = true, .window = true}, size,
                 [&](Inputs& in) { in.window = window; });
}

void run_caps(Device& device) {
  const float nan = std::nanf("");
  for (const Softcap softcap : {Softcap::by_exp, Softcap::by_tanh})
    for (const float cap : {0.01F, 0.7F, 20.0F, 50.0F, 0x1p-60F, 0.0F, -3.0F, infinity, nan})
      everywhere(device, {.head_dim = 32, .causal = true, .softcap = softcap}, {150, 150},
                 [&](Inputs& in) { in.cap = cap; });
}

void run_sinks(Device& device) {
  for (const Lengths& size : {Lengths{70, 130, 7}, {130, 70, 7}, {70, 0, 7}})
    everywhere(device, {.head_dim = 32, .causal = true, .sinks = true}, size, [&](Inputs& in) {
      in.sinks = {0, -infinity, infinity, std::nanf(""), 80, -80, 1e4F};
    });
}

TEST(AttentionOptions, EmulatorAgreesWithDoublePrecision) { run_all(emulator()); }
TEST(AttentionOptions, Windows) {
  run_windows(emulator(),
              {1, 2, 37, 63, 64, 65, 128, 200, 299, 300, 301, largest, 0, -1, -largest - 1});
}
TEST(AttentionOptions, Caps) { run_caps(emulator()); }
TEST(AttentionOptions, Sinks) { run_sinks(emulator()); }

TEST(AttentionOptions, GpuAgreesWithDoublePrecision) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  run_all(*device);
  run_windows(*device, {37, 64, largest, -1});
  run_caps(*device);
  run_sinks(*device);
  everywhere(*device, {.head_dim = 128, .causal = true, .window = true, .sinks = true},
             {400, 500, 4, 2, 2}, [](Inputs& in) { in.window = 300; });
}

std::size_t element(const Attention& options, int row, int column) {
  return static_cast<std::size_t>(row) * Inputs::width(options) + static_cast<std::size_t>(column);
}

// Scores of NaN and infinity.
TEST(AttentionOptions, SpecialScores) {
  for (const Softcap softcap : {Softcap::none, Softcap::by_exp, Softcap::by_tanh})
    for (const bool sinks : {false, true}) {
      const Attention options{.head_dim = 32, .causal = true, .softcap = softcap, .sinks = sinks};
      everywhere(emulator(), options, {150, 150}, [&](Inputs& in) {
        for (int row = 0; row < 150; ++row) in.q.set(element(options, row, 0), 0.5);
        in.k.set(element(options, 3, 0), minus_infinity_bits);
        in.k.set(element(options, 70, 0), infinity_bits);  // rows from 70 on see plus infinity,
        in.k.set(element(options, 110, 0), nan_bits);      // from 110 on NaN
      });
    }
}

// A score of minus infinity becomes -cap: rows that see only such scores are means of V.
TEST(AttentionOptions, CappedMinusInfinityWeighs) {
  const Attention options{.head_dim = 32, .softcap = Softcap::by_exp};
  Inputs in(options, {16, 64});
  for (int row = 0; row < 16; ++row) in.q.set(element(options, row, 0), 0.5);
  for (int key = 0; key < 64; ++key) in.k.set(element(options, key, 0), minus_infinity_bits);
  const auto got =
      testing_attention::run(emulator(), *Target::parse("sm_80"), options, {16, 64}, in);
  double mean = 0;
  for (int key = 0; key < 64; ++key) mean += in.v.values[element(options, key, 7)] / 64;
  for (int row = 0; row < 16; ++row) {
    EXPECT_NEAR(got.o[element(options, row, 7)], mean, 0x1p-10);
    EXPECT_NEAR(got.lse[row], std::log(64.0) - in.cap, 1e-5);
  }
}

// Steps before a block's window are left out: NaN in V there reaches no row of the block.
TEST(AttentionOptions, StepsOutsideOfTheWindowAreLeftOut) {
  const Lengths size{600, 600};
  for (const char* name : {"sm_80", "sm_90a"}) {
    const Target target = *Target::parse(name);
    const Attention options =
        tuned(Attention{.head_dim = 32, .causal = true, .window = true}, target);
    Inputs in(options, size);
    in.window = 50;
    const auto clean = testing_attention::reference(options, size, in);
    constexpr int key = 100;
    in.v.set(element(options, key, 5), nan_bits);
    const auto got = testing_attention::run(emulator(), target, options, size, in);
    const int tile = options.tile_queries(), step = options.keys_per_step;
    ASSERT_LT(key + in.window + tile + step, size.queries - 50);
    for (int row = 0; row < size.queries; ++row) {
      const bool sees = row >= key && row - in.window < key;
      const bool apart = row < key - tile || row >= key + in.window + tile + step;
      const double value = got.o[element(options, row, 5)];
      if (sees) {
        EXPECT_TRUE(std::isnan(value)) << row;
      }
      if (apart) {
        EXPECT_NEAR(value, clean.o[element(options, row, 5)], 0x1p-9) << row;
      }
    }
  }
}

// Where all functions are exact, all bits are known: weights and their sums are powers of two.
void expect_exact(Device& device, const Target& target, const Attention& options) {
  SCOPED_TRACE(fmt::format("{} on {}", target.text(), device.name()));
  const Lengths size{260, 300, 2, 1};
  Inputs in(options, size);
  const float log2e = 1.44269504F;
  in.scale = 0.6931471F;
  while (in.scale * log2e < 1) in.scale = std::nextafter(in.scale, 1.0F);
  ASSERT_EQ(in.scale * log2e, 1.0F);
  in.window = 64, in.sinks.assign(2, -infinity);
  for (int row = 0; row < 2 * size.queries; ++row)
    for (int c = 0; c < options.head_dim; ++c)
      in.q.set(element(options, row, c), c == 0 ? row % 3 : 0.0);
  // Weights of q = 1: 1, 1/2, 1/4, 1/4; of q = 2: 1, 1/4, 1/16, 1/16 (no power of two in all).
  for (int key = 0; key < size.keys; ++key)
    for (int c = 0; c < options.head_dim; ++c) {
      in.k.set(element(options, key, c), c == 0 ? -std::min(key % 4, 2) : 0.0);
      in.v.set(element(options, key, c), (key * 7 + c * 3) % 64 - 32.0);
    }
  const auto expected = testing_attention::reference(options, size, in);
  const auto got = testing_attention::run(device, target, options, size, in);
  ASSERT_EQ(got.o.size(), expected.o.size());
  int exact = 0, wrong = 0;
  for (std::size_t i = 0; i < got.o.size(); ++i) {
    const int row = static_cast<int>(i / Inputs::width(options)), query = row % size.queries;
    if (row % 3 == 2 || (!options.window && (query + 41) % 4)) continue;
    const int seen = std::min(query + 41, options.window ? 64 : 300);
    const bool power = options.window ? seen == 64 : (seen & (seen - 1)) == 0;
    if (!power) continue;
    ++exact;
    const double rounded = testing_numbers::float_value(
        options.type,
        static_cast<std::uint16_t>(testing_numbers::float_bits(options.type, expected.o[i])));
    wrong += got.o[i] != rounded;
  }
  EXPECT_EQ(wrong, 0) << "of " << exact;
  EXPECT_GT(exact, options.window ? 10000 : 100);
}

void expect_exact_bits(Device& device) {
  for (const char* name : {"sm_80", "sm_90a"})
    for (const bool window : {false, true})
      for (const bool sinks : {false, true}) {
        const Target target = *Target::parse(name);
        if (device.name() != emulator().name() && !runs(device, target)) continue;
        expect_exact(
            device, target,
            tuned(Attention{.head_dim = 64, .causal = true, .window = window, .sinks = sinks},
                  target));
      }
}

TEST(AttentionOptions, BitsAreExact) { expect_exact_bits(emulator()); }

TEST(AttentionOptions, BitsOfAGpuAreExact) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  expect_exact_bits(*device);
}

TEST(AttentionOptions, AssembleWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const char* target : {"sm_75", "sm_80", "sm_90a", "sm_120"})
    for (const int head_dim : {64, 128})
      for (const Softcap softcap : {Softcap::none, Softcap::by_exp, Softcap::by_tanh}) {
        const bool old = std::string(target) == "sm_75";
        const Attention options{.head_dim = head_dim,
                                .causal = true,
                                .window = true,
                                .softcap = softcap,
                                .sinks = true,
                                .stages = old ? 1 : 2};
        const auto compiled = compile(kernels::attention(tuned(options, *Target::parse(target))),
                                      *Target::parse(target));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        EXPECT_TRUE(compiled->warnings.empty()) << compiled->warnings.text();
        SCOPED_TRACE(
            fmt::format("{} d {} softcap {}", target, head_dim, static_cast<int>(softcap)));
        test::expect_good_registers(
            compiled->ptx, target,
            testing::TempDir() + std::to_string(getpid()) + "_tartan_attention_options");
      }
}

TEST(AttentionOptions, AWindowRequiresCausal) {
  const auto compiled = compile(kernels::attention({.window = true}), *Target::parse("sm_80"));
  ASSERT_FALSE(compiled);
  ASSERT_EQ(compiled.diags().size(), 1u);
  EXPECT_NE(compiled.diags()[0].message.find(
                "window = true: expected causal = true, found causal = false"),
            std::string::npos)
      << compiled.diags()[0].message;
}

}  // namespace
}  // namespace tartan
