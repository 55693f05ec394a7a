// SPDX-License-Identifier: Apache-2.0
// print() and assert_that(), as the emulator runs them.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

struct Printed {
  std::string text;  // of standard output
  std::vector<Finding> findings;
};

// Runs one block; `bytes` of a buffer "in" hold 0, 1, 2, ... as f16.
Printed run_printing(const KernelOptions& options, const std::function<void(Builder&)>& body,
                     const std::string& hardware = "sm_90a") {
  auto device = test::open_engine({.hardware = hardware, .checks = Checks::all});
  const auto compiled = compile(kernel("printing", options, body), device.arch());
  EXPECT_TRUE(compiled) << compiled.diags().text();
  if (!compiled) return {};
  std::vector<host::f16> in(1024);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = host::f16(static_cast<double>(i % 64));
  auto buffer = *device.allocate(2 * in.size());
  EXPECT_TRUE(buffer.write(in));
  auto module = *device.load(compiled->ptx, "printing.ptx");
  auto loaded = *module.kernel("printing");
  testing::internal::CaptureStdout();
  Arguments arguments;
  if (!compiled->params.empty()) arguments.add(buffer);
  EXPECT_TRUE(launch(loaded, *compiled, {1}, arguments));
  (void)device.synchronize();
  std::fflush(stdout);
  return {testing::internal::GetCapturedStdout(), device.findings()};
}

TEST(Print, ValuesOfEveryType) {
  const Printed out = run_printing({.block = 32}, [](Builder& k) {
    const Scalar first = k.thread() == 0;
    k.print("thread", k.thread(), k.thread() == 17);
    k.print("s32", k.constant(s32, -5), first);
    k.print("f32", k.constant(f32, 1.5), first);
    k.print("f64", k.constant(f64, -0.25), first);
    k.print("f16", k.constant(f16, 2.5), first);
    k.print("s64", k.constant(s64, -5'000'000'000), first);
    k.print("u64", k.constant(u64, 5'000'000'000), first);
    k.print("100 %", k.constant(u32, 7), first);
    k.print("condition", k.thread() < 1, first);
    k.print("never", k.thread(), 0);
    k.print("plain", 3, first);
  });
  EXPECT_TRUE(out.findings.empty());
  EXPECT_EQ(out.text,
            "thread (block 0,0,0, thread 17) = 17\n"
            "s32 (block 0,0,0, thread 0) = -5\n"
            "f32 (block 0,0,0, thread 0) = 1.5\n"
            "f64 (block 0,0,0, thread 0) = -0.25\n"
            "f16 (block 0,0,0, thread 0) = 2.5\n"
            "s64 (block 0,0,0, thread 0) = -5000000000\n"
            "u64 (block 0,0,0, thread 0) = 5000000000\n"
            "100 % (block 0,0,0, thread 0) = 7\n"
            "condition (block 0,0,0, thread 0) = 1\n"
            "plain (block 0,0,0, thread 0) = 3\n");
}

TEST(Print, EveryThread) {
  const Printed out = run_printing({.block = 64}, [](Builder& k) { k.print("x", k.thread() * 2); });
  EXPECT_EQ(std::ranges::count(out.text, '\n'), 64);
  EXPECT_NE(out.text.find("x (block 0,0,0, thread 63) = 126\n"), std::string::npos);
}

// A tile of 16 x 16 whose element (r, c) is 16 r + c % 64, by fragments of A and as accumulators.
TEST(Print, FragmentsAreMatrices) {
  const Printed out = run_printing({.block = 32}, [](Builder& k) {
    auto in = k.global("in", f16, row_major(16, 16));
    const Fragment a = k.load(operand_a(m16n8k16, f16), in);
    k.print("A", a);
    const Fragment b = k.load(operand_b(m16n8k16, f16), in.tile({0, 0}, {16, 8}));
    k.print("B", b, k.warp() == 1);
  });
  EXPECT_TRUE(out.findings.empty());
  EXPECT_EQ(std::ranges::count(out.text, '\n'), 16);
  EXPECT_TRUE(
      out.text.starts_with("A[row 0, columns 0 to 15] (block 0,0,0, warp 0) = 0 1 2 3 4 5 6 "
                           "7 8 9 10 11 12 13 14 15\n"))
      << out.text;
  EXPECT_NE(
      out.text.find("A[row 3, columns 0 to 15] (block 0,0,0, warp 0) = 48 49 50 51 52 53 54 55 "
                    "56 57 58 59 60 61 62 63\n"),
      std::string::npos);
}

TEST(Print, TilesHaveTheirPlaces) {
  for (const std::string hardware : {"sm_80", "sm_90a"}) {
    const Printed out = run_printing(
        {.block = 64},
        [](Builder& k) {
          const Tile tile{.m = 32, .n = 16, .k = 16, .warps_m = 2, .warps_n = 1};
          auto in = k.global("in", f16, row_major(32, 16));
          auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
          auto sA = k.shared("sA", f16, mma.shared_a());
          auto sB = k.shared("sB", f16, mma.shared_b());
          k.copy(in, sA[0]);
          k.copy(in.tile({0, 0}, {16, 16}), sB[0]);
          k.barrier();
          auto sum = mma.accumulator();
          sum = mma(sum, sA[0], sB[0]);
          k.print("sum", map(sum, [&](Scalar, ElementPlace at) {
                    return k.convert(at.row * 100 + at.col, f32);
                  }));
        },
        hardware);
    EXPECT_EQ(std::ranges::count(out.text, '\n'), 64) << out.text;
    EXPECT_NE(out.text.find("sum[row 21, columns 8 to 15] (block 0,0,0, warp 1) = 2108 2109 2110 "
                            "2111 2112 2113 2114 2115\n"),
              std::string::npos)
        << out.text;
  }
}

TEST(Print, AnAssertionStopsTheGridAtItsLine) {
  if (test::on_gpu()) GTEST_SKIP() << "a GPU's context does not survive it";
  const auto asserting = [](int limit) {
    return run_printing({.block = 32}, [=](Builder& k) {
      k.assert_that(k.thread() < limit, "the thread is below the limit");
    });
  };
  EXPECT_TRUE(asserting(32).findings.empty());
  const Printed out = asserting(31);
  ASSERT_EQ(out.findings.size(), 1u);
  EXPECT_EQ(out.findings[0].id, "trap");
  EXPECT_EQ(out.findings[0].lane, 31);
  EXPECT_NE(out.findings[0].message.find("the thread is below the limit"), std::string::npos)
      << out.findings[0].message;
  EXPECT_NE(out.findings[0].message.find("print_test.cc"), std::string::npos)
      << out.findings[0].message;
}

TEST(Print, ConstantAssertions) {
  EXPECT_TRUE(run_printing({.block = 32}, [](Builder& k) {
                k.assert_that(1, "never fails");
              }).findings.empty());
  EXPECT_EQ(run_printing({.block = 32}, [](Builder& k) { k.assert_that(0, "always fails"); })
                .findings.size(),
            1u);
}

TEST(Print, Mistakes) {
  test::expect_told(
      [](Builder& k) {
        auto in = k.global("in", f16, row_major(16, 16));
        auto sum = k.mma(k.load(operand_a(m16n8k16, f16), in),
                         k.load(operand_b(m16n8k16, f16), in.tile({0, 0}, {16, 8})), zero(f32));
        const std::vector<Scalar> rows(4, k.lane());
        k.print("sum", k.pack(sum.kind(), rows));
      },
      {"wrong element type: expected f32, found u32, whose bits would be stored; convert() it"});
  test::expect_told(
      [](Builder& k) {
        auto in = k.global("in", f16, row_major(16, 16));
        const Fragment a = k.load(operand_a(wmma_m16n16k16, f16), in);
        k.print("a", a);
      },
      {"lanes and elements of", "hardware's secret"});
  test::expect_told(
      [](Builder& k) {
        auto in = k.global("in", f16, row_major(16, 16));
        const Fragment a = k.load(operand_a(m16n8k16, f16), in);
        k.when(k.lane() < 16, [&] { k.print("a", a); });
      },
      {"print() of a fragment"});
  test::expect_told([](Builder& k) { k.print("x", k.lane(), k.lane()); }, {"condition"});
  test::expect_told([](Builder& k) { k.assert_that(k.lane(), "x"); }, {"condition"});
}

}  // namespace
}  // namespace tartan
