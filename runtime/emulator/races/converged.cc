// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/converged.h"

#include <algorithm>
#include <bit>

#include "runtime/emulator/definedness/definedness.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/races/detector.h"
#include "runtime/emulator/trial.h"

namespace tartan::TARTAN_ABI::emulator {

void Convergence::start(std::size_t warps) {
  warps_ = warps;
  accesses_.assign(count_ * warps, {});
}

void Convergence::note(std::size_t index, const Warp& warp, std::uint32_t time) {
  std::uint32_t& number = numbers_[warp.pc - 1];
  if (!number) {
    number = ++count_;
    accesses_.resize(count_ * warps_);
  }
  Access& access = accesses_[(number - 1) * warps_ + index];
  if (access.lanes != warp.group || access.syncs != warp.partial_syncs) {
    access.first = access.last == time ? time + 1 : time;
    access.lanes = warp.group;
    access.syncs = warp.partial_syncs;
  }
  access.last = time;
}

bool Convergence::together(std::size_t index, const Warp& warp, const Past& past) const {
  const std::uint32_t number = numbers_[past.deed.pc()];
  if (!number) return false;
  const Access& access = accesses_[(number - 1) * warps_ + index];
  return access.lanes >> past.deed.lane() & 1 && !(warp.mask & ~access.lanes) &&
         access.syncs == warp.partial_syncs && past.time >= access.first;
}

// ---- In the detector.

std::size_t ClusterRaces::index(const Warp& warp) const {
  return warp.block->rank() * warp.block->warps().size() + warp.index;
}

bool ClusterRaces::together(const Warp& warp, const Past& past) const {
  return convergence_ && past.warp == clocks_.number(warp) &&
         convergence_->together(index(warp), warp, past);
}

// Volatile accesses are strong, and no race: but what one lane reads of another one's depends on
// their order, which is that of the text only for lanes that executed the first one together.
void ClusterRaces::judge_volatile(Warp& warp, const WatchedAccess& access, const Place& memory,
                                  std::span<const LaneGroup> groups) {
  const std::uint32_t own = clocks_.number(warp), time = clocks_.time(warp);
  const auto judge = [&](const Past& past, const LaneGroup& group, const Place& place) {
    if (!past.time || past.warp != own || past.deed.pc() == warp.pc - 1 || !together(warp, past))
      return;
    for (std::uint32_t m = group.lanes; m; m &= m - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
      if (lane == past.deed.lane() || clocks_.knows(warp, lane, {own, past.time, past.deed.lane()}))
        continue;
      Race race = race_with(past, !access.writes, place, place.address);
      race.kind = Race::Kind::converged;
      race.second = side(own, warp, lane);
      race.second.writes = access.writes;
      return report(warp, race);
    }
  };
  for (const bool judged : {true, false})
    for (const LaneGroup& group : groups)
      for (std::uint64_t at = group.address & ~(VolatileWords::word_bytes - 1);
           at < group.address + access.bytes; at += VolatileWords::word_bytes) {
        VolatileWords::Word& word = volatiles_.at(memory.rank, at);
        if (judged) {
          judge(access.writes ? word.read : word.written, group,
                {.shared = true, .rank = memory.rank, .address = at});
          continue;
        }
        const Deed deed(warp.pc - 1, static_cast<std::uint32_t>(std::countr_zero(group.lanes)), 0);
        (access.writes ? word.written : word.read) = {own, time, deed};
      }
}

// ---- Racing reads.

namespace {

// Of global memory not all who read it are known: whoever reads it counts.
detail::RacingReads::Place racing_place(const Warp& warp, bool shared, std::uint32_t rank,
                                        std::uint32_t reader, std::uint64_t address) {
  return {.grid = warp.block->context().grid,
          .warp = shared ? reader : detail::RacingReads::any_warp,
          .memory = shared ? rank + 1 : 0,
          .address = address};
}

}  // namespace

void ClusterRaces::note_read(const Warp& warp, const Place& place, std::uint64_t cell,
                             const Past& read, std::uint32_t from) {
  detail::RacingReads& reads = warp.block->context().trial->reads;
  const detail::RacingReads::Place where =
      racing_place(warp, place.shared, place.rank, read.warp, cell);
  const std::uint32_t pc = read.deed.pc();
  if (place.shared) reads.add(where, from, read.time, pc);
  else reads.add(where, 0, ~std::uint32_t{0}, pc);
  if (read.deed.strength()) reads.use(where.grid, pc);  // it may be there for its order
}

void ClusterRaces::poison(Warp& warp, const WatchedAccess& access, const Place& memory,
                          std::span<const LaneGroup> groups) {
  const detail::RacingReads& reads = warp.block->context().trial->reads;
  constexpr std::uint64_t piece = detail::RacingReads::piece;
  for (const LaneGroup& group : groups)
    for (std::uint64_t at = group.address / piece * piece; at < group.address + access.bytes;
         at += piece)
      if (const auto pc =
              reads.find(racing_place(warp, memory.shared, memory.rank, clocks_.number(warp), at),
                         clocks_.time(warp), warp.pc - 1))
        cluster_.find<ClusterDefinedness>()->poison(
            warp, access.collective ? warp.mask : group.lanes, *pc);
}

}  // namespace tartan::TARTAN_ABI::emulator
