// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp that come together for a collective.
#include "runtime/emulator/machine/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/places.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

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

}  // namespace

// What an op does, observed or not.
static Handler handler_of(const Program& program, std::uint32_t pc) {
  return program.plain.empty() ? program.ops[pc].run : program.plain[pc];
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
  if (block->context().checked && !are_named(same, members)) return false;
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
  if (!lost || !block->context().checked) return true;
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
  if (!block->context().checked || at < program->entry || at >= program->kernel_end) return true;
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
    tell(*this, &ValueEvents::gathered, pc - 1);
  tell(*this, &Events::met);
}

// At several places of the text: where a source is undefined at one of them, all results are.
void Warp::examine_together(const Group& here) {
  const std::uint32_t whole = mask, others = gathered(here);
  std::vector<GatheredPlace> places{{here.pc, whole & ~others}};
  for (const Group& g : groups)
    if (g.mask & others) places.push_back({g.pc, g.mask});
  tell(*this, &ValueEvents::gathered_apart, std::span<const GatheredPlace>(places));
}

}  // namespace tartan::TARTAN_ABI::emulator
