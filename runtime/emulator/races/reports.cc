// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/emulator/machine/cluster.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

bool is_copy(const RaceSide& side) { return side.warp % 2; }

int line(const LaunchContext& context, std::uint32_t pc) {
  const auto& origins = context.program.origins;
  return pc < origins.size() ? context.module.source->line(origins[pc].offset) : 0;
}

// "gemm.cc:12" from .loc, or nothing.
std::string source(const LaunchContext& context, std::uint32_t pc) {
  const auto& origins = context.program.origins;
  const std::uint32_t location = pc < origins.size() ? origins[pc].location : 0;
  if (!location) return {};
  const ptx::Location& at = context.module.locations[location - 1];
  const std::string_view file = context.module.file_name(at.file);
  return file.empty() ? std::string() : fmt::format("{}:{}", file, at.line);
}

std::string_view opcode(const LaunchContext& context, std::uint32_t pc) {
  if (pc >= context.program.origins.size()) return "an access";
  const std::uint32_t offset = context.program.origins[pc].offset;
  const auto& all = context.module.instructions;
  const auto at = std::ranges::lower_bound(all, offset, {}, &ptx::Instruction::offset);
  return at == all.end() || at->offset != offset ? "an access" : at->opcode;
}

// A loop of compare-and-swap begins with a weak load of the word that others swap.
bool starts_cas_loop(const LaunchContext& context, const RaceSide& read, const RaceSide& write) {
  const auto is = [&](const RaceSide& side, std::string_view what) {
    return opcode(context, side.pc).starts_with(what);
  };
  return !read.writes && is(read, "ld.") && is(write, "atom.") &&
         opcode(context, write.pc).find(".cas") != std::string_view::npos;
}

const Rule& rule_of(const LaunchContext& context, const Race& race) {
  if (is_copy(race.first) || is_copy(race.second)) return "asynchronous-race"_rule;
  if (starts_cas_loop(context, race.first, race.second) ||
      starts_cas_loop(context, race.second, race.first))
    return "weak-cas-read"_rule;
  return race.same_value ? "same-value-race"_rule : "memory-race"_rule;
}

std::string with_offset(std::string_view name, std::uint64_t offset) {
  return offset ? fmt::format("{}+{}", name, offset) : std::string(name);
}

}  // namespace

void RaceReports::add(const Race& race) {
  const Rule& rule = rule_of(context_, race);
  const auto places = std::minmax(race.first.pc, race.second.pc);
  for (Entry& each : entries_)
    if (each.rule == &rule && std::minmax(each.race.first.pc, each.race.second.pc) == places) {
      ++each.count;
      return;
    }
  entries_.push_back({&rule, race});
}

RaceReports::Thread RaceReports::thread(const RaceSide& side) const {
  const std::uint64_t blocks = context_.cluster.count();
  const auto warps = static_cast<std::uint32_t>((context_.launch.block.count() + 31) / 32);
  const std::uint32_t warp = side.warp / 2;
  Thread made{.warp = warp % warps};
  made.rank = static_cast<std::uint32_t>(warp / warps % blocks);
  made.cluster = static_cast<std::uint32_t>(warp / warps / blocks);
  made.block = Cluster::first_block(context_, made.cluster);
  const Dim3 size = context_.cluster;
  made.block.x += made.rank % size.x;
  made.block.y += made.rank / size.x % size.y;
  made.block.z += made.rank / size.x / size.y;
  return made;
}

std::string RaceReports::side_text(const RaceSide& side, bool with_block) const {
  const Thread who = thread(side);
  const std::string from = source(context_, side.pc);
  std::string text =
      fmt::format("{} on line {}{} by thread {} (warp {}, lane {}", opcode(context_, side.pc),
                  line(context_, side.pc), from.empty() ? from : fmt::format(" ({})", from),
                  who.warp * 32 + side.lane, who.warp, side.lane);
  if (with_block) text += fmt::format(", CTA {},{},{}", who.block.x, who.block.y, who.block.z);
  return text + ")";
}

// "tile+16 (shared memory at 0x10)", "global memory at out+64 (0x1000000040)"
std::string RaceReports::memory_text(const Race& race) const {
  if (race.shared) {
    const NamedRange* found = nullptr;
    for (const NamedRange& each : context_.program.shared_variables) {
      const std::uint64_t first =
          each.first + (each.dynamic ? context_.program.dynamic_shared_base : 0);
      if (race.address < first || (!each.dynamic && race.address >= first + each.bytes)) continue;
      if (!found || !each.dynamic) found = &each;
    }
    if (!found) return fmt::format("shared memory at 0x{:x}", race.address);
    const std::uint64_t first =
        found->first + (found->dynamic ? context_.program.dynamic_shared_base : 0);
    return fmt::format("{} (shared memory at 0x{:x})",
                       with_offset(found->name, race.address - first), race.address);
  }
  const Allocation* const allocation = context_.memory.find(race.address, 1);
  for (std::size_t i = 0; allocation && i < context_.program.params.size(); ++i) {
    if (context_.program.params[i].bytes != 8) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, context_.params.data() + context_.program.param_offsets[i], 8);
    if (allocation->holds(value, 1) && race.address >= value)
      return fmt::format("global memory at {} (0x{:x})",
                         with_offset(context_.program.params[i].name, race.address - value),
                         race.address);
  }
  return fmt::format("global memory at 0x{:x}", race.address);
}

// What would order the two.
std::string RaceReports::advice(const Race& race) const {
  const Thread first = thread(race.first), second = thread(race.second);
  const bool own = first.block == second.block && first.warp == second.warp;
  if (is_copy(race.first)) {
    if (own && race.first.lane == race.second.lane)
      return "the copy may still be under way: no cp.async.wait_group in between covers its group";
    return race.copy_waited
               ? "its thread has waited for the copy, but told nobody: insert a barrier behind "
                 "cp.async.wait_group"
               : "the copy may still be under way: expected cp.async.wait_group for its group in "
                 "the thread that issued it, and a barrier behind it";
  }
  if (is_copy(race.second) && first.block == second.block)
    return "nothing orders them: the copy may begin only behind a barrier";
  if (own) return "nothing orders lanes of a warp but bar.warp.sync: insert one in between";
  if (first.block == second.block) return "nothing orders the two: insert bar.sync in between";
  if (first.cluster == second.cluster)
    return "nothing orders the two: insert barrier.cluster.arrive and barrier.cluster.wait in "
           "between";
  return "nothing orders CTAs of a grid but release and acquire at scope .gpu: use atomics, or "
         "another launch";
}

std::string RaceReports::text(const Entry& entry) const {
  const Race& race = entry.race;
  const bool apart = !(thread(race.first).block == thread(race.second).block);
  std::string text =
      fmt::format("{}: {} {} and {}; {}",
                  race.same_value ? "race of stores of the same value" : "race", memory_text(race),
                  race.first.writes ? "is written by " + side_text(race.first, apart)
                                    : "is read by " + side_text(race.first, apart),
                  (race.second.writes ? "written by " : "read by ") + side_text(race.second, apart),
                  advice(race));
  if (entry.count > 1) text += fmt::format(" ({} more such pairs of accesses)", entry.count - 1);
  return text;
}

std::vector<Finding> RaceReports::findings() const {
  std::vector<Finding> out;
  for (const Entry& entry : entries_) {
    const RaceSide& side = entry.race.second;
    const Thread who = thread(side);
    out.push_back({.id = std::string(entry.rule->id),
                   .message = text(entry),
                   .line = line(context_, side.pc),
                   .source = source(context_, side.pc),
                   .block = who.block,
                   .lane = static_cast<int>(who.warp * 32 + side.lane),
                   .address = entry.race.address});
  }
  return out;
}

}  // namespace tartan::inline TARTAN_ABI::emulator
