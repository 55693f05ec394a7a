// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "runtime/emulator/block.h"
#include "runtime/emulator/lanes.h"

namespace tartan::emulator {
namespace {
constexpr std::uint32_t patience =
    4;  // slices that a group may run while another one of its warp is ready
}

void Warp::start(std::uint32_t lanes) {
  live = lanes;
  steps = lane_steps = multiply_adds = 0;
  groups.assign(1, Group{.pc = program->entry, .mask = lanes});
  current = 0;
  stacks.clear();
  turn_ = 0;
  starving_ = 0;
  at_cluster = in_cluster_phase = 0;
  std::ranges::fill(recent, nullptr);
}

bool Warp::choose() {
  std::size_t best = groups.size();
  std::size_t ready = 0;
  const bool oldest = starving_ >= patience;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Group& g = groups[i];
    if (g.state == Group::State::gathering && !(g.required & live & ~g.mask))
      g.state = Group::State::ready;
    if (g.state != Group::State::ready) continue;
    ++ready;
    if (best == groups.size() ||
        (oldest ? g.last_run < groups[best].last_run : g.pc < groups[best].pc))
      best = i;
  }
  if (oldest) starving_ = 0;
  if (best == groups.size()) return false;
  current = best;
  return true;
}

void Warp::merge_into_current() {
  Group& running = groups[current];
  for (std::size_t i = 0; i < groups.size();) {
    const Group& g = groups[i];
    if (i == current || g.state != Group::State::ready || g.pc != running.pc) {
      ++i;
      continue;
    }
    groups[current].mask |= g.mask;
    groups[current].poll = {};
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    if (current > i) --current;
    i = 0;
    return merge_into_current();
  }
}

bool Warp::run(std::uint32_t slice_ops) {
  slice = slice_ops;
  bool ran = false;
  only_polled = true;
  const Op* ops = program->ops.data();
  while (slice > 0 && choose()) {
    merge_into_current();
    ran = true;
    pc = groups[current].pc;
    group = groups[current].mask;
    groups[current].last_run = ++turn_;
    leave = false;
    paused_ = false;
    began_ = steps;
    std::uint32_t limit = std::numeric_limits<std::uint32_t>::max();
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (i != current && groups[i].state == Group::State::ready && groups[i].pc > pc)
        limit = std::min(limit, groups[i].pc);

    const std::uint32_t given = slice;
    std::uint64_t lane_count = 0;
    do {
      const Op& op = ops[pc++];
      --slice;
      ++steps;
      mask = group & (predicate(*this, op.guard) ^ op.guard_flip);
      if (mask == all_lanes) lane_count += 32;
      else if (mask) lane_count += static_cast<std::uint64_t>(std::popcount(mask));
      else continue;
      op.run(*this, op);
      if (leave) break;
    } while (pc < limit && slice > 0);
    lane_steps += lane_count;

    if (block->stopped()) return true;
    const bool waiting = groups.size() > 1 && given == slice_ops && slice == 0 && !leave;
    if (waiting) ++starving_;
    else if (leave) starving_ = 0;
    only_polled &= paused_;
    groups[current].poll.steps += steps - began_;
    groups[current].pc = pc;
    groups[current].mask = group;
    if (group == 0) groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(current));
  }
  if (slice > 0 && live != 0 && !groups.empty() && std::ranges::all_of(groups, [](const Group& g) {
        return g.state == Group::State::gathering;
      }))
    report_divergence();
  return ran;
}

void Warp::branch(std::uint32_t target) {
  if (mask == group) {
    pc = target;
    return;
  }
  group &= ~mask;
  const Group other{.pc = target, .mask = mask, .last_run = turn_};
  groups.push_back(other);
  leave = true;
}

void Warp::exit() {
  group &= ~mask;
  live &= ~mask;
  leave = true;
  block->lanes_exited();
}

bool Warp::gather(std::uint32_t required) {
  required &= live;
  if (!(required & ~mask)) return true;
  const std::uint32_t at = pc - 1;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& g = groups[i];
    if (i == current || g.state != Group::State::gathering || g.pc != at ||
        (g.required & live) != required)
      continue;
    mask |= g.mask;
    group |= g.mask;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    if (current > i) --current;
    break;  // groups that gather at one place were merged when the second came
  }
  if (!(required & ~mask)) return true;
  groups.push_back({.pc = at,
                    .mask = mask,
                    .state = Group::State::gathering,
                    .required = required,
                    .last_run = turn_});
  group &= ~mask;
  leave = true;
  return false;
}

void Warp::defer_all_but(std::uint32_t lanes) {
  const std::uint32_t others = mask & ~lanes;
  if (!others) return;
  groups.push_back({.pc = pc - 1, .mask = others, .last_run = turn_});
  group &= ~others;
  mask &= lanes;
  leave = true;
}

void Warp::wait_at_barrier(std::uint8_t barrier) {
  groups.push_back({.pc = pc,
                    .mask = mask,
                    .state = Group::State::at_barrier,
                    .barrier = barrier,
                    .last_run = turn_});
  group &= ~mask;
  leave = true;
}

void Warp::wait_for_warpgroup() {
  groups.push_back(
      {.pc = pc, .mask = mask, .state = Group::State::in_warpgroup, .last_run = turn_});
  group &= ~mask;
  leave = true;
}

void Warp::wait_for_cluster() {
  groups.push_back({.pc = pc, .mask = mask, .state = Group::State::at_cluster, .last_run = turn_});
  group &= ~mask;
  leave = true;
}

void Warp::wait_for_registers(std::uint32_t wanted) {
  groups.push_back({.pc = pc,
                    .mask = mask,
                    .state = Group::State::for_registers,
                    .wanted = wanted,
                    .last_run = turn_});
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
  const std::uint32_t missing = g.required & live & ~g.mask;
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

}  // namespace tartan::emulator
