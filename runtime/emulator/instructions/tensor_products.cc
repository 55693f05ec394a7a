// SPDX-License-Identifier: Apache-2.0
// The tensor core of tcgen05 (PTX ISA 9.0, 9.7.16.10 to 12).
#include "runtime/emulator/instructions/table.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

void refuse_products(Decoder& d) { d.unsupported("MMAs of tcgen05 are not emulated"); }

}  // namespace

constexpr EmulatedRow tensor_products_rows[] = {
    {Opcode::tcgen05_mma, refuse_products, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_commit, refuse_products, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(tensor_products_rows, topics::tensor_products));

}  // namespace tartan::TARTAN_ABI::emulator
