// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/predecessor.h"

#include <fmt/format.h>

#include <bit>

#include "compiler/support/demangle.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/races/detector.h"

namespace tartan::TARTAN_ABI::emulator {

std::optional<Predecessor::Conflict> Predecessor::conflict(std::uint64_t address,
                                                           std::uint64_t bytes, bool writes,
                                                           bool wide) {
  const auto apart = [&](const Past& past) { return past.time && !(wide && past.deed.wide()); };
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (const Past past = memory_.last_write(address + i); apart(past))
      return Conflict{past.deed.pc(), true};
    if (!writes) continue;
    if (const Past past = memory_.some_read(address + i); apart(past))
      return Conflict{past.deed.pc(), false};
  }
  return std::nullopt;
}

std::string Predecessor::text(std::uint32_t pc) const {
  return fmt::format("{} on {} of kernel {}", opcode(*program_, *module_, pc),
                     line_text(*program_, *module_, pc), detail::demangled_name(program_->name));
}

// ---- In the detector.

void ClusterRaces::wait_for_predecessor(Warp& warp) {
  clocks_.wait_for_predecessor(warp, warp.mask);
}

void ClusterRaces::judge_predecessor(const Warp& warp, std::uint32_t lanes, const Place& place,
                                     std::uint64_t bytes, const RaceSide& side, bool wide) {
  std::uint32_t early = 0;
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    if (!clocks_.knows_predecessor(warp, lane)) early |= 1u << lane;
  }
  if (!early) return;
  const auto found = launch_.predecessor->conflict(place.address, bytes, side.writes, wide);
  if (!found) return;
  Race race{.kind = Race::Kind::early,
            .first = {.pc = found->pc, .writes = found->writes},
            .second = side,
            .shared = false,
            .address = place.address};
  for (std::uint32_t m = early; m; m &= m - 1) {
    race.second.lane = static_cast<std::uint32_t>(std::countr_zero(m));
    launch_.reports.add(race);
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
