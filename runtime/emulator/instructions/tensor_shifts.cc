// SPDX-License-Identifier: Apache-2.0
// tcgen05.shift (PTX ISA 9.0, 9.7.16.9.3): the tensor core moves rows of 32 bytes of a warp's lanes
// by one. Which way, tensor_shift.h says.
#include "runtime/emulator/matrix/tensor_shift.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/instructions/tensor_operands.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int shifted_lanes = 32, shifted_columns = 8;  // .31x256b, and the row that stays
constexpr std::uint8_t of_pair = 1;                     // in op.flags

bool shift(Warp& warp, const Op& op, int lane) {
  const std::uint32_t address = tensor_address(warp, op, lane);
  const TensorArea rows{static_cast<int>(address >> 16), shifted_lanes,
                        static_cast<int>(address & 0xFFFF), shifted_columns};
  const auto fail = [&](std::string_view why) {
    warp.fail("tensor-memory"_rule, fmt::format("tcgen05.shift of address 0x{:x}{}", address, why),
              lane);
    return false;
  };
  if (rows.lane % shifted_lanes)
    return fail(fmt::format(" begins in lane {}: expected a multiple of 32", rows.lane));
  const std::vector<Block*> ctas = ctas_of(warp, op.flags & of_pair, lane);
  if (ctas.empty()) return false;
  for (Block* cta : ctas)
    if (const std::string why = cta->tensor().fault(rows); !why.empty()) return fail(": " + why);
  for (Block* cta : ctas)
    if (!ask(warp, &Events::access_tensor, lane,
             TensorTouch{TensorAgent::core, true, true, rows, cta->rank()}))
      return false;
  for (Block* cta : ctas) {
    tell(warp, &ValueEvents::shift_tensor, rows, cta->rank());
    for (int column = rows.column; column < rows.column + rows.columns; ++column)
      for (int row = rows.lanes - 1; row > 0; --row)
        cta->tensor().cell(rows.lane + row, column) =
            cta->tensor().cell(rows.lane + shifted_from(row), column);
  }
  return true;
}

void shift_all(Warp& warp, const Op& op) {
  for (std::uint32_t m = warp.mask; m; m &= m - 1)
    if (!shift(warp, op, std::countr_zero(m))) return;
}

void decode_shift(Decoder& d) {
  const auto pair = is_matched_of_pair(d);
  if (!pair) return;
  if (!d.expect_operands(1, 1)) return;
  d.rest_on(Trust::Assumed, shift_source);
  Op& op = d.emit(shift_all);
  op.flags = *pair ? of_pair : std::uint8_t{0};
  d.address(op, d.operand(0), Window::global);
}

}  // namespace

constexpr EmulatedRow tensor_shifts_rows[] = {
    {Opcode::tcgen05_shift, decode_shift, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(tensor_shifts_rows, topics::tensor_shifts));

}  // namespace tartan::TARTAN_ABI::emulator
