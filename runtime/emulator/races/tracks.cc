// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/tracks.h"

namespace tartan::inline TARTAN_ABI::emulator {

void Tracks::clear() {
  used_ = 1;
  free_ = 0;
}

// ---- A track.

void Tracks::Track::spread() {
  for (std::uint64_t m = units; m; m &= m - 1) {
    const auto unit = static_cast<std::size_t>(std::countr_zero(m));
    each_lanes[unit] = lanes;
    deeds[unit] = deed;
  }
  alike = false;
}

void Tracks::Track::add(const LaneUnits& access, const Deed& what) {
  if (!units) {
    alike = true;
    lanes = access.lanes;
    deed = what;
  }
  if (alike && (lanes != access.lanes || deed != what)) spread();
  if (!alike)
    for (std::uint64_t m = access.units; m; m &= m - 1) {
      const int unit = std::countr_zero(m);
      const auto i = static_cast<std::size_t>(unit);
      if (units >> unit & 1) {
        each_lanes[i] |= access.lanes;
      } else {
        each_lanes[i] = access.lanes;
        deeds[i] = what;
      }
    }
  units |= access.units;
}

std::uint64_t Tracks::Track::take(const LaneUnits& access) {
  std::uint64_t left = 0;
  const std::uint64_t here = access.units & units;
  if (!here || (alike && !(lanes & access.lanes))) return 0;
  if (alike && lanes & ~access.lanes) spread();
  if (alike) {
    left = here;
  } else {
    for (std::uint64_t m = here; m; m &= m - 1) {
      const auto unit = static_cast<std::size_t>(std::countr_zero(m));
      each_lanes[unit] &= ~access.lanes;
      if (!each_lanes[unit]) left |= m & (0 - m);
    }
  }
  units &= ~left;
  return left;
}

// ---- Lists.

Tracks::Track& Tracks::add(TrackedBlock& block, std::uint32_t& list, std::uint32_t warp,
                           std::uint32_t time) {
  std::uint32_t made = free_;
  if (made) {
    free_ = at(made).next;
  } else {
    made = used_++;
    if (made / chunk >= chunks_.size()) chunks_.emplace_back(chunk);
  }
  Track& track = at(made);
  track.warp = warp;
  track.time = time;
  track.units = 0;
  track.next = list;
  list = made;
  ++block.count;
  return track;
}

void Tracks::drop(TrackedBlock& block, std::uint32_t* link) {
  const std::uint32_t track = *link;
  *link = at(track).next;
  at(track).next = free_;
  free_ = track;
  --block.count;
}

void Tracks::drop_all(TrackedBlock& block) {
  while (block.writers) drop(block, &block.writers);
  while (block.readers) drop(block, &block.readers);
  block.full = 0;
}

void Tracks::erase(TrackedBlock& block, std::uint32_t& list, std::uint64_t units) {
  for (std::uint32_t* link = &list; *link;) {
    Track& track = at(*link);
    track.units &= ~units;
    if (track.units) link = &track.next;
    else drop(block, link);
  }
}

void Tracks::forget(TrackedBlock& block, std::uint64_t units) {
  erase(block, block.readers, units);
  erase(block, block.writers, units);
  block.full &= ~units;
}

void Tracks::note_write(TrackedBlock& block, std::span<const LaneUnits> run, std::uint64_t all,
                        const Past& now) {
  forget(block, all);
  std::uint32_t mine = block.writers;
  while (mine && (at(mine).warp != now.warp || at(mine).time != now.time)) mine = at(mine).next;
  Track& track = mine ? at(mine) : add(block, block.writers, now.warp, now.time);
  for (const LaneUnits& each : run) track.add(each, now.deed);
}

std::uint64_t Tracks::written(const TrackedBlock& block) const {
  std::uint64_t units = 0;
  for (std::uint32_t list = block.writers; list; list = at(list).next) units |= at(list).units;
  return units;
}

Past Tracks::find(std::uint32_t list, std::uint32_t unit) const {
  for (; list; list = at(list).next)
    if (at(list).units >> unit & 1) return at(list).past(static_cast<int>(unit));
  return {};
}

// Counts in the bits of five words.
std::uint64_t Tracks::well_read(const TrackedBlock& block) const {
  std::array<std::uint64_t, 5> digits{};
  std::uint64_t over = 0;
  for (std::uint32_t list = block.readers; list; list = at(list).next) {
    std::uint64_t carry = at(list).units;
    for (std::uint64_t& digit : digits) {
      const std::uint64_t sum = digit ^ carry;
      carry &= digit;
      digit = sum;
    }
    over |= carry;
  }
  std::uint64_t less = 0, equal = ~std::uint64_t{0};
  for (std::size_t i = digits.size(); i-- > 0;) {
    const std::uint64_t bit = most_readers_ >> i & 1 ? ~std::uint64_t{0} : 0;
    less |= equal & bit & ~digits[i];
    equal &= ~(bit ^ digits[i]);
  }
  return ~less | over;
}

bool Tracks::is_own(const Track& track, std::span<const LaneUnits> run, std::uint64_t units) {
  for (const LaneUnits& each : run) {
    const std::uint64_t here = each.units & units;
    if (!here) continue;
    if (!std::has_single_bit(each.lanes)) return false;
    for (std::uint64_t m = here; m; m &= m - 1)
      if (track.lanes_of(std::countr_zero(m)) != each.lanes) return false;
  }
  return true;
}

// ---- Smaller units.

namespace {

// The units of a part, each of them as many.
std::uint64_t split_units(std::uint64_t units, std::uint32_t part, std::uint32_t parts) {
  const std::uint32_t count = 64 / parts;  // that are split
  const std::uint64_t one = parts == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << parts) - 1;
  std::uint64_t made = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    if (units >> (part * count + i) & 1) made |= one << (i * parts);
  return made;
}

}  // namespace

std::uint32_t Tracks::split_list(TrackedBlock& made, std::uint32_t list, std::uint32_t part,
                                 std::uint32_t parts) {
  std::uint32_t head = 0;
  std::uint32_t* last = &head;
  for (; list; list = at(list).next) {
    const std::uint64_t units = split_units(at(list).units, part, parts);
    if (!units) continue;
    Track& track = add(made, *last, at(list).warp, at(list).time);
    const Track& from = at(list);
    track.units = units;
    track.alike = from.alike;
    track.lanes = from.lanes;
    track.deed = from.deed;
    if (!track.alike)
      for (std::uint64_t m = units; m; m &= m - 1) {
        const auto unit = static_cast<std::size_t>(std::countr_zero(m));
        const std::size_t old = (std::size_t{part} * 64 + unit) / parts;
        track.each_lanes[unit] = from.each_lanes[old];
        track.deeds[unit] = from.deeds[old];
      }
    last = &track.next;
  }
  return head;
}

TrackedBlock Tracks::split(const TrackedBlock& block, std::uint32_t part, std::uint32_t parts) {
  TrackedBlock made{.full = split_units(block.full, part, parts)};
  made.writers = split_list(made, block.writers, part, parts);
  made.readers = split_list(made, block.readers, part, parts);
  return made;
}

}  // namespace tartan::inline TARTAN_ABI::emulator
