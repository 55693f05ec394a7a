// SPDX-License-Identifier: Apache-2.0
// The emulator's stack: local variables under recursion, alloca, long chains of calls.
#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using test::run_body;

// Each call adds to its caller's variable through a pointer: they must be distinct.
TEST(EmulatorStack, EveryCallHasVariablesOfItsOwn) {
  const std::string functions = R"(
.func add_up(.param .b32 n, .param .b64 callers)
{
  .reg .pred last;
  .reg .b32 r<8>;
  .reg .b64 at<4>;
  .local .align 4 .b32 mine;
  ld.param.b32 r1, [n];
  ld.param.b64 at1, [callers];
  mul.lo.u32 r2, r1, 10;
  st.local.u32 [mine], r2;
  setp.eq.u32 last, r1, 0;
  @last bra ADD;
  sub.u32 r3, r1, 1;
  cvta.local.u64 at2, mine;
  {
    .param .b32 a;
    .param .b64 b;
    st.param.b32 [a], r3;
    st.param.b64 [b], at2;
    call add_up, (a, b);
  }
ADD:
  ld.u32 r4, [at1];
  ld.local.u32 r5, [mine];
  add.u32 r4, r4, r5;
  st.u32 [at1], r4;
  ret;
}
)";
  const auto run = run_body(R"(
    .local .align 4 .b32 sum;
    st.local.u32 [sum], 1000;
    cvta.local.u64 rd2, sum;
    and.b32 r1, r0, 7;
    {
      .param .b32 a;
      .param .b64 b;
      st.param.b32 [a], r1;
      st.param.b64 [b], rd2;
      call add_up, (a, b);
    }
    ld.local.u32 r2, [sum];
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {64}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(run.out[i], 1000 + 10 * ((i & 7) * ((i & 7) + 1) / 2)) << i;
}

// A list through the frames: the innermost call traverses it back to the first.
TEST(EmulatorStack, FramesLinkedByPointers) {
  const std::string functions = R"(
.func (.param .b32 result) walk(.param .b32 n, .param .b64 before)
{
  .reg .pred p;
  .reg .b32 r<8>;
  .reg .b64 at<4>;
  .local .align 8 .b8 node[16];
  ld.param.b32 r0, [n];
  ld.param.b64 at0, [before];
  st.local.u32 [node], r0;
  st.local.u64 [node+8], at0;
  cvta.local.u64 at1, node;
  setp.eq.u32 p, r0, 0;
  @p bra INNERMOST;
  sub.u32 r1, r0, 1;
  {
    .param .b32 a;
    .param .b64 b;
    .param .b32 c;
    st.param.b32 [a], r1;
    st.param.b64 [b], at1;
    call (c), walk, (a, b);
    ld.param.b32 r2, [c];
  }
  st.param.b32 [result], r2;
  ret;
INNERMOST:
  mov.u32 r2, 0;
NEXT:
  ld.u32 r3, [at1];
  mad.lo.u32 r2, r2, 3, r3;
  ld.u64 at1, [at1+8];
  setp.ne.u64 p, at1, 0;
  @p bra NEXT;
  st.param.b32 [result], r2;
  ret;
}
)";
  const auto run = run_body(R"(
    and.b32 r1, r0, 7;
    {
      .param .b32 a;
      .param .b64 b;
      .param .b32 c;
      st.param.b32 [a], r1;
      st.param.b64 [b], 0;
      call (c), walk, (a, b);
      ld.param.b32 r2, [c];
    }
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {32}}, 1024, {.max_steps = 100'000}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) {
    std::uint32_t expected = 0;
    for (std::uint32_t k = 0; k <= (i & 7); ++k) expected = expected * 3 + k;
    EXPECT_EQ(run.out[i], expected) << i;
  }
}

// After the call, the guard's register holds the caller's value.
TEST(EmulatorStack, GuardedRecursionReturnsForAnyGuard) {
  const std::string functions = R"(
.func (.reg .b32 out) down(.reg .b32 n)
{
  .reg .pred more;
  .reg .b32 below;
  mov.u32 below, 0;
  setp.gt.u32 more, n, 0;
  {
    .reg .b32 less;
    sub.u32 less, n, 1;
    @more call (below), down, (less);
  }
  add.u32 out, below, n;
  ret;
}
)";
  const auto run = run_body(R"(
    and.b32 r1, r0, 3;
    call (r2), down, (r1);
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {32}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], (i & 3) * ((i & 3) + 1) / 2) << i;
}

// The kernel and a function allocate; the function's part is gone when it returns.
TEST(EmulatorStack, AllocaAndTheStackPointer) {
  const std::string functions = R"(
.func (.param .b64 result) grab(.param .b32 bytes)
{
  .reg .b64 at, size;
  ld.param.u32 size, [bytes];
  alloca.u64 at, size, 64;
  st.local.u8 [at], 5;
  st.param.b64 [result], at;
  ret;
}
)";
  const auto run = run_body(R"(
    stacksave.u64 rd2;
    alloca.u64 rd3, 40, 32;
    cvta.local.u64 rd4, rd3;
    st.u32 [rd4+36], r0;
    {
      .param .b32 a;
      .param .b64 b;
      st.param.b32 [a], 100;
      call (b), grab, (a);
      ld.param.b64 rd5, [b];
      call (b), grab, (a);
      ld.param.b64 rd6, [b];
    }
    sub.u64 rd5, rd6, rd5;
    and.b64 rd6, rd6, 63;
    and.b64 rd7, rd3, 31;
    ld.local.u32 r1, [rd3+36];
    stackrestore.u64 rd2;
    alloca.u64 rd8, 40, 32;
    sub.u64 rd8, rd8, rd3;
    or.b64 rd5, rd5, rd6;
    or.b64 rd5, rd5, rd7;
    or.b64 rd5, rd5, rd8;
    cvt.u32.u64 r2, rd5;
    shl.b32 r2, r2, 16;
    or.b32 r1, r1, r2;
    st.global.u32 [rd1], r1;)",
                            {.grid = {2}, .block = {64}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(run.out[i], i);
}

TEST(EmulatorStack, AllocaOfMoreThanTheStackIsAFinding) {
  const auto run = run_body("mul.wide.u32 rd2, r0, 4096;\nalloca.u64 rd3, rd2;\n");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "stack-overflow");
  EXPECT_EQ(run.findings[0].lane, 17);
  EXPECT_EQ(run.findings[0].message,
            "stack overflow: the alloca needs 69632 bytes, of 65536 bytes 65536 are free");
  const auto other = run_body("mov.u64 rd2, 48;\nstackrestore.u64 rd2;\n");
  ASSERT_EQ(other.findings.size(), 1u);
  EXPECT_EQ(other.findings[0].id, "memory-fault");
}

// A long chain of calls loads in linear time, without recursion on the host's stack.
TEST(EmulatorStack, LongChainsOfCallsLoad) {
  constexpr int length = 20000;
  std::string functions = ".func (.reg .b32 o) f0(.reg .b32 i) { add.u32 o, i, 1; ret; }\n";
  for (int i = 1; i < length; ++i)
    functions += ".func (.reg .b32 o) f" + std::to_string(i) +
                 "(.reg .b32 i) { .reg .b32 r; call (r), f" + std::to_string(i - 1) +
                 ", (i); add.u32 o, r, 1; ret; }\n";
  const auto run =
      run_body("call (r1), f" + std::to_string(length - 1) + ", (r0);\nst.global.u32 [rd1], r1;",
               {.grid = {1}, .block = {32}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], length + i);
}

}  // namespace
}  // namespace tartan
