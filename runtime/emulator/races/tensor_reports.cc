// SPDX-License-Identifier: Apache-2.0
// What findings say of accesses to tensor memory, and of the tensor core.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/races/reports.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint64_t bytes_of_lane = 4 * TensorMemory::columns;

std::string accumulator_text(const TensorIssue& issue) {
  return fmt::format("{}: M {}, N {}", cell_text(issue.lane, issue.column), issue.m, issue.n);
}

}  // namespace

std::string RaceReports::tensor_cell_text(std::uint64_t address) {
  return "tensor memory at " + cell_text(static_cast<int>(address / bytes_of_lane),
                                         static_cast<int>(address % bytes_of_lane / 4));
}

std::string RaceReports::tensor_advice(const Race& race) const {
  switch (race.first.actor) {
    case Actor::tensor_load:
    case Actor::tensor_store: {
      const std::string_view wait =
          race.first.actor == Actor::tensor_load ? "tcgen05.wait::ld" : "tcgen05.wait::st";
      return race.waited ? fmt::format(
                               "its warp has executed {}, but that is not ordered before this "
                               "access: insert tcgen05.fence::before_thread_sync and a barrier, or "
                               "a wait for an mbarrier phase at which the warp arrives, behind it",
                               wait)
                         : fmt::format("it may still be under way: expected {} in its warp", wait);
    }
    default:
      if (opcode(context_, race.first.pc).starts_with("tcgen05.commit"))
        return "the commit may still arrive there: expected a wait for the phase of its mbarrier";
      if (race.unfenced)
        return "a barrier orders the two threads, but not what they issue: insert "
               "tcgen05.fence::before_thread_sync in front of it in the first one, and "
               "tcgen05.fence::after_thread_sync behind it in the second, or wait for a commit";
      return "the tensor core may still be at work: expected tcgen05.commit in the thread that "
             "issued it, and a wait for the phase of its mbarrier before this access";
  }
}

std::string RaceReports::slot_advice() {
  return "the address is read before, but no fence.proxy.async follows its loads: insert one "
         "between "
         "them and the barrier or arrival that follows";
}

// A tensor core may use the memory of the other CTA of its pair.
std::string RaceReports::pair_text(const Race& race) const {
  for (const RaceSide* side : {&race.first, &race.second})
    if (race.kind != Race::Kind::exited && side->actor == Actor::tensor_core && side->thread &&
        race.shared && numbers_.rank(*side->thread) != race.rank)
      return fmt::format(" of CTA rank {}", race.rank);
  return {};
}

std::string RaceReports::tensor_text(const Race& race) const {
  switch (race.kind) {
    case Race::Kind::tensor_unfenced: return fence_text(race);
    case Race::Kind::reordered:
      return race.first.writes ? accumulators_text(race) : factor_text(race);
    case Race::Kind::collector: return collector_text(race);
    default: break;
  }
  if (&rule(race) != &"mbarrier"_rule || race.first.actor != Actor::tensor_core) return {};
  const bool blocks = apart(race);
  return fmt::format("the mbarrier {} is used by {} and set up or invalidated by {}; {}",
                     memory_text(race), side_text(race.first, blocks),
                     side_text(race.second, blocks), tensor_advice(race));
}

// A barrier orders the two, and not all fences are there.
std::string RaceReports::fence_text(const Race& race) const {
  const std::string_view before = "tcgen05.fence::before_thread_sync behind the first",
                         after = "tcgen05.fence::after_thread_sync in front of the second";
  const std::string missing = race.fences.before && race.fences.after
                                  ? fmt::format("{} and {}", before, after)
                                  : std::string(race.fences.before ? before : after);
  return fmt::format(
      "tensor memory is {} by {} and {} by {}; a barrier orders the two, but the manual asks for "
      "{} as well (Triton and the CuTe DSL leave both out)",
      race.first.writes ? "written" : "read", side_text(race.first, false),
      race.second.writes ? "written" : "read", side_text(race.second, false), missing);
}

std::string RaceReports::accumulators_text(const Race& race) const {
  return fmt::format(
      "the accumulators of {} ({}) and {} ({}) overlap and are not the same, so the manual leaves "
      "open which product comes first: insert tcgen05.commit behind the first one and a wait for "
      "the phase of its mbarrier in front of the second",
      side_text(race.first, false), accumulator_text(race.accumulators[0]),
      side_text(race.second, false), accumulator_text(race.accumulators[1]));
}

std::string RaceReports::factor_text(const Race& race) const {
  return fmt::format(
      "{} is read by {}, and {} writes its D there; the manual leaves open which product comes "
      "first (FlashAttention-4 takes it that they run in their order): insert tcgen05.commit "
      "behind "
      "the first one and a wait for the phase of its mbarrier in front of the second",
      memory_text(race), side_text(race.first, false), side_text(race.second, false));
}

std::string RaceReports::collector_text(const Race& race) const {
  const std::string begin =
      fmt::format("{} may take A from the collector", side_text(race.second, false));
  const std::string filled = side_text(race.first, false);
  switch (race.kept) {
    case Race::Kept::nothing:
      return begin +
             ", but nothing is kept there: expected a product with .collector::a::fill and "
             "the same A before it";
    case Race::Kept::other:
      return fmt::format("{}, but {} filled it with another A: expected the same descriptor and M",
                         begin, filled);
    case Race::Kept::changed:
      return fmt::format(
          "{}, which {} filled, but A has changed since: the product may see either; expected "
          ".collector::a::fill again, or none",
          begin, filled);
  }
  return {};
}

}  // namespace tartan::TARTAN_ABI::emulator
