// SPDX-License-Identifier: Apache-2.0
// The throughput probe of the benchmarks.
#include "bench/gpu/probe.h"

#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using testing_gemm::Bytes;
using testing_gemm::Launch;

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t out = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++out;
  return out;
}

TEST(Probe, EveryProductStaysInTheLoop) {
  int probes = 0;
  const Target target = testing_gemm::target_of("sm_120a");
  for (const isa::Form& form : isa::forms()) {
    const bool product = form.opcode == isa::Opcode::mma || form.opcode == isa::Opcode::wmma_mma;
    if (!product || form.d != form.c || !isa::find(form)->since.has(target) || ++probes % 5)
      continue;
    const std::string spelling = isa::spell(form);
    const auto compiled = compile(gpu::mma_probe(spelling, {.accumulators = 4}), target);
    ASSERT_TRUE(compiled) << spelling << '\n' << compiled.diags().text();
    EXPECT_GE(count(compiled->ptx, spelling), 4u) << spelling;
  }
  EXPECT_GT(probes, 500);
  EXPECT_FALSE(
      compile(gpu::mma_probe("mma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32"), target));
}

// Products of s8: known sums, so that no iteration is missing.
TEST(Probe, RunsTheRequestedRounds) {
  constexpr std::string_view spelling = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
  const gpu::Probe options{.block = 32, .accumulators = 3};
  const auto after = [&](int rounds) {
    const Launch launch{{1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>&) {
                          Buffer out = *device.allocate(128);
                          arguments.add(rounds).add(out);
                          return out;
                        }};
    return testing_gemm::run(gpu::mma_probe(spelling, options), testing_gemm::target("sm_80"),
                             launch);
  };
  const Bytes none = after(0), one = after(1), two = after(2);
  EXPECT_NE(none, one);
  EXPECT_NE(one, two);
  EXPECT_EQ(gpu::probe_operations(spelling, options, 10, 100), 2.0 * 16 * 8 * 32 * 3 * 10 * 100);
  EXPECT_EQ(gpu::probe_operations("mma", options, 10, 100), 0);
}

}  // namespace
}  // namespace tartan
