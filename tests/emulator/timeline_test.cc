// SPDX-License-Identifier: Apache-2.0
// Timelines of small kernels, event by event; deadlocks, whose timelines show who waits.
#include <gtest/gtest.h>

#include "tests/emulator/kernel.h"
#include "tests/support/timeline_checks.h"

namespace tartan::test {
namespace {

const std::string shared = ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";

std::shared_ptr<Timeline> trace(const std::string& body, Launch launch, std::string schedule = {}) {
  const auto timeline = std::make_shared<Timeline>();
  run_body(body, launch, 128, {.schedule = std::move(schedule), .timeline = timeline}, shared);
  expect_whole_json(*timeline);
  return timeline;
}

std::vector<const TimelineEvent*> of(const Timeline& timeline, Kind kind, int warp = -2) {
  std::vector<const TimelineEvent*> out;
  for (const TimelineEvent& event : timeline.events())
    if (event.kind == kind && (warp == -2 || event.warp == warp)) out.push_back(&event);
  return out;
}

// Two warps meet at a barrier: the first waits, the second releases it.
TEST(EmulatorTimeline, BarrierAndWhoReleasesIt) {
  const std::string body = "add.u32 r5, r0, 1;\nbar.sync 3, 64;";
  const auto timeline = trace(body, {.grid = {1}, .block = {64}});
  expect_consistent(*timeline);
  const auto waits = of(*timeline, Kind::wait), arrivals = of(*timeline, Kind::arrive);
  ASSERT_EQ(waits.size(), 1u);
  ASSERT_EQ(arrivals.size(), 2u);
  EXPECT_EQ(waits[0]->warp, 0);
  EXPECT_EQ(waits[0]->name, "wait for barrier 3 of 64 threads");
  EXPECT_EQ(waits[0]->begin, arrivals[0]->end);
  EXPECT_EQ(&timeline->events()[static_cast<std::size_t>(waits[0]->cause)], arrivals[1]);
  EXPECT_EQ(arrivals[1]->warp, 1);
  EXPECT_EQ(arrivals[1]->end, waits[0]->end);
  EXPECT_EQ(arrivals[0]->line, line_of(body, "bar.sync", shared));
  const auto phases = of(*timeline, Kind::phase);
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_EQ(phases[0]->arrivals, 64u);
  EXPECT_EQ(timeline->barriers().at(0).name, "barrier 3");
  EXPECT_EQ(timeline->launches().at(0).stopped, "");
}

const std::string copies = R"(
.reg .b32 at;
mov.u32 at, tile;
shl.b32 r5, r0, 4;
add.u32 at, at, r5;
cp.async.ca.shared.global [at], [rd0], 16;
cp.async.ca.shared.global [at+512], [rd0], 16;
cp.async.commit_group;
cp.async.ca.shared.global [at], [rd0], 16;
cp.async.commit_group;
cp.async.wait_group 1;
cp.async.wait_group 0;)";

// A group flies from its first copy to the first wait that leaves it no room.
TEST(EmulatorTimeline, GroupsOfCopies) {
  const auto timeline = trace(copies, {.grid = {1}, .block = {32}});
  const auto flights = of(*timeline, Kind::flight), waits = of(*timeline, Kind::wait),
             commits = of(*timeline, Kind::commit), started = of(*timeline, Kind::copy);
  ASSERT_EQ(flights.size(), 2u);
  ASSERT_EQ(waits.size(), 2u);
  ASSERT_EQ(commits.size(), 2u);
  ASSERT_EQ(started.size(), 2u);  // two copies side by side are a run
  EXPECT_EQ(started[0]->name, "cp.async x2");
  EXPECT_EQ(started[0]->bytes, 2u * 32 * 16);
  EXPECT_EQ(flights[0]->bytes, 2u * 32 * 16);
  EXPECT_EQ(flights[1]->bytes, 32u * 16);
  EXPECT_EQ(flights[0]->begin, started[0]->begin);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(flights[i]->end, waits[i]->end) << i;
    EXPECT_TRUE(flights[i]->ended) << i;
    EXPECT_EQ(&timeline->events()[static_cast<std::size_t>(waits[i]->cause)], commits[i]) << i;
  }
}

const std::string polling = R"(
setp.ne.u32 q, r0, 0;
@!q mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
setp.ge.u32 p, r0, 32;
@p bra ARRIVE;
SPIN:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@p bra DONE;
bra SPIN;
ARRIVE:
setp.eq.u32 q, r0, 32;
@q mbarrier.arrive.shared::cta.b64 _, [bar];
DONE:)";

// A loop of polls is one wait, which the arrival ends.
TEST(EmulatorTimeline, PollsAreOneWait) {
  for (const char* schedule : {"", "1", "7"}) {
    SCOPED_TRACE(schedule);
    const auto timeline = trace(polling, {.grid = {1}, .block = {64}}, schedule);
    expect_consistent(*timeline);
    std::vector<const TimelineEvent*> waits;
    for (const TimelineEvent* event : of(*timeline, Kind::wait))
      if (event->opcode.starts_with("mbarrier")) waits.push_back(event);
    ASSERT_GE(waits.size(), 1u);
    for (const TimelineEvent* wait : waits) {
      EXPECT_EQ(wait->name, "wait for mbarrier bar, phase parity 0");
      ASSERT_GE(wait->cause, 0);
      const TimelineEvent& cause = timeline->events()[static_cast<std::size_t>(wait->cause)];
      EXPECT_EQ(cause.kind, Kind::arrive);
      EXPECT_EQ(cause.warp, 1);
      EXPECT_TRUE(cause.opcode.starts_with("mbarrier.arrive"));
    }
    const auto phases = of(*timeline, Kind::phase);
    EXPECT_EQ(std::ranges::count_if(
                  phases,
                  [&](const TimelineEvent* phase) {
                    return timeline->barriers()[static_cast<std::size_t>(phase->barrier)].name ==
                           "mbarrier bar";
                  }),
              1);
  }
}

// The timeline ends where nobody can go on, and says who waits for what.
TEST(EmulatorTimeline, ShowsADeadlock) {
  const std::string body = R"(
setp.ne.u32 q, r0, 0;
@!q mbarrier.init.shared::cta.b64 [bar], 2;
bar.sync 0;
setp.lt.u32 p, r0, 32;
@p bra SPIN;
bar.sync 1;
bra DONE;
SPIN:
@!q mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
AGAIN:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@!p bra AGAIN;
DONE:)";
  for (const char* schedule : {"", "5"}) {
    SCOPED_TRACE(schedule);
    const auto timeline = trace(body, {.grid = {1}, .block = {64}}, schedule);
    expect_consistent(*timeline, false);
    EXPECT_NE(timeline->launches().at(0).stopped.find("deadlock"), std::string::npos);
    std::map<int, std::string> open;
    for (const TimelineEvent* wait : of(*timeline, Kind::wait))
      if (!wait->ended) open[wait->warp] += wait->name;
    EXPECT_EQ(open[0], "wait for mbarrier bar, phase parity 0");
    EXPECT_EQ(open[1], "wait for barrier 1");
    for (const TimelineEvent* life : of(*timeline, Kind::warp)) EXPECT_FALSE(life->ended);
    for (const TimelineEvent* phase : of(*timeline, Kind::phase)) {
      const auto barrier = static_cast<std::size_t>(phase->barrier);
      EXPECT_EQ(phase->ended, timeline->barriers()[barrier].name == "barrier 0");
    }
  }
}

TEST(EmulatorTimeline, LaunchesFollowEachOther) {
  const auto timeline = std::make_shared<Timeline>();
  for (int i = 0; i < 2; ++i)
    run_body("bar.sync 0;", {.grid = {2}, .block = {64}}, 128, {.timeline = timeline}, shared);
  EXPECT_EQ(timeline->launches().size(), 2u);
  ASSERT_EQ(timeline->ctas().size(), 4u);
  EXPECT_EQ(timeline->ctas()[3].launch, 1u);
  EXPECT_EQ(timeline->ctas()[3].place, (Dim3{1, 0, 0}));
  EXPECT_EQ(timeline->barriers().size(), 4u);
  expect_consistent(*timeline);
  expect_whole_json(*timeline);
}

}  // namespace
}  // namespace tartan::test
