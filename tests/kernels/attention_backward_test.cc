// SPDX-License-Identifier: Apache-2.0
// The gradients of attention at awkward lengths: on the emulator with all checks, and on a GPU if
// there is one, against the same formulas in double.
#include <unistd.h>

#include "tests/kernels/attention_backward_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using testing_attention::AttentionBackward;
using testing_attention::BackwardInputs;
using testing_attention::expect_gradients;
using testing_attention::Gradients;
using testing_attention::Lengths;
using A = AttentionBackward;

const Target hopper = *Target::parse("sm_90a");

Device emulator(const char* target) {
  return *Device::open("emulator", {.hardware = target, .checks = Checks::all});
}

void expect_on_emulator(const char* target, A with, const Lengths& size) {
  Device device = emulator(target);
  expect_gradients(device, *Target::parse(target), with, size);
}

std::vector<std::pair<A, Lengths>> cases() {
  return {
      {A{.head_dim = 64, .type = bf16, .causal = true}, {150, 140, 2, 1, 2}},
      {A{.head_dim = 64}, {1, 130}},
      {A{.head_dim = 128, .type = bf16}, {70, 100, 2, 2}},
      {A{.head_dim = 128, .causal = true}, {70, 140, 2, 1}},
      {A{.head_dim = 64, .causal = true}, {150, 33}},  // the first 117 queries see no key
      {A{.head_dim = 128, .type = bf16, .causal = true}, {65, 1}},
  };
}

TEST(AttentionBackward, BySynchronousProducts) {
  for (const auto& [options, size] : cases()) expect_on_emulator("sm_80", options, size);
  expect_on_emulator("sm_90", {.head_dim = 64, .causal = true}, {70, 70, 2, 1});
  expect_on_emulator("sm_75", {.head_dim = 64}, {70, 40});
}

TEST(AttentionBackward, ByWarpgroups) {
  for (const auto& [options, size] : cases())
    expect_on_emulator("sm_90a", tuned(options, hopper), size);
}

TEST(AttentionBackward, InTheOrderOfKeys) {
  for (auto [options, size] : cases()) {
    options.deterministic = true;
    expect_on_emulator("sm_90a", tuned(options, hopper), size);
  }
  expect_on_emulator("sm_80", {.head_dim = 64, .causal = true, .deterministic = true},
                     {100, 150, 2, 1});
}

TEST(AttentionBackward, OtherTiles) {
  A with = tuned(A{.head_dim = 128, .type = bf16, .causal = true}, hopper);
  with.queries_per_step = 80;
  expect_on_emulator("sm_90a", with, {100, 150});
  with.queries_per_step = 64, with.stages = 1;
  expect_on_emulator("sm_90a", with, {130, 60});
  expect_on_emulator(
      "sm_80",
      {.head_dim = 64, .queries_per_step = 32, .keys_per_block = 64, .warps = 2, .stages = 2},
      {70, 70});
}

// With LSE and O of a forward pass with sinks: what differences of that formula say.
TEST(AttentionBackward, SlopesOfAForwardPassWithSinks) {
  using testing_attention::Elements;
  using testing_attention::Inputs;
  const Lengths size{40, 50, 2, 1};
  const kernels::Attention forward{.head_dim = 64, .causal = true, .sinks = true};
  for (const char* target : {"sm_80", "sm_90a"}) {
    const A with = tuned(A{.head_dim = 64, .causal = true}, *Target::parse(target));
    BackwardInputs in(with, size);
    in.forward.sinks = {0.5F, 3.0F};
    in.complete(forward, size);
    Device device = emulator(target);
    const Gradients got = run(device, *Target::parse(target), with, size, in);
    const auto loss = [&] {
      const auto o = testing_attention::reference(forward, size, in.forward).o;
      double out = 0;
      for (std::size_t i = 0; i < o.size(); ++i) out += o[i] * in.d_o.values[i];
      return out;
    };
    const auto expect_slopes = [&](Elements& of, const std::vector<double>& gradient) {
      ASSERT_EQ(gradient.size(), of.values.size());
      double most = 0;
      for (const double each : gradient) most = std::max(most, std::abs(each));
      for (std::size_t i = 11; i < of.values.size(); i += 397) {
        const double before = of.values[i], h = 1e-4;
        of.values[i] = before + h;
        double slope = loss();
        of.values[i] = before - h;
        slope = (slope - loss()) / (2 * h);
        of.values[i] = before;
        EXPECT_NEAR(gradient[i], slope, 0x1p-9 * most) << target << ' ' << i;
      }
    };
    expect_slopes(in.forward.q, got.q);
    expect_slopes(in.forward.k, got.k);
    expect_slopes(in.forward.v, got.v);
  }
}

// Blocks add in the order of their keys, in whatever order they start.
TEST(AttentionBackward, DeterministicResultsAreTheSameBits) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    A with{.head_dim = 64, .type = bf16, .causal = true, .deterministic = true};
    with = tuned(with, *Target::parse(target));
    const Lengths size{130, 200, 2, 1};
    const BackwardInputs in(with, size);
    std::vector<Gradients> all;
    // None of them delays copies: with those, a thread that waits in a loop runs until the limit.
    for (const char* schedule : {"", "2", "6", "8"}) {
      Device device = *Device::open("emulator", {.hardware = target, .schedule = schedule});
      all.push_back(run(device, *Target::parse(target), with, size, in));
      EXPECT_EQ(all.back().q, all[0].q) << target << ", schedule " << schedule;
    }
    EXPECT_FALSE(all[0].q.empty());
  }
}

// Kernels whose grid would be empty are not launched.
TEST(AttentionBackward, NothingToSee) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const bool deterministic : {false, true}) {
      A with = tuned(A{.head_dim = 64, .causal = true}, *Target::parse(target));
      with.deterministic = deterministic;
      expect_on_emulator(target, with, {70, 0});
      expect_on_emulator(target, with, {0, 70});
    }
}

// NaN in a row of dO: that row of dQ, and all that it sees. Other rows stay as they are.
TEST(AttentionBackward, NanStaysWhereItBelongs) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* target : {"sm_80", "sm_90a"}) {
    const A with = tuned(A{.head_dim = 64, .causal = true}, *Target::parse(target));
    const Lengths size{150, 150};
    BackwardInputs in(with, size);
    const Gradients clean = testing_attention::reference(with, size, in);
    in.d_o.bits[140 * 64] = 0x7fff, in.d_o.values[140 * 64] = nan;
    Device device = emulator(target);
    const Gradients got = run(device, *Target::parse(target), with, size, in);
    ASSERT_EQ(got.q.size(), clean.q.size());
    for (std::size_t i = 0; i < got.q.size(); ++i)
      if (i / 64 == 140) {
        ASSERT_TRUE(std::isnan(got.q[i])) << i;
      } else {
        ASSERT_NEAR(got.q[i], clean.q[i], 0x1p-8) << i;
      }
    for (std::size_t i = 0; i < std::size_t{141} * 64; ++i) ASSERT_TRUE(std::isnan(got.k[i])) << i;
  }
}

TEST(AttentionBackward, GpuAgreesWithDoublePrecision) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  for (const std::string& name : {std::string("sm_80"), device->arch().text()})
    for (const bool deterministic : {false, true})
      for (auto [options, size] : cases()) {
        const Target target = *Target::parse(name);
        options.deterministic = deterministic;
        expect_gradients(*device, target, tuned(options, target), size);
        expect_gradients(*device, target, tuned(options, target), {200, 300, 2, 1, 2});
      }
}

// NVIDIA's assembler accepts the texts, spills nothing, and does not serialize wgmma.
TEST(AttentionBackward, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const int d : {64, 128}) {
    SCOPED_TRACE(fmt::format("d {}", d));
    const A with = tuned(A{.head_dim = d, .type = bf16, .causal = true}, hopper);
    const auto compiled = compile(kernels::attention_backward(with), hopper.arch);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    test::expect_good_registers(compiled->ptx, "sm_90a",
                                testing::TempDir() + std::to_string(getpid()) + "_backward");
  }
}

// One diagnostic per error, of each of the three kernels.
TEST(AttentionBackward, RefusesWrongOptions) {
  A three = tuned(A{.head_dim = 128}, hopper);
  three.warps = 12, three.keys_per_block = 192;
  for (const auto& [options, part] :
       {std::pair{A{.head_dim = 96}, "head_dim = 96: expected 64 or 128; the nearest is 64"},
        {A{.type = f32}, "type = f32: expected f16 or bf16"},
        {A{.queries_per_step = 24}, "queries_per_step = 24: expected"},
        {A{.warps = 0}, "0 warps"},
        {A{.stages = 0}, "0 stages"},
        {A{.keys_per_block = 96}, "keys_per_block = 96: expected a multiple of 64"},
        {three, "12 warps, queries_per_step = 64: expected 8 warps, or 192 queries"}})
    for (const Kernel& kernel : {attention_backward_rows(options), attention_backward(options),
                                 attention_backward_queries(options)}) {
      const auto compiled = compile(kernel, hopper);
      ASSERT_FALSE(compiled) << part;
      ASSERT_EQ(compiled.diags().size(), 1U) << compiled.diags().text();
      EXPECT_NE(compiled.diags()[0].message.find(part), std::string::npos)
          << compiled.diags()[0].message;
    }
}

}  // namespace
}  // namespace tartan
