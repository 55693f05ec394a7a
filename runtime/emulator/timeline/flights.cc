// SPDX-License-Identifier: Apache-2.0
// Copies and products between their start and the wait that covers them: by groups, or by the phase
// of an mbarrier.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/support/counted.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/timeline/recorder.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr const char* group_names[] = {"cp.async group", "bulk group", "wgmma group"};

// Of a warpgroup, whose warps count alike.
const Warp& leader(const Warp& warp) { return warp.block->warpgroup(warp)[0]; }

}  // namespace

// ---- Groups.

// The running instruction's copies or products belong to the group that its lanes have open.
void ClusterTimeline::in_flight(const Warp& warp, Group kind, const Amount& amount) {
  const Warp& owner = kind == Group::product ? leader(warp) : warp;
  const std::uint32_t lanes = kind == Group::product ? 1 : amount.lanes;
  const std::uint32_t number = closed_[{&owner, kind}][std::countr_zero(lanes)];
  const auto open = std::ranges::find_if(flights_, [&](const Flight& each) {
    return each.warp == &owner && each.kind == kind && each.number == number;
  });
  std::int64_t event = TimelineEvent::none;
  if (open != flights_.end()) {
    event = static_cast<std::int64_t>(open->event);
    open->lanes |= lanes;
  } else {
    TimelineEvent flight = made(warp, Kind::flight, warp.pc - 1);
    flight.ended = false;
    flight.count = flight.lanes = 0;
    flight.name = fmt::format("{} {}", group_names[static_cast<std::size_t>(kind)], number);
    event = push(std::move(flight));
    if (event < 0) return;
    flights_.push_back({static_cast<std::size_t>(event), &owner, kind, lanes, number});
  }
  TimelineEvent& flight = at(event);
  ++flight.count;
  flight.lanes |= amount.lanes;
  flight.bytes += amount.bytes;
  flight.multiply_adds += amount.multiply_adds;
  if (!launch_.context().schedule) flight.done = last_clock_;
}

void ClusterTimeline::close_group(const Warp& warp, Group kind, std::uint32_t lanes) {
  if (kind == Group::product) {
    if (&leader(warp) != &warp) return;
    lanes = 1;
  }
  auto& closed = closed_[{&warp, kind}];
  for (Flight& each : flights_)
    if (each.warp == &warp && each.kind == kind && each.lanes & lanes &&
        each.number == closed[std::countr_zero(each.lanes & lanes)])
      each.commit = current_;
  for (std::uint32_t m = lanes; m; m &= m - 1) ++closed[std::countr_zero(m)];
}

// `pending` groups may be in flight; none: nothing may.
void ClusterTimeline::end_flights(const Warp& warp, Group kind, std::uint32_t lanes,
                                  std::optional<std::uint32_t> pending) {
  if (kind == Group::product) {
    if (&leader(warp) != &warp) return;
    lanes = 1;
  }
  const auto& closed = closed_[{&warp, kind}];
  std::erase_if(flights_, [&](const Flight& each) {
    if (each.warp != &warp || each.kind != kind || !(each.lanes & lanes)) return false;
    const std::uint32_t now = closed[std::countr_zero(each.lanes & lanes)];
    if (pending && each.number + *pending >= now) return false;
    TimelineEvent& flight = events_[each.event];
    flight.end = last_clock_;
    flight.ended = true;
    if (current_ >= 0) at(current_).cause = each.commit;
    return true;
  });
}

// ---- Copies that complete at an mbarrier.

bool ClusterTimeline::issue_copy(Warp& warp, int, const AsyncCopy& copy) {
  copies_[copy.number] = issued(warp, copy.mbarrier, copy.bytes);
  return true;
}

void ClusterTimeline::completed(Cluster&, const Completion& made) {
  const auto known = copies_.extract(made.number);
  const Copy copy = known ? known.mapped() : Copy();
  const std::int64_t done = completes(made.mbarrier, copy, made.bytes, made.arrivals);
  if (made.ends) phase_ended(made.mbarrier, done);
}

ClusterTimeline::Copy ClusterTimeline::issued(Warp& warp, const std::byte* where,
                                              std::uint64_t bytes) {
  clock();
  to_mbarrier_ = true;
  const Place place = place_of(where);
  const Barrier& target = barrier(place);
  const auto open = std::ranges::find_if(arriving_, [&](const Arriving& each) {
    return each.place == place && each.phase == target.phases;
  });
  if (current_ >= 0 && at(current_).barrier < 0) at(current_).barrier = target.index;
  std::int64_t event = TimelineEvent::none;
  if (open != arriving_.end()) {
    event = static_cast<std::int64_t>(open->event);
    ++open->pending;
  } else {
    TimelineEvent flight = made(warp, Kind::flight, warp.pc - 1);
    flight.ended = false;
    flight.count = flight.lanes = 0;
    flight.barrier = target.index;
    flight.name = fmt::format("to {}", text(place));
    event = push(std::move(flight));
    if (event < 0) return {current_, event};
    arriving_.push_back({.event = static_cast<std::size_t>(event),
                         .place = place,
                         .phase = target.phases,
                         .pending = 1,
                         .parity = Mbarrier::load(where).phase});
  }
  TimelineEvent& flight = at(event);
  ++flight.count;
  flight.lanes |= warp.mask;
  flight.bytes += bytes;
  return {current_, event};
}

std::int64_t ClusterTimeline::completes(const std::byte* where, const Copy& copy,
                                        std::uint64_t bytes, std::uint64_t arrivals) {
  clock();
  const Place place = place_of(where);
  Barrier& target = barrier(place);
  target.bytes += bytes;
  target.arrivals += arrivals;
  TimelineEvent completion{.kind = Kind::completion,
                           .cta = place.first,
                           .barrier = target.index,
                           .begin = last_clock_ > 0 ? last_clock_ - 1 : 0,
                           .end = last_clock_,
                           .count = 1,
                           .bytes = bytes,
                           .arrivals = arrivals,
                           .cause = copy.issued};
  completion.name =
      arrivals ? "copies have arrived" : fmt::format("{} complete", detail::counted(bytes, "byte"));
  if (const std::int64_t from = copy.issued >= 0 ? copy.issued : current_; from >= 0) {
    completion.opcode = at(from).opcode;
    completion.line = at(from).line;
    completion.source = at(from).source;
  }
  if (copy.flight >= 0) {
    at(copy.flight).done = last_clock_;
    for (Arriving& each : arriving_)
      if (static_cast<std::int64_t>(each.event) == copy.flight) --each.pending;
  }
  return push(std::move(completion));
}

// The program has waited for the phase.
void ClusterTimeline::land(Place place, bool parity) {
  std::erase_if(arriving_, [&](const Arriving& each) {
    if (each.place != place || each.parity != parity || each.pending > 0) return false;
    TimelineEvent& flight = events_[each.event];
    flight.end = last_clock_;
    flight.ended = true;
    return true;
  });
}

}  // namespace tartan::TARTAN_ABI::emulator
