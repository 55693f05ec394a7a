// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/definedness/reports.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/machine/block.h"
#include "runtime/emulator/machine/places.h"
#include "tartan/support/rules.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::string place_text(const LaunchContext& context, const UndefinedOrigin& origin) {
  using Place = UndefinedOrigin::Place;
  switch (origin.place) {
    case Place::register_: {
      const std::string_view name = context.program.registers.name(origin.slot);
      return name.empty() ? "a register" : fmt::format("register {}", name);
    }
    case Place::shared: return shared_text(context, origin.address);
    case Place::local: return fmt::format("local memory at 0x{:x}", origin.address);
    case Place::global: return global_text(context, origin.address);
    case Place::lane: return fmt::format("lane {}", origin.address);
    case Place::tensor:
    case Place::shifted:
      return "tensor memory, " + cell_text(static_cast<int>(origin.address >> 16),
                                           static_cast<int>(origin.address & 0xFFFF));
    case Place::race: break;  // such launches report nothing
  }
  return {};
}

}  // namespace

std::uint32_t UndefinedReports::origin(const UndefinedOrigin& origin) {
  const auto same = [&](const UndefinedOrigin& each) {
    return each.place == origin.place && each.slot == origin.slot && each.pc == origin.pc;
  };
  const auto found = std::ranges::find_if(origins_, same);
  const auto index = static_cast<std::uint32_t>(found - origins_.begin());
  if (found == origins_.end()) origins_.push_back(origin);
  return index + 1;
}

void UndefinedReports::add(const UndefinedUse& use) {
  for (Entry& each : entries_)
    if (each.use.origin == use.origin && each.use.pc == use.pc) {
      ++each.count;
      return;
    }
  if (entries_.size() == most) ++dropped_;
  else entries_.push_back({use});
}

const Rule& UndefinedReports::rule(const Entry& entry) const {
  switch (of(entry.use.origin).place) {
    case UndefinedOrigin::Place::lane: return "divergent-collective"_rule;
    case UndefinedOrigin::Place::shifted: return "unspecified-value"_rule;
    default: return "uninitialized-read"_rule;
  }
}

std::string UndefinedReports::text(const Entry& entry) const {
  const UndefinedOrigin& from = of(entry.use.origin);
  std::string text = fmt::format("{} is undefined: ", entry.use.what);
  if (from.place == UndefinedOrigin::Place::lane)
    text += fmt::format("{} on {} reads {}, which its member mask does not name",
                        opcode(context_, from.pc), line_text(context_, from.pc),
                        place_text(context_, from));
  else if (from.place == UndefinedOrigin::Place::shifted)
    text += place_text(context_, from) +
            " is a row that tcgen05.shift or .ashift moved, and no source tells which way";
  else
    text += place_text(context_, from) +
            (from.place == UndefinedOrigin::Place::tensor
                 ? " was never written, or computed from what was never written"
                 : " was never written");
  if (from.place != UndefinedOrigin::Place::lane &&
      line(context_, from.pc) != line(context_, entry.use.pc))
    text +=
        fmt::format(", {} on {} reads it", opcode(context_, from.pc), line_text(context_, from.pc));
  text += fmt::format("; used by {} in warp {}, lane {}", opcode(context_, entry.use.pc),
                      entry.use.warp, entry.use.lane);
  if (entry.count > 1) text += fmt::format(" ({} more such uses)", entry.count - 1);
  return text;
}

std::vector<Finding> UndefinedReports::findings() const {
  std::vector<Finding> out;
  for (const Entry& entry : entries_)
    out.push_back({.id = std::string(rule(entry).id),
                   .message = text(entry),
                   .line = line(context_, entry.use.pc),
                   .source = source(context_, entry.use.pc),
                   .block = entry.use.block,
                   .lane = static_cast<int>(entry.use.warp * 32 + entry.use.lane),
                   .address = of(entry.use.origin).address});
  if (dropped_)
    out.back().message += fmt::format(" ({} more uses at other places are not listed)", dropped_);
  return out;
}

}  // namespace tartan::TARTAN_ABI::emulator
