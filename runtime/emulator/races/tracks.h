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

namespace tartan::inline TARTAN_ABI::emulator {

/// What lanes of a warp access together, in a block.
struct LaneUnits {
  std::uint32_t lanes = 0;
  std::uint64_t units = 0;
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
    std::uint32_t warp = 0, time = 0, next = 0;
    std::uint32_t lanes = 0;  // of all units, while they are alike
    std::uint64_t units = 0;
    Deed deed;         // the same
    bool alike = true;
    std::array<std::uint32_t, 64> each_lanes;  // otherwise
    std::array<Deed, 64> deeds;

    std::uint32_t lanes_of(int unit) const {
      return alike ? lanes : each_lanes[static_cast<std::size_t>(unit)];
    }
    Deed deed_of(int unit) const { return alike ? deed : deeds[static_cast<std::size_t>(unit)]; }
    Past past(int unit) const {
      return {warp, time,
              deed_of(unit).of_lane(static_cast<std::uint32_t>(std::countr_zero(lanes_of(unit))))};
    }
    Past anyone() const { return past(std::countr_zero(units)); }
    void spread();
    void add(const LaneUnits& access, const Deed& deed);
    /// Lanes leave units, and a unit that all have left leaves the track: those are returned.
    std::uint64_t take(const LaneUnits& access);
  };
  static constexpr std::size_t chunk = 64;  // tracks that are allocated together

  Track& at(std::uint32_t track) { return chunks_[track / chunk][track % chunk]; }
  const Track& at(std::uint32_t track) const { return chunks_[track / chunk][track % chunk]; }
  /// An empty one in front of the list.
  Track& add(TrackedBlock& block, std::uint32_t& list, std::uint32_t warp, std::uint32_t time);
  void drop(TrackedBlock& block, std::uint32_t* link);
  void erase(TrackedBlock& block, std::uint32_t& list, std::uint64_t units);
  Past find(std::uint32_t list, std::uint32_t unit) const;
  std::uint32_t split_list(TrackedBlock& made, std::uint32_t list, std::uint32_t part,
                           std::uint32_t parts);
  /// Units that at least most_readers_ tracks have read.
  std::uint64_t well_read(const TrackedBlock& block) const;
  static bool is_own(const Track& track, std::span<const LaneUnits> run, std::uint64_t units);
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
  std::vector<std::vector<Track>> chunks_;
  std::uint32_t used_ = 1, free_ = 0;
};

template <typename Judge>
bool Tracks::ordered(std::uint32_t list, bool wrote, std::span<const LaneUnits> run, std::uint64_t all,
                     Judge& judge) const {
  for (; list; list = at(list).next) {
    const Track& track = at(list);
    const std::uint64_t units = track.units & all;
    if (!units || judge.settled(track.anyone(), wrote)) continue;
    if (track.warp != judge.own() || !is_own(track, run, units)) return false;
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
    if (!here || judge.settled(track.anyone(), wrote)) continue;
    if (track.alike && std::has_single_bit(track.lanes) &&
        ordered(track.anyone(), track.anyone().deed.lane()))
      continue;
    for (std::uint64_t m = here; m; m &= m - 1) {
      const int unit = std::countr_zero(m);
      Past past = track.past(unit);
      for (std::uint32_t l = track.lanes_of(unit); l; l &= l - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(l));
        past.deed = past.deed.of_lane(lane);
        if (!ordered(past, lane)) to.push_back({unit, past, wrote});
      }
    }
  }
}

template <typename Judge>
void Tracks::judge(const TrackedBlock& block, const LaneUnits& access, bool writes, std::uint64_t base,
                   int shift, Judge& judge) const {
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
  Track* mine = nullptr;
  std::uint64_t known = 0;  // units of which the warp's read is known already
  for (std::uint32_t* link = &block.readers; *link;) {
    Track& track = at(*link);
    if (track.warp == now.warp) {
      if (track.time == now.time) {
        mine = &track;
        known |= track.units & all;
      } else if (track.units & all) {
        for (const LaneUnits& each : run) known |= track.take(each);
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
  if (!mine) mine = &add(block, block.readers, now.warp, now.time);
  for (const LaneUnits& each : run)
    if (each.units & left) mine->add({each.lanes, each.units & left}, now.deed);
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
        body(unit, at(*track).past(unit), at(*track).lanes_of(unit), wrote);
      }
  }
}

}  // namespace tartan::inline TARTAN_ABI::emulator
