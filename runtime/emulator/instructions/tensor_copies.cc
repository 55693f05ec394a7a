// SPDX-License-Identifier: Apache-2.0
// tcgen05.cp (PTX ISA 9.0, 9.7.16.9).
#include "runtime/emulator/instructions/table.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

void refuse_copies(Decoder& d) { d.unsupported("tcgen05.cp is not emulated"); }

}  // namespace

constexpr EmulatedRow tensor_copies_rows[] = {
    {Opcode::tcgen05_cp, refuse_copies, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(tensor_copies_rows, topics::tensor_copies));

}  // namespace tartan::TARTAN_ABI::emulator
