// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/tracks.h - who accessed memory last, where all accesses were weak.
//
// Memory is cut into blocks of 64 units. What a warp accessed there at one time is a track: the
// units that it wrote last, or has read since their last write, and of each unit the lanes and the
// instruction. So an access of 32 lanes is compared with a few tracks, not with each unit's past,
// and becomes a track itself.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/emulator/races/past.h"
#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// What lanes of a warp access together, in a block.
struct LaneUnits {
  std::uint32_t lanes;
  std::uint64_t units;
};

/// 64 units of memory.
struct TrackedBlock {
  std::uint32_t writers = 0, readers = 0;  // lists of tracks, the newest first; 0: none
  std::uint32_t count = 0;                 // of tracks
  std::uint64_t full = 0;                  // units of which no more readers need be known
};

/// What blocks do, and their tracks.
class Tracks {
 public:
  /// Of a unit, at most so many warps' reads are remembered.
  explicit Tracks(std::uint32_t most_readers) : most_readers_(most_readers) {}

  /// No block is in use.
  void clear();
  /// Whether the accesses of `run`, which are those of one instruction, are ordered behind all that
  /// the block knows; false: ask judge() of each. `all`: their units. Judges: shadow.h.
  template <typename Judge>
  bool ordered(const TrackedBlock& block, std::span<const LaneUnits> run, std::uint64_t all,
               bool writes, Judge& judge) const;
  /// Tells the judge of past accesses that are not ordered before this one. `base`: the address of
  /// the block, whose units have 2^shift bytes.
  template <typename Judge>
  void judge(const TrackedBlock& block, const LaneUnits& access, bool writes, std::uint64_t base,
             int shift, Judge& judge) const;
  template <typename Judge>
  void note_read(TrackedBlock& block, std::span<const LaneUnits> run, std::uint64_t all,
                 const Past& now, Judge& judge);
  /// No two of `run` write the same unit.
  void note_write(TrackedBlock& block, std::span<const LaneUnits> run, std::uint64_t all,
                  const Past& now);
  void forget(TrackedBlock& block, std::uint64_t units);
  /// Units that have been written.
  std::uint64_t written(const TrackedBlock& block) const;
  /// Who wrote the unit last, or has read it since; time 0: nobody.
  Past last_write(const TrackedBlock& block, std::uint32_t unit) const {
    return find(block.writers, unit);
  }
  Past some_read(const TrackedBlock& block, std::uint32_t unit) const {
    return find(block.readers, unit);
  }
  /// The `part`th of `parts` of the block, of which each unit becomes `parts` ones.
  TrackedBlock split(const TrackedBlock& block, std::uint32_t part, std::uint32_t parts);
  /// The block has no tracks.
  void drop_all(TrackedBlock& block);
  /// Calls body(unit, past, lanes, wrote) for each unit of each track, the oldest first.
  template <typename Body>
  void each(const TrackedBlock& block, Body&& body) const;

 private:
  /// Accesses of a warp at one time, all reads or all writes.
  struct Track {
    std::uint32_t warp, time, next;
    std::uint32_t lanes;  // of all units, while they are alike
    std::uint64_t units;
    Deed deed;  // the same
    bool alike;
  };
  /// Of the units of a track that are not alike.
  struct Each {
    std::array<std::uint32_t, 64> lanes;
    std::array<Deed, 64> deeds;
  };
  static constexpr std::size_t chunk = 64;  // tracks that are allocated together

  Track& at(std::uint32_t track) { return tracks_[track]; }
  const Track& at(std::uint32_t track) const { return tracks_[track]; }
  Each& each_of(std::uint32_t track) { return each_[track / chunk][track % chunk]; }
  const Each& each_of(std::uint32_t track) const { return each_[track / chunk][track % chunk]; }
  std::uint32_t lanes_of(std::uint32_t track, int unit) const {
    return at(track).alike ? at(track).lanes : each_of(track).lanes[static_cast<std::size_t>(unit)];
  }
  Past past(std::uint32_t track, int unit) const;
  /// Of any of its units.
  Past anyone(std::uint32_t track) const {
    return {at(track).warp, at(track).time, at(track).deed};
  }
  void spread(std::uint32_t track);
  /// Those of `run` that are in `units`.
  void add_units(std::uint32_t track, std::span<const LaneUnits> run, std::uint64_t units,
                 const Deed& by);
  /// Lanes leave units, and a unit that all have left leaves the track: those are returned.
  std::uint64_t take(std::uint32_t track, std::span<const LaneUnits> run);
  /// An empty one in front of `list`, which begins with it then.
  std::uint32_t add(TrackedBlock& block, std::uint32_t list, std::uint32_t warp,
                    std::uint32_t time);
  void drop(TrackedBlock& block, std::uint32_t* link);
  void erase(TrackedBlock& block, std::uint32_t& list, std::uint64_t units);
  Past find(std::uint32_t list, std::uint32_t unit) const;
  std::uint32_t split_list(TrackedBlock& made, std::uint32_t list, std::uint32_t part,
                           std::uint32_t parts);
  /// Units that at least most_readers_ tracks have read.
  std::uint64_t well_read(const TrackedBlock& block) const;
  bool is_own(std::uint32_t track, std::span<const LaneUnits> run, std::uint64_t units) const;
  template <typename Judge>
  bool ordered(std::uint32_t list, bool wrote, std::span<const LaneUnits> run, std::uint64_t all,
               Judge& judge) const;
  /// Accesses of a unit that are not ordered before another one.
  struct Unordered {
    int unit;
    Past past;
    bool wrote;
  };
  template <typename Judge>
  void collect(std::uint32_t list, bool wrote, std::uint64_t units, Judge& judge,
               std::vector<Unordered>& to) const;

  std::uint32_t most_readers_;
  std::vector<Track> tracks_{1};
  std::vector<std::vector<Each>> each_;  // in chunks, made when they are needed
  std::uint32_t free_ = 0;
};

template <typename Judge>
bool Tracks::ordered(std::uint32_t list, bool wrote, std::span<const LaneUnits> run,
                     std::uint64_t all, Judge& judge) const {
  for (; list; list = at(list).next) {
    const Track& track = at(list);
    const std::uint64_t units = track.units & all;
    if (!units || judge.settled(anyone(list), wrote)) continue;
    if (track.warp != judge.own() || !is_own(list, run, units)) return false;
  }
  return true;
}

template <typename Judge>
bool Tracks::ordered(const TrackedBlock& block, std::span<const LaneUnits> run, std::uint64_t all,
                     bool writes, Judge& judge) const {
  return ordered(block.writers, true, run, all, judge) &&
         (!writes || ordered(block.readers, false, run, all, judge));
}

template <typename Judge>
void Tracks::collect(std::uint32_t list, bool wrote, std::uint64_t units, Judge& judge,
                     std::vector<Unordered>& to) const {
  const auto ordered = [&](Past past, std::uint32_t lane) {
    past.deed = past.deed.of_lane(lane);
    return wrote ? judge.after_write(past) : judge.after_read(past);
  };
  for (; list; list = at(list).next) {
    const Track& track = at(list);
    const std::uint64_t here = track.units & units;
    if (!here || judge.settled(anyone(list), wrote)) continue;
    if (track.alike && std::has_single_bit(track.lanes) &&
        ordered(anyone(list), static_cast<std::uint32_t>(std::countr_zero(track.lanes))))
      continue;
    for (std::uint64_t m = here; m; m &= m - 1) {
      const int unit = std::countr_zero(m);
      Past past = this->past(list, unit);
      for (std::uint32_t l = lanes_of(list, unit); l; l &= l - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(l));
        past.deed = past.deed.of_lane(lane);
        if (!ordered(past, lane)) to.push_back({unit, past, wrote});
      }
    }
  }
}

template <typename Judge>
void Tracks::judge(const TrackedBlock& block, const LaneUnits& access, bool writes,
                   std::uint64_t base, int shift, Judge& judge) const {
  std::vector<Unordered> found;
  collect(block.writers, true, access.units, judge, found);
  if (writes) collect(block.readers, false, access.units, judge, found);
  if (found.size() > 1) std::ranges::stable_sort(found, {}, &Unordered::unit);
  for (const Unordered& each : found)
    judge.unordered(each.past, base + (static_cast<std::uint64_t>(each.unit) << shift), each.wrote);
}

// A lane's new read of a unit replaces its older one.
template <typename Judge>
void Tracks::note_read(TrackedBlock& block, std::span<const LaneUnits> run, std::uint64_t all,
                       const Past& now, Judge& judge) {
  std::uint32_t mine = 0;
  std::uint64_t known = 0;  // units of which the warp's read is known already
  for (std::uint32_t* link = &block.readers; *link;) {
    Track& track = at(*link);
    if (track.warp == now.warp) {
      if (track.time == now.time) {
        mine = *link;
        known |= track.units & all;
      } else if (track.units & all) {
        known |= take(*link, run);
      }
    }
    if (track.units) link = &track.next;
    else drop(block, link);
  }
  const bool bounded = most_readers_ != ~0u;
  std::uint64_t left = all;
  if (bounded) {
    if (block.count >= most_readers_) block.full |= well_read(block);
    left &= ~block.full | known;
  }
  if (!left) return;
  if (!mine) mine = block.readers = add(block, block.readers, now.warp, now.time);
  add_units(mine, run, left, now.deed);
  if (!bounded) return;
  for (std::uint32_t other = block.readers; other; other = at(other).next)
    if (const Track& track = at(other); judge.strangers(track.warp, now.warp))
      block.full |= track.units & left;
}

template <typename Body>
void Tracks::each(const TrackedBlock& block, Body&& body) const {
  for (const bool wrote : {true, false}) {
    std::vector<std::uint32_t> tracks;
    for (std::uint32_t list = wrote ? block.writers : block.readers; list; list = at(list).next)
      tracks.push_back(list);
    for (auto track = tracks.rbegin(); track != tracks.rend(); ++track)
      for (std::uint64_t m = at(*track).units; m; m &= m - 1) {
        const int unit = std::countr_zero(m);
        body(unit, past(*track, unit), lanes_of(*track, unit), wrote);
      }
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
