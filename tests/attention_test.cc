// SPDX-License-Identifier: Apache-2.0
// The attention kernel at awkward lengths, on the emulator and, where there is one, a GPU, against
// the same formula in double precision, computed from the same rounded elements.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include <tartan/tartan.h>

#include "dsl/kernels/attention.h"
#include "tests/machine_code.h"
#include "tests/numbers.h"

namespace tartan {
namespace {

struct Lengths {
  int queries, keys, heads = 1, kv_heads = 1, batch = 1;
};

// Numbers in (-1, 1), rounded to the type, and their bits.
struct Elements {
  std::vector<double> values;
  std::vector<std::uint16_t> bits;
};

Elements elements(Type type, std::size_t count, unsigned seed) {
  Elements out;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    const double value = (static_cast<int>(seed >> 8 & 0xffff) - 32768) / 32768.0;
    out.bits.push_back(static_cast<std::uint16_t>(testing_numbers::float_bits(type, value)));
    out.values.push_back(testing_numbers::float_value(type, out.bits.back()));
  }
  return out;
}

struct Expected {
  std::vector<double> o, lse;
};

Expected reference(const kernels::Attention& options, const Lengths& size, double scale,
                   const Elements& q, const Elements& k, const Elements& v) {
  const int d = options.head_dim;
  Expected out;
  for (int head = 0; head < size.batch * size.heads; ++head) {
    const int kv =
        head / size.heads * size.kv_heads + head % size.heads / (size.heads / size.kv_heads);
    const auto row = [&](const Elements& of, int matrix, int length, int i) {
      return &of.values[(static_cast<std::size_t>(matrix) * length + i) * d];
    };
    for (int i = 0; i < size.queries; ++i) {
      const int seen =
          options.causal ? std::min(size.keys, i + 1 + size.keys - size.queries) : size.keys;
      double sum = 0;
      std::vector<double> o(d);
      for (int j = 0; j < seen; ++j) {
        double score = 0;
        for (int c = 0; c < d; ++c)
          score += row(q, head, size.queries, i)[c] * row(k, kv, size.keys, j)[c];
        const double weight = std::exp(scale * score);  // |scale * score| stays small here
        sum += weight;
        for (int c = 0; c < d; ++c) o[c] += weight * row(v, kv, size.keys, j)[c];
      }
      for (const double each : o) out.o.push_back(sum > 0 ? each / sum : 0);
      out.lse.push_back(std::log(sum));
    }
  }
  return out;
}

// Runs one case; the complaint, or nothing.
//
// With u half a unit in the last place of 1 (2^-11 for f16, 2^-8 for bf16): rounding the weights
// moves each by u of itself, so their sum with V by u * max|v|; rounding the result by the same.
// Twice 2u leaves room for f32 sums and ex2.approx, whose 2^-22 do not count beside it.
void expect_attention(Device& device, const Target& target, const kernels::Attention& options,
                      const Lengths& size) {
  SCOPED_TRACE(fmt::format("d {} {} {} queries {} keys {} heads {}/{} batch {} {} on {}",
                           options.head_dim, name(options.type), options.causal ? "causal" : "full",
                           size.queries, size.keys, size.heads, size.kv_heads, size.batch,
                           target.text(), device.name()));
  const auto compiled = compile(kernels::attention(options), target);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const auto d = static_cast<std::size_t>(options.head_dim);
  const std::size_t rows = static_cast<std::size_t>(size.batch) * size.heads * size.queries,
                    kv_rows = static_cast<std::size_t>(size.batch) * size.kv_heads * size.keys;
  const Elements q = elements(options.type, rows * d, 1),
                 k = elements(options.type, kv_rows * d, 2),
                 v = elements(options.type, kv_rows * d, 3);
  const float scale = 1 / std::sqrt(static_cast<float>(d)) * 3;

  std::vector<Buffer> inputs;
  for (const Elements* each : {&q, &k, &v}) {
    inputs.push_back(*device.allocate(each->bits.size() * 2));
    ASSERT_TRUE(inputs.back().write(each->bits));
  }
  Buffer o = *device.allocate(rows * d * 2), lse = *device.allocate(rows * 4);
  ASSERT_TRUE(o.fill(0xFF) && lse.fill(0xFF));
  auto module = device.load(compiled->ptx, compiled->name);
  ASSERT_TRUE(module) << module.diags().text();
  LoadedKernel loaded = *module->kernel(compiled->name);
  Arguments arguments;
  arguments.add(size.queries).add(size.keys).add(size.heads).add(size.kv_heads).add(scale);
  arguments.add(inputs[0]).add(inputs[1]).add(inputs[2]).add(o).add(lse);
  device.clear_findings();
  const Dim3 grid{options.blocks(size.queries), static_cast<unsigned>(size.heads),
                  static_cast<unsigned>(size.batch)};
  const auto launched = launch(loaded, *compiled, grid, arguments);
  ASSERT_TRUE(launched) << launched.diags().text();
  const auto status = device.synchronize();
  ASSERT_TRUE(status) << status.diags().text();
  for (const Finding& finding : device.findings())
    ADD_FAILURE() << finding.id << ": " << finding.message;

  const Expected expected = reference(options, size, scale, q, k, v);
  const std::vector<double> got = testing_numbers::decode(options.type, *o.read_all<std::byte>());
  ASSERT_EQ(got.size(), expected.o.size());
  const double u = std::ldexp(1, options.type == f16 ? -11 : -8);
  int wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(got[i] - expected.o[i]) <= 4 * u) && wrong++ == 0)
      ADD_FAILURE() << "row " << i / d << " column " << i % d << ": expected " << expected.o[i]
                    << ", got " << got[i];
  EXPECT_EQ(wrong, 0) << "of " << got.size();
  const std::vector<float> sums = *lse.read_all<float>();
  for (std::size_t i = 0; i < rows; ++i) {
    if (std::isinf(expected.lse[i])) EXPECT_EQ(sums[i], expected.lse[i]) << i;
    else EXPECT_NEAR(sums[i], expected.lse[i], 1e-3) << i;
  }
}

const Target hopper = *Target::parse("sm_90a");

std::vector<std::pair<kernels::Attention, Lengths>> cases() {
  using A = kernels::Attention;
  return {
      {A{.head_dim = 64}, {1, 1}},
      {A{.head_dim = 64, .causal = true}, {1, 200}},
      {A{.head_dim = 64, .type = bf16}, {7, 65, 2, 1}},
      {A{.head_dim = 64, .type = bf16, .causal = true}, {65, 65, 4, 2, 2}},
      {A{.head_dim = 64, .causal = true}, {127, 127}},
      {A{.head_dim = 64}, {64, 200, 1, 1, 2}},
      {A{.head_dim = 64, .causal = true}, {200, 63}},  // the first 137 queries see no key
      {A{.head_dim = 128}, {16, 63, 2, 2}},
      {A{.head_dim = 128, .causal = true}, {63, 127, 3, 1}},
      {A{.head_dim = 128, .type = bf16, .causal = true}, {64, 64}},
      {A{.head_dim = 128, .type = bf16}, {127, 64}},
      {A{.head_dim = 128, .type = bf16, .causal = true}, {7, 1}},
      {A{.head_dim = 128, .queries_per_block = 128, .warps = 8}, {65, 16}},
      {A{.head_dim = 128, .causal = true}, {200, 7, 2, 1}},
  };
}

TEST(Attention, EmulatorAgreesWithDoublePrecision) {
  Device device = *Device::open("emulator");
  for (const auto& [options, size] : cases())
    expect_attention(device, *Target::parse("sm_80"), options, size);
}

TEST(Attention, EmulatorAgreesOnOtherTargets) {
  using A = kernels::Attention;
  Device device = *Device::open("emulator");
  expect_attention(device, *Target::parse("sm_90"), A{.causal = true}, {70, 70, 2, 1});
  expect_attention(device, *Target::parse("sm_75"), A{.causal = true, .stages = 1}, {70, 70, 2, 1});
}

// By wgmma, from what the copy engine fills.
TEST(Attention, EmulatorAgreesByWarpgroups) {
  Device device = *Device::open("emulator");
  for (const auto& [options, size] : cases())
    expect_attention(device, hopper, tuned(options, hopper), size);
}

TEST(Attention, GpuAgreesWithDoublePrecision) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  auto all = cases();
  all.push_back({{.head_dim = 128, .causal = true}, {1000, 1111, 8, 2, 3}});
  for (const auto& [options, size] : all)
    expect_attention(*device, Target::of(device->arch()), options, size);
  if (device->arch().sm != 90) return;
  for (const auto& [options, size] : all)
    expect_attention(*device, hopper, tuned(options, hopper), size);
}

// NVIDIA's assembler accepts the text and needs no local memory for it.
TEST(Attention, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const char* target : {"sm_75", "sm_80", "sm_90", "sm_90a", "sm_120"})
    for (const int head_dim : {64, 128})
      for (const bool causal : {false, true}) {
        const bool old = std::string(target) == "sm_75";  // one stage: 64 KB of shared memory
        const kernels::Attention options{
            .head_dim = head_dim, .causal = causal, .stages = old ? 1 : 2};
        const auto compiled = compile(kernels::attention(tuned(options, *Target::parse(target))),
                                      *Target::parse(target));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        SCOPED_TRACE(fmt::format("{} d {} {}", target, head_dim, causal ? "causal" : "full"));
        test::expect_good_registers(
            compiled->ptx, target,
            testing::TempDir() + std::to_string(getpid()) + "_tartan_attention");
      }
}

TEST(Attention, RefusesWhatNoTargetHas) {
  EXPECT_FALSE(compile(kernels::attention({.type = bf16}), *Target::parse("sm_75")));
  EXPECT_FALSE(compile(kernels::attention({.head_dim = 72}), *Target::parse("sm_80")));
}

}  // namespace
}  // namespace tartan
