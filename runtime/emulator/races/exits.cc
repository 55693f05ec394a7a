// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/races/detector.h"

// What is still on its way when threads exit.
namespace tartan::TARTAN_ABI::emulator {

void ClusterRaces::note_outliving(const Warp& warp, const Place& place, const Epoch& who,
                                  bool writes, std::optional<Epoch> or_who) {
  if (!launch_.whole || !place.shared) return;
  outliving_[place.rank][std::uint64_t{who.warp} << 5 | who.lane] = {
      who,         clocks_.number(warp),
      warp.pc - 1, place.address,
      writes,      place.rank == warp.block->rank(),
      or_who};
}

// A block's shared memory is there until its last thread exits: some thread of it has to know that
// the others, and copies, have done with it.
void ClusterRaces::finish(Cluster&) {
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank)
    for (const auto& [key, access] : outliving_[rank]) {
      const bool known = std::ranges::any_of(cluster_.block(rank).warps(), [&](const Warp& warp) {
        return clocks_.some_know(warp, access.who) ||
               (access.or_who && clocks_.some_know(warp, *access.or_who));
      });
      if (!known) report_exit(rank, access);
    }
  for (std::uint32_t rank = 0; rank < cluster_.size() && launch_.whole; ++rank)
    report_unwaited(rank);
}

void ClusterRaces::report_unwaited(std::uint32_t rank) {
  for (const Warp& warp : cluster_.block(rank).warps()) {
    if (warp.index % warps_of_warpgroup) continue;
    const auto pc = clocks_.unwaited_product(warp);
    if (!pc) continue;
    const RaceSide product{.actor = Actor::product, .thread = clocks_.number(warp), .pc = *pc};
    launch_.reports.add({.kind = Race::Kind::unwaited, .first = product, .second = product});
  }
}

void ClusterRaces::report_exit(std::uint32_t rank, const Outliving& access) {
  const Place place{.shared = true, .rank = rank, .address = access.address};
  Race race = race_with({access.who.warp, access.who.time, Deed(access.pc, access.who.lane, 0)},
                        access.writes, place, access.address);
  race.kind = access.own ? Race::Kind::unfinished : Race::Kind::exited;
  race.second = {.actor = clocks_.numbers().actor(access.who.warp),
                 .thread = access.thread,
                 .lane = access.who.lane,
                 .pc = access.pc};
  if (!access.own) race.first = race.second;
  launch_.reports.add(race);
}

}  // namespace tartan::TARTAN_ABI::emulator
