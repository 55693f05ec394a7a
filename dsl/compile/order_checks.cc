// SPDX-License-Identifier: Apache-2.0
#include "dsl/compile/order_checks.h"

#include "compiler/ir/shared_order.h"
#include "dsl/units/ptx/assembly.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// Bytes from a stage to the next one: matrices of a ring begin at multiples of 128 bytes.
std::int64_t stage_bytes(const Memory& memory) {
  constexpr std::int64_t unit = 128;
  if (memory.stages == 1) return memory.bytes;
  const std::int64_t each = memory.stages * unit;
  return (memory.bytes + each - 1) / each * unit;
}

ir::OrderOptions options_of(const KernelState& state) {
  const bool roles = state.roles.divided && state.config.options.producers > 0;
  ir::OrderOptions out{.threads = state.config.all_threads(),
                       .consumers = roles ? state.config.options.block : 0,
                       .consumers_barrier = consumers_barrier,
                       .waits = waits};
  for (const Memory& each : state.memories.all())
    if (!each.shown.empty()) out.memories.push_back({each.base.id, stage_bytes(each)});
  for (const Turns& each : state.roles.turns) out.turns.push_back(each.barriers.id);
  return out;
}

std::string name_of(const KernelState& state, int base) {
  for (const Memory& each : state.memories.all())
    if (each.base.id == base && !each.shown.empty())
      return each.shown.substr(0, each.shown.find(':'));
  return "shared memory";
}

std::string cure(const ir::Disorder& found) {
  const std::string_view barrier = found.within_warp ? "warp_sync()" : "barrier()";
  return found.carried ? fmt::format("insert a {} at the end of the loop's body", barrier)
                       : fmt::format("insert a {} between them", barrier);
}

std::string told(const KernelState& state, const ir::Disorder& found) {
  const std::string name = name_of(state, found.memory), before = text(found.before);
  const std::string_view by = found.within_warp ? " by other lanes of the warp" : "",
                         without = found.within_warp ? "warp_sync()" : "barrier";
  if (found.carried)
    return fmt::format(
        "{} is {} at {}, and the next iteration of the loop {} it{} without a {}; {}", name,
        found.writes_before ? "written" : "read", before, found.writes_behind ? "writes" : "loads",
        by, without, cure(found));
  return fmt::format("{} was {} at {} and is {}{} without a {}; {}", name,
                     found.writes_before ? "written" : "read", before,
                     found.writes_behind ? "written" : "loaded", by, without, cure(found));
}

std::string told(const ir::Missed& found) {
  if (found.found > found.expected)
    return fmt::format(
        "barrier of {} threads: {} come to it, so that some of them wait for others than they "
        "mean; expected the number of threads that call barrier() and arrive() with its number",
        found.expected, found.found);
  if (found.condition.line() == 0)
    return fmt::format(
        "barrier of {} threads: only {} reach it, so that these wait forever; expected the number "
        "of threads that call barrier() and arrive() with its number",
        found.expected, found.found);
  return fmt::format(
      "barrier: expected all {} threads, found {}, as the condition or loop at {} lets only them "
      "pass; move it out of there",
      found.expected, found.found, text(found.condition));
}

}  // namespace

void check_order(KernelState& state) {
  const ir::OrderFindings found = ir::check_order(state.function->function(), options_of(state));
  for (const ir::Disorder& each : found.disorders)
    state.log.report_at("unsynchronized-tile"_rule, each.behind, told(state, each));
  for (const ir::Missed& each : found.missed)
    state.log.report_at("divergent-collective"_rule, each.barrier, told(each));
}

}  // namespace tartan::TARTAN_ABI::detail
