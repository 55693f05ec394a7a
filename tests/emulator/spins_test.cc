// SPDX-License-Identifier: Apache-2.0
// Lanes that wait in loops under seeds: every right kernel ends, soon, and with the right results,
// however unfair the seed is; and what can never end is said to be a deadlock.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

constexpr int seeds = 20;

const std::string shared =
    ".global .align 8 .u32 lock;\n.global .align 8 .u32 next;\n.global .align 8 .u32 serving;\n"
    ".global .align 8 .u32 flags[8192];\n.global .align 8 .u32 sums[8192];\n"
    ".shared .align 8 .u32 seen;\n";

// The steps of one warp that no right kernel here comes near.
constexpr std::uint64_t most_steps = 2'000'000;

KernelRun run_seed(const std::string& body, int seed, const Launch& launch,
                   Checks checks = Checks::memory) {
  return run_body(body, launch, 8192,
                  {.max_steps = most_steps, .schedule = fmt::format("{}", seed), .checks = checks},
                  shared);
}

// All seeds leave `count` in the first word.
void expect_count(const std::string& body, const Launch& launch, std::uint32_t count,
                  Checks checks = Checks::memory) {
  for (int seed = 0; seed < seeds; ++seed) {
    const KernelRun run = run_seed(body, seed, launch, checks);
    ASSERT_EQ(run.complaint, "") << body;
    ASSERT_TRUE(run.findings.empty()) << "seed " << seed << ": " << run.findings[0].message;
    ASSERT_EQ(run.out[0], count) << "seed " << seed;
  }
}

const std::string count_one =
    "ld.global.u32 r2, [rd0];\nadd.u32 r2, r2, 1;\nst.global.u32 [rd0], r2;\n";

// By each thread; `within` stands in the loop.
std::string lock_kernel(const std::string& take, const std::string& within = "") {
  return "LOCK:\n" + within + take + "setp.ne.u32 p, r1, 0;\n@p bra LOCK;\n" + count_one +
         "st.release.gpu.global.u32 [lock], 0;\n";
}
const std::string cas = "atom.acquire.gpu.global.cas.b32 r1, [lock], 0, 1;\n",
                  exchange = "atom.acquire.gpu.global.exch.b32 r1, [lock], 1;\n";

TEST(Spins, LocksOfTheLanesOfAWarp) {
  expect_count(lock_kernel(cas), {.block = {32}}, 32);
  expect_count(lock_kernel(exchange), {.block = {32}}, 32);
  expect_count(lock_kernel(cas, "nanosleep.u32 20;\n"), {.block = {32}}, 32);
}

TEST(Spins, LocksWithoutChecks) {
  expect_count(lock_kernel(cas), {.block = {32}}, 32, Checks::none);
}

TEST(Spins, LocksOfManyCtas) {
  const std::string one = "setp.ne.u32 q, r0, 0;\n@q bra END;\n", end = "END:\n";
  expect_count(one + lock_kernel(cas) + end, {.grid = {100}, .block = {64}}, 100);
  // It looks before it tries.
  const std::string looks =
      "LOOK:\nld.relaxed.gpu.global.u32 r1, [lock];\nsetp.ne.u32 p, r1, 0;\n@p bra LOOK;\n";
  expect_count(one + lock_kernel(cas, looks) + end, {.grid = {100}, .block = {64}}, 100);
}

// The holder leaves the loop and waits for all lanes only behind it.
TEST(Spins, ALockWithTheLanesTogetherBehindIt) {
  expect_count(lock_kernel(cas) + "bar.warp.sync 0xffffffff;\n", {.block = {64}}, 64);
}

TEST(Spins, TicketLocks) {
  const std::string ticket =
      "atom.relaxed.gpu.global.add.u32 r3, [next], 1;\n"
      "WAIT:\nld.acquire.gpu.global.u32 r1, [serving];\nsetp.ne.u32 p, r1, r3;\n@p bra WAIT;\n" +
      count_one + "add.u32 r3, r3, 1;\nst.release.gpu.global.u32 [serving], r3;\n";
  expect_count(ticket, {.block = {64}}, 64);
  expect_count("setp.ne.u32 q, r0, 0;\n@q bra END;\n" + ticket + "END:\n",
               {.grid = {100}, .block = {64}}, 100);
}

// CTA i adds after CTA i - 1, all its threads to words of their own.
TEST(Spins, SplitKSemaphores) {
  const std::string semaphore = R"(
mov.u32 r3, %ctaid.x;
setp.ne.u32 q, r0, 0;
@q bra READY;
WAIT:
ld.acquire.gpu.global.u32 r1, [serving];
setp.ne.u32 p, r1, r3;
@p bra WAIT;
READY:
bar.sync 0;
ld.global.u32 r2, [rd1];
add.u32 r2, r2, 1;
st.global.u32 [rd1], r2;
bar.sync 0;
@q bra END;
add.u32 r3, r3, 1;
st.release.gpu.global.u32 [serving], r3;
END:
)";
  for (const std::uint32_t parts : {12u, 48u, 96u})
    expect_count(semaphore, {.grid = {parts}, .block = {64}}, parts);
}

// Each CTA adds up what those before it have, from the nearest that has a sum; 1: its own value is
// there, 2: its sum.
TEST(Spins, DecoupledLookBack) {
  const std::string look_back = R"(
setp.ne.u32 q, r0, 0;
@q bra END;
mov.u32 r3, %ctaid.x;
mov.u64 rd2, flags;
mul.wide.u32 rd3, r3, 4;
add.s64 rd4, rd2, rd3;
mov.u32 r4, 1;
st.release.gpu.global.u32 [rd4], 1;
mov.u64 rd5, rd4;
mov.u32 r5, r3;
BACK:
setp.eq.u32 p, r5, 0;
@p bra DONE;
sub.u32 r5, r5, 1;
sub.s64 rd5, rd5, 4;
LOOK:
ld.acquire.gpu.global.u32 r1, [rd5];
setp.eq.u32 p, r1, 0;
@p bra LOOK;
setp.ne.u32 p, r1, 1;
@p bra SUM;
add.u32 r4, r4, 1;
bra BACK;
SUM:
mov.u64 rd6, sums;
mul.wide.u32 rd7, r5, 4;
add.s64 rd6, rd6, rd7;
ld.global.u32 r6, [rd6];
add.u32 r4, r4, r6;
DONE:
mov.u64 rd6, sums;
add.s64 rd6, rd6, rd3;
st.global.u32 [rd6], r4;
st.release.gpu.global.u32 [rd4], 2;
add.s64 rd1, rd0, rd3;
st.global.u32 [rd1], r4;
END:
)";
  for (int seed = 0; seed < seeds; ++seed) {
    const std::uint32_t ctas = 300;
    const KernelRun run = run_seed(look_back, seed, {.grid = {ctas}, .block = {32}});
    ASSERT_TRUE(run.findings.empty()) << "seed " << seed << ": " << run.findings[0].message;
    for (std::uint32_t i = 0; i < ctas; ++i) ASSERT_EQ(run.out[i], i + 1) << "seed " << seed;
  }
}

TEST(Spins, BarriersOfAGrid) {
  std::string body;
  for (int phase = 1; phase <= 3; ++phase)
    body += fmt::format(R"(
bar.sync 0;
setp.ne.u32 q, r0, 0;
@q bra READY{0};
atom.acq_rel.gpu.global.add.u32 r1, [next], 1;
WAIT{0}:
ld.acquire.gpu.global.u32 r1, [next];
setp.lt.u32 p, r1, {1};
@p bra WAIT{0};
READY{0}:
bar.sync 0;
)",
                        phase, 40 * phase);
  body += "setp.ne.u32 q, r0, 0;\n@q bra END;\natom.global.add.u32 r1, [rd0], 1;\nEND:\n";
  expect_count(body, {.grid = {40}, .block = {64}}, 40);
}

// A round of the loop goes through barriers, so that the thread that looks never comes round in one
// turn.
TEST(Spins, LoopsThatTheWholeCtaGoesRound) {
  const std::string body = R"(
mov.u32 r3, %ctaid.x;
setp.ne.u32 q, r0, 0;
WAIT:
@q bra LOOKED;
ld.acquire.gpu.global.u32 r1, [serving];
st.shared.u32 [seen], r1;
LOOKED:
bar.sync 0;
ld.shared.u32 r2, [seen];
bar.sync 0;
setp.ne.u32 p, r2, r3;
@p bra WAIT;
@q bra END;
ld.global.u32 r2, [rd0];
add.u32 r2, r2, 1;
st.global.u32 [rd0], r2;
add.u32 r3, r3, 1;
st.release.gpu.global.u32 [serving], r3;
END:
)";
  expect_count(body, {.grid = {24}, .block = {96}}, 24);
}

// Two places that look, of which one alone changes.
TEST(Spins, LoopsThatLookAtTwoWords) {
  const std::string body = R"(
setp.ne.u32 q, r0, 0;
@q bra END;
mov.u32 r3, %ctaid.x;
WAIT:
ld.acquire.gpu.global.u32 r1, [serving];
ld.relaxed.gpu.global.u32 r4, [lock];
add.u32 r1, r1, r4;
setp.ne.u32 p, r1, r3;
@p bra WAIT;
ld.global.u32 r2, [rd0];
add.u32 r2, r2, 1;
st.global.u32 [rd0], r2;
add.u32 r3, r3, 1;
st.release.gpu.global.u32 [serving], r3;
END:
)";
  expect_count(body, {.grid = {64}, .block = {32}}, 64);
}

// More CTAs than are resident at a time, each of which waits for the one before it.
TEST(Spins, CtasThatWaitForTheOneBefore) {
  const std::string body = R"(
setp.ne.u32 q, r0, 0;
@q bra END;
mov.u32 r3, %ctaid.x;
WAIT:
ld.acquire.gpu.global.u32 r1, [serving];
setp.ne.u32 p, r1, r3;
@p bra WAIT;
ld.global.u32 r2, [rd0];
add.u32 r2, r2, 1;
st.global.u32 [rd0], r2;
add.u32 r3, r3, 1;
st.release.gpu.global.u32 [serving], r3;
END:
)";
  for (const int seed : {0, 1, 2, 3}) {
    const KernelRun run = run_seed(body, seed, {.grid = {400}, .block = {1024}}, Checks::none);
    ASSERT_TRUE(run.findings.empty()) << "seed " << seed << ": " << run.findings[0].message;
    EXPECT_EQ(run.out[0], 400u);
  }
}

// All wait for the last one, which has no room.
TEST(Spins, WhatNobodyWillWriteIsADeadlock) {
  const std::string body = R"(
mov.u32 r3, %ctaid.x;
setp.ne.u32 q, r3, 399;
@q bra WAIT;
st.release.gpu.global.u32 [serving], 1;
WAIT:
ld.acquire.gpu.global.u32 r1, [serving];
setp.eq.u32 p, r1, 0;
@p bra WAIT;
)";
  for (const int seed : {0, 1, 2, 3}) {
    const KernelRun wrong = run_seed(body, seed, {.grid = {400}, .block = {1024}}, Checks::none);
    ASSERT_EQ(wrong.findings.size(), 1u) << "seed " << seed;
    EXPECT_EQ(wrong.findings[0].id, "deadlock") << wrong.findings[0].message;
    EXPECT_NE(wrong.findings[0].message.find("136 CTAs cannot start"), std::string::npos)
        << wrong.findings[0].message;
    const KernelRun right = run_seed(body, seed, {.grid = {400}, .block = {256}}, Checks::none);
    EXPECT_TRUE(right.findings.empty()) << right.findings[0].message;
  }
}

// A warp that waits for another one's asynchronous copy through a flag, while the copy is put off.
TEST(Spins, WhatIsPutOffComesAllTheSame) {
  const std::string body = R"(
setp.ge.u32 q, r0, 32;
@q bra OTHERS;
mov.u32 r7, bar;
mov.u32 r1, tile;
setp.ne.u32 q, r0, 0;
@q bra END;
mbarrier.init.shared::cta.b64 [bar], 1;
mov.u64 rd3, data;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [rd3], 16, [bar];
)" + wait("bar", "COPY") + R"(
ld.shared.u32 r2, [r1];
st.global.u32 [rd0], r2;
st.release.gpu.global.u32 [serving], 1;
bra END;
OTHERS:
ld.acquire.gpu.global.u32 r1, [serving];
setp.eq.u32 p, r1, 0;
@p bra OTHERS;
END:
)";
  const std::string declarations = shared +
                                   ".shared .align 128 .b8 tile[64];\n.shared .align 8 .b64 bar;\n"
                                   ".global .align 128 .u32 data[4] = {11, 12, 13, 14};\n";
  for (int seed = 0; seed < seeds; ++seed) {
    const KernelRun run =
        run_body(body, {.block = {128}}, 1024,
                 {.max_steps = most_steps, .schedule = fmt::format("{}", seed)}, declarations);
    ASSERT_EQ(run.complaint, "");
    ASSERT_TRUE(run.findings.empty()) << "seed " << seed << ": " << run.findings[0].message;
    EXPECT_EQ(run.out[0], 11u) << "seed " << seed;
  }
}

// A turn costs the same however many CTAs there are: twenty thousand took minutes.
TEST(Spins, ManyCtasTakeSeconds) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string body =
      "mov.u32 r2, %ctaid.x;\nmad.lo.u32 r2, r2, 32, r0;\nand.b32 r2, r2, 8191;\n"
      "mul.wide.u32 rd2, r2, 4;\nadd.s64 rd2, rd0, rd2;\nred.global.add.u32 [rd2], 1;\n";
  for (const int seed : {0, 1, 2, 3}) {
    const KernelRun run = run_seed(body, seed, {.grid = {20'000}, .block = {32}});
    EXPECT_TRUE(run.findings.empty());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(120));
}

}  // namespace
}  // namespace tartan::test
