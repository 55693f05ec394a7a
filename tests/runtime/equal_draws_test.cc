// SPDX-License-Identifier: Apache-2.0
// What `tartan equal` draws: integers, floats of all magnitudes and both signs. Functions that
// differ where the usual floats in (-1, 1) and zeros do not reach are not the same.
#include <gtest/gtest.h>

#include "tests/runtime/equal_kernels.h"

namespace tartan {
namespace {

using testing_equal::kernel_of;
using testing_equal::kernel_on;
using testing_equal::NamedSize;
using Verdict = Equality::Verdict;

Equality judged(const Manifest& a, const Manifest& b, std::uint64_t seed) {
  return equal(a, b, {.seed = seed, .explain = 0});
}

void expect_for_seeds(const Manifest& a, const Manifest& b, Verdict verdict, const char* what) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const Equality out = judged(a, b, seed);
    EXPECT_EQ(out.verdict, verdict) << what << ", seed " << seed << '\n'
                                    << out.complaints(false) << out.text();
  }
}

// Never "same": different, or undecided.
void expect_not_same(const Manifest& a, const Manifest& b, const char* what) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const Equality out = judged(a, b, seed);
    EXPECT_TRUE(out.verdict == Verdict::different || out.verdict == Verdict::undecided)
        << what << ", seed " << seed << '\n'
        << out.complaints(false) << out.text();
  }
}

struct Bodies {
  const char* what;
  const char* a;
  const char* b;
};

// ---- Floats.

TEST(EqualDraws, FloatsReachBeyondOne) {
  const Bodies pairs[] = {
      {"relu and relu6", "max.f32 %f0, %f1, 0f00000000;",
       "max.f32 %f0, %f1, 0f00000000; min.f32 %f0, %f0, 0f40C00000;"},
      {"x and min(x, 1)", "mov.f32 %f0, %f1;", "min.f32 %f0, %f1, 0f3F800000;"},
      {"x and a clamp at 100", "mov.f32 %f0, %f1;",
       "max.f32 %f0, %f1, 0fC2C80000; min.f32 %f0, %f0, 0f42C80000;"},
      {"a branch at 50", "mov.f32 %f0, %f1;",
       "mov.f32 %f0, %f1; setp.lt.f32 %p0, %f1, 0f42480000; @%p0 bra L; mov.f32 %f0, %f2; L:"},
      {"a selection at 2^-10", "mov.f32 %f0, %f1;",
       "abs.f32 %f3, %f1; setp.gt.f32 %p0, %f3, 0f3A800000; selp.f32 %f0, %f1, 0f00000000, %p0;"},
  };
  for (const Bodies& each : pairs)
    expect_for_seeds(kernel_of(each.a), kernel_of(each.b), Verdict::different, each.what);
}

// ln(1 + e^x), and x beyond 20.
TEST(EqualDraws, ThresholdOfSoftplusIsNoticed) {
  const std::string plain =
      "mul.f32 %f3, %f1, 0f3FB8AA3B; ex2.approx.f32 %f4, %f3; add.f32 %f4, %f4, 0f3F800000; "
      "lg2.approx.f32 %f5, %f4; mul.f32 %f0, %f5, 0f3F317218;";
  expect_not_same(
      kernel_of(plain),
      kernel_of(plain + "setp.gt.f32 %p0, %f1, 0f41A00000; selp.f32 %f0, %f1, %f0, %p0;"),
      "softplus");
}

TEST(EqualDraws, OneElementHasBothSigns) {
  const std::vector<NamedSize> one = {{"x", 4}, {"y", 4}};
  const auto of = [&](const std::string& body) {
    return kernel_on(one, "ld.global.f32 %f1, [%rd1];" + body + "st.global.f32 [%rd2], %f0;", 1);
  };
  const std::string root = "mul.f32 %f2, %f1, %f1; sqrt.rn.f32 %f0, %f2;";
  expect_for_seeds(of("neg.f32 %f0, %f1;"), of(root), Verdict::different, "-x and sqrt(x * x)");
  expect_for_seeds(of("mov.f32 %f0, %f1;"), of(root), Verdict::different, "x and sqrt(x * x)");
  expect_for_seeds(of("mov.f32 %f0, %f1;"), of("max.f32 %f0, %f1, 0f00000000;"), Verdict::different,
                   "x and relu");
  expect_for_seeds(of("mov.f32 %f0, %f1;"), of("min.f32 %f0, %f1, 0f3F800000;"), Verdict::different,
                   "x and min(x, 1)");
  expect_for_seeds(of("abs.f32 %f0, %f1;"), of(root), Verdict::same, "|x| and sqrt(x * x)");
}

TEST(EqualDraws, RootsKeepTheirSigns) {
  const Bodies wrong[] = {
      {"a sum", "add.f32 %f3, %f1, %f2; neg.f32 %f0, %f3;",
       "add.f32 %f3, %f1, %f2; mul.f32 %f3, %f3, %f3; sqrt.rn.f32 %f0, %f3;"},
      {"a square of a root", "abs.f32 %f3, %f1; add.f32 %f3, %f3, 0f3F800000; neg.f32 %f0, %f3;",
       "abs.f32 %f3, %f1; add.f32 %f3, %f3, 0f3F800000; sqrt.rn.f32 %f4, %f3; "
       "mul.f32 %f0, %f4, %f4;"},
  };
  for (const Bodies& each : wrong) expect_not_same(kernel_of(each.a), kernel_of(each.b), each.what);
  expect_for_seeds(kernel_of("mul.f32 %f3, %f1, %f2; abs.f32 %f0, %f3;"),
                   kernel_of("mul.f32 %f3, %f1, %f2; mul.f32 %f3, %f3, %f3; sqrt.rn.f32 %f0, %f3;"),
                   Verdict::same, "|x y| and sqrt((x y)^2)");
}

// What is the same stays so, where wide draws overflow exponentials too.
TEST(EqualDraws, WideDrawsKeepWhatIsTheSame) {
  const std::string sums =
      "shfl.sync.bfly.b32 %f5, %f4, 16, 31, -1; add.f32 %f4, %f4, %f5; shfl.sync.bfly.b32 %f5, "
      "%f4, 8, 31, -1; add.f32 %f4, %f4, %f5; shfl.sync.bfly.b32 %f5, %f4, 4, 31, -1; add.f32 "
      "%f4, %f4, %f5; shfl.sync.bfly.b32 %f5, %f4, 2, 31, -1; add.f32 %f4, %f4, %f5; "
      "shfl.sync.bfly.b32 %f5, %f4, 1, 31, -1; add.f32 %f4, %f4, %f5; div.rn.f32 %f0, %f6, %f4;";
  std::string most = "mov.f32 %f3, %f1;";
  for (const char* step : {"16", "8", "4", "2", "1"})
    most +=
        std::string("shfl.sync.bfly.b32 %f5, %f3, ") + step + ", 31, -1; max.f32 %f3, %f3, %f5;";
  const std::string power =
      "mul.f32 %f4, %f4, 0f3FB8AA3B; ex2.approx.ftz.f32 %f6, %f4;"
      "mov.f32 %f4, %f6;";
  const std::string softmax = most + "sub.f32 %f4, %f1, %f3;" + power + sums;
  expect_for_seeds(kernel_of(softmax), kernel_of("mov.f32 %f4, %f1;" + power + sums), Verdict::same,
                   "softmax without its maximum");
  expect_for_seeds(
      kernel_of("neg.f32 %f3, %f1; mul.f32 %f3, %f3, 0f3FB8AA3B; ex2.approx.f32 %f3, %f3; add.f32 "
                "%f3, %f3, 0f3F800000; div.rn.f32 %f4, %f1, %f3; max.f32 %f0, %f4, %f2;"),
      kernel_of("mul.f32 %f3, %f1, 0f3FB8AA3B; ex2.approx.f32 %f3, %f3; add.f32 %f5, %f3, "
                "0f3F800000; mul.f32 %f4, %f1, %f3; div.rn.f32 %f4, %f4, %f5; max.f32 %f0, %f2, "
                "%f4;"),
      Verdict::same, "silu");
  expect_for_seeds(kernel_of("max.f32 %f0, %f1, 0f00000000;"),
                   kernel_of("cvt.rn.f16.f32 %h0, %f1; cvt.f32.f16 %f3, %h0; max.f32 %f0, %f3, "
                             "0f00000000;"),
                   Verdict::same, "rounding to f16");
}

// ---- Integers.

TEST(EqualDraws, BytesScaledByRowOrColumn) {
  const std::vector<NamedSize> buffers = {{"q", 64}, {"s", 256}, {"y", 256}};
  const auto of = [&](const std::string& load, const std::string& index) {
    return kernel_on(buffers, "cvt.u64.u32 %rd10, %r1; add.s64 %rd11, %rd1, %rd10;" + load + index +
                                  "mul.wide.u32 %rd12, %r3, 4; add.s64 %rd12, %rd2, %rd12;"
                                  "ld.global.f32 %f2, [%rd12]; mul.f32 %f0, %f1, %f2;"
                                  "add.s64 %rd13, %rd3, %rd9; st.global.f32 [%rd13], %f0;");
  };
  const std::string s8 = "ld.global.s8 %r2, [%rd11]; cvt.rn.f32.s32 %f1, %r2;",
                    u8 = "ld.global.u8 %r2, [%rd11]; cvt.rn.f32.u32 %f1, %r2;",
                    s16 = "ld.global.s8 %h1, [%rd11]; cvt.rn.f32.s16 %f1, %h1;";
  const std::string row = "shr.u32 %r3, %r1, 3;", column = "and.b32 %r3, %r1, 7;";
  expect_for_seeds(of(s8, row), of(s8, column), Verdict::different, "row and column");
  expect_for_seeds(of(s8, row), of(u8, row), Verdict::different, "signed and unsigned");
  expect_for_seeds(of(s8, row), of(s16, row), Verdict::same, "by way of 16 bits");
}

TEST(EqualDraws, WordsAndTheirParts) {
  const std::vector<NamedSize> buffers = {{"q", 256}, {"y", 256}};
  const auto of = [&](const std::string& body) {
    return kernel_on(buffers, "add.s64 %rd10, %rd1, %rd9; ld.global.u32 %r2, [%rd10];" + body +
                                  "cvt.rn.f32.s32 %f0, %r2; add.s64 %rd11, %rd2, %rd9;"
                                  "st.global.f32 [%rd11], %f0;");
  };
  expect_for_seeds(of(""), of("mul.lo.s32 %r2, %r2, 3;"), Verdict::different, "x and 3 x");
  expect_for_seeds(of("shl.b32 %r2, %r2, 1;"), of("add.s32 %r2, %r2, %r2;"), Verdict::same, "2 x");
  expect_for_seeds(of("and.b32 %r2, %r2, 15;"), of("shr.u32 %r2, %r2, 4; and.b32 %r2, %r2, 15;"),
                   Verdict::different, "the other nibble");
  expect_for_seeds(of("bfe.u32 %r2, %r2, 4, 4;"), of("shr.u32 %r2, %r2, 4; and.b32 %r2, %r2, 15;"),
                   Verdict::same, "one nibble, two ways");
  expect_for_seeds(of(""), of("max.s32 %r2, %r2, 0;"), Verdict::different,
                   "x and relu of integers");
  expect_for_seeds(of(""), of("min.s32 %r2, %r2, 100000;"), Verdict::different,
                   "a clamp of integers");
}

TEST(EqualDraws, IndicesStayWithinWhatTheyIndex) {
  const std::vector<NamedSize> buffers = {{"x", 256}, {"ix", 256}, {"y", 256}};
  const auto of = [&](const std::string& at) {
    return kernel_on(buffers, at + "mul.wide.s32 %rd11, %r2, 4; add.s64 %rd12, %rd1, %rd11;"
                                   "ld.global.f32 %f0, [%rd12]; add.s64 %rd13, %rd3, %rd9;"
                                   "st.global.f32 [%rd13], %f0;");
  };
  const std::string own = "add.s64 %rd10, %rd2, %rd9; ld.global.u32 %r2, [%rd10];",
                    reversed =
                        "sub.s32 %r4, 63, %r1; mul.wide.u32 %rd10, %r4, 4; add.s64 %rd10, "
                        "%rd2, %rd10; ld.global.u32 %r2, [%rd10];";
  expect_for_seeds(of(own), of("mov.u32 %r2, 0;"), Verdict::different, "x[ix[i]] and x[0]");
  expect_for_seeds(of(own), of(reversed), Verdict::different, "another index");
  expect_for_seeds(of(own), of(own + "add.s32 %r2, %r2, 5; sub.s32 %r2, %r2, 5;"), Verdict::same,
                   "the same index");
}

// 16 rows of 8: no other buffer has 16 elements.
TEST(EqualDraws, IndicesReachEachRow) {
  const std::vector<NamedSize> buffers = {{"x", 512}, {"ix", 256}, {"y", 256}};
  const auto of = [&](const std::string& change) {
    return kernel_on(buffers, "add.s64 %rd10, %rd2, %rd9; ld.global.u32 %r2, [%rd10];" + change +
                                  "shl.b32 %r2, %r2, 3; and.b32 %r4, %r1, 7;"
                                  "add.s32 %r2, %r2, %r4; mul.wide.s32 %rd11, %r2, 4;"
                                  "add.s64 %rd12, %rd1, %rd11; ld.global.f32 %f0, [%rd12];"
                                  "add.s64 %rd13, %rd3, %rd9; st.global.f32 [%rd13], %f0;");
  };
  expect_for_seeds(of(""), of("rem.u32 %r2, %r2, 15;"), Verdict::different, "the last row");
  expect_for_seeds(of(""), of("rem.u32 %r2, %r2, 16;"), Verdict::same, "each row");
}

TEST(EqualDraws, LengthsAndMasks) {
  const std::vector<NamedSize> buffers = {{"x", 256}, {"n", 64}, {"y", 256}};
  const auto of = [&](const std::string& test) {
    return kernel_on(buffers,
                     "add.s64 %rd10, %rd1, %rd9; ld.global.f32 %f1, [%rd10];"
                     "cvt.u64.u32 %rd11, %r1; add.s64 %rd11, %rd2, %rd11;" +
                         test +
                         "selp.f32 %f0, %f1, 0f00000000, %p1;"
                         "add.s64 %rd13, %rd3, %rd9; st.global.f32 [%rd13], %f0;");
  };
  const std::string below = "ld.global.u32 %r2, [%rd2]; setp.lt.s32 %p1, %r1, %r2;",
                    to = "ld.global.u32 %r2, [%rd2]; setp.le.s32 %p1, %r1, %r2;",
                    never = "setp.ne.s32 %p1, %r1, %r1;",
                    mask = "ld.global.u8 %r2, [%rd11]; setp.ne.s32 %p1, %r2, 0;",
                    inverted = "ld.global.u8 %r2, [%rd11]; setp.eq.s32 %p1, %r2, 0;";
  expect_for_seeds(of(below), of(to), Verdict::different, "i < n and i <= n");
  expect_for_seeds(of(below), of(never), Verdict::different, "i < n and never");
  expect_for_seeds(of(mask), of(never), Verdict::different, "a mask and never");
  expect_for_seeds(of(mask), of(inverted), Verdict::different, "a mask and its inverse");
  expect_for_seeds(of(below), of("ld.global.u32 %r2, [%rd2]; setp.gt.s32 %p1, %r2, %r1;"),
                   Verdict::same, "i < n, two ways");
}

TEST(EqualDraws, IntegersThatNothingBoundsAreUndecided) {
  const std::vector<NamedSize> buffers = {{"x", 256}, {"at", 8}, {"y", 256}};
  // A whole address, of which only 0 bytes beyond x are in x.
  const auto of = [&](const std::string& then) {
    return kernel_on(buffers,
                     "ld.global.u64 %rd10, [%rd2]; mul.lo.s64 %rd10, %rd10, 100000;"
                     "add.s64 %rd10, %rd1, %rd10; ld.global.f32 %f0, [%rd10];" +
                         then + "add.s64 %rd13, %rd3, %rd9; st.global.f32 [%rd13], %f0;");
  };
  const Equality out = judged(of(""), of("add.f32 %f0, %f0, 0f00000000;"), 1);
  EXPECT_EQ(out.verdict, Verdict::undecided) << out.text();
  EXPECT_NE(out.reason.find("no integers but zeros were found for at"), std::string::npos)
      << out.reason;
}

// ---- Contents that a manifest states.

TEST(EqualDraws, AFillStaysWhereAKernelAddsToIt) {
  const std::string add =
                        "add.s64 %rd10, %rd1, %rd9; ld.global.f32 %f1, [%rd10];"
                        "add.s64 %rd11, %rd2, %rd9; red.global.add.f32 [%rd11], %f1;",
                    set =
                        "add.s64 %rd10, %rd1, %rd9; ld.global.f32 %f1, [%rd10];"
                        "add.s64 %rd11, %rd2, %rd9; st.global.f32 [%rd11], %f1;";
  Manifest a = kernel_on({{"x", 256}, {"y", 256}}, add),
           b = kernel_on({{"x", 256}, {"y", 256}}, set);
  EXPECT_EQ(judged(a, b, 1).verdict, Verdict::different);  // y is drawn
  for (Manifest* each : {&a, &b})
    for (ManifestParam& param : each->params) param.buffer->filled = true;
  const Equality kept = judged(a, b, 1);
  EXPECT_EQ(kept.verdict, Verdict::undecided);
  EXPECT_NE(kept.reason.find("--exact y"), std::string::npos) << kept.reason;
  EXPECT_EQ(equal(a, b, {.exact = {"y"}}).verdict, Verdict::same);
}

// ---- What the verdict rests on.

TEST(EqualDraws, NamesWhatWentOneWay) {
  const Manifest plain = kernel_of("mov.f32 %f0, %f1;");
  const Equality least = judged(plain, kernel_of("\nmin.f32 %f0, %f1, 0f7E967699;"), 1);  // 1e38
  ASSERT_EQ(least.verdict, Verdict::same) << least.complaints(false);
  ASSERT_EQ(least.paths.size(), 1u) << least.text();
  EXPECT_EQ(least.paths[0].text, "min.f32 on line 24 always took its first operand");
  EXPECT_NE(least.text().find("for these paths"), std::string::npos) << least.text();
  const Equality branch =
      judged(plain,
             kernel_of("mov.f32 %f0, %f1;\nsetp.lt.f32 %p0, %f1, 0f7E967699;\n@%p0 bra L;\n"
                       "mov.f32 %f0, %f2;\nL:"),
             1);
  ASSERT_EQ(branch.verdict, Verdict::same) << branch.complaints(false);
  ASSERT_EQ(branch.paths.size(), 1u) << branch.text();
  EXPECT_EQ(branch.paths[0].text,
            "setp.lt.f32 on line 24 always held, which decides the branch on line 25");
  EXPECT_TRUE(judged(plain, plain, 1).paths.empty());
  const Manifest both = kernel_of("max.f32 %f0, %f1, %f2;");
  EXPECT_TRUE(judged(both, both, 1).paths.empty());
}

// ---- Kernels that `tartan run` rejects.

TEST(EqualDraws, RejectsWhatRunRejects) {
  const std::string
      exchange =
          "mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.s32 %r4, %r3, %r4; st.shared.f32 [%r4], %f1; ",
      load =
          "xor.b32 %r5, %r1, 37; shl.b32 %r5, %r5, 2; add.s32 %r5, %r3, %r5; "
          "ld.shared.f32 %f0, [%r5];";
  const auto of_two_warps = [](const std::string& body) {
    Manifest out = kernel_of(body);
    out.launch.block = {64};
    for (ManifestParam& each : out.params) each.buffer->size = 256;
    return out;
  };
  Manifest right = of_two_warps(exchange + "bar.sync 0;" + load),
           wrong = of_two_warps(exchange + load);
  EXPECT_EQ(judged(right, right, 1).verdict, Verdict::same);
  for (const auto& [a, b] : {std::pair{&right, &wrong}, std::pair{&wrong, &right}}) {
    const Equality out = judged(*a, *b, 1);
    EXPECT_EQ(out.exit_code(), 3) << out.text();
    ASSERT_FALSE(out.findings.empty());
    EXPECT_EQ(out.findings.front().id, "memory-race");
  }
  const Equality unread = judged(kernel_of("mov.f32 %f0, %f1;"),
                                 kernel_of("ld.shared.f32 %f3, [s]; fma.rn.f32 %f0, %f3, "
                                           "0f00000000, %f1;"),
                                 1);
  EXPECT_EQ(unread.exit_code(), 3) << unread.text();
  ASSERT_FALSE(unread.findings.empty());
  EXPECT_EQ(unread.findings.front().id, "uninitialized-read");
}

}  // namespace
}  // namespace tartan
