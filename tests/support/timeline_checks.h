// SPDX-License-Identifier: Apache-2.0
// tests/support/timeline_checks.h - what holds of every timeline, and of one beside the report of
// the same launches.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tartan/runtime/timeline.h"

namespace tartan::test {

using Kind = TimelineEvent::Kind;

// A wait behind an instruction that has an event of its own.
inline bool is_second(const TimelineEvent& event) {
  return event.kind == Kind::wait &&
         (event.opcode.starts_with("bar") || event.opcode.starts_with("wgmma.mma")) &&
         !event.opcode.starts_with("barrier.cluster");
}

inline bool is_shown(const std::string& opcode) {
  for (const char* prefix :
       {"cp.async.", "cp.reduce.", "mma.", "wmma.mma.", "wgmma.mma", "wgmma.commit", "wgmma.wait",
        "bar.sync", "bar.arrive", "bar.red", "barrier.", "mbarrier.init", "mbarrier.arrive",
        "mbarrier.expect", "mbarrier.inval", "mbarrier.try", "mbarrier.test", "setmaxnreg",
        "st.async"})
    if (opcode.starts_with(prefix)) return !opcode.starts_with("cp.async.bulk.prefetch");
  return false;
}

// A barrier goes on when the last warp that it waits for has exited.
inline bool after_an_exit(const Timeline& timeline, const TimelineEvent& wait) {
  return std::ranges::any_of(timeline.events(), [&](const TimelineEvent& life) {
    return life.kind == Kind::warp && life.cta == wait.cta && life.ended && life.end <= wait.end;
  });
}

// Causes, lives and ends of events. Copies that nobody waits for do not end, which is a mistake.
inline void expect_consistent(const Timeline& timeline, bool finished = true) {
  const auto& events = timeline.events();
  std::map<std::pair<std::uint32_t, int>, const TimelineEvent*> lives;
  for (const TimelineEvent& event : events)
    if (event.kind == Kind::warp) lives[{event.cta, event.warp}] = &event;
  for (const TimelineEvent& event : events) {
    const std::string what = fmt::format("{} at line {}", event.name, event.line);
    ASSERT_LE(event.begin, event.end) << what;
    ASSERT_LT(event.cta, timeline.ctas().size());
    EXPECT_FALSE(event.name.empty()) << event.line;
    EXPECT_EQ(event.line > 0, event.kind != Kind::phase && event.kind != Kind::warp) << what;
    const bool may_last = event.kind == Kind::phase || event.kind == Kind::flight;
    EXPECT_TRUE(event.ended || !finished || may_last) << what;
    if (event.warp >= 0 && event.kind != Kind::flight) {
      const TimelineEvent* life = lives[{event.cta, event.warp}];
      ASSERT_NE(life, nullptr) << what;
      EXPECT_LE(life->begin, event.begin) << what;
      EXPECT_GE(life->end, event.end) << what << ", warp " << event.warp;
    }
    if (event.cause >= 0) {
      const TimelineEvent& cause = events[static_cast<std::size_t>(event.cause)];
      EXPECT_LE(cause.end, std::max(event.end, event.begin + 1)) << what << ": " << cause.name;
      EXPECT_EQ(timeline.ctas()[cause.cta].launch, timeline.ctas()[event.cta].launch);
      if (event.kind == Kind::wait && event.opcode.starts_with("mbarrier")) {
        EXPECT_TRUE(cause.kind == Kind::arrive || cause.kind == Kind::completion) << cause.name;
        EXPECT_EQ(timeline.barriers()[static_cast<std::size_t>(event.barrier)].name,
                  timeline.barriers()[static_cast<std::size_t>(cause.barrier)].name);
      }
    }
    // Who really waited was released by somebody.
    const bool waited = event.kind == Kind::wait && event.ended && event.barrier >= 0 &&
                        event.end > event.begin + 1;
    EXPECT_TRUE(event.cause >= 0 || !waited || after_an_exit(timeline, event)) << what;
  }
}

// The JSON text: slices nest on their rows, and flights and flows have both of their ends.
inline nlohmann::json expect_whole_json(const Timeline& timeline) {
  const auto json = nlohmann::json::parse(timeline.json(), nullptr, false);
  EXPECT_FALSE(json.is_discarded());
  if (json.is_discarded()) return json;
  struct Slice {
    std::uint64_t begin, end;
  };
  std::map<std::pair<int, int>, std::vector<Slice>> rows;
  std::map<std::string, std::pair<std::uint64_t, int>> flights, flows;  // begin; open ends
  std::set<std::pair<int, int>> named;
  std::size_t slices = 0, pairs = 0;
  for (const auto& event : json.at("traceEvents")) {
    const std::string ph = event.at("ph");
    const std::pair<int, int> row{event.at("pid"), event.at("tid")};
    if (ph == "M") {
      if (event.at("name") == "thread_name") named.insert(row);
      continue;
    }
    const std::uint64_t ts = event.at("ts");
    if (ph == "X") {
      ++slices;
      rows[row].push_back({ts, ts + event.at("dur").get<std::uint64_t>()});
      EXPECT_TRUE(named.contains(row)) << event;
      continue;
    }
    auto& ends = ph == "b" || ph == "e" ? flights : flows;
    const std::string id = event.at("id").dump();
    if (ph == "b" || ph == "s") {
      EXPECT_TRUE(ends.try_emplace(id, ts, 1).second) << event;
    } else {
      EXPECT_TRUE(ph == "e" || ph == "f") << event;
      EXPECT_EQ(--ends[id].second, 0) << event;
      EXPECT_LE(ends[id].first, ts) << event;
      ++pairs;
    }
  }
  for (const auto& [id, ends] : flights) EXPECT_EQ(ends.second, 0) << id;
  for (const auto& [id, ends] : flows) EXPECT_EQ(ends.second, 0) << id;
  for (const auto& [row, all] : rows) {
    std::vector<Slice> open;
    for (const Slice& slice : all) {
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(open.back().begin, slice.begin) << row.second;
        EXPECT_LE(slice.end, open.back().end) << "row " << row.second << " at " << slice.begin;
      }
      open.push_back(slice);
    }
  }
  for (const auto& event : json.at("traceEvents"))
    if (event.at("ph") == "s" || event.at("ph") == "f") {
      const std::uint64_t ts = event.at("ts");
      EXPECT_TRUE(std::ranges::any_of(rows[{event.at("pid"), event.at("tid")}],
                                      [&](const Slice& s) { return s.begin <= ts && ts <= s.end; }))
          << event;
    }
  std::size_t flight_events = 0, causes = 0;
  for (const TimelineEvent& event : timeline.events()) {
    flight_events += event.kind == Kind::flight;
    causes += event.cause >= 0 && event.kind != Kind::phase;
  }
  EXPECT_EQ(slices, timeline.events().size() - flight_events);
  EXPECT_EQ(pairs, flight_events + causes);
  return json;
}

// All of what the launches did, as their report counts it.
inline void expect_as_reported(const Timeline& timeline, const Report& report) {
  struct Sums {
    std::uint64_t count = 0, bytes = 0;
  };
  std::map<std::string, Sums> shown, reported;  // by opcode: a run has several lines
  std::uint64_t products = 0;
  std::map<std::uint32_t, std::uint64_t> last;                  // by CTA
  std::map<int, std::uint64_t> expected, completed, of_phases;  // bytes, by barrier
  for (const TimelineEvent& event : timeline.events()) {
    last[event.cta] = std::max(last[event.cta], event.end);
    products += event.kind == Kind::product ? event.multiply_adds : 0;
    if (event.kind == Kind::completion) completed[event.barrier] += event.bytes;
    if (event.kind == Kind::phase) of_phases[event.barrier] += event.bytes;
    if (event.kind == Kind::arrive && event.bytes) expected[event.barrier] += event.bytes;
    const bool instruction = event.kind != Kind::warp && event.kind != Kind::phase &&
                             event.kind != Kind::completion && event.kind != Kind::flight;
    if (!instruction || is_second(event)) continue;
    shown[event.opcode].count += event.count;
    if (event.kind == Kind::copy) shown[event.opcode].bytes += event.bytes;
  }
  for (const InstructionProfile& each : report.instructions) {
    if (!is_shown(each.opcode)) continue;
    reported[each.opcode].count += each.executions;
    reported[each.opcode].bytes += each.copied_bytes;
    if (each.opcode.starts_with("cp.async.c")) reported[each.opcode].bytes += each.shared.bytes;
  }
  EXPECT_EQ(products, report.multiply_adds);
  for (const auto& [barrier, bytes] : completed) EXPECT_EQ(bytes, of_phases[barrier]) << barrier;
  for (const auto& [barrier, bytes] : expected) EXPECT_EQ(bytes, completed[barrier]) << barrier;
  for (const auto& [opcode, sums] : reported) {
    EXPECT_EQ(shown[opcode].count, sums.count) << opcode;
    EXPECT_EQ(shown[opcode].bytes, sums.bytes) << opcode;
  }
  for (const auto& [opcode, sums] : shown) EXPECT_TRUE(reported.contains(opcode)) << opcode;
  // Each cluster's clock ends with its last instruction.
  std::uint64_t steps = 0;
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> clusters;
  for (std::uint32_t cta = 0; cta < timeline.ctas().size(); ++cta) {
    const TimelineLaunch& launch = timeline.launches()[timeline.ctas()[cta].launch];
    const std::uint64_t size = launch.shape.cluster.count();
    auto& end = clusters[{timeline.ctas()[cta].launch, cta / size}];
    end = std::max(end, last[cta]);
  }
  for (const auto& [cluster, end] : clusters) steps += end;
  EXPECT_EQ(steps, report.warp_instructions);
}

}  // namespace tartan::test
