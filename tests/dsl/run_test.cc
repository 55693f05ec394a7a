// SPDX-License-Identifier: Apache-2.0
// run(): a kernel on host data in one call, and what it says of arguments that do not fit.
#include "tartan/run.h"

#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <array>

#include "tests/support/engine.h"

namespace tartan {
namespace {

Device checked(const std::string& hardware) {
  return test::open_engine({.hardware = hardware, .checks = Checks::all});
}

constexpr Tile tile{.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};

// C = scale * A * B, sizes at run time.
Kernel product() {
  return kernel("product", {.block = tile.threads()}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32, 8), depth = k.param("depth", s32, 8);
    auto scale = k.param("scale", f32);
    auto A = k.global("A", f16, row_major(m, depth)), B = k.global("B", f16, row_major(depth, n));
    auto C = k.global("C", f32, row_major(m, n));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(2)), sB = k.shared("sB", f16, mma.shared_b(2));
    auto sum = mma.accumulator();
    auto [row, col] = k.block_tile(m, n, tile);
    k.pipeline(
        {.stages = 2}, ceil_div(depth, tile.k),
        [&, row = row, col = col](Scalar t, Scalar s) {
          k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[s]);
          k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[s]);
        },
        [&](Scalar, Scalar s) { sum = mma(sum, sA[s], sB[s]); });
    k.store(C.tile({row, col}, {tile.m, tile.n}),
            map(sum, [&](Scalar x, ElementPlace) { return x * scale; }));
  });
}

struct Problem {
  int m = 100, n = 72, depth = 40;
  std::vector<host::f16> a, b;
  std::vector<float> c;
  Problem() : a(m * depth), b(depth * n), c(m * n, -1.0F) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = host::f16(static_cast<double>(i % 11) - 5);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = host::f16(static_cast<double>(i % 7) - 3);
  }
  std::vector<double> expected(double scale) const {
    auto out =
        reference::product(reference::row_major(a, m, depth), reference::row_major(b, depth, n));
    for (double& each : out) each *= scale;
    return out;
  }
};

std::string complaint(const Status& status) { return status ? "" : status.diags().text(); }

TEST(Run, ComputesOnHostData) {
  for (const char* hardware : {"sm_80", "sm_90a"}) {
    Device device = checked(hardware);
    Problem p;
    EXPECT_EQ(complaint(run(device, product(), {tile.blocks(p.m, p.n)}, p.m, p.n, p.depth, 0.5,
                            in(p.a), in(p.b), out(p.c))),
              "");
    EXPECT_EQ(reference::difference(p.c, p.expected(0.5), p.n), "");
  }
}

TEST(Run, NamedArgumentsStandAnywhere) {
  Device device = checked("sm_80");
  Problem p;
  EXPECT_EQ(complaint(run(device, product(), {tile.blocks(p.m, p.n)}, arg("C", out(p.c)), p.m,
                          arg("B", in(p.b)), p.n, p.depth, 2, in(p.a))),
            "");
  EXPECT_EQ(reference::difference(p.c, p.expected(2), p.n), "");
}

// Nothing ran: C keeps its values.
TEST(Run, ComparesArgumentsWithParameters) {
  Device device = checked("sm_80");
  Problem p;
  const auto floats = std::vector<float>(p.a.begin(), p.a.end());
  const auto try_run = [&](auto... arguments) {
    return complaint(run(device, product(), {4}, arguments...));
  };
  EXPECT_EQ(try_run(p.m, p.n, p.depth, 1, in(floats), in(p.b), out(p.c)),
            "error: A (parameter 4) of kernel product: wrong element type: expected f16, found "
            "f32; std::byte is for elements of any type [launch-arguments]\n");
  EXPECT_EQ(try_run(p.m + 1, p.n, p.depth, 1, in(p.a), in(p.b), out(p.c)),
            "error: A (parameter 4) of kernel product: too small: its layout spans 4040 elements "
            "of f16 (101 x 40), found 4000 [launch-arguments]\n"
            "error: C (parameter 6) of kernel product: too small: its layout spans 7272 elements "
            "of f32 (101 x 72), found 7200 [launch-arguments]\n");
  EXPECT_EQ(try_run(p.m, 0.5, std::int64_t{1} << 31, in(p.a), in(p.a), 3, out(p.c)),
            "error: n (parameter 1) of kernel product: expected an integer (s32), found the "
            "floating-point number 0.5 [launch-arguments]\n"
            "error: depth (parameter 2) of kernel product: 2147483648 does not fit s32 "
            "[launch-arguments]\n"
            "error: scale (parameter 3) of kernel product: expected a number of type f32, found a "
            "matrix [launch-arguments]\n"
            "error: B (parameter 5) of kernel product: expected a matrix of f16, found a number "
            "[launch-arguments]\n");
  EXPECT_EQ(try_run(p.m, p.n, p.depth, 1, in(p.a), in(p.b)),
            "error: C (parameter 6) of kernel product: it has no argument [launch-arguments]\n");
  EXPECT_EQ(try_run(p.m, p.n, p.depth, 1, in(p.a), in(p.b), out(p.c), 1),
            "error: wrong number of arguments: kernel product expects 7 arguments (m, n, depth, "
            "scale, A, B, C), found 8 [launch-arguments]\n");
  EXPECT_EQ(try_run(p.m, p.n, p.depth, 1, arg("A", in(p.a)), arg("A", in(p.b)), arg("D", 1)),
            "error: A (parameter 4) of kernel product: two arguments have its name "
            "[launch-arguments]\nerror: kernel product has no parameter D; it has m, n, depth, "
            "scale, A, B, C [launch-arguments]\n");
  EXPECT_EQ(p.c, std::vector<float>(p.c.size(), -1.0F));
}

TEST(Run, TakesBuffersAndBytes) {
  Device device = checked("sm_80");
  Problem p;
  Buffer a = *device.allocate(p.a.size() * 2), small = *device.allocate(64);
  ASSERT_TRUE(a.write(p.a));
  const std::span<const std::byte> b = std::as_bytes(std::span(p.b));
  const Dim3 grid{tile.blocks(p.m, p.n)};
  EXPECT_EQ(complaint(run(device, product(), grid, p.m, p.n, p.depth, 1, a, in(b), out(p.c))), "");
  EXPECT_EQ(reference::difference(p.c, p.expected(1), p.n), "");
  EXPECT_EQ(complaint(run(device, product(), grid, p.m, p.n, p.depth, 1, small, in(b), out(p.c))),
            "error: A (parameter 4) of kernel product: too small: its layout spans 4000 elements "
            "of f16 (100 x 40), found 32 [launch-arguments]\n");
}

// A kernel that leaves out the last element of what it is given.
Kernel all_but_one() {
  return kernel("all_but_one", {.block = 32}, [](Builder& k) {
    auto out = k.global("out", u32, row_major(1, 32));
    k.when(k.thread() < 31, [&] { k.write(out, 0, k.thread(), k.thread() + 1); });
  });
}

TEST(Run, SaysWhichElementsTheKernelDidNotWrite) {
  if (test::on_gpu()) GTEST_SKIP() << "a GPU keeps no account of what was written";
  Device device = checked("sm_80"), unchecked = test::open_engine();
  std::array<std::uint32_t, 32> values{};
  values[31] = 7;
  EXPECT_EQ(complaint(run(device, all_but_one(), {1}, out(values))),
            "error: out (parameter 0) of kernel all_but_one: the kernel did not write 1 of 32 "
            "elements, the first of them element 31, in a grid of 1 x 1 x 1 blocks; in_out() is "
            "for a matrix of which it writes a part [launch-arguments]\n");
  EXPECT_EQ(values[0], 0u);
  EXPECT_EQ(complaint(run(device, all_but_one(), {1}, in_out(values))), "");
  EXPECT_EQ(values[30], 31u);
  EXPECT_EQ(values[31], 7u);
  values = {};
  values[31] = 8;
  EXPECT_EQ(complaint(run(unchecked, all_but_one(), {1}, out(values))), "");
  EXPECT_EQ(values[30], 31u);
  EXPECT_EQ(values[31], 8u);
}

TEST(Run, FindingsAreErrors) {
  if (test::on_gpu()) GTEST_SKIP() << "a GPU has no findings";
  const Kernel races = kernel("races", {.block = 64}, [](Builder& k) {
    auto out = k.global("out", u32, row_major(1, 1));
    k.write(out, 0, 0, k.thread());
  });
  Device device = checked("sm_80");
  std::vector<std::uint32_t> value{5};
  const std::string text = complaint(run(device, races, {1}, out(value)));
  EXPECT_NE(text.find("run_test.cc"), std::string::npos) << text;
  EXPECT_NE(text.find("race"), std::string::npos) << text;
  EXPECT_EQ(value[0], 5u);
}

TEST(Run, FindingsNameTheElement) {
  if (test::on_gpu()) GTEST_SKIP() << "a GPU has no findings";
  const Kernel races = kernel("races", {.block = 64}, [](Builder& k) {
    auto n = k.param("n", s32);
    auto table = k.global("table", u32, row_major(n, 8));
    k.write(table, 2, k.thread() % 8, k.thread());
  });
  Device device = checked("sm_80");
  std::vector<std::uint32_t> values(32);
  const std::string text = complaint(run(device, races, {1}, 4, out(values)));
  EXPECT_NE(text.find("table[2,"), std::string::npos) << text;
  EXPECT_NE(text.find("(warp_sync())"), std::string::npos) << text;
}

TEST(Run, TileCountsItsBlocks) {
  EXPECT_EQ(tile.blocks(0, 64), 0u);
  EXPECT_EQ(tile.blocks(1, 1), 1u);
  EXPECT_EQ(tile.blocks(65, 129), 6u);
  EXPECT_EQ(tile.blocks(65, 129, 4), 12u);
  EXPECT_EQ(tile.blocks(std::int64_t{1} << 40, 1 << 20), 0xffffffffu);
}

// A matrix that only the host's side calls an input.
TEST(Run, WritesToWhatIsSaidToBeRead) {
  const auto body = [](Builder& k) {
    auto x = k.global("x", f32, row_major(1, 32)), y = k.global("y", f32, row_major(1, 32));
    k.write(y, 0, k.thread(), k.read(x, 0, k.thread()) * 2.0);
  };
  const std::vector<float> x(32, 1.0F);
  std::vector<float> y(32);
  Device device = checked("sm_80");
  const Kernel twice = kernel("twice", {.block = 32}, body);
  const Status wrong = run(device, twice, {1}, in(x), in(y));
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.diags().text().find("y (parameter 1) of kernel twice: the kernel writes it: "
                                      "expected out() or in_out(), found in()"),
            std::string::npos)
      << wrong.diags().text();
  EXPECT_TRUE(run(device, twice, {1}, in(x), out(y)));
  EXPECT_EQ(y[31], 2.0F);
}

TEST(Run, PrintsWarningsOfTheEmulator) {
  if (test::on_gpu()) GTEST_SKIP() << "findings are the emulator's";
  const Kernel same = kernel("same", {.block = 64}, [](Builder& k) {
    auto y = k.global("y", f32, row_major(1, 1));
    k.write(y, 0, 0, 2.0);
  });
  std::vector<float> y(1);
  Device device = checked("sm_80");
  testing::internal::CaptureStderr();
  const Status done = run(device, same, {1}, out(y));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(done) << done.diags().text();
  EXPECT_NE(said.find("run_test.cc:"), std::string::npos) << said;
  EXPECT_NE(said.find("[same-value-race]"), std::string::npos) << said;
}

}  // namespace
}  // namespace tartan
