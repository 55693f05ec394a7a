// SPDX-License-Identifier: Apache-2.0
// What launch() and arguments_of() take from a compiled kernel, and which arguments they reject.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

constexpr int rows = 64;

// Copies tiles of A to C, by TMA if the target has it. Rows of A are declared to begin at multiples
// of 16 bytes.
Kernel copy_kernel() {
  return kernel("copies", {.block = rows, .producers = 1}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32, 4);
    auto A = k.global("A", s32, row_major(m, n)), C = k.global("C", s32, row_major(m, n));
    auto s = k.shared("s", s32, RingLayout{row_major(rows, 8), 2});
    k.roles([&] {
      const Scalar row = k.block_x();
      k.pipeline(
          2, ceil_div(n, 8),
          [&](Scalar t, Scalar stage) { k.copy(A.tile(rows, 8, row, t), s[stage]); },
          [&](Scalar t, Scalar stage) { k.copy(s[stage], C.tile(rows, 8, row, t)); });
    });
  });
}

Compiled compiled(const char* target) {
  auto out = compile(copy_kernel(), testing_gemm::target_of(target));
  EXPECT_TRUE(out) << out.diags().text();
  return *out;
}

std::string complaints(const Result<Arguments>& arguments) {
  return arguments ? "" : arguments.diags().text();
}

Arguments all(std::int32_t m, std::int32_t n, std::uint64_t a, std::uint64_t c) {
  return Arguments().add(m).add(n).add(a).add(c);
}

TEST(Launch, FillsInWhatTheKernelNeeds) {
  constexpr int m = 100, n = 20;
  Device& device = testing_gemm::emulator();
  for (const char* target : {"sm_80", "sm_90a"}) {
    SCOPED_TRACE(target);
    const Compiled copies = compiled(target);
    EXPECT_EQ(copies.maps.empty(), std::string_view(target) == "sm_80");
    std::vector<std::int32_t> values(m * n);
    for (int i = 0; i < m * n; ++i) values[static_cast<std::size_t>(i)] = i + 1;
    Buffer a = *device.allocate(m * n * 4), c = *device.allocate(m * n * 4);
    ASSERT_TRUE(a.write(values) && c.fill(0xff));
    auto kernel = device.load(copies.ptx, copies.name)->kernel(copies.name);
    const Stream stream = *device.stream();
    const auto launched =
        launch(*kernel, copies, {2}, Arguments().add(m).add(n).add(a).add(c), &stream);
    ASSERT_TRUE(launched) << launched.diags().text();
    ASSERT_TRUE(device.synchronize());
    EXPECT_EQ(*c.read_all<std::int32_t>(), values);
    EXPECT_FALSE(launch(*kernel, copies, {0}, all(m, n, a.address(), c.address())));
    EXPECT_FALSE(launch(*kernel, copies, {2}, Arguments()));
  }
}

TEST(Launch, ChecksNumberAndSizeOfArguments) {
  EXPECT_EQ(complaints(arguments_of(compiled("sm_90a"), Arguments().add(1).add(2))),
            "error: wrong number of arguments: kernel copies expects 4 arguments, found 2; "
            "arguments_of() adds tensor maps [launch-arguments]\n");
  EXPECT_EQ(complaints(arguments_of(compiled("sm_80"), Arguments())),
            "error: wrong number of arguments: kernel copies expects 4 arguments, found 0 "
            "[launch-arguments]\n");
  for (const char* target : {"sm_80", "sm_90a"})
    EXPECT_EQ(complaints(arguments_of(
                  compiled(target),
                  Arguments().add(std::uint64_t{64}).add(8).add(std::uint64_t{256}).add(1.0F))),
              "error: argument 0 (m) of kernel copies: expected 4 bytes, found 8 "
              "[launch-arguments]\nerror: argument 3 (C) of kernel copies: expected 8 bytes, found "
              "4 [launch-arguments]\n");
}

// Each error of a map is preceded by the matrix's name, and all errors are reported.
TEST(Launch, NamesTheMatrixThatTmaCannotRead) {
  const Compiled copies = compiled("sm_90a");
  EXPECT_EQ(arguments_of(copies, all(64, 8, 256, 256))->size(), 5u);
  EXPECT_EQ(complaints(arguments_of(copies, all(64, 8, 264, 256))),
            "error: A (parameter 2): address: 0x108 is not a multiple of 16 [tensor-map]\n");
  EXPECT_EQ(complaints(arguments_of(copies, all(0, 7, 256, 256))),
            "error: A (parameter 2): strides[0]: expected a multiple of 16 below 2^40 bytes, found "
            "28 [tensor-map]\n");
}

TEST(Launch, ReportsErrorsOfAllMaps) {
  const kernels::Gemm options =
      kernels::tuned({.m = 0, .n = 0, .k = 0}, testing_gemm::target_of("sm_90a"));
  const auto gemm = compile(kernels::gemm(options), testing_gemm::target_of("sm_90a"));
  ASSERT_TRUE(gemm) << gemm.diags().text();
  const auto arguments = Arguments().add(64).add(64).add(64);
  const std::string text = complaints(arguments_of(*gemm, Arguments(arguments)
                                                              .add(std::uint64_t{264})
                                                              .add(std::uint64_t{520})
                                                              .add(std::uint64_t{1024})));
  EXPECT_EQ(text,
            "error: A (parameter 3): address: 0x108 is not a multiple of 16 [tensor-map]\nerror: B "
            "(parameter 4): address: 0x208 is not a multiple of 16 [tensor-map]\n");
}

}  // namespace
}  // namespace tartan
