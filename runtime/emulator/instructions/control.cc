// SPDX-License-Identifier: Apache-2.0
// Control flow (PTX ISA 9.0, 9.7.12): branches, returns, traps. Calls are in calls.cc.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

void branch(Warp& warp, const Op& op) { warp.branch(static_cast<std::uint32_t>(op.value)); }
void exit(Warp& warp, const Op&) { warp.exit(); }
void no_operation(Warp&, const Op&) {}
void yield(Warp& warp, const Op&) { warp.yield(); }

// Lanes go on at targets of their own: those of the first lane's target do now, the others run the
// op again.
void branch_by_lane(Warp& warp, const std::uint32_t* targets) {
  const std::uint32_t target = targets[std::countr_zero(warp.mask)];
  warp.defer_all_but(lanes_where(warp.mask, [&](int i) { return targets[i] == target; }));
  warp.branch(target);
}

void branch_indexed(Warp& warp, const Op& op) {
  const auto* index = lanes<std::uint32_t>(warp, op.a);
  std::uint32_t targets[32] = {};
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (index[lane] >= op.value) {
      warp.fail(
          "trap"_rule,
          fmt::format("brx.idx: index {} is out of range of the {} targets", index[lane], op.value),
          lane);
      return;
    }
    targets[lane] = warp.program->slots[op.list + index[lane]];
  }
  branch_by_lane(warp, targets);
}

void return_to_caller(Warp& warp, const Op& op) {
  branch_by_lane(warp, lanes<std::uint32_t>(warp, op.a));
}

void trap(Warp& warp, const Op& op) {
  warp.fail("trap"_rule, op.flags ? "the kernel executed brkpt" : "the kernel executed trap",
            std::countr_zero(warp.mask));
}

void decode_bra(Decoder& d) {
  d.spelling.ignore("uni");
  if (!d.expect_operands(1, 1)) return;
  d.jump(d.emit(branch), d.operand(0).text);
}

void decode_brx(Decoder& d) {
  d.spelling.ignore("uni");
  if (!d.expect_operands(2, 2)) return;
  const auto targets = d.targets(d.operand(1).text);
  if (targets.empty())
    return d.error("undeclared-label"_rule,
                   fmt::format("undefined .branchtargets {}", d.operand(1).text));
  const std::uint32_t index = d.source(0, Type::u32);
  const std::uint32_t list = d.append(std::vector<std::uint32_t>(targets.size()));
  for (std::uint32_t i = 0; i < targets.size(); ++i) d.jump_table(list + i, targets[i].text);
  Op& op = d.emit(branch_indexed);
  op.a = index;
  op.list = list;
  op.value = targets.size();
}

void decode_exit(Decoder& d) { d.emit(exit); }

void decode_ret(Decoder& d) {
  d.spelling.ignore("uni");
  if (d.in_kernel()) return decode_exit(d);
  if (d.current().framed) emit_leave_frame(d);
  d.emit(return_to_caller).a = d.current().return_slot;
}

void decode_trap(Decoder& d) { d.emit(trap).flags = d.spelling.opcode() == Opcode::brkpt; }

void decode_nanosleep(Decoder& d) {
  d.spelling.type();
  d.emit(yield);
}

void set_registers(Warp& warp, const Op& op) {
  if (warp.gather(all_lanes))
    warp.block->set_registers(warp, static_cast<std::uint32_t>(op.value), op.flags != 0);
}

void decode_register_budget(Decoder& d) {
  const bool more = d.spelling.has("inc");
  if (!more && !d.spelling.has("dec")) return d.unsupported();
  d.spelling.ignore("sync aligned");
  d.spelling.type();
  if (!d.expect_operands(1, 1)) return;
  const auto registers = d.integer(d.operand(0));
  if (!registers || *registers < 24 || *registers > 256 || *registers % 8 != 0)
    return d.error("immediate-range"_rule,
                   fmt::format("{} requires a multiple of 8 from 24 to 256", d.spelling.text()));
  std::uint32_t& largest = d.program().largest_budget;
  largest = std::max(largest, static_cast<std::uint32_t>(*registers));
  Op& op = d.emit(set_registers);
  op.value = *registers;
  op.flags = more;
}

void wait_for_predecessor(Warp& warp, const Op&) { tell(warp, &Events::wait_for_predecessor); }

// Launches run one after the other: what is waited for is done, and observers alone hear of it.
void decode_griddepcontrol(Decoder& d) {
  const bool waits = d.spelling.has("wait");
  d.spelling.ignore_all();
  d.emit(waits ? wait_for_predecessor : no_operation);
}

void decode_nothing(Decoder& d) {
  d.spelling.ignore_all();
  d.emit(no_operation);
}

}  // namespace

constexpr EmulatedRow control_rows[] = {
    {Opcode::bra, decode_bra, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::Silent, nothing},
    {Opcode::brx_idx, decode_brx, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::exit, decode_exit, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::ret, decode_ret, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::trap, decode_trap, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::brkpt, decode_trap, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::nanosleep, decode_nanosleep, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::Silent, nothing},
    {Opcode::call, decode_call, Flow::ByHandler, ValueSources::Arguments, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::pmevent, decode_nothing, Flow::Spreads, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::Silent, nothing},
    {Opcode::setmaxnreg, decode_register_budget, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::griddepcontrol, decode_griddepcontrol, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(control_rows, topics::control));

}  // namespace tartan::TARTAN_ABI::emulator
