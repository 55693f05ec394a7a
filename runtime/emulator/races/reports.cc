// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/races/passes.h"
#include "runtime/emulator/races/predecessor.h"
#include "runtime/emulator/trial.h"
#include "runtime/launch_findings.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

bool is_asynchronous(Actor actor) { return actor != Actor::thread && actor != Actor::init; }

// What a kernel has everywhere if it has it at all: one finding says it.
bool is_of_kernel(const Race& race) {
  switch (race.kind) {
    case Race::Kind::read_unfenced:
    case Race::Kind::init_unfenced:
    case Race::Kind::narrow_wait:
    case Race::Kind::tensor_unfenced:
    case Race::Kind::by_every_lane: return true;
    case Race::Kind::unfinished: return race.first.actor == Actor::bulk_read;
    default: return false;
  }
}

// A loop of compare-and-swap begins with a weak load of the word that others swap.
bool starts_cas_loop(const LaunchContext& context, const RaceSide& read, const RaceSide& write) {
  const auto is = [&](const RaceSide& side, std::string_view what) {
    return opcode(context, side.pc).starts_with(what);
  };
  return !read.writes && is(read, "ld.") && is(write, "atom.") &&
         opcode(context, write.pc).find(".cas") != std::string_view::npos;
}

// A load that came before a copy to the same place, which may be the copy that it should have
// waited for. Of one warp the program's order says which; of several the emulator chose the order.
std::string early_load_advice(const Race& race, bool same_warp) {
  const bool grouped = race.second.actor == Actor::cp_async;
  const std::string_view wait =
      grouped ? "cp.async.wait_group in the thread that issued it, and a barrier behind it"
      : race.second.actor == Actor::bulk_write
          ? "cp.async.bulk.wait_group in the thread that issued it, and a barrier behind it"
          : "a wait for the mbarrier phase that the copy completes";
  const std::string_view order =
      grouped ? "a barrier"
              : "a barrier, or a wait for an mbarrier phase at which the loading thread arrives,";
  if (same_warp)
    return fmt::format(
        "the copy may begin only behind the load: insert {} in between; if the load "
        "should see what the copy brings, put it behind {}",
        order, wait);
  return fmt::format(
      "nothing orders them: if the load should see what the copy brings, it must come "
      "behind {}; if it should see what was there before, insert {} between the load "
      "and the copy",
      wait, order);
}

}  // namespace

bool RaceReports::is_ordinary(const Race& race) const {
  const Rule* const found = &rule(race);
  return found != &"asynchronous-race"_rule && found != &"proxy-fence"_rule &&
         found != &"mbarrier"_rule;
}

const Rule& RaceReports::rule(const Race& race) const {
  switch (race.kind) {
    case Race::Kind::early: return "memory-race"_rule;
    case Race::Kind::unfenced:
    case Race::Kind::unacquired: return "proxy-fence"_rule;
    case Race::Kind::alloc_unfenced:
    case Race::Kind::read_unfenced: return "proxy-fence-read"_rule;
    case Race::Kind::tensor_unfenced: return "tensor-fence"_rule;
    case Race::Kind::reordered: return "unspecified-order"_rule;
    case Race::Kind::collector: return "collector-use"_rule;
    case Race::Kind::init_unfenced: return "mbarrier-init-fence"_rule;
    case Race::Kind::narrow_wait: return "mbarrier-wait-scope"_rule;
    case Race::Kind::by_every_lane: return "store-by-every-lane"_rule;
    case Race::Kind::noncoherent: return "memory-race"_rule;
    case Race::Kind::unfinished:
      return race.first.actor == Actor::bulk_read ? "store-at-exit"_rule : "asynchronous-race"_rule;
    case Race::Kind::exited: return "memory-fault"_rule;
    case Race::Kind::unwaited: return "wgmma-wait"_rule;
    case Race::Kind::repeated_init: return "repeated-init"_rule;
    default: break;
  }
  if (race.second.actor == Actor::init || (race.mbarrier && race.first.actor == Actor::init))
    return "mbarrier"_rule;
  if (is_asynchronous(race.first.actor) || is_asynchronous(race.second.actor))
    return "asynchronous-race"_rule;
  if (starts_cas_loop(context_, race.first, race.second) ||
      starts_cas_loop(context_, race.second, race.first))
    return "weak-cas-read"_rule;
  if (race.kind == Race::Kind::converged) return "converged-exchange"_rule;
  return race.kind == Race::Kind::same_value ? "same-value-race"_rule : "memory-race"_rule;
}

// Where races like it are counted; of those that are left out, together.
RaceReports::Tally* RaceReports::find_tally(const Race& race) {
  const Rule& found = rule(race);
  const auto places = std::minmax(race.first.pc, race.second.pc);
  const auto apart = [](const Race& of) {  // the first is at an exit, or of another kernel
    const bool special = of.kind == Race::Kind::unfinished || of.kind == Race::Kind::early;
    return special ? of.kind : Race::Kind::unordered;
  };
  for (Entry& each : entries_) {
    const bool same_places = std::minmax(each.race.first.pc, each.race.second.pc) == places;
    if (apart(each.race) != apart(race) || (!same_places && !is_of_kernel(race))) continue;
    if (each.rule == &found) return &each.tally;
    if (!same_places) continue;
    // What lanes that moved together did, others did as well: one cure for all.
    const bool exchanged = each.race.kind == Race::Kind::converged && &found == &"memory-race"_rule;
    if (exchanged) {
      each.rule = &found;
      each.race.kind = race.kind;
    }
    if (exchanged || (race.kind == Race::Kind::converged && each.rule == &"memory-race"_rule))
      return &each.tally;
  }
  if (entries_.size() == most_entries) return &left_out_;
  return &entries_.emplace_back(Entry{&found, race}).tally;
}

RaceReports::Span RaceReports::span(const RaceSide& first, const RaceSide& second) const {
  if (!first.thread || !second.thread) return Span::warp;
  const std::uint32_t x = *first.thread, y = *second.thread;
  if (numbers_.cluster(x) != numbers_.cluster(y)) return Span::grid;
  if (numbers_.rank(x) != numbers_.rank(y)) return Span::cluster;
  return numbers_.warp(x) == numbers_.warp(y) ? Span::warp : Span::block;
}

namespace {

// All that rule() and places depend on.
std::uint64_t kind_and_place(Race::Kind kind, const RaceSide& first, const RaceSide& second,
                             bool mbarrier) {
  const auto side = [](const RaceSide& of) {
    return std::uint64_t{of.pc} << 5 | static_cast<std::uint64_t>(of.actor) << 1 | of.writes;
  };
  static_assert(Deed::most_instructions <= 1u << 24 && static_cast<int>(Actor::mbarrier) < 16);
  return (side(first) << 29 | side(second)) << 6 | static_cast<std::uint64_t>(kind) << 1 | mbarrier;
}

}  // namespace

bool RaceReports::count(Race::Kind kind, const RaceSide& first, const RaceSide& second,
                        bool mbarrier, int races) {
  const auto found = tallies_.find(kind_and_place(kind, first, second, mbarrier));
  if (found == tallies_.end()) return false;
  Tally& tally = *found->second;
  tally.count += static_cast<std::uint64_t>(races);
  tally.span = std::max(tally.span, span(first, second));
  return true;
}

void RaceReports::add(const Race& race) {
  if (count(race.kind, race.first, race.second, race.mbarrier, 1)) return;
  Tally* const of_all = find_tally(race);
  ++of_all->count;
  ++of_all->places;
  of_all->span = std::max(of_all->span, span(race.first, race.second));
  tallies_[kind_and_place(race.kind, race.first, race.second, race.mbarrier)] = of_all;
}

RaceReports::Thread RaceReports::thread(std::uint32_t number) const {
  Thread made{.rank = numbers_.rank(number),
              .warp = numbers_.warp(number) % numbers_.warps_per_block,
              .cluster = numbers_.cluster(number)};
  made.block = Cluster::first_block(context_, made.cluster);
  const Dim3 size = context_.cluster;
  made.block.x += made.rank % size.x;
  made.block.y += made.rank / size.x % size.y;
  made.block.z += made.rank / size.x / size.y;
  return made;
}

std::string RaceReports::side_text(const RaceSide& side, bool with_block) const {
  std::string text =
      fmt::format("{} on {}", opcode(context_, side.pc), line_text(context_, side.pc));
  if (!side.thread) return text;
  const Thread who = thread(*side.thread);
  const std::string block =
      with_block ? fmt::format("CTA {},{},{}", who.block.x, who.block.y, who.block.z) : "";
  if (side.actor == Actor::product)
    return text + fmt::format(" by warpgroup {}{}", who.warp / warps_of_warpgroup,
                              with_block ? fmt::format(" ({})", block) : block);
  return text + fmt::format(" by thread {} (warp {}, lane {}{})", who.warp * 32 + side.lane,
                            who.warp, side.lane, with_block ? ", " + block : block);
}

std::string RaceReports::memory_text(const Race& race) const {
  const std::string text = race.tensor   ? tensor_cell_text(race.address)
                           : race.shared ? shared_text(context_, race.address)
                                         : global_text(context_, race.address);
  return text + pair_text(race);
}

bool RaceReports::apart(const Race& race) const {
  return race.first.thread && race.second.thread &&
         thread(*race.first.thread).block != thread(*race.second.thread).block;
}

// The same of a copy of a bulk group.
std::string RaceReports::group_advice(const Race& race, Span span) const {
  const bool own = race.first.thread == race.second.thread && race.first.lane == race.second.lane,
             stores = race.second.actor == Actor::bulk_write;
  if (span == Span::grid && stores)
    return "both write there, and nothing orders the CTAs of a grid: their tiles overlap; check "
           "the coordinates and the sizes of the tiles";
  if (span == Span::grid)
    return "nothing orders the CTAs of a grid but release and acquire at scope .gpu, behind "
           "cp.async.bulk.wait_group in the thread that issued the copy: use atomics, or another "
           "launch";
  const bool reads = race.first.actor == Actor::bulk_read;
  const std::string_view state = reads ? "reading" : "writing",
                         wait = reads ? "cp.async.bulk.wait_group"
                                      : "cp.async.bulk.wait_group, without .read,";
  const std::string_view barrier = span == Span::cluster ? "a cluster barrier" : "a barrier";
  if (own && !race.waited)
    return fmt::format("the copy may still be {}: its thread has not executed {} for its group",
                       state, wait);
  if (!own && stores && !reads)
    return fmt::format(
        "two threads' copies write there, and nothing orders them: if their tiles overlap by "
        "mistake, check the coordinates; if both store the same tile, let one thread issue the "
        "copy (elect.sync); else insert {} in the first one's thread and {} behind it",
        wait, barrier);
  if (race.waited)
    return fmt::format(
        "its thread has waited for the copy, but that is not ordered before this access: insert {} "
        "after cp.async.bulk.wait_group",
        barrier);
  return fmt::format(
      "the copy may still be {}: expected {} for its group in the thread that issued it, and {} "
      "behind it",
      state, wait, barrier);
}

// What would order a copy, a product or an asynchronous store before the second access.
std::string RaceReports::copy_advice(const Race& race, Span span) const {
  const bool own = race.first.thread && race.second.thread == race.first.thread;
  switch (race.first.actor) {
    case Actor::cp_async:
      if (own && race.first.lane == race.second.lane)
        return "the copy may still be under way: no cp.async.wait_group in between covers its "
               "group";
      return race.waited
                 ? "its thread has waited for the copy, but told nobody: insert a barrier behind "
                   "cp.async.wait_group"
                 : "the copy may still be under way: expected cp.async.wait_group for its group in "
                   "the thread that issued it, and a barrier behind it";
    case Actor::bulk_read:
    case Actor::bulk_write: return group_advice(race, span);
    case Actor::tensor_load:
    case Actor::tensor_store:
    case Actor::tensor_core: return tensor_advice(race);
    case Actor::product:
      return race.waited ? "the product has completed, but that is not ordered before this access: "
                           "wait for an mbarrier phase at which its warpgroup arrives after "
                           "wgmma.wait_group"
                         : "the product may still be reading: no wgmma.wait_group covers it";
    default:
      return fmt::format(
          "the {} may still be under way: expected a wait for mbarrier 0x{:x} to end phase {} "
          "(parity {}), in this thread or in one that is ordered before it",
          opcode(context_, race.first.pc).starts_with("cp.") ? "copy" : "asynchronous operation",
          race.completes_at, race.phase, race.phase % 2);
  }
}

// What orders two accesses of threads that are as far apart as `span`.
std::string RaceReports::barrier_advice(const Race& race, Span span) const {
  switch (span) {
    case Span::warp:
      return fmt::format("nothing orders lanes of a warp but {}: insert one in between",
                         spoken(context_, "bar.warp.sync"));
    case Span::block:
      if (are_of_two_passes(context_, race.first.pc, race.second.pc))
        return fmt::format(
            "a barrier stands between the two lines, but no barrier between one pass of their loop "
            "and the next: insert {} at the end of its body",
            spoken(context_, "bar.sync"));
      return fmt::format("nothing orders the two: insert {} in between",
                         spoken(context_, "bar.sync"));
    case Span::cluster:
      return fmt::format("nothing orders the two: insert {} in between",
                         spoken(context_, "barrier.cluster.arrive and barrier.cluster.wait"));
    case Span::grid:
      return "nothing orders CTAs of a grid but release and acquire at scope .gpu: use atomics, or "
             "another launch";
  }
  return {};
}

// What would order the two, and others like them as far apart as `span`.
std::string RaceReports::advice(const Race& race, Span span) const {
  if (race.kind == Race::Kind::unfenced)
    return "the store need not be visible to the async proxy: insert fence.proxy.async between it "
           "and the following barrier";
  if (race.kind == Race::Kind::read_unfenced)
    return "the load comes first, but no fence.proxy.async follows it before the write: the manual "
           "asks "
           "for one between accesses of the generic and the async proxy (CUTLASS and older Triton "
           "leave it out behind loads): insert fence.proxy.async between the load and the barrier "
           "or arrival that follows it";
  if (race.kind == Race::Kind::alloc_unfenced) return slot_advice();
  if (race.kind == Race::Kind::by_every_lane)
    return fmt::format(
        "{} lanes of the warp issue the same store, each of the same bytes to the same place: let "
        "one lane issue it (elect.sync)",
        race.lanes);
  if (race.kind == Race::Kind::unacquired)
    return "the copy may see the tensor map as it was: expected "
           "fence.proxy.tensormap::generic.acquire of its 128 bytes in this CTA in between";
  if (race.kind == Race::Kind::mixed)
    return "two strong accesses are one after the other only where they are to the same bytes (PTX "
           "ISA 8.7.1): make them of one size";
  if (race.kind == Race::Kind::noncoherent)
    return "ld.global.nc requires that no thread writes there during the kernel: leave out .nc";
  if (is_asynchronous(race.first.actor)) return copy_advice(race, span);
  if (!race.first.writes && race.second.writes && is_asynchronous(race.second.actor) &&
      span <= Span::block)
    return early_load_advice(race, span == Span::warp);
  if (is_asynchronous(race.second.actor) && race.second.actor != Actor::cp_async &&
      span != Span::grid)
    return race.first.writes
               ? "the store is not ordered before it: insert fence.proxy.async and a barrier, or a "
                 "wait for an mbarrier phase at which that thread arrives, in between"
               : "the load is not ordered before it: insert a barrier, or a wait for an mbarrier "
                 "phase at which that thread arrives after its loads, in between";
  if (race.second.actor == Actor::cp_async && span <= Span::block)
    return "nothing orders them: the copy may begin only behind a barrier";
  const bool two_stores = opcode(context_, race.first.pc).starts_with("st.") &&
                          opcode(context_, race.second.pc).starts_with("st.");
  return (two_stores ? "one of the addresses may be wrong; if both are right, " : "") +
         barrier_advice(race, span);
}

std::string RaceReports::early_text(const Race& race) const {
  return fmt::format(
      "race: {} is {} by {} and {} by {}, and that launch may still run: griddepcontrol.wait must "
      "come first, in this thread or in one that is ordered before it",
      memory_text(race), race.second.writes ? "written" : "read", side_text(race.second, true),
      race.first.writes ? "written" : "read", predecessor_->text(race.first.pc));
}

std::string RaceReports::exit_text(const Race& race) const {
  const std::string begin =
      fmt::format("{} is {} by {}, and its CTA may have exited by then; ", memory_text(race),
                  race.first.writes ? "written" : "read", side_text(race.first, apart(race)));
  if (race.first.actor != Actor::bulk_read) return begin + copy_advice(race, Span::warp);
  return begin +
         "the manual asks for a wait: execute cp.async.bulk.commit_group and "
         "cp.async.bulk.wait_group.read 0 in that thread before it exits";
}

std::string RaceReports::init_text(const Race& race) const {
  const bool blocks = apart(race);
  return fmt::format(
      "the mbarrier {}, set up by {}, hears of the bytes of {}; between the two stands neither "
      "fence.mbarrier_init nor fence.proxy.async, and the async proxy need not see the "
      "initialization: insert fence.mbarrier_init.release.cluster behind mbarrier.init (the manual "
      "asks for a fence between the generic and the async proxy, Triton leaves it out)",
      memory_text(race), side_text(race.first, blocks), side_text(race.second, blocks));
}

std::string RaceReports::narrow_text(const Race& race) const {
  return fmt::format(
      "{} is written by {} and used by {} on {} behind {}, whose scope is .cta where it says none: "
      "the manual lets it see what threads of its own CTA did alone; expected .acquire.cluster",
      memory_text(race), side_text(race.first, true), opcode(context_, race.use),
      line_text(context_, race.use), side_text(race.second, true));
}

std::string RaceReports::mbarrier_text(const Race& race) const {
  const bool blocks = apart(race);
  const std::string memory = memory_text(race), first = side_text(race.first, blocks),
                    second = side_text(race.second, blocks);
  const std::string barrier =
      spoken(context_, blocks ? "barrier.cluster.arrive and barrier.cluster.wait" : "bar.sync");
  if (race.first.actor == Actor::init)
    return fmt::format(
        "use before initialization: the mbarrier {}, set up by {}, is used by {} "
        "without ordering; insert {}{} in between",
        memory, first, second, blocks ? "fence.mbarrier_init, " : "", barrier);
  return fmt::format(
      "the mbarrier {} is used by {} and set up or invalidated by {} without "
      "ordering; insert {} in between",
      memory, first, second, barrier);
}

std::string RaceReports::race_text(const Race& race, Span span) const {
  if (race.kind == Race::Kind::early) return early_text(race);
  if (race.kind == Race::Kind::init_unfenced) return init_text(race);
  if (race.kind == Race::Kind::narrow_wait) return narrow_text(race);
  if (std::string text = tensor_text(race); !text.empty()) return text;
  if (race.kind == Race::Kind::unwaited)
    return fmt::format(
        "{} is not waited for: no wgmma.commit_group and wgmma.wait_group cover it before its "
        "threads exit",
        side_text(race.first, true));
  const bool blocks = apart(race);
  const std::string memory = memory_text(race), first = side_text(race.first, blocks),
                    second = side_text(race.second, blocks);
  if (race.kind == Race::Kind::exited)
    return fmt::format(
        "{} of CTA rank {} is accessed by {}, and that CTA may have exited: insert "
        "barrier.cluster.arrive and barrier.cluster.wait before its end",
        memory, race.rank, side_text(race.first, true));
  if (race.kind == Race::Kind::unfinished) return exit_text(race);
  if (&rule(race) == &"converged-exchange"_rule)
    return fmt::format(
        "lanes of a warp exchange values without bar.warp.sync: {} is {} by {} and {} by {}; they "
        "move together here, but from sm_70 on nothing keeps them together: insert {} in between",
        memory, race.first.writes ? "written" : "read", first,
        race.second.writes ? "written" : "read", second, spoken(context_, "bar.warp.sync"));
  if (race.kind == Race::Kind::repeated_init)
    return fmt::format(
        "several lanes set up the mbarrier {} by {} on {}, all with the same count: elect one lane "
        "for it",
        memory, opcode(context_, race.second.pc), line_text(context_, race.second.pc));
  if (&rule(race) == &"mbarrier"_rule) return mbarrier_text(race);
  const bool plain = race.kind == Race::Kind::unordered || race.kind == Race::Kind::converged;
  const char* const head = race.kind == Race::Kind::same_value
                               ? "race of stores of the same value: "
                           : race.kind == Race::Kind::mixed ? "race of atomics of different sizes: "
                           : plain                          ? "race: "
                                                            : "";
  const std::string operand = race.operand ? fmt::format(" as {}", race.operand) : "";
  return fmt::format("{}{} is {} by {} and {} by {}{}; {}", head, memory,
                     race.first.writes ? "written" : "read", first,
                     race.second.writes ? "written" : "read", second, operand, advice(race, span));
}

std::string RaceReports::text(const Entry& entry) const {
  std::string text = race_text(entry.race, entry.tally.span);
  const auto& [count, places, span] = entry.tally;
  if (count > 1 && is_of_kernel(entry.race) && places > 1)
    text += fmt::format(" ({} more such pairs of accesses, and {} more of instructions)", count - 1,
                        places - 1);
  else if (count > 1) text += fmt::format(" ({} more such pairs of accesses)", count - 1);
  if (is_dead(entry))
    text += "; what it reads is not used: it reaches no output, branch, address or barrier";
  return text;
}

bool RaceReports::is_dead(const Entry& entry) const {
  const detail::Trial* const trial = context_.trial;
  const Race& race = entry.race;
  if (!trial || !trial->poisons || race.kind != Race::Kind::unordered ||
      race.first.writes == race.second.writes || race.first.actor != Actor::thread ||
      race.second.actor != Actor::thread)
    return false;
  const RaceSide& read = race.first.writes ? race.second : race.first;
  return trial->reads.is_dead(context_.grid, read.pc);
}

Level RaceReports::level(const Entry& entry) const {
  if (entry.rule->level == Level::Note) return Level::Note;
  return detail::only_warns(entry.rule->id) || is_dead(entry) ? Level::Warning : Level::Error;
}

std::vector<Finding> RaceReports::findings() const {
  std::vector<Finding> out;
  std::vector<const Entry*> entries;
  for (const Entry& entry : entries_) entries.push_back(&entry);
  std::ranges::stable_partition(entries,
                                [](const Entry* each) { return !is_of_kernel(each->race); });
  for (const Entry* each : entries) {
    const Entry& entry = *each;
    const RaceSide& side = entry.race.second;
    const Thread who = thread(*side.thread);
    out.push_back({.id = std::string(entry.rule->id),
                   .message = text(entry),
                   .line = line(context_, side.pc),
                   .source = source(context_, side.pc),
                   .block = who.block,
                   .lane = static_cast<int>(who.warp * 32 + side.lane),
                   .address = entry.race.address,
                   .level = level(entry)});
  }
  if (left_out_.count) {
    out.back().message +=
        fmt::format("; {} more races between other instructions are left out", left_out_.count);
    out.back().level = Level::Error;
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::emulator
