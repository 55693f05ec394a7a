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
#include "runtime/emulator/schedules/determinacy.h"
#include "runtime/emulator/schedules/polls.h"
#include "runtime/emulator/schedules/schedule.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {
// Steps that a group may run while another one of its warp could, and those in which the lanes that
// were kept waiting then come first. A turn that ends with a wait counts as many as a whole one.
constexpr std::uint64_t patience = 16384, whole_turn = 4096;

// What an op with a member mask takes and gives: slots, and where Op::value says their bits.
struct GatheredField {
  std::uint32_t Op::*slot;
  int shift;
  bool given;
};
constexpr GatheredField gathered_fields[] = {{&Op::a, 0, false},
                                             {&Op::b, 8, false},
                                             {&Op::c, 16, false},
                                             {&Op::d, 24, true},
                                             {&Op::list, 32, true}};
constexpr std::uint32_t field_step = 32 * 8;

template <typename R>
void copy_lanes(Warp& warp, std::uint32_t to, std::uint32_t from, std::uint32_t which) {
  auto* d = lanes<R>(warp, to);
  const auto* a = lanes<R>(warp, from);
  each_lane(which, [=](int i) { d[i] = a[i]; });
}

void copy_lanes(Warp& warp, std::uint32_t to, std::uint32_t from, std::uint32_t which,
                std::uint64_t bits) {
  if (bits == 64) return copy_lanes<std::uint64_t>(warp, to, from, which);
  if (bits == 32) return copy_lanes<std::uint32_t>(warp, to, from, which);
  std::uint32_t& p = predicate(warp, to);
  p = (p & ~which) | (predicate(warp, from) & which);
}

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
      warp.block->cluster().definedness()->before(warp, op);
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
  live = lanes;
  steps = lane_steps = multiply_adds = 0;
  groups.assign(1, Group{.pc = program->entry, .mask = lanes});
  together_ = lanes;
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
    i = 0;
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
  go_together(group);
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
  go_together(group);
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
  if (ClusterTimeline* timeline = block->cluster().timeline()) timeline->exited(*this);
}

// What an op does, counted or not.
static Handler handler_of(const Program& program, std::uint32_t pc) {
  return program.counted && program.profiled[pc].inner ? program.profiled[pc].inner
                                                       : program.ops[pc].run;
}

// Whether two groups that gather belong together.
bool Warp::alike(const Group& a, const Group& b) const {
  if ((a.required & live) != (b.required & live)) return false;
  if (a.pc == b.pc) return true;
  const Op &one = program->ops[a.pc], &other = program->ops[b.pc];
  return a.anywhere && b.anywhere && handler_of(*program, a.pc) == handler_of(*program, b.pc) &&
         one.flags == other.flags && one.value == other.value;
}

std::uint32_t Warp::gathered(const Group& group) const {
  std::uint32_t there = 0;
  for (const Group& g : groups)
    if (g.state == Group::State::gathering && alike(g, group)) there |= g.mask;
  return there;
}

bool Warp::gather(std::uint32_t required, bool anywhere) {
  const std::uint32_t members = required;
  std::uint32_t passed = std::exchange(groups[current].passed, 0);
  required &= live;
  Group here{.pc = pc - 1,
             .state = Group::State::gathering,
             .anywhere = anywhere,
             .required = required,
             .last_run = steps};
  for (std::size_t i = 0; i < groups.size() && required & ~mask; ++i) {
    const Group& g = groups[i];
    if (i == current || g.state != Group::State::gathering || g.pc != here.pc || !alike(g, here))
      continue;
    mask |= g.mask;
    group |= g.mask;
    go_together(group);
    passed |= g.passed;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    if (current > i) --current;
    break;  // groups that gather at one place were merged when the second came
  }
  if (!(required & ~mask)) {
    if (anywhere && !same_masks(here.pc, members, passed, mask)) return false;
    if (anywhere && groups.size() > 1) note_passing(here.pc, mask);
    return examine_gathered(), true;
  }
  leave = true;
  here.passed = passed & members;
  if (anywhere && !(required & ~(mask | gathered(here)))) return run_together(here, members), false;
  here.mask = mask;
  groups.push_back(here);
  group &= ~mask;
  return false;
}

bool Warp::gather(std::uint32_t required) { return gather(required, false) && nobody_left(); }

bool Warp::gather_members(const std::uint32_t* masks) {
  const std::uint32_t members = masks[std::countr_zero(mask)];
  const std::uint32_t same = lanes_where(mask, [=](int i) { return masks[i] == members; });
  if (program->watched && !are_named(same, members)) return false;
  if (same == all_lanes) {  // all are here, whoever is asked for
    groups[current].passed = 0;
    return examine_gathered(), true;
  }
  if (const std::uint32_t others = mask & ~same) {
    const std::uint32_t passed = groups[current].passed;
    defer_all_but(same);
    groups.back().passed = passed | same;
    groups[current].passed |= others;
  }
  return gather(members, true);
}

// PTX ISA, of all instructions with a member mask: undefined if it does not name the executing
// thread.
bool Warp::are_named(std::uint32_t lanes, std::uint32_t members) {
  const std::uint32_t others = lanes & ~members;
  if (!others) return true;
  const int lane = std::countr_zero(others);
  fail(
      "divergent-collective"_rule,
      fmt::format("{}: lane {} passes the member mask 0x{:08x}, which does not name it: expected a "
                  "mask of the lanes that execute it together",
                  opcode(block->context(), pc - 1), lane, members),
      lane);
  return false;
}

// Whether the lanes that a mask names come to the op with that mask. `passed` are those that
// executed it with another one, while lanes of this mask waited: they must have come back to it.
bool Warp::same_masks(std::uint32_t at, std::uint32_t members, std::uint32_t passed,
                      std::uint32_t came) {
  const std::uint32_t lost = passed & members & ~came;
  if (!lost || !program->watched) return true;
  const std::uint32_t waiting = came & members;
  block->fail(*this, at, "divergent-collective"_rule,
              fmt::format("{}: lanes 0x{:08x} pass the member mask 0x{:08x}, but lanes 0x{:08x} of "
                          "it passed another one here: expected one mask in all lanes that it "
                          "names",
                          opcode(block->context(), at), waiting, members, lost),
              std::countr_zero(waiting ? waiting : came), 0);
  leave = true;
  return false;
}

// Lanes that wait at the op with another mask, and for these, may wait in vain.
void Warp::note_passing(std::uint32_t at, std::uint32_t lanes) {
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (Group& g = groups[i]; i != current && g.pc == at && g.state == Group::State::gathering)
      g.passed |= lanes & g.required;
}

// Lanes of a warp that leave a loop with an aligned barrier before others do, are missing there,
// though they exit then: when depends on how a GPU runs the two parts.
bool Warp::nobody_left() {
  const std::uint32_t at = pc - 1;
  if (!program->watched || at < program->entry || at >= program->kernel_end) return true;
  std::uint32_t& been = been_at_[at];
  const std::uint32_t left = been & ~mask;
  been |= mask;
  if (!left) return true;
  fail("divergent-collective"_rule,
       fmt::format("{}: lanes 0x{:08x} of the warp executed it before, and exited while lanes "
                   "0x{:08x} are here again: expected as many iterations in all lanes of a warp",
                   opcode(block->context(), at), left, mask),
       std::countr_zero(mask));
  return false;
}

bool Warp::gather_whole() {
  constexpr std::uint32_t whole = 0xFFFFFFFF;
  if (!gather(whole, false)) return false;
  if (mask == whole) return true;
  fail("divergent-collective"_rule,
       fmt::format("{}: lanes 0x{:08x} of the warp do not exist or have exited; it requires all "
                   "lanes",
                   opcode(block->context(), pc - 1), ~mask),
       std::countr_zero(~mask));
  return false;
}

// The op for the executing lanes and all that wait for it elsewhere. Each lane brings the operands
// of its own place into registers that nobody else has, and takes the results from there.
void Warp::run_together(const Group& here, std::uint32_t members) {
  const Op& op = program->ops[here.pc];
  const std::uint32_t own = mask, others = gathered(here);
  if (!same_masks(here.pc, members, here.passed, own)) return;
  for (const Group& g : groups)
    if (g.mask & others && !same_masks(g.pc, members, g.passed, g.mask)) return;
  const auto each_place = [&](auto&& body) {
    body(op, own);
    for (const Group& g : groups)
      if (g.mask & others) body(program->ops[g.pc], g.mask);
  };
  Op together = op;
  std::uint32_t next = together.e = program->gathering_slot;
  std::fill_n(lanes<std::uint32_t>(*this, together.e), 32, here.required);
  for (const GatheredField& field : gathered_fields) {
    const std::uint64_t bits = op.value >> field.shift & 0xFF;
    if (!bits) continue;
    together.*field.slot = next += field_step;
    if (!field.given)
      each_place([&](const Op& at, std::uint32_t which) {
        copy_lanes(*this, together.*field.slot, at.*field.slot, which, bits);
      });
  }
  mask = own | others;
  if (undefined) examine_together(here);
  const bool whole = undefined;
  undefined = false;  // that was all about it
  together.run(*this, together);
  undefined = whole;
  mask = own;
  for (const GatheredField& field : gathered_fields) {
    const std::uint64_t bits = op.value >> field.shift & 0xFF;
    if (bits && field.given)
      each_place([&](const Op& at, std::uint32_t which) {
        copy_lanes(*this, at.*field.slot, together.*field.slot, which, bits);
      });
  }
  for (Group& g : groups)
    if (g.mask & others) {
      g.state = Group::State::ready;
      g.passed = 0;
      ++g.pc;
    }
}

void Warp::examine_gathered() {
  if (undefined | program->ops[pc - 1].examined) [[unlikely]]
    block->cluster().definedness()->gathered(*this, pc - 1);
  if (program->invalidates) block->cluster().races()->met(*this);
  if (Determinacy* determinacy = block->context().determinacy) determinacy->meets(*this);
}

// At several places of the text: where a source is undefined at one of them, all results are.
void Warp::examine_together(const Group& here) {
  ClusterDefinedness& definedness = *block->cluster().definedness();
  const std::uint32_t whole = mask, others = gathered(here);
  std::vector<ClusterDefinedness::Gathered> places{{here.pc, whole & ~others}};
  for (const Group& g : groups)
    if (g.mask & others) places.push_back({g.pc, g.mask});
  definedness.gathered(*this, places);
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

}  // namespace tartan::inline TARTAN_ABI::emulator
