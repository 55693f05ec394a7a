// SPDX-License-Identifier: Apache-2.0
// Logic and shifts (PTX ISA 9.0, 9.7.8).
#include "compiler/isa/signatures/families.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr OperandRow predicate = also(a_negation, src(OperandType(0)));

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::and_, .types = {bits_only}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::and_, .types = {Type::pred}, .operands = {dst(), predicate, predicate}},
    {.opcode = Opcode::or_, .types = {bits_only}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::or_, .types = {Type::pred}, .operands = {dst(), predicate, predicate}},
    {.opcode = Opcode::xor_, .types = {bits_only}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::xor_, .types = {Type::pred}, .operands = {dst(), predicate, predicate}},
    {.opcode = Opcode::not_, .types = {bits_only}, .operands = {dst(), src()}},
    {.opcode = Opcode::not_, .types = {Type::pred}, .operands = {dst(), predicate}},
    {.opcode = Opcode::cnot, .types = {bits_only}, .operands = {dst(), src()}},
    {.opcode = Opcode::lop3, .types = {b32}, .operands = {dst(), src(), src(), src(), imm(0, 255)}, .since = {{4, 3}, 50}},
    {.opcode = Opcode::lop3, .types = {b32}, .one = {"or and"}, .operands = {{.accepts = a_pair, .written = true, .sinks = SinkInPair::First}, src(), src(), src(), imm(0, 255), condition()}, .since = {{8, 2}, 70}},
    {.opcode = Opcode::prmt, .types = {b32}, .any = {"f4e b4e rc8 ecl ecr rc16"}, .operands = {dst(), src(), src(), src()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::shf, .types = {b32}, .one = {"l r", "clamp wrap"}, .operands = {dst(), src(), src(), src(u32)}, .since = {{3, 1}, 30}},
    {.opcode = Opcode::shl, .types = {bits_only}, .operands = {dst(), src(), src(u32)}},
    {.opcode = Opcode::shr, .types = {TypeSet{Type::b16, Type::b32, Type::b64, Type::u16, Type::u32, Type::u64, Type::s16, Type::s32, Type::s64}}, .operands = {dst(), src(), src(u32)}},
};
// clang-format on

}  // namespace

std::span<const Signature> logic_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
