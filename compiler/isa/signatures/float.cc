// SPDX-License-Identifier: Apache-2.0
// Floating-point functions (PTX ISA 9.0, 9.7.3 and 9.7.4). Names shared with integers are in
// arithmetic.cc.
#include "compiler/isa/signatures/families.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr TypeSet half{Type::f16, Type::f16x2};
constexpr TypeSet brain{Type::bf16, Type::bf16x2};

// clang-format off
constexpr Signature rows[] = {
    // without .approx or a rounding, as in early versions
    {.opcode = Opcode::rcp, .types = {f32}, .operands = {dst(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::sqrt, .types = {TypeSet{f32, f64}}, .operands = {dst(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::rsqrt, .types = {TypeSet{f32, f64}}, .operands = {dst(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::sin, .types = {f32}, .operands = {dst(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::cos, .types = {f32}, .operands = {dst(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::lg2, .types = {f32}, .operands = {dst(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::ex2, .types = {f32}, .operands = {dst(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::rcp, .types = {f32}, .one = {"approx rn rz rm rp"}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::rcp, .types = {f64}, .one = {"rn rz rm rp"}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::rcp, .types = {f64}, .one = {"approx", "ftz"}, .operands = {dst(), src()}, .since = {{2, 1}, 20}},
    {.opcode = Opcode::sqrt, .types = {f32}, .one = {"approx rn rz rm rp"}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::sqrt, .types = {f64}, .one = {"rn rz rm rp"}, .operands = {dst(), src()}},
    {.opcode = Opcode::rsqrt, .types = {f32}, .one = {"approx"}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::rsqrt, .types = {f64}, .one = {"approx"}, .flags = "ftz", .operands = {dst(), src()}, .needs = {{"ftz", {}, {{4, 0}, 20}}}},
    {.opcode = Opcode::sin, .types = {f32}, .one = {"approx"}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::cos, .types = {f32}, .one = {"approx"}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::sin, .types = {f32}, .one = {"approx", "ftz", "2pi"}, .operands = {dst(), src()}, .since = {{9, 5}, 50}},
    {.opcode = Opcode::cos, .types = {f32}, .one = {"approx", "ftz", "2pi"}, .operands = {dst(), src()}, .since = {{9, 5}, 50}},
    {.opcode = Opcode::lg2, .types = {f32}, .one = {"approx"}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::ex2, .types = {f32}, .one = {"approx"}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::ex2, .types = {half}, .one = {"approx"}, .operands = {dst(), reg()}, .since = {{7, 0}, 75}},
    {.opcode = Opcode::ex2, .types = {brain}, .one = {"approx", "ftz"}, .operands = {dst(), reg()}, .since = {{7, 8}, 90}},
    {.opcode = Opcode::tanh, .types = {f32}, .one = {"approx"}, .operands = {dst(), src()}, .since = {{7, 0}, 75}},
    {.opcode = Opcode::tanh, .types = {half}, .one = {"approx"}, .operands = {dst(), reg()}, .since = {{7, 0}, 75}},
    {.opcode = Opcode::tanh, .types = {brain}, .one = {"approx"}, .operands = {dst(), reg()}, .since = {{7, 8}, 90}},
    {.opcode = Opcode::testp, .types = {TypeSet{f32, f64}}, .one = {"finite infinite number notanumber normal subnormal"}, .operands = {dst(Type::pred), src()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::copysign, .types = {TypeSet{f32, f64}}, .operands = {dst(), src(), src()}, .since = {{2, 0}, 20}},
};
// clang-format on

}  // namespace

std::span<const Signature> float_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
