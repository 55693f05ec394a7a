// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/equal_stores.h"

#include <algorithm>

#include "runtime/emulator/races/judge.h"

namespace tartan::TARTAN_ABI::emulator {

bool EqualStores::Store::agrees(const Store& other) const {
  const std::uint64_t from = std::max(first, other.first),
                      to = std::min(first + bytes, other.first + other.bytes);
  if (from >= to) return true;
  if (value.empty() || other.value.empty()) return false;
  const auto part = [&](const Store& of) {
    return std::span(of.value).subspan(from - of.first, to - from);
  };
  return std::ranges::equal(part(*this), part(other));
}

void EqualStores::watch(std::uint64_t space, std::uint64_t first, std::uint64_t bytes) {
  for (std::uint64_t at = first / chunk; at <= (first + bytes - 1) / chunk; ++at)
    grew_ |= places_.try_emplace({space, at}).second;
}

void EqualStores::begin() {
  grew_ = false;
  for (auto& [place, stores] : places_) stores.clear();
}

// ---- Stores of equal values.

void ClusterRaces::watch_equal_stores(const Warp& warp, const WatchedAccess& access,
                                      std::uint32_t lane, const Place& place) {
  EqualStores* const stores = launch_.equal_stores;
  const auto where = place_of(warp, access.window, access.at[lane]);
  if (stores && where) stores->watch(where->first, place.address, access.bytes);
}

// Those before it that nothing orders and that left something else are a race: in another order
// that would have come last.
void ClusterRaces::compare_equal_stores(Judge& judge, Warp& warp, const WatchedAccess& access,
                                        const Place& memory, const LaneGroup& group,
                                        const Past& now) {
  EqualStores& stores = *launch_.equal_stores;
  if (stores.empty()) return;
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(group.lanes));
  const auto where = place_of(warp, access.window, access.at[lane]);
  if (!where) return;
  EqualStores::Store made{now.of_lane(lane), group.address, {}, access.bytes};
  if (access.value && access.bytes <= most_value_bytes) {
    made.value.resize(access.bytes);
    read_value(warp, *access.value, lane, made.value.data());
  } else if (access.rows) {
    const auto& row = access.rows->now[lane];
    made.value.assign(std::begin(row), std::end(row));
  }
  judge.turn(group);
  stores.add(where->first, made, [&](const EqualStores::Store& before) {
    const bool own = before.past.warp == made.past.warp && before.past.deed.lane() == lane;
    const bool ordered = own || judge.knows(before.past);
    const bool agrees = made.agrees(before);
    if (!ordered && !agrees && !judge.both_strong(before.past)) {
      Race race = race_with(before.past, true, memory, group.address);
      race.second = side(now.warp, warp, lane);
      race.second.writes = true;
      report(warp, race);
    }
    return ordered && agrees && before.first == made.first && before.bytes == made.bytes;
  });
}

}  // namespace tartan::TARTAN_ABI::emulator
