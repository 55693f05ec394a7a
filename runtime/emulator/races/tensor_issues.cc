// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/tensor_issues.h"

#include <algorithm>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/races/detector.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

bool is_same_accumulator(const TensorIssue& one, const TensorIssue& other) {
  return one.lane == other.lane && one.column == other.column && one.m == other.m &&
         one.n == other.n;
}

bool accumulators_overlap(const TensorIssue& one, const TensorIssue& other) {
  const bool lanes = one.all_lanes || other.all_lanes || one.lane == other.lane;
  return lanes && one.column < other.column + other.columns &&
         other.column < one.column + one.columns;
}

}  // namespace

std::uint32_t ClusterRaces::last_issue(const Warp& warp, std::uint32_t lane) const {
  const auto& all = issues_[warp.block->rank()].last;
  const auto found = all.find({warp.index, lane});
  return found == all.end() ? clocks_.time(warp) : found->second;
}

void ClusterRaces::note_issue(const Warp& warp, std::uint32_t lane) {
  issues_[warp.block->rank()].last[{warp.index, lane}] = clocks_.time(warp);
}

bool ClusterRaces::issue_tensor(Warp& warp, int lane, const TensorIssue& issue) {
  const auto issuer = static_cast<std::uint32_t>(lane);
  if (launch_.whole) {
    judge_accumulator(warp, issuer, issue);
    judge_collector(warp, issuer, issue);
  }
  return true;
}

// Overlapping accumulators that are not the same, of products that nobody has waited for.
void ClusterRaces::judge_accumulator(Warp& warp, std::uint32_t lane, const TensorIssue& issue) {
  auto& all = issues_[warp.block->rank()].accumulators;
  const TensorIssues::Product now{
      issue,
      {clocks_.number(warp, Actor::tensor_core), clocks_.time(warp), lane},
      clocks_.number(warp),
      warp.pc - 1};
  for (const TensorIssues::Product& each : all) {
    if (!accumulators_overlap(each.issue, issue) || is_same_accumulator(each.issue, issue) ||
        clocks_.knows(warp, lane, each.who))
      continue;
    Race race{.kind = Race::Kind::reordered,
              .first = {.actor = Actor::tensor_core,
                        .thread = each.thread,
                        .lane = each.who.lane,
                        .pc = each.pc,
                        .writes = true},
              .second = side(now.who.warp, warp, lane)};
    race.accumulators[0] = each.issue;
    race.accumulators[1] = issue;
    launch_.reports.add(race);
  }
  std::erase_if(all, [&](const TensorIssues::Product& each) {
    return is_same_accumulator(each.issue, issue) || clocks_.knows(warp, lane, each.who);
  });
  all.push_back(now);
}

void ClusterRaces::judge_collector(Warp& warp, std::uint32_t lane, const TensorIssue& issue) {
  TensorIssues& of = issues_[warp.block->rank()];
  const TensorIssues::Product now{issue, {}, clocks_.number(warp), warp.pc - 1};
  const bool uses =
      issue.collector == CollectorUse::use || issue.collector == CollectorUse::lastuse;
  if (uses) {
    const TensorIssue& kept = of.filled.issue;
    const bool same =
        of.keeps && kept.a_in_tensor == issue.a_in_tensor && kept.a == issue.a && kept.m == issue.m;
    if (!same || kept.contents != issue.contents) {
      Race race{.kind = Race::Kind::collector,
                .first = {.actor = Actor::tensor_core, .thread = now.thread, .pc = now.pc},
                .second = side(clocks_.number(warp, Actor::tensor_core), warp, lane)};
      if (of.keeps)
        race.first = {.actor = Actor::tensor_core, .thread = of.filled.thread, .pc = of.filled.pc};
      race.kept = !of.keeps ? Race::Kept::nothing : same ? Race::Kept::changed : Race::Kept::other;
      launch_.reports.add(race);
    }
  }
  if (issue.collector == CollectorUse::fill) of.filled = now;
  of.keeps =
      issue.collector == CollectorUse::fill || (of.keeps && issue.collector == CollectorUse::use);
}

}  // namespace tartan::TARTAN_ABI::emulator
