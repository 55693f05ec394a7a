// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic (PTX ISA 9.0, 9.7.1). Names shared with floating point are in arithmetic.cc.
#include "compiler/isa/signatures/families.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::mul24, .types = {ints_32}, .one = {"hi lo"}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::mad24, .types = {ints_32}, .one = {"hi lo"}, .operands = {dst(), src(), src(), src()}},
    {.opcode = Opcode::mad24, .types = {Type::s32}, .one = {"hi", "sat"}, .operands = {dst(), src(), src(), src()}},
    {.opcode = Opcode::sad, .types = {ints}, .operands = {dst(), src(), src(), src()}},
    {.opcode = Opcode::rem, .types = {ints_to_32}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::rem, .types = {ints_64}, .operands = {dst(), no_function(src()), no_function(src())}},
    {.opcode = Opcode::popc, .types = {bits_32_64}, .operands = {dst(u32), src()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::clz, .types = {bits_32_64}, .operands = {dst(u32), src()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::bfind, .types = {ints_32_64}, .flags = "shiftamt", .operands = {dst(u32), src()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::fns, .types = {b32}, .operands = {dst(), src(), src(), src(s32)}, .since = {{6, 0}, 30}},
    {.opcode = Opcode::brev, .types = {bits_32_64}, .operands = {dst(), src()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::bfe, .types = {ints_32_64}, .operands = {dst(), src(), position(), position()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::bfi, .types = {bits_32_64}, .operands = {dst(), src(), src(), position(), position()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::szext, .types = {ints_32}, .one = {"clamp wrap"}, .operands = {dst(), src(), src(u32)}, .since = {{7, 6}, 70}},
    {.opcode = Opcode::bmsk, .types = {b32}, .one = {"clamp wrap"}, .operands = {dst(u32), src(u32), src(u32)}, .since = {{7, 6}, 70}},
    {.opcode = Opcode::dp4a, .types = {ints_32, ints_32}, .operands = {dst(u32), src(u32), src(u32), src(u32)}, .since = {{5, 0}, 61}},
    {.opcode = Opcode::clmad, .types = {ints_64}, .one = {"lo hi"}, .operands = {dst(), src(), src(), src()}, .since = {{9, 3}, 80}},
    {.opcode = Opcode::dp2a, .types = {ints_32, ints_32}, .one = {"lo hi"}, .operands = {dst(u32), src(u32), src(u32), src(u32)}, .since = {{5, 0}, 61}},
};
// clang-format on

}  // namespace

std::span<const Signature> integer_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
