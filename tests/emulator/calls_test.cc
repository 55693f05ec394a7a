// SPDX-License-Identifier: Apache-2.0
// The emulator's indirect calls and recursion.
#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using test::line_of;
using test::run_body;

// Operations on two numbers, and one of another signature.
const std::string operations = R"(
.func (.param .b32 result) plus(.param .b32 x, .param .b32 y)
{
  .reg .b32 r<4>;
  ld.param.b32 r0, [x];
  ld.param.b32 r1, [y];
  add.s32 r2, r0, r1;
  st.param.b32 [result], r2;
  ret;
}
.func (.param .b32 result) times(.param .b32 x, .param .b32 y)
{
  .reg .b32 r<4>;
  ld.param.b32 r0, [x];
  ld.param.b32 r1, [y];
  mul.lo.s32 r2, r0, r1;
  st.param.b32 [result], r2;
  ret;
}
.func (.param .b32 result) minus(.param .b32 x, .param .b32 y)
{
  .reg .b32 r<4>;
  ld.param.b32 r0, [x];
  ld.param.b32 r1, [y];
  sub.s32 r2, r0, r1;
  st.param.b32 [result], r2;
  ret;
}
.func (.param .b64 result) other(.param .b64 x)
{
  .reg .b64 rd<4>;
  ld.param.b64 rd0, [x];
  st.param.b64 [result], rd0;
  ret;
}
.global .align 8 .u64 table[4] = {plus, times, minus, other};
)";

// result = (the function at rd2)(r0, 7), in r2.
const std::string call_through_rd2 = R"(
    {
      .param .b32 a;
      .param .b32 b;
      .param .b32 c;
      st.param.b32 [a], r0;
      st.param.b32 [b], 7;
      prototype: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
      call (c), rd2, (a, b), prototype;
      ld.param.b32 r2, [c];
    }
    st.global.u32 [rd1], r2;)";

TEST(EmulatorCalls, LanesCallDifferentFunctionsThroughATable) {
  const auto run = run_body(R"(
    mov.u64 rd3, table;
    rem.u32 r1, r0, 3;
    mad.wide.u32 rd3, r1, 8, rd3;
    ld.global.u64 rd2, [rd3];)" +
                                call_through_rd2,
                            {.grid = {1}, .block = {64}}, 1024, {}, operations);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(run.out[i], i % 3 == 0 ? i + 7 : i % 3 == 1 ? i * 7 : i - 7) << i;
}

TEST(EmulatorCalls, AddressesAreValues) {
  const auto run = run_body(R"(
    setp.lt.u32 p, r0, 9;
    mov.u64 rd4, plus;
    mov.u64 rd5, times;
    selp.b64 rd2, rd4, rd5, p;)" +
                                call_through_rd2,
                            {.grid = {1}, .block = {32}}, 1024, {}, operations);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i < 9 ? i + 7 : i * 7) << i;
}

// Only the guarded lanes call; .calltargets lists the possible callees.
TEST(EmulatorCalls, GuardedCallsOfListedTargets) {
  const auto run = run_body(R"(
    mov.u64 rd2, minus;
    mov.u32 r2, 77;
    setp.gt.u32 p, r0, 20;
    {
      .param .b32 a;
      .param .b32 b;
      .param .b32 c;
      st.param.b32 [a], r0;
      st.param.b32 [b], 7;
      st.param.b32 [c], r2;
      targets: .calltargets plus, minus;
      @p call (c), rd2, (a, b), targets;
      ld.param.b32 r2, [c];
    }
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {32}}, 1024, {}, operations);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i > 20 ? i - 7 : 77) << i;
}

TEST(EmulatorCalls, InvalidCallTargetsAreFindings) {
  for (const std::string address : {"mov.u64 rd2, other;", "mov.u64 rd2, 24;"}) {
    const std::string body = "mov.u64 rd3, plus;" + address + call_through_rd2;
    const auto run = run_body(body, {.grid = {1}, .block = {32}}, 1024, {}, operations);
    ASSERT_TRUE(run.launched) << run.complaint;
    ASSERT_EQ(run.findings.size(), 1u);
    EXPECT_EQ(run.findings[0].id, "call-target");
    EXPECT_EQ(run.findings[0].line, line_of(body, "call (c)", operations));
  }
}

// fibonacci(n) = n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2), with a register, a predicate, a
// local variable and a 64-bit register that are live across the calls; the recursion depth differs
// between lanes.
const std::string fibonacci = R"(
.func (.param .b32 result) fibonacci(.param .b32 n)
{
  .reg .pred small, odd;
  .reg .b32 r<8>;
  .reg .b64 wide;
  .local .align 4 .b32 kept;
  .param .b32 a;
  .param .b32 b;
  ld.param.b32 r0, [n];
  setp.lt.u32 small, r0, 2;
  @small bra LEAF;
  and.b32 r4, r0, 1;
  setp.eq.u32 odd, r4, 1;
  cvt.u64.u32 wide, r0;
  sub.u32 r1, r0, 1;
  st.param.b32 [a], r1;
  call (b), fibonacci, (a);
  ld.param.b32 r2, [b];
  st.local.b32 [kept], r2;
  cvt.u32.u64 r5, wide;
  @odd sub.u32 r5, r5, 2;
  @!odd sub.u32 r5, r0, 2;
  st.param.b32 [a], r5;
  call (b), fibonacci, (a);
  ld.param.b32 r3, [b];
  ld.local.b32 r2, [kept];
  add.u32 r2, r2, r3;
  st.param.b32 [result], r2;
  ret;
LEAF:
  st.param.b32 [result], r0;
  ret;
}
)";

TEST(EmulatorCalls, RecursionPreservesLiveValues) {
  const auto run = run_body(R"(
    {
      .param .b32 a;
      .param .b32 b;
      rem.u32 r1, r0, 12;
      st.param.b32 [a], r1;
      call (b), fibonacci, (a);
      ld.param.b32 r2, [b];
    }
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {64}}, 1024, {}, fibonacci);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  constexpr std::uint32_t numbers[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(run.out[i], numbers[i % 12]) << i;
}

// Two functions that call each other, with parameters in registers that are swapped.
TEST(EmulatorCalls, MutualRecursion) {
  const std::string functions = R"(
.func (.reg .b32 out) second(.reg .b32 x, .reg .b32 y);
.func (.reg .b32 out) first(.reg .b32 x, .reg .b32 y)
{
  .reg .pred done;
  .reg .b32 next, below;
  setp.eq.u32 done, x, 0;
  mov.u32 out, y;
  @done ret;
  sub.u32 next, x, 1;
  call (below), second, (y, next);
  mad.lo.u32 out, below, 2, x;
  ret;
}
.func (.reg .b32 out) second(.reg .b32 y, .reg .b32 x)
{
  .reg .b32 below;
  call (below), first, (x, y);
  add.u32 out, below, y;
  ret;
}
)";
  const auto run = run_body(R"(
    and.b32 r1, r0, 7;
    call (r2), first, (r1, 3);
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {32}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  const auto first = [](auto&& self, std::uint32_t x, std::uint32_t y) -> std::uint32_t {
    return x == 0 ? y : (self(self, x - 1, y) + y) * 2 + x;
  };
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], first(first, i & 7, 3)) << i;
}

// A function that calls itself through a pointer parameter.
TEST(EmulatorCalls, RecursionThroughAnAddress) {
  const std::string functions = R"(
.func (.param .b32 result) sum(.param .b64 self, .param .b32 n)
{
  .reg .pred done;
  .reg .b32 r<4>;
  .reg .b64 at;
  ld.param.b64 at, [self];
  ld.param.b32 r0, [n];
  setp.eq.u32 done, r0, 0;
  @done bra END;
  {
    .param .b64 a;
    .param .b32 b;
    .param .b32 c;
    st.param.b64 [a], at;
    sub.u32 r1, r0, 1;
    st.param.b32 [b], r1;
    prototype: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _);
    call (c), at, (a, b), prototype;
    ld.param.b32 r1, [c];
  }
  add.u32 r0, r0, r1;
END:
  st.param.b32 [result], r0;
  ret;
}
)";
  const auto run = run_body(R"(
    {
      .param .b64 a;
      .param .b32 b;
      .param .b32 c;
      mov.u64 rd2, sum;
      st.param.b64 [a], rd2;
      st.param.b32 [b], r0;
      call (c), sum, (a, b);
      ld.param.b32 r2, [c];
    }
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {32}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i * (i + 1) / 2) << i;
}

TEST(EmulatorCalls, EndlessRecursionIsAFinding) {
  const std::string functions = R"(
.func forever(.param .b32 n)
{
  .reg .b32 r;
  .param .b32 a;
  ld.param.b32 r, [n];
  add.u32 r, r, 1;
  st.param.b32 [a], r;
  call forever, (a);
  ret;
}
)";
  const auto run = run_body(R"(
    {
      .param .b32 a;
      st.param.b32 [a], r0;
      setp.eq.u32 p, r0, 5;
      @p call forever, (a);
    })",
                            {.grid = {1}, .block = {32}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "stack-overflow");
  EXPECT_EQ(run.findings[0].lane, 5);
}

// A function, and another name of it.
const std::string declared =
                      ".visible .func (.param .b32 result) also_plus(.param .b32 x, .param "
                      ".b32 y);\n",
                  alias = ".alias also_plus, plus_seven;\n", defined = R"(
.visible .func (.param .b32 result) plus_seven(.param .b32 x, .param .b32 y)
{
  .reg .b32 r<4>;
  ld.param.b32 r0, [x];
  ld.param.b32 r1, [y];
  add.s32 r2, r0, r1;
  st.param.b32 [result], r2;
  ret;
}
)",
                  call_by_name = R"(
    {
      .param .b32 a;
      .param .b32 b;
      .param .b32 c;
      st.param.b32 [a], r0;
      st.param.b32 [b], 7;
      call.uni (c), also_plus, (a, b);
      ld.param.b32 r2, [c];
    }
)";
const std::string store = "st.global.b32 [rd1], r2;";

void expect_sevens(const test::KernelRun& run) {
  EXPECT_EQ(run.complaint, "");
  EXPECT_TRUE(run.findings.empty());
  for (std::uint32_t i = 0; i < 32 && run.launched; ++i) EXPECT_EQ(run.out[i], i + 7) << i;
}

TEST(EmulatorCalls, AnAliasIsTheFunctionThatItStandsFor) {
  expect_sevens(run_body(call_by_name + store, {.grid = {1}, .block = {32}}, 32, {},
                         declared + defined + alias));
  // Behind the call.
  std::string text = test::kernel_text(call_by_name + store, declared + defined) + alias;
  expect_sevens(test::run_text(text, {.grid = {1}, .block = {32}}, 32));
  // Through a register, and through memory.
  const std::string equal = "mov.u64 rd3, plus_seven;\nsetp.eq.u64 p, rd2, rd3;\n@!p trap;\n";
  expect_sevens(run_body("mov.u64 rd2, also_plus;\n" + equal + call_through_rd2 + store,
                         {.grid = {1}, .block = {32}}, 32, {}, declared + defined + alias));
  expect_sevens(run_body("ld.global.u64 rd2, [where];\n" + equal + call_through_rd2 + store,
                         {.grid = {1}, .block = {32}}, 32, {},
                         declared + defined + alias + ".global .u64 where = also_plus;\n"));
}

TEST(EmulatorCalls, AliasesAmongCallTargets) {
  const std::string prototype =
      "prototype: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);";
  for (const std::string target : {"plus_seven", "also_plus"}) {
    std::string call = call_through_rd2;
    call.replace(call.find(prototype), prototype.size(), "prototype: .calltargets " + target + ";");
    for (const std::string taken : {"plus_seven", "also_plus"})
      expect_sevens(run_body("mov.u64 rd2, " + taken + ";\n" + call + store,
                             {.grid = {1}, .block = {32}}, 32, {}, declared + defined + alias));
  }
}

TEST(EmulatorCalls, LabelsMayHaveTheNamesOfFunctions) {
  for (const std::string label : {"plus_seven", "k", "also_plus"}) {
    std::string call = call_through_rd2;
    for (std::size_t at = 0; (at = call.find("prototype:", at)) != call.npos; at += label.size())
      call.replace(at, 9, label);
    call.replace(call.find("(a, b), prototype"), 17, "(a, b), " + label);
    expect_sevens(run_body("mov.u64 rd2, plus_seven;\n" + call + store,
                           {.grid = {1}, .block = {32}}, 32, {}, declared + defined + alias));
  }
  expect_sevens(
      run_body("mov.u32 r3, 0;\nplus_seven: .branchtargets DONE;\nadd.u32 r2, r0, 7;\n"
               "brx.idx r3, plus_seven;\nDONE:\n" +
                   store,
               {.grid = {1}, .block = {32}}, 32, {}, declared + defined + alias));
}

// As the assembler has it once a function gives several results: registers of any width.
TEST(EmulatorCalls, SeveralResultsMayBePredicates) {
  const std::string functions =
      ".func (.reg .u32 next, .reg .pred odd) several(.reg .u32 x, .reg .pred low)\n"
      "{ .reg .u32 bit; add.u32 next, x, 1; and.b32 bit, x, 1; setp.ne.and.u32 odd, bit, 0, low; "
      "ret; }\n";
  const auto run = run_body(
      "setp.lt.u32 q, r0, 16; call (r1, p), several, (r0, q); selp.u32 r2, 100, 200, p;"
      "add.u32 r1, r1, r2; st.global.u32 [rd1], r1;",
      {.grid = {1}, .block = {32}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  EXPECT_TRUE(run.findings.empty());
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(run.out[lane], lane + 1 + (lane % 2 && lane < 16 ? 100 : 200)) << lane;
}

// Sums and elements are computed under the instruction's guard, for each lane.
TEST(EmulatorOperands, AreComputedLaneByLane) {
  const auto run = run_body(
      ".shared .u32 t[64]; st.shared.u32 t[r0+1], r0+100; bar.warp.sync -1;"
      "setp.lt.u32 p, r0+3, 8; mov.u32 r1, 7; @p ld.shared.u32 r1, t[r0+1];"
      "@!p add.u32 r1, r1+1, r0+2; st.global.u32 [rd1], r1+1000;");
  ASSERT_TRUE(run.launched) << run.complaint;
  EXPECT_TRUE(run.findings.empty());
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(run.out[lane], lane + 3 < 8 ? lane + 1100 : 1000 + 8 + lane + 2) << lane;
}

}  // namespace
}  // namespace tartan
