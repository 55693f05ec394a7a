// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/shared_accesses.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace tartan::TARTAN_ABI::ir {
namespace {

bool starts_before(const Part& x, const Part& y) { return x.begin < y.begin; }

// Of all parts, whatever their order.
std::uint64_t digest_of(Access& access) {
  if (access.digest != 0) return access.digest;
  for (const Part& part : access.parts) {
    std::uint64_t of_part = 0x9E3779B97F4A7C15;
    for (const std::int64_t each : {part.begin, part.end, std::int64_t{part.thread}}) {
      of_part ^= static_cast<std::uint64_t>(each);
      of_part *= 0xBF58476D1CE4E5B9;
      of_part ^= of_part >> 29;
    }
    access.digest += of_part;
  }
  return access.digest;
}

// Whether nothing tells the later from the earlier one, but what came in between.
bool repeats(Access& x, Access& y) {
  return !x.flying && !y.flying && x.address < 0 && y.address < 0 && x.memory == y.memory &&
         x.reads == y.reads && x.writes == y.writes && x.atomic == y.atomic && x.team == y.team &&
         x.parts.size() == y.parts.size() && x.first == y.first && x.end == y.end &&
         digest_of(x) == digest_of(y);
}

}  // namespace

void Pending::sum_up(Access& access) {
  if (access.end > access.first || access.parts.empty()) return;
  access.first = access.parts.front().begin, access.end = access.parts.front().end;
  for (const Part& each : access.parts)
    access.first = std::min(access.first, each.begin), access.end = std::max(access.end, each.end);
}

void Pending::add(Access access) {
  sum_up(access);
  std::erase_if(accesses_, [&](Access& each) { return repeats(each, access); });
  accesses_.push_back(std::move(access));
}

void Pending::put_in_order(Access& access) {
  if (access.longest > 0) return;
  std::ranges::sort(access.parts, starts_before);
  for (const Part& each : access.parts)
    access.longest = std::max(access.longest, each.end - each.begin);
}

void Pending::note(How how, const Threads& threads) {
  syncs_.push_back({how, threads});
  for (Access& each : accesses_)
    if (!each.flying) each.syncs.push_back(syncs_.size() - 1);
}

void Pending::sync(const Threads& threads, const Threads& all) {
  if (threads.covers(all)) sync_all();
  else note(How::group, threads);
}

void Pending::sync_all() {
  awaiting_ = {};
  forget();
}

void Pending::forget() {
  std::erase_if(accesses_, [](const Access& each) { return !each.flying; });
}

void Pending::sync_warps(const Threads& threads) { note(How::warps, threads); }
void Pending::await_others(const Threads& threads) {
  forget();
  awaiting_ |= threads;
}

void Pending::take_turn(const Threads& threads) { note(How::turn, threads); }

void Pending::land(const Threads& by, int team, std::size_t but) {
  std::vector<Access*> own;
  for (Access& each : accesses_) {
    if (!each.flying || each.team != team || each.parts.empty()) continue;
    put_in_order(each);
    if (by.has(each.parts.front().thread)) own.push_back(&each);
  }
  std::size_t groups = 0;
  int group = -1;
  for (Access* const each : std::views::reverse(own)) {
    groups += std::exchange(group, each->group) != each->group;
    if (groups > but) each->flying = false, each->syncs.clear();
  }
}

void Pending::merge(const Pending& other) {
  awaiting_ |= other.awaiting_;
  const std::size_t own = syncs_.size();
  syncs_.insert(syncs_.end(), other.syncs_.begin(), other.syncs_.end());
  for (const Access& each : other.accesses_) {
    const auto here =
        std::ranges::find(accesses_, each.serial, [](const Access& one) { return one.serial; });
    if (here != accesses_.end()) continue;
    accesses_.push_back(each);
    for (std::size_t& sync : accesses_.back().syncs) sync += own;
  }
}

bool Pending::disturb(const Access& x, const Access& y) {
  if (x.memory != y.memory || (x.atomic && y.atomic)) return false;
  return (x.reads && y.writes) || (x.writes && y.reads) || (x.atomic && y.writes) ||
         (x.writes && y.atomic);
}

// Whether what the thread did is before what a thread of the other team does. A team reads at once,
// so that what its threads do later comes behind all of it; what they write they see only each for
// itself.
bool Pending::is_ordered(const Access& before, int thread, int of_team, int team) const {
  if (before.flying) return false;
  const int first = thread / before.team * before.team, then_first = of_team / team * team;
  const bool own = first < then_first + team && then_first < first + before.team;
  if (own && (!before.writes || (before.team == 1 && team == 1))) return true;
  const bool of_warps = thread / 32 != of_team / 32;
  if (of_warps && (awaiting_.has(thread) || awaiting_.has(of_team))) return true;
  if (before.syncs.empty()) return false;
  const Threads then = Threads::range(then_first, team);
  Threads behind = Threads::range(first, before.team);
  bool met = false;
  const auto meet = [&](const Threads& threads) { behind |= threads, met = true; };
  for (const std::size_t each : before.syncs) {
    const auto& [how, threads] = syncs_[each];
    switch (how) {
      case How::group:
        if (behind.meets(threads)) meet(threads);
        break;
      case How::turn:
        if (!threads.covers(behind)) meet(threads);
        break;
      case How::warps:
        for (std::size_t i = 0; i < behind.warps.size(); ++i)
          if (behind.warps[i] & threads.warps[i]) behind.warps[i] |= threads.warps[i], met = true;
        break;
    }
  }
  return met && behind.covers(then);
}

// 0: they do not meet; 1: only lanes of a warp do; 2: others do, too.
int Pending::meeting(const Access& before, const Access& now) const {
  int out = 0;
  int last = -1, known = -1;
  bool ordered = false;
  for (const Part& part : now.parts) {
    const Part from{.begin = part.begin - before.longest + 1};
    for (auto each = std::ranges::lower_bound(before.parts, from, starts_before);
         each != before.parts.end() && each->begin < part.end; ++each) {
      if (each->end <= part.begin) continue;
      if (each->thread != last || part.thread != known)
        ordered = is_ordered(before, each->thread, part.thread, now.team);
      last = each->thread, known = part.thread;
      if (ordered) continue;
      if (each->thread / 32 != part.thread / 32 || before.flying || before.team > 32 ||
          now.team > 32)
        return 2;
      out = 1;
    }
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::ir
