// SPDX-License-Identifier: Apache-2.0
// Which instructions a timeline shows, and what it takes down of each.
#include <algorithm>
#include <bit>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/timeline/recorder.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;

void timed(Warp& warp, const Op& op) {
  const TimedOp& what = (*warp.program->observation<TimedOps>())[warp.pc - 1];
  auto* const timeline = warp.block->cluster().find<ClusterTimeline>();
  if (!timeline) return what.inner(warp, op);
  timeline->begin(warp, what);
  what.inner(warp, op);
  timeline->end(warp, op, what);
}

TimelineEvent::Kind kind_of(TimedOp::Kind kind) {
  using Kind = TimedOp::Kind;
  switch (kind) {
    case Kind::CopyAsync:
    case Kind::Bulk: return TimelineEvent::Kind::copy;
    case Kind::Multiplies:
    case Kind::Wgmma: return TimelineEvent::Kind::product;
    case Kind::Commits: return TimelineEvent::Kind::commit;
    case Kind::No:
    case Kind::Arrives: return TimelineEvent::Kind::arrive;
    case Kind::Waits:
    case Kind::WaitsAtMbarrier:
    case Kind::WaitsForCluster:
    case Kind::WaitsForRegisters: break;
  }
  return TimelineEvent::Kind::wait;
}

// The executing lanes wait at the op for others, and will run it again.
bool gathers(const Warp& warp, std::uint32_t pc) {
  return warp.leave && std::ranges::any_of(warp.groups, [&](const Group& group) {
           return group.state == Group::State::gathering && group.pc == pc;
         });
}

}  // namespace

void ClusterTimeline::begin(Warp& warp, const TimedOp& what) {
  TimelineEvent event = made(warp, kind_of(what.kind), warp.pc - 1);
  event.name = name(what.opcode);
  current_ = push(std::move(event));
  copied_ = warp.copied;
  lanes_ = warp.mask;
  to_mbarrier_ = drop_ = parked_ = false;
}

// Products and copies of a warp that no other interrupts are one event.
bool ClusterTimeline::joins_run(const Warp& warp, const TimedOp& what) {
  if (what.kind != TimedOp::Kind::CopyAsync && what.kind != TimedOp::Kind::Multiplies) return false;
  const Last& last = last_[&warp];
  return last.event >= 0 && last.opcode == what.opcode &&
         last_clock_ - last.clock == warp.steps - last.steps;
}

void ClusterTimeline::end(Warp& warp, const Op& op, const TimedOp& what) {
  using Kind = TimedOp::Kind;
  clock();
  if (gathers(warp, warp.pc - 1)) {
    if (current_ >= 0) pop();
    current_ = TimelineEvent::none;
    return;
  }
  Amount amount{.lanes = lanes_ | warp.mask};
  if (what.kind == Kind::CopyAsync)
    amount.bytes = std::uint64_t{op.count} * static_cast<unsigned>(std::popcount(amount.lanes));
  if (what.kind == Kind::Bulk) amount.bytes = warp.copied - copied_;
  if (what.kind == Kind::Multiplies)
    amount.multiply_adds = warp.program->matrices[op.list].product->multiply_adds();
  if (what.kind == Kind::Wgmma && !parked_)
    amount.multiply_adds = warp.program->warpgroup_operations[op.list].product->multiply_adds();
  if (drop_ && current_ >= 0) {
    pop();
    current_ = TimelineEvent::none;
  }
  if (current_ >= 0) take_down(warp, what, amount);
  Work& work = work_[warp.block->rank()][warp.index];
  const auto group = static_cast<Group>(what.group);
  if (what.kind == Kind::CopyAsync || to_mbarrier_) ++work.loads;
  if (kind_of(what.kind) == TimelineEvent::Kind::product) ++work.products;
  if (what.kind == Kind::CopyAsync) in_flight(warp, Group::copy, amount);
  if (what.kind == Kind::Bulk && !to_mbarrier_ && amount.bytes > 0)
    in_flight(warp, Group::bulk, amount);
  if (what.kind == Kind::Wgmma && !parked_) in_flight(warp, Group::product, amount);
  if (what.kind == Kind::Commits) close_group(warp, group, amount.lanes);
  if (what.kind == Kind::Waits) end_flights(warp, group, amount.lanes, what.pending);
  current_ = TimelineEvent::none;
}

void ClusterTimeline::take_down(Warp& warp, const TimedOp& what, const Amount& amount) {
  Last& last = last_[&warp];
  if (joins_run(warp, what)) {
    pop();
    current_ = last.event;
    ++at(current_).count;
    at(current_).end = last_clock_;
  }
  TimelineEvent& event = at(current_);
  event.lanes |= amount.lanes;
  event.bytes += amount.bytes;
  event.multiply_adds += amount.multiply_adds;
  last = {current_, last_clock_, warp.steps, what.opcode};
}

void TimedOps::decoded(Decoder& d, std::size_t) {
  Program& program = d.program();
  const isa::Spelling& spelling = d.spelling.as_read();
  const isa::Timed kind = isa::timed_as(spelling.opcode);
  if (kind == isa::Timed::No) return;
  const isa::GroupKind group = isa::group_of(spelling.opcode).kind;
  TimedOp what{.kind = kind, .group = static_cast<std::uint8_t>(group)};
  what.opcode = spelling.opcode;
  const bool all = spelling.opcode == Opcode::cp_async_wait_all;
  if (what.kind == TimedOp::Kind::Waits && !all && d.operand_count() > 0)
    what.pending = static_cast<std::uint32_t>(d.integer(d.operand(0)).value_or(0));
  Op& op = program.ops.back();
  what.inner = op.run;
  op.run = timed;
  ops_.resize(program.ops.size());
  ops_.back() = what;
}

}  // namespace tartan::TARTAN_ABI::emulator
