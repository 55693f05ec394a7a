// SPDX-License-Identifier: Apache-2.0
// Hopper's kernels on random numbers with rounded sums: a GPU matches the emulator's bits in every
// run.
#include <random>

#include "tartan/kernels/sparse.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;

constexpr int m = 200, n = 136, k = 328, repeats = 60;

// Numbers of either sign near one, with all mantissa bits of the type; or any integers.
Bytes random_matrix(Type type, int count, unsigned seed) {
  std::mt19937 random(seed);
  const int width = bits(type);
  const auto [exponent_bits, digits] = testing_numbers::format(type);
  const std::uint32_t bias = (1u << (exponent_bits - 1)) - 1;
  Bytes out;
  for (int i = 0; i < count; ++i) {
    std::uint32_t word = random();
    if (info(type).floating) {
      const std::uint32_t exponent = bias - 2 + random() % 4;
      word = (word & ((1u << digits) - 1)) | exponent << digits | (random() % 2) << (width - 1);
    }
    for (int byte = 0; byte < width / 8; ++byte)
      out.push_back(static_cast<std::byte>(word >> (8 * byte)));
  }
  return out;
}

Launch launch_of(const Gemm& options, unsigned blocks) {
  Launch out{.grid = {blocks}};
  out.arguments = [options](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
    for (const Bytes& each :
         {random_matrix(options.a, m * k, 1), random_matrix(options.b, k * n, 2)}) {
      buffers.push_back(testing_gemm::buffer_of(device, each));
      arguments.add(buffers.back());
    }
    Buffer c = testing_gemm::buffer_of(
        device,
        Bytes(static_cast<std::size_t>(m) * n * static_cast<std::size_t>(bits(options.c)) / 8));
    arguments.add(c);
    return c;
  };
  return out;
}

TEST(GemmRepeats, GiveTheSameBits) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  const Target target = testing_gemm::target_of("sm_90a");
  const struct {
    Type a, c;
    bool persistent;
  } cases[] = {{f16, f16, false},
               {bf16, bf16, true},
               {bf16, f32, true},
               {f32, f32, true},
               {Type::e4m3, bf16, true},
               {Type::s8, s32, true},
               {Type::e5m2, Type::e4m3, false}};
  for (const auto& [a, c, persistent] : cases) {
    SCOPED_TRACE(fmt::format("{} to {}", name(a), name(c)));
    Gemm options{.m = m, .n = n, .k = k};
    options.a = options.b = a, options.c = c;
    if (!info(a).floating) options.accumulator = s32;
    options.tile = {.m = 128, .n = 64, .k = 1024 / bits(a), .warps_m = 8, .warps_n = 1};
    options.producers = 4, options.persistent = persistent;
    const auto compiled = compile(kernels::gemm(options), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const Launch launch = launch_of(options, persistent ? 3 : options.blocks(m, n));
    const Bytes expected = testing_gemm::run_on(testing_gemm::emulator(), *compiled, launch);
    ASSERT_FALSE(expected.empty());
    EXPECT_TRUE(std::any_of(expected.begin(), expected.end(),
                            [](std::byte each) { return each != std::byte{0}; }));
    if (!testing_gemm::gpu()) {
      EXPECT_EQ(testing_gemm::run_on(testing_gemm::emulator(), *compiled, launch), expected);
      continue;
    }
    int differ = 0;
    for (int i = 0; i < repeats; ++i)
      differ += testing_gemm::run_on(*testing_gemm::gpu(), *compiled, launch) != expected;
    EXPECT_EQ(differ, 0) << "of " << repeats;
  }
}

}  // namespace
}  // namespace tartan
