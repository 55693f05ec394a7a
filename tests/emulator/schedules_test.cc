// SPDX-License-Identifier: Apache-2.0
// Seeded schedules: a seed repeats itself, seeds differ, and each kind of asynchronous operation
// may be late, unless somebody waits for it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

constexpr int seeds = 40;

const std::string shared =
    ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n"
    ".global .align 128 .u32 data[256] = {11, 12, 13, 14, 15, 16, 17, 18};\n"
    ".global .u32 ticket;\n";

std::vector<std::uint32_t> out_of(const std::string& body, int seed, const Launch& launch,
                                  Checks checks = Checks::none) {
  const KernelRun run =
      run_body(body, launch, 1024, {.schedule = fmt::format("{}", seed), .checks = checks}, shared);
  EXPECT_EQ(run.complaint, "") << body;
  // Of the fences that these kernels leave out, checks only warn.
  for (const Finding& each : run.findings) EXPECT_EQ(each.level, Level::Warning) << each.message;
  return run.out;
}

// Thread 0 of each warp of each block writes its place in the order.
const std::string order = R"(
and.b32 r1, r0, 31;
setp.ne.u32 p, r1, 0;
@p bra END;
mov.u32 r2, %ctaid.x;
mov.u32 r3, %ntid.x;
mad.lo.u32 r2, r2, r3, r0;
atom.global.add.u32 r4, [ticket], 1;
mul.wide.u32 rd2, r4, 4;
add.s64 rd2, rd0, rd2;
st.global.u32 [rd2], r2;
END:
)";

TEST(Schedules, ASeedRepeatsItself) {
  const Launch launch{.grid = {4}, .block = {128}};
  for (int seed = 0; seed < 8; ++seed)
    EXPECT_EQ(out_of(order, seed, launch), out_of(order, seed, launch)) << seed;
}

TEST(Schedules, SeedsDifferInWarpsAndBlocks) {
  std::set<std::vector<std::uint32_t>> warps, blocks;
  for (int seed = 0; seed < seeds; ++seed) {
    warps.insert(out_of(order, seed, {.grid = {1}, .block = {128}}));
    blocks.insert(out_of(order, seed, {.grid = {4}, .block = {32}}));
  }
  EXPECT_GE(warps.size(), 10u);
  EXPECT_GE(blocks.size(), 10u);
}

TEST(Schedules, NoSuchSchedule) {
  for (const char* text : {"x", "-1", "1.5", "99999999999999999999"}) {
    const auto engine = emulator::make_engine({.schedule = text});
    ASSERT_FALSE(engine) << text;
    EXPECT_EQ(engine.diags()[0].id, "usage");
  }
}

const std::string arrival = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n",
                  test =
                      "mbarrier.test_wait.parity.shared::cta.b64 q, [bar], 0;\n"
                      "selp.u32 r5, 11, 0, q;\n",
                  read = "ld.shared.u32 r5, [r1];\n";

/// What thread 0 issues, how it sees whether that is done (11, else 0), and how it waits for it.
struct LateCase {
  const char* name;
  std::string issue, look, wait;
};

const LateCase cases[] = {
    {"cp.async", "cp.async.ca.shared.global [r1], [rd3], 4;\ncp.async.commit_group;\n", read,
     "cp.async.wait_group 0;\n"},
    {"cp.async in the last but one group",
     "cp.async.ca.shared.global [r1], [rd3], 4;\ncp.async.commit_group;\n"
     "cp.async.ca.shared.global [r1+64], [rd3], 4;\ncp.async.commit_group;\n",
     read, "cp.async.wait_group 1;\n"},
    {"cp.async.wait_all", "cp.async.ca.shared.global [r1], [rd3], 4;\n", read,
     "cp.async.wait_all;\n"},
    {"cp.async.mbarrier.arrive",
     "cp.async.ca.shared.global [r1], [rd3], 4;\n"
     "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];\n",
     test, wait("bar", "W")},
    {"cp.async.mbarrier.arrive that counts itself",
     "cp.async.ca.shared.global [r1], [rd3], 4;\n"
     "cp.async.mbarrier.arrive.shared::cta.b64 [bar];\n"
     "mbarrier.arrive.shared::cta.b64 _, [bar];\n",
     test, wait("bar", "W")},
    {"cp.async.bulk",
     arrival + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [rd3], 16, "
               "[bar];\n",
     test, wait("bar", "W")},
    {"st.async",
     arrival +
         "mov.u32 r9, 11;\nmapa.shared::cluster.u32 r6, r1, 0;\n"
         "mapa.shared::cluster.u32 r8, r7, 0;\n"
         "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [r6], {r9, r9, r9, r9}, "
         "[r8];\n",
     test, wait("bar", "W")},
};

std::string late_kernel(const LateCase& each, bool waits) {
  const bool has_mbarrier = each.look == test;
  return fmt::format(
      R"(
setp.ne.u32 p, r0, 0;
@p bra END;
mov.u32 r1, tile;
mov.u64 rd3, data;
{}{}{}{}
st.global.u32 [rd0], r5;
{}
END:
)",
      has_mbarrier ? "mov.u32 r7, bar;\nmbarrier.init.shared::cta.b64 [bar], 1;\n" : "", each.issue,
      waits ? each.wait : "", waits ? read : each.look, waits || !has_mbarrier ? "" : each.wait);
}

TEST(Schedules, WhatIsNotWaitedForMayBeLate) {
  for (const LateCase& each : cases) {
    std::set<std::uint32_t> seen;
    for (int seed = 0; seed < seeds; ++seed)
      seen.insert(out_of(late_kernel(each, false), seed, {})[0]);
    EXPECT_EQ(seen, (std::set<std::uint32_t>{0, 11})) << each.name;
  }
}

TEST(Schedules, WhatIsWaitedForIsDone) {
  for (const LateCase& each : cases)
    for (int seed = 0; seed < seeds; ++seed)
      EXPECT_EQ(out_of(late_kernel(each, true), seed, {}, Checks::all)[0], 11u)
          << each.name << ", seed " << seed;
}

// A copy to global memory reads first: its source may change after wait_group.read, and not before.
std::string store_kernel(const std::string& before_change, const std::string& at_end) {
  return fmt::format(R"(
setp.ne.u32 p, r0, 0;
@p bra END;
mov.u32 r1, tile;
mov.u32 r2, 7;
st.shared.u32 [r1], r2;
fence.proxy.async;
cp.async.bulk.global.shared::cta.bulk_group [rd0], [r1], 16;
cp.async.bulk.commit_group;
{}
mov.u32 r2, 9;
st.shared.u32 [r1], r2;
{}
ld.global.u32 r3, [rd0];
st.global.u32 [rd0+64], r3;
END:
)",
                     before_change, at_end);
}

TEST(Schedules, BulkStoresReadFirst) {
  std::set<std::uint32_t> careful, early;
  for (int seed = 0; seed < seeds; ++seed) {
    careful.insert(
        out_of(store_kernel("cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group 0;"),
               seed, {})[16]);
    early.insert(out_of(store_kernel("cp.async.bulk.wait_group.read 0;", ""), seed, {})[16]);
  }
  EXPECT_EQ(careful, (std::set<std::uint32_t>{7}));
  EXPECT_EQ(early, (std::set<std::uint32_t>{0, 7}));
}

TEST(Schedules, ADeadlockIsAFinding) {
  const std::string body =
      "setp.ne.u32 p, r0, 0;\n@p bra END;\nmbarrier.init.shared::cta.b64 [bar], 1;\n" +
      wait("bar", "W") + "END:\n";
  for (int seed = 0; seed < 4; ++seed) {
    const KernelRun run =
        run_body(body, {.block = {64}}, 1024, {.schedule = fmt::format("{}", seed)}, shared);
    ASSERT_EQ(run.findings.size(), 1u);
    EXPECT_EQ(run.findings[0].id, "deadlock");
  }
}

TEST(Schedules, ABarrierThatNobodyElseReachesIsAFinding) {
  const std::string body = "setp.lt.u32 p, r0, 32;\n@p bra END;\nbar.sync 1, 64;\nEND:\n";
  const KernelRun run = run_body(body, {.block = {64}}, 1024, {.schedule = "3"}, shared);
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "barrier-deadlock");
}

}  // namespace
}  // namespace tartan::test
