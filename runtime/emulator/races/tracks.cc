// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/tracks.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::emulator {

void Tracks::clear() {
  tracks_.resize(1);
  free_ = 0;
}

// ---- A track.

Past Tracks::past(std::uint32_t track, int unit) const {
  const Track& of = at(track);
  const Deed deed = of.alike ? of.deed : each_of(track).deeds[static_cast<std::size_t>(unit)];
  return {of.warp, of.time,
          deed.of_lane(static_cast<std::uint32_t>(std::countr_zero(lanes_of(track, unit))))};
}

void Tracks::spread(std::uint32_t track) {
  while (each_.size() <= track / chunk) each_.emplace_back();
  if (each_[track / chunk].empty()) each_[track / chunk].resize(chunk);
  Track& of = at(track);
  Each& each = each_of(track);
  for (std::uint64_t m = of.units; m; m &= m - 1) {
    const auto unit = static_cast<std::size_t>(std::countr_zero(m));
    each.lanes[unit] = of.lanes;
    each.deeds[unit] = of.deed;
  }
  of.alike = false;
}

void Tracks::add_units(std::uint32_t track, std::span<const LaneUnits> run, std::uint64_t units,
                       const Deed& by) {
  const Deed deed = by.of_lane(0);  // past() names lanes
  Track& to = at(track);
  if (!to.units) {
    to.alike = true;
    to.lanes = run[0].lanes;
    to.deed = deed;
  }
  if (to.alike && (to.deed != deed || std::ranges::any_of(run, [&](const LaneUnits& access) {
                     return access.lanes != to.lanes;
                   })))
    spread(track);
  if (to.alike) {
    for (const LaneUnits& access : run) to.units |= access.units & units;
    return;
  }
  Each& each = each_of(track);
  std::uint64_t known = to.units;
  for (const LaneUnits& access : run) {
    for (std::uint64_t m = access.units & units; m; m &= m - 1) {
      const auto unit = static_cast<std::size_t>(std::countr_zero(m));
      const bool more = known >> unit & 1;
      each.lanes[unit] = access.lanes | (more ? each.lanes[unit] : 0);
      if (!more) each.deeds[unit] = deed;
    }
    known |= access.units & units;
  }
  to.units = known;
}

std::uint64_t Tracks::take(std::uint32_t track, std::span<const LaneUnits> run) {
  Track& of = at(track);
  if (of.alike) {
    const bool some = std::ranges::any_of(run, [&](const LaneUnits& access) {
      return access.units & of.units && access.lanes & of.lanes;
    });
    if (!some) return 0;
    spread(track);
  }
  std::uint64_t left = 0;
  Each& each = each_of(track);
  for (const LaneUnits& access : run)
    for (std::uint64_t m = access.units & of.units; m; m &= m - 1) {
      const auto unit = static_cast<std::size_t>(std::countr_zero(m));
      each.lanes[unit] &= ~access.lanes;
      if (!each.lanes[unit]) left |= m & (0 - m);
    }
  of.units &= ~left;
  return left;
}

// ---- Lists.

std::uint32_t Tracks::add(TrackedBlock& block, std::uint32_t list, std::uint32_t warp,
                          std::uint32_t time) {
  std::uint32_t made = free_;
  if (made) {
    free_ = at(made).next;
  } else {
    made = static_cast<std::uint32_t>(tracks_.size());
    tracks_.emplace_back();
  }
  at(made) = {.warp = warp, .time = time, .next = list};
  ++block.count;
  return made;
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
  if (!mine) mine = block.writers = add(block, block.writers, now.warp, now.time);
  add_units(mine, run, all, now.deed);
}

std::uint64_t Tracks::written(const TrackedBlock& block) const {
  std::uint64_t units = 0;
  for (std::uint32_t list = block.writers; list; list = at(list).next) units |= at(list).units;
  return units;
}

Past Tracks::find(std::uint32_t list, std::uint32_t unit) const {
  for (; list; list = at(list).next)
    if (at(list).units >> unit & 1) return past(list, static_cast<int>(unit));
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

bool Tracks::is_own(std::uint32_t track, std::span<const LaneUnits> run,
                    std::uint64_t units) const {
  for (const LaneUnits& each : run) {
    const std::uint64_t here = each.units & units;
    if (!here) continue;
    if (!std::has_single_bit(each.lanes)) return false;
    for (std::uint64_t m = here; m; m &= m - 1)
      if (lanes_of(track, std::countr_zero(m)) != each.lanes) return false;
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
  std::vector<std::uint32_t> tracks;
  for (; list; list = at(list).next) tracks.push_back(list);
  std::uint32_t head = 0;
  for (auto from = tracks.rbegin(); from != tracks.rend(); ++from) {
    const std::uint64_t units = split_units(at(*from).units, part, parts);
    if (!units) continue;
    head = add(made, head, at(*from).warp, at(*from).time);
    for (std::uint64_t m = units; m; m &= m - 1) {
      const int unit = std::countr_zero(m);
      const int old = (static_cast<int>(part) * 64 + unit) / static_cast<int>(parts);
      const LaneUnits of_unit{lanes_of(*from, old), m & (0 - m)};
      add_units(head, {&of_unit, 1}, of_unit.units, past(*from, old).deed);
    }
  }
  return head;
}

TrackedBlock Tracks::split(const TrackedBlock& block, std::uint32_t part, std::uint32_t parts) {
  TrackedBlock made{.full = split_units(block.full, part, parts)};
  made.writers = split_list(made, block.writers, part, parts);
  made.readers = split_list(made, block.readers, part, parts);
  return made;
}

}  // namespace tartan::TARTAN_ABI::emulator
