// SPDX-License-Identifier: Apache-2.0
// The transposing copy and the throughput probe.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using testing_gemm::Bytes;
using testing_gemm::Launch;

TEST(Transpose, AnySize) {
  for (const char* target : {"sm_75", "sm_90"})
    for (const auto& [rows, cols] : {std::pair{1, 1},
                                     {1, 65},
                                     {7, 16},
                                     {16, 200},
                                     {63, 7},
                                     {64, 64},
                                     {65, 63},
                                     {127, 1},
                                     {200, 127},
                                     {8, 136}}) {
      SCOPED_TRACE(fmt::format("{} {} x {}", target, rows, cols));
      std::vector<std::uint16_t> in;
      for (int i = 0; i < rows * cols; ++i) in.push_back(static_cast<std::uint16_t>(i * 7 + 1));
      Bytes bytes(in.size() * 2);
      std::memcpy(bytes.data(), in.data(), bytes.size());
      const int multiple =
          std::min(testing_gemm::largest_power(rows), testing_gemm::largest_power(cols));
      const Launch launch{
          {static_cast<unsigned>(cols + 63) / 64, static_cast<unsigned>(rows + 63) / 64},
          [&, rows = rows, cols = cols](Device& device, Arguments& arguments,
                                        std::vector<Buffer>& buffers) {
            arguments.add(rows).add(cols);
            buffers.push_back(testing_gemm::buffer_of(device, bytes));
            arguments.add(buffers.back());
            Buffer out = *device.allocate(bytes.size());
            arguments.add(out);
            return out;
          }};
      const Bytes got =
          testing_gemm::run(kernels::transpose(multiple), testing_gemm::target(target), launch);
      ASSERT_EQ(got.size(), bytes.size());
      int wrong = 0;
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j)
          wrong += std::memcmp(&got[static_cast<std::size_t>(j * rows + i) * 2],
                               &in[static_cast<std::size_t>(i * cols + j)], 2) != 0;
      EXPECT_EQ(wrong, 0);
    }
}

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
    const auto compiled = compile(kernels::mma_probe(spelling, {.accumulators = 4}), target);
    ASSERT_TRUE(compiled) << spelling << '\n' << compiled.diags().text();
    EXPECT_GE(count(compiled->ptx, spelling), 4u) << spelling;
  }
  EXPECT_GT(probes, 500);
  EXPECT_FALSE(
      compile(kernels::mma_probe("mma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32"), target));
}

// Products of s8: known sums, so that no iteration is missing.
TEST(Probe, RunsTheRequestedRounds) {
  constexpr std::string_view spelling = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
  const kernels::Probe options{.block = 32, .accumulators = 3};
  const auto after = [&](int rounds) {
    const Launch launch{{1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>&) {
                          Buffer out = *device.allocate(128);
                          arguments.add(rounds).add(out);
                          return out;
                        }};
    return testing_gemm::run(kernels::mma_probe(spelling, options), testing_gemm::target("sm_80"),
                             launch);
  };
  const Bytes none = after(0), one = after(1), two = after(2);
  EXPECT_NE(none, one);
  EXPECT_NE(one, two);
  EXPECT_EQ(kernels::probe_operations(spelling, options, 10, 100),
            2.0 * 16 * 8 * 32 * 3 * 10 * 100);
  EXPECT_EQ(kernels::probe_operations("mma", options, 10, 100), 0);
}

}  // namespace
}  // namespace tartan
