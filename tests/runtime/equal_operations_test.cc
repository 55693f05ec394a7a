// SPDX-License-Identifier: Apache-2.0
// Each kind of operation under `tartan equal`: identities that hold over the reals, near misses
// that do not, and what is not decided.
#include <gtest/gtest.h>

#include "tests/runtime/equal_kernels.h"

namespace tartan {
namespace {

using testing_equal::compare;
using Verdict = Equality::Verdict;

struct Pair {
  const char* what;
  const char* a;
  const char* b;
};

void expect(const Pair& pair, Verdict verdict) {
  const Equality out = compare(pair.a, pair.b);
  EXPECT_EQ(out.verdict, verdict) << pair.what << '\n' << out.complaints(false) << out.text();
}

TEST(EqualOperations, TheSame) {
  const Pair pairs[] = {
      {"sums commute", "add.f32 %f0, %f1, %f2;", "add.f32 %f0, %f2, %f1;"},
      {"a fused product", "fma.rn.f32 %f0, %f1, %f2, %f1;",
       "mul.f32 %f3, %f1, %f2; add.f32 %f0, %f1, %f3;"},
      {"a difference", "sub.f32 %f0, %f1, %f2;", "neg.f32 %f3, %f2; add.f32 %f0, %f3, %f1;"},
      {"the sign bit", "neg.f32 %f0, %f1;",
       "mov.b32 %r2, %f1; xor.b32 %r2, %r2, 0x80000000; mov.b32 %f0, %r2;"},
      {"the magnitude", "abs.f32 %f0, %f1;",
       "mov.b32 %r2, %f1; and.b32 %r2, %r2, 0x7fffffff; mov.b32 %f0, %r2;"},
      {"the sign by lop3", "neg.f32 %f3, %f1; abs.f32 %f3, %f3; neg.f32 %f0, %f3;",
       "mov.b32 %r2, %f1; mov.b32 %r3, 0x80000000; lop3.b32 %r2, %r2, %r3, %r3, 0xFC; "
       "mov.b32 %f0, %r2;"},
      {"exponentials", "ex2.approx.f32 %f3, %f1; ex2.approx.f32 %f4, %f2; mul.f32 %f0, %f3, %f4;",
       "add.f32 %f3, %f1, %f2; ex2.approx.ftz.f32 %f0, %f3;"},
      {"quotients", "div.rn.f32 %f0, %f1, %f2;",
       "rcp.approx.ftz.f32 %f3, %f2; mul.f32 %f0, %f1, %f3;"},
      {"roots", "abs.f32 %f3, %f1; sqrt.rn.f32 %f4, %f3; rcp.rn.f32 %f0, %f4;",
       "abs.f32 %f3, %f1; rsqrt.approx.f32 %f0, %f3;"},
      {"narrower types", "add.f32 %f0, %f1, %f2;",
       "cvt.rn.f16.f32 %h0, %f1; cvt.rn.f16.f32 %h1, %f2; add.rn.f16 %h2, %h0, %h1; "
       "cvt.f32.f16 %f0, %h2;"},
      {"pairs", "fma.rn.f32 %f0, %f1, %f2, %f2;",
       "cvt.rn.f16x2.f32 %r2, %f1, %f2; cvt.rn.f16x2.f32 %r3, %f2, %f1; "
       "fma.rn.f16x2 %r4, %r2, %r3, %r3; mov.b32 {%h0, %h1}, %r4; cvt.f32.f16 %f3, %h1; "
       "mov.f32 %f0, %f3;"},
      {"doubles", "mul.f32 %f0, %f1, %f2;",
       "cvt.f64.f32 %d0, %f1; cvt.f64.f32 %d1, %f2; mul.f64 %d2, %d0, %d1; cvt.rn.f32.f64 %f0, "
       "%d2;"},
      {"brain floats by shifts", "add.f32 %f0, %f1, %f2;",
       "cvt.rn.bf16x2.f32 %r2, %f1, %f2; shl.b32 %r3, %r2, 16; and.b32 %r4, %r2, 0xffff0000; "
       "mov.b32 %f3, %r3; mov.b32 %f4, %r4; add.f32 %f0, %f3, %f4;"},
      {"bytes by prmt", "sub.f32 %f0, %f2, %f1;",
       "cvt.rn.f16x2.f32 %r2, %f1, %f2; prmt.b32 %r3, %r2, 0, 0x1032; mov.b32 {%h0, %h1}, %r3; "
       "cvt.f32.f16 %f3, %h0; cvt.f32.f16 %f4, %h1; sub.f32 %f0, %f4, %f3;"},
      {"words of 64 bits", "sub.f32 %f0, %f1, %f2;",
       "mov.b64 %rd5, {%f1, %f2}; shr.u64 %rd6, %rd5, 32; cvt.u32.u64 %r2, %rd6; mov.b32 %f3, "
       "%r2; cvt.u32.u64 %r3, %rd5; mov.b32 %f4, %r3; sub.f32 %f0, %f4, %f3;"},
      {"the greater one", "max.f32 %f0, %f1, %f2;",
       "setp.gt.f32 %p0, %f1, %f2; selp.f32 %f0, %f1, %f2, %p0;"},
      {"branches", "max.f32 %f0, %f1, 0f00000000;",
       "mov.f32 %f0, 0f00000000; setp.le.f32 %p0, %f1, 0f00000000; @%p0 bra L; mov.f32 %f0, %f1; "
       "L:"},
      {"a shuffled sum",
       "mov.f32 %f0, %f1; shfl.sync.bfly.b32 %f3, %f0, 1, 31, -1; add.f32 %f0, %f0, %f3;",
       "xor.b32 %r2, %r1, 1; shfl.sync.idx.b32 %f3, %f1, %r2, 31, -1; add.f32 %f0, %f3, %f1;"},
      {"shared memory", "xor.b32 %r2, %r1, 5; shfl.sync.idx.b32 %f0, %f1, %r2, 31, -1;",
       "mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.s32 %r4, %r3, %r4; st.shared.f32 [%r4], %f1; "
       "bar.sync 0; xor.b32 %r5, %r1, 5; shl.b32 %r5, %r5, 2; add.s32 %r5, %r3, %r5; "
       "ld.shared.f32 %f0, [%r5];"},
      {"cp.async", "mov.f32 %f0, %f1;",
       "mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.s32 %r4, %r3, %r4; cp.async.ca.shared.global "
       "[%r4], [%rd1], 4; cp.async.wait_all; ld.shared.f32 %f0, [%r4];"},
      {"atomics", "add.f32 %f3, %f1, %f2; add.f32 %f0, %f3, %f3;",
       "mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.s32 %r4, %r3, %r4; st.shared.f32 [%r4], %f1; "
       "red.shared.add.f32 [%r4], %f2; atom.shared.add.f32 %f4, [%r4], %f2; "
       "red.shared.add.f32 [%r4], %f1; ld.shared.f32 %f0, [%r4];"},
      {"exact constants", "mul.f32 %f0, %f1, 0f3E000000;",  // 1 / sqrt(64)
       "mov.b32 %r2, 64; cvt.rn.f32.u32 %f3, %r2; rsqrt.approx.f32 %f3, %f3; mul.f32 %f0, %f3, "
       "%f1;"},
      {"masks", "mov.f32 %f0, 0f00000000;",
       "add.f32 %f3, %f1, 0fFF800000; ex2.approx.f32 %f4, %f3; mul.f32 %f0, %f4, %f2;"},
      {"int8 of constant bits", "mul.f32 %f0, %f1, 0f41000000;",  // 8
       "mov.b32 %r2, 0x4B000008; mov.b32 %f3, %r2; sub.f32 %f3, %f3, 0f4B000000; mul.f32 %f0, "
       "%f3, %f1;"},
      {"lg2 of the same", "abs.f32 %f3, %f1; lg2.approx.f32 %f0, %f3;",
       "neg.f32 %f3, %f1; max.f32 %f3, %f3, %f1; lg2.approx.ftz.f32 %f0, %f3;"},
      {"bfi and bfe", "add.f32 %f0, %f1, %f2;",
       "cvt.rn.bf16.f32 %h0, %f1; cvt.rn.bf16.f32 %h1, %f2; cvt.u32.u16 %r2, %h0; cvt.u32.u16 "
       "%r3, %h1; bfi.b32 %r4, %r2, %r3, 16, 16; bfe.u32 %r5, %r4, 16, 16; cvt.u16.u32 %h2, %r5; "
       "cvt.u16.u32 %h3, %r4; cvt.f32.bf16 %f3, %h2; cvt.f32.bf16 %f4, %h3; add.f32 %f0, %f3, "
       "%f4;"},
  };
  for (const Pair& pair : pairs) expect(pair, Verdict::same);
}

// st.async.release, to global memory, is st.
TEST(EqualOperations, LateStoresAreStores) {
  const auto on_sm_100 = [](const std::string& body) {
    Manifest out = testing_equal::kernel_of(body);
    std::string text(out.ptx.text());
    text.replace(text.find("8.6"), 3, "8.7").replace(text.find("sm_90a"), 6, "sm_100");
    out.ptx = Source("test.ptx", text);
    return out;
  };
  const Equality out = equal(on_sm_100("mul.f32 %f0, %f1, %f2;"),
                             on_sm_100("mul.f32 %f3, %f2, %f1; st.async.release.gpu.global.b32 "
                                       "[%rd3], %f3; ld.global.f32 %f0, [%rd3];"),
                             {.explain = 0});
  EXPECT_EQ(out.verdict, Verdict::same) << out.complaints(false) << out.text();
}

TEST(EqualOperations, Different) {
  const Pair pairs[] = {
      {"a sign", "add.f32 %f0, %f1, %f2;", "sub.f32 %f0, %f1, %f2;"},
      {"an operand", "fma.rn.f32 %f0, %f1, %f2, %f1;", "fma.rn.f32 %f0, %f1, %f2, %f2;"},
      {"a factor", "mul.f32 %f0, %f1, 0f40000000;", "mul.f32 %f0, %f1, 0f40400000;"},
      {"halves changed", "sub.f32 %f0, %f2, %f1;",
       "cvt.rn.f16x2.f32 %r2, %f1, %f2; mov.b32 {%h0, %h1}, %r2; cvt.f32.f16 %f3, %h0; "
       "cvt.f32.f16 %f4, %h1; sub.f32 %f0, %f4, %f3;"},
      {"another lane", "shfl.sync.bfly.b32 %f0, %f1, 1, 31, -1;",
       "shfl.sync.bfly.b32 %f0, %f1, 2, 31, -1;"},
      {"the lesser one", "max.f32 %f0, %f1, %f2;", "min.f32 %f0, %f1, %f2;"},
      {"another base", "ex2.approx.f32 %f0, %f1;",
       "mul.f32 %f3, %f1, 0f3FB8AA3B; ex2.approx.f32 %f0, %f3;"},
      {"a root forgotten", "abs.f32 %f3, %f1; sqrt.rn.f32 %f0, %f3;", "abs.f32 %f0, %f1;"},
      {"a byte elsewhere", "mov.f32 %f0, %f1;", "ld.global.f32 %f0, [%rd2];"},
      {"a value not written", "mov.f32 %f0, %f1;", "mov.f32 %f0, 0f00000000;"},
      {"atomics twice", "add.f32 %f0, %f1, %f2;",
       "mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.s32 %r4, %r3, %r4; st.shared.f32 [%r4], %f1; "
       "red.shared.add.f32 [%r4], %f2; red.shared.add.f32 [%r4], %f2; ld.shared.f32 %f0, [%r4];"},
  };
  for (const Pair& pair : pairs) expect(pair, Verdict::different);
}

TEST(EqualOperations, Undecided) {
  const Pair pairs[] = {
      {"bits of a value", "mul.f32 %f0, %f1, 0f40000000;",
       "add.f32 %f3, %f1, 0f00000000; mul.f32 %f3, %f3, %f2; mov.b32 %r2, %f3; add.s32 %r2, %r2, "
       "0x800000; mov.b32 %f0, %r2;"},
      {"whole numbers", "cvt.rni.f32.f32 %f0, %f1;", "mov.f32 %f0, %f1;"},
      {"folded constants",  // 0.1 * 3 and 0.3, both rounded
       "mul.f32 %f3, %f1, 0f3DCCCCCD; mul.f32 %f0, %f3, 0f40400000;",
       "mul.f32 %f0, %f1, 0f3E99999A;"},
      {"functions of which nothing is known",
       "abs.f32 %f3, %f1; lg2.approx.f32 %f4, %f3; ex2.approx.f32 %f0, %f4;", "abs.f32 %f0, %f1;"},
  };
  for (const Pair& pair : pairs) expect(pair, Verdict::undecided);
}

TEST(EqualOperations, NamesTheLineThatStandsInTheWay) {
  const Equality out = compare("mov.f32 %f0, %f1;",
                               "mul.f32 %f3, %f1, %f2;\nmov.b32 %r2, %f3;\n"
                               "add.s32 %r2, %r2, 1;\nmov.b32 %f0, %r2;");
  EXPECT_EQ(out.verdict, Verdict::undecided);
  EXPECT_EQ(out.line, 25);
  EXPECT_NE(out.reason.find("add.s32"), std::string::npos) << out.reason;
  EXPECT_EQ(out.exit_code(), 4);
}

// Lane 0 alone has a value; the results of the others rest on it.
TEST(EqualOperations, NamesReductionsOfOtherLanesValues) {
  const Equality out =
      compare("mul.f32 %f3, %f1, %f2; shfl.sync.idx.b32 %f0, %f3, 0, 31, -1;",
              "mul.f32 %f3, %f1, %f2; mov.b32 %r2, %f3; setp.ne.s32 %p0, %r1, 0;\n"
              "selp.b32 %r2, 0, %r2, %p0; redux.sync.add.s32 %r3, %r2, -1; mov.b32 %f4, %r3;\n"
              "selp.f32 %f0, %f4, %f3, %p0;");
  EXPECT_EQ(out.verdict, Verdict::undecided);
  EXPECT_NE(out.reason.find("redux.sync"), std::string::npos) << out.reason;
}

TEST(EqualOperations, TakesInputsByTheirBitsWhereIntegersReadThem) {
  const Equality out = compare("mov.b32 %r2, %f1; add.s32 %r2, %r2, 1; mov.b32 %f0, %r2;",
                               "mov.b32 %r2, %f1; sub.s32 %r2, %r2, -1; mov.b32 %f0, %r2;");
  EXPECT_EQ(out.verdict, Verdict::same) << out.complaints(false);
  const Equality mixed = compare("mov.b32 %r2, %f1; add.s32 %r2, %r2, 0; mov.b32 %f0, %r2;",
                                 "mul.f32 %f0, %f1, 0f3F800000;");
  EXPECT_EQ(mixed.verdict, Verdict::same) << mixed.complaints(false);
  ASSERT_FALSE(mixed.notes.empty());
  EXPECT_NE(mixed.notes.front().find("integer instructions"), std::string::npos);
}

TEST(EqualOperations, FindsTheTerm) {
  const auto explained = [](const std::string& a, const std::string& b) {
    return equal(testing_equal::kernel_of(a), testing_equal::kernel_of(b));
  };
  const Equality missing = explained("add.f32 %f0, %f1, %f2;", "mov.f32 %f0, %f1;");
  ASSERT_TRUE(missing.term) << missing.complaints(false);
  EXPECT_EQ(missing.term->buffer, "B");
  EXPECT_EQ(missing.term->index, 0u);
  EXPECT_EQ(missing.term->elements, 1u);
  EXPECT_EQ(missing.term->text, "only the first result depends on it");
  const Equality scaled = explained("mov.f32 %f0, %f1;", "mul.f32 %f0, %f1, 0f40400000;");
  ASSERT_TRUE(scaled.term) << scaled.complaints(false);
  EXPECT_EQ(scaled.term->text, "it counts 3 times as much in the second result as in the first");
}

TEST(EqualOperations, MatchesBuffersByNameElseInOrder) {
  Manifest a = testing_equal::kernel_of("sub.f32 %f0, %f1, %f2;"), b = a;
  for (std::size_t i = 0; i < 3; ++i) b.params[i].buffer->name = "x" + std::to_string(i);
  const Equality ordered = equal(a, b);
  EXPECT_EQ(ordered.verdict, Verdict::same);
  EXPECT_EQ(ordered.notes.size(), 1u);
  b = a;
  std::swap(b.params[0].buffer->name, b.params[1].buffer->name);
  EXPECT_EQ(equal(a, b, {.explain = 0}).verdict, Verdict::different);
  b = a;
  b.params[2].buffer->size = 256;
  EXPECT_EQ(equal(a, b).exit_code(), 2);
}

TEST(EqualOperations, SaysSoWhereAKernelTraps) {
  const Equality out = compare("mov.f32 %f0, %f1;", "trap; mov.f32 %f0, %f1;");
  EXPECT_EQ(out.verdict, Verdict::trapped);
  EXPECT_EQ(out.exit_code(), 3);
}

}  // namespace
}  // namespace tartan
