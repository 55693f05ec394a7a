// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/schedules/polls.h"
#include "runtime/emulator/schedules/schedule.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {
// Steps that a group may run while another one of its warp could, and those in which the lanes that
// were kept waiting then come first. A turn that ends with a wait counts as many as a whole one.
constexpr std::uint64_t patience = 16384, whole_turn = 4096;

// The running group's ops up to `limit`, until one leaves or the slice is over. Gives how many its
// lanes did. `polls` hears of strong accesses.
template <bool heard>
std::uint64_t run_ops(Warp& warp, std::uint32_t limit, Polls* polls = nullptr) {
  const Op* ops = warp.program->ops.data();
  std::uint64_t lane_count = 0;
  do {
    const Op& op = ops[warp.pc++];
    --warp.slice;
    ++warp.steps;
    warp.mask = warp.group & (predicate(warp, op.guard) ^ op.guard_flip);
    if (warp.undefined | op.examined) [[unlikely]]
      tell(warp, &ValueEvents::run, op);
    if (warp.mask == all_lanes) lane_count += 32;
    else if (warp.mask) lane_count += static_cast<std::uint64_t>(std::popcount(warp.mask));
    else continue;
    if constexpr (heard) {
      const bool strong = polls->strong(warp.pc - 1);
      if (strong) polls->before(warp, op);
      op.run(warp, op);
      if (strong) polls->after(warp);
    } else {
      op.run(warp, op);
    }
    if (warp.leave) break;
  } while (warp.pc < limit && warp.slice > 0);
  return lane_count;
}

}  // namespace

void Warp::start(std::uint32_t lanes) {
  started = live = lanes;
  steps = lane_steps = multiply_adds = 0;
  was_refused = false;
  partial_syncs = 0;
  groups.assign(1, Group{.pc = program->entry, .mask = lanes});
  current = 0;
  favoured_ = 0;
  waited_ = 0;
  been_at_.clear();
  at_cluster = in_cluster_phase = 0;
  std::ranges::fill(recent, nullptr);
}

bool Warp::choose() {
  if (groups.size() == 1 && groups[0].state == Group::State::ready) {
    current = 0;
    waited_ = 0;
    return true;
  }
  std::size_t best = groups.size(), ready = 0;
  if (steps >= favoured_until_) favoured_ = 0;
  wake();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& g = groups[i];
    if (g.state != Group::State::ready) continue;
    ++ready;
    if (best == groups.size()) best = i;
    const bool first = g.mask & favoured_, before = groups[best].mask & favoured_;
    if (first != before ? first : g.pc < groups[best].pc) best = i;
  }
  if (best == groups.size()) return false;
  current = best;
  if (ready < 2) waited_ = 0;
  else if (waited_ >= patience) favour_oldest();
  return true;
}

void Warp::wake() {
  for (Group& g : groups)
    if (g.state == Group::State::gathering && !(g.required & live & ~gathered(g)))
      g.state = Group::State::ready;
}

void Warp::favour_oldest() {
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i].state == Group::State::ready && groups[i].last_run < groups[current].last_run)
      current = i;
  favoured_ = groups[current].mask;
  favoured_until_ = steps + whole_turn;
  waited_ = 0;
}

void Warp::merge_into_current() {
  Group& running = groups[current];
  for (std::size_t i = 0; i < groups.size();) {
    const Group& g = groups[i];
    if (i == current || g.state != Group::State::ready || g.pc != running.pc ||
        g.passed != running.passed) {
      ++i;
      continue;
    }
    groups[current].mask |= g.mask;
    groups[current].poll = {};
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    if (current > i) --current;
    return merge_into_current();
  }
}

bool Warp::run(std::uint32_t slice_ops) {
  slice = slice_ops;
  bool ran = false;
  only_polled = true;
  while (slice > 0 && choose()) {
    ran = true;
    run_current();
    if (block->stopped()) return true;
  }
  if (slice > 0) check_divergence();
  return ran;
}

void Warp::run_group(std::size_t which, std::uint32_t ops) {
  slice = ops;
  current = which;
  run_current();
  wake();
  if (!block->stopped()) check_divergence();
}

// The group at `current`, until it ends, comes to where another one is, or the slice is over.
void Warp::run_current() {
  merge_into_current();
  pc = groups[current].pc;
  group = groups[current].mask;
  groups[current].last_run = steps;
  leave = false;
  paused_ = false;
  began_ = steps;
  std::uint32_t limit = std::numeric_limits<std::uint32_t>::max();
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (i != current && groups[i].state == Group::State::ready && groups[i].pc > pc)
      limit = std::min(limit, groups[i].pc);

  Schedule* const schedule = block->context().schedule;
  Polls* const polls = schedule ? schedule->heard() : nullptr;
  lane_steps += polls ? run_ops<true>(*this, limit, polls) : run_ops<false>(*this, limit);

  if (block->stopped()) return;
  waited_ += paused_ ? whole_turn : steps - began_;
  if (paused_) favoured_ = 0;
  only_polled &= paused_;
  groups[current].poll.steps += steps - began_;
  groups[current].pc = pc;
  groups[current].mask = group;
  groups[current].passed = 0;
  if (group == 0) groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(current));
}

void Warp::check_divergence() {
  const bool all_gather = std::ranges::all_of(
      groups, [](const Group& g) { return g.state == Group::State::gathering; });
  if (live != 0 && !groups.empty() && all_gather) report_divergence();
}

void Warp::branch(std::uint32_t target) {
  if (mask == group) {
    pc = target;
    return;
  }
  group &= ~mask;
  const Group other{.pc = target, .mask = mask, .last_run = steps};
  groups.push_back(other);
  leave = true;
}

void Warp::exit() {
  group &= ~mask;
  live &= ~mask;
  leave = true;
  block->lanes_exited();
  if (live) return;
  block->warp_exited(*this);
  block->check_allocations(*this);
  tell(*this, &Events::exited);
}

void Warp::defer_all_but(std::uint32_t lanes) {
  const std::uint32_t others = mask & ~lanes;
  if (!others) return;
  groups.push_back({.pc = pc - 1, .mask = others, .last_run = steps});
  group &= ~others;
  mask &= lanes;
  leave = true;
}

void Warp::wait_at_barrier(std::uint8_t barrier) {
  groups.push_back({.pc = pc,
                    .mask = mask,
                    .state = Group::State::at_barrier,
                    .barrier = barrier,
                    .last_run = steps});
  group &= ~mask;
  leave = true;
}

void Warp::wait_for_warpgroup() {
  groups.push_back(
      {.pc = pc, .mask = mask, .state = Group::State::in_warpgroup, .last_run = steps});
  group &= ~mask;
  leave = true;
}

void Warp::wait_for_cluster() {
  groups.push_back({.pc = pc, .mask = mask, .state = Group::State::at_cluster, .last_run = steps});
  group &= ~mask;
  leave = true;
}

void Warp::wait_for_registers(std::uint32_t wanted) {
  groups.push_back({.pc = pc,
                    .mask = mask,
                    .state = Group::State::for_registers,
                    .wanted = wanted,
                    .last_run = steps});
  group &= ~mask;
  leave = true;
}

void Warp::poll_again(std::uint64_t address, bool parity) {
  Group::Poll& poll = groups[current].poll;
  const std::uint64_t round = poll.steps + steps - began_;
  poll.length = poll.pc == pc && poll.address == address && poll.parity == parity ? round : 0;
  poll.pc = pc;
  poll.address = address;
  poll.parity = parity;
  // run() adds the whole turn: from here on counts what follows.
  poll.steps = 0 - (steps - began_);
  yield();
}

void Warp::fail(const Rule& rule, std::string message, int lane, std::uint64_t address) {
  leave = true;
  block->fail(*this, pc - 1, rule, std::move(message), lane, address);
}

void Warp::report_divergence() {
  const Group& g = groups.front();
  const std::uint32_t missing = g.required & live & ~gathered(g);
  const int lane = std::countr_zero(missing);
  std::string text = fmt::format(
      "lanes 0x{:08x} wait here for lanes 0x{:08x}, which wait elsewhere", g.mask, missing);
  for (const Group& other : groups)
    if (other.mask & missing) {
      text += fmt::format(": lane {} at line {}", lane, block->line(other.pc));
      break;
    }
  block->fail(*this, g.pc, "divergent-collective"_rule, std::move(text), std::countr_zero(g.mask),
              0);
}

}  // namespace tartan::TARTAN_ABI::emulator
