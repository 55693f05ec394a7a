// SPDX-License-Identifier: Apache-2.0
// Function: a kernel as a typed C++ function, and what it refuses before the driver sees it.
#include "tartan/function.h"

#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/support/engine.h"

namespace tartan {
namespace {

constexpr int rows = 64;

// C = A, m x n elements, a block for each tile; n is a multiple of 4.
Kernel copy_kernel(int cluster = 1) {
  return kernel("copies", {.block = rows, .cluster = cluster}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", u32, 4);
    auto A = k.global("A", f16, row_major(m, n));
    auto C = k.global("C", f16, row_major(m, n));
    auto [row, col] = k.block_tile(m, n, {.m = rows, .n = 8});
    auto s = k.shared("s", f16, row_major(rows, 8));
    k.copy(A.tile({row, col}, {rows, 8}), s);
    k.barrier();
    k.copy(s, C.tile({row, col}, {rows, 8}));
  });
}

Compiled compiled(const Kernel& kernel, Arch arch = {80, 0}) {
  auto out = compile(kernel, arch);
  EXPECT_TRUE(out) << out.diags().text();
  return *out;
}

template <typename T>
std::string complaints(const Result<T>& result) {
  return result ? "" : result.diags().text();
}

using Copy = Function<void(int, int, GlobalArg<f16>, GlobalArg<f16>)>;

class FunctionOnEmulator : public testing::Test {
 protected:
  Device device = test::open_engine({.hardware = "sm_90a", .checks = Checks::all});
  Buffer a = *device.allocate(64 * 8 * 2), c = *device.allocate(64 * 8 * 2);
};

TEST_F(FunctionOnEmulator, Launches) {
  auto copy = Copy::make(device, compiled(copy_kernel()));
  ASSERT_TRUE(copy) << copy.diags().text();
  std::vector<std::uint16_t> values(64 * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  ASSERT_TRUE(a.write(values));
  EXPECT_EQ(complaints((*copy)({1}, 64, 8, a, c)), "");
  EXPECT_EQ(complaints(device.synchronize()), "");
  EXPECT_EQ(*c.read_all<std::uint16_t>(), values);

  ASSERT_TRUE(c.fill(0));
  const Stream stream = *device.stream();
  EXPECT_EQ(complaints((*copy)(stream, {1}, 64, 8, {a.address(), 64 * 8}, {c.address(), 64 * 8})),
            "");
  EXPECT_EQ(*c.read_all<std::uint16_t>(), values);
}

TEST_F(FunctionOnEmulator, TakesALoadedKernel) {
  const Compiled copies = compiled(copy_kernel());
  const auto module = device.load(copies.ptx + ".visible .entry other() { ret; }\n");
  ASSERT_TRUE(module) << module.diags().text();
  auto copy = Copy::make(*module->kernel("copies"), copies);
  ASSERT_TRUE(copy) << copy.diags().text();
  ASSERT_TRUE(a.fill(1));
  EXPECT_EQ(complaints((*copy)({1}, 64, 8, a, c)), "");
  EXPECT_EQ(complaints(Copy::make(*module->kernel("other"), copies)),
            "error: the loaded kernel is another one: expected copies, found other "
            "[launch-arguments]\n");
}

TEST_F(FunctionOnEmulator, NamesEveryParameterThatTheSignatureDiffersIn) {
  const Compiled copies = compiled(copy_kernel());
  using Fewer = Function<void(int, int, GlobalArg<f16>)>;
  EXPECT_EQ(complaints(Fewer::make(device, copies)),
            "error: wrong number of parameters in the signature: kernel copies has 4 (m: s32, n: "
            "u32, A: pointer to f16, C: pointer to f16), found 3 [launch-arguments]\n");
  using Other = Function<void(GlobalArg<f32>, std::int64_t, GlobalArg<bf16>, float)>;
  EXPECT_EQ(complaints(Other::make(device, copies)),
            "error: m (parameter 0) of kernel copies: the signature differs: expected s32, found "
            "pointer to f32 [launch-arguments]\n"
            "error: n (parameter 1) of kernel copies: the signature differs: expected u32, found "
            "s64 [launch-arguments]\n"
            "error: A (parameter 2) of kernel copies: the signature differs: expected pointer to "
            "f16, found pointer to bf16 [launch-arguments]\n"
            "error: C (parameter 3) of kernel copies: the signature differs: expected pointer to "
            "f16, found f32 [launch-arguments]\n");
  using Bytes = Function<void(unsigned, unsigned, GlobalArg<Type::b8>, GlobalArg<Type::b8>)>;
  EXPECT_EQ(complaints(Bytes::make(device, copies)), "");
}

// Nothing ran: C keeps its bytes.
TEST_F(FunctionOnEmulator, NamesEveryArgumentThatDoesNotFit) {
  auto copy = Copy::make(device, compiled(copy_kernel()));
  ASSERT_TRUE(copy) << copy.diags().text();
  ASSERT_TRUE(a.fill(1) && c.fill(7));
  EXPECT_EQ(complaints((*copy)({1}, 64, 8, {a.address() + 2, 511}, c)),
            "error: A (parameter 2) of kernel copies: the address 0x" +
                fmt::format("{:x}", a.address() + 2) +
                " is not a multiple of 16 [launch-arguments]\n"
                "error: A (parameter 2) of kernel copies: too small: its layout spans 512 elements "
                "of f16 (64 x 8), found 511 [launch-arguments]\n");
  const std::string small = complaints((*copy)({1}, 65, 8, a, c));
  EXPECT_TRUE(small.starts_with(
      "error: A (parameter 2) of kernel copies: too small: its layout spans 520 elements of "
      "f16 (65 x 8), found 512 [launch-arguments]\n"
      "error: C (parameter 3) of kernel copies: too small: its layout spans 520 elements of "
      "f16 (65 x 8), found 512 [launch-arguments]\n"))
      << small;
  EXPECT_TRUE(
      small.ends_with("error: block_tile(): a block for each tile: expected 2 blocks along "
                      "x, found 1 [launch-arguments]\n"))
      << small;
  EXPECT_EQ(complaints((*copy)({1}, 64, -4, a, c)),
            "error: n (parameter 1) of kernel copies: -4 does not fit u32 [launch-arguments]\n");
  EXPECT_EQ(complaints((*copy)({1}, 64, 6, a, c)),
            "error: argument 1 (n) of kernel copies: expected a multiple of 4, found 6 "
            "[launch-arguments]\n");
  EXPECT_EQ(*c.read_all<std::uint8_t>(), std::vector<std::uint8_t>(c.size(), 7));
}

// Sizes whose product is beyond 64 bits are no smaller than the buffer.
TEST_F(FunctionOnEmulator, SizesThatOverflowAreTooLarge) {
  const auto spans = kernel("spans", {.block = 32}, [](Builder& k) {
    auto m = k.param("m", s64), n = k.param("n", s64);
    auto A = k.global("A", f32, row_major(m, n));
    k.write(A, 0, k.lane(), k.constant(f32, 1.0));
  });
  using Spans = Function<void(std::int64_t, std::int64_t, GlobalArg<f32>)>;
  auto function = Spans::make(device, compiled(spans));
  ASSERT_TRUE(function) << function.diags().text();
  const std::string said = complaints((*function)({1}, std::int64_t{1} << 40, 1 << 30, a));
  EXPECT_NE(said.find("A (parameter 2) of kernel spans: too small"), std::string::npos) << said;
}

TEST_F(FunctionOnEmulator, AGridIsAWholeNumberOfClusters) {
  const auto pair = kernel("pair", {.block = 32, .cluster = 2}, [](Builder& k) {
    auto C = k.global("C", s32, row_major(1, 32));
    k.cluster_barrier();
    k.write(C, 0, k.lane(), k.constant(s32, 1));
  });
  auto function = Function<void(GlobalArg<s32>)>::make(device, compiled(pair, {90, 'a'}));
  ASSERT_TRUE(function) << function.diags().text();
  EXPECT_EQ(complaints((*function)({3}, a)),
            "error: the grid of 3 x 1 x 1 blocks is not a multiple of the cluster of 2 x 1 x 1 "
            "[launch-arguments]\n");
}

// launch() knows the sizes of Buffers, too.
TEST_F(FunctionOnEmulator, ALaunchRefusesABufferThatIsTooSmall) {
  const Compiled copies = compiled(copy_kernel());
  auto kernel = device.load(copies.ptx)->kernel("copies");
  const Buffer half = *device.allocate(64 * 8);
  ASSERT_TRUE(a.fill(1));
  EXPECT_EQ(complaints(launch(*kernel, copies, {1}, Arguments().add(64).add(8).add(a).add(half))),
            "error: C (parameter 3) of kernel copies: too small: its layout spans 512 elements of "
            "f16 (64 x 8), found 256 [launch-arguments]\n");
}

}  // namespace
}  // namespace tartan
