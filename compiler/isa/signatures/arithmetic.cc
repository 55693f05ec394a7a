// SPDX-License-Identifier: Apache-2.0
// Arithmetic whose names integers and floating point share (PTX ISA 9.0, 9.7.1 to 9.7.5).
#include "compiler/isa/signatures/families.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr TypeSet packed_16{Type::u16x2, Type::s16x2};
constexpr TypeSet packed_8{Type::u8x4, Type::s8x4};
constexpr TypeSet half{Type::f16, Type::f16x2};
constexpr TypeSet brain{Type::bf16, Type::bf16x2};
constexpr OperandType wide(0, 1);
constexpr Since sm_20{{1, 4}, 20};
constexpr Need cc_64{{}, ints_64, {{4, 3}, 20}};
constexpr Since halves{{4, 2}, 53};
constexpr Since pairs{{8, 6}, 100};
// Four bytes in a register.
constexpr Since bytes{.ptx = {9, 2}, .sm = 107, .reach = Reach::Family, .only = {107, 120, 121}};
// Four floats of eight bits, whose sources may have fewer.
constexpr Since fp8{.ptx = {9, 4}, .sm = 100, .reach = Reach::ArchOnly, .only = {100, 103}};
constexpr TypeSet fp8_results{Type::e4m3x4, Type::e5m2x4};
constexpr TypeSet fp8_sources{Type::e4m3x4, Type::e5m2x4,   Type::e3m2x4, Type::e2m3x4,
                              Type::e2m1x4, Type::e2m1p4x4, Type::ue8m0x4};
constexpr OperandRow fp8_a = reg(OperandType(1)), fp8_b = reg(OperandType(2));

// clang-format off
constexpr Signature rows[] = {
    // add, sub
    {.opcode = Opcode::add, .types = {ints}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::add, .types = {Type::s32}, .one = {"sat"}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::add, .types = {packed_16}, .operands = {dst(), reg(), reg()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::add, .types = {ints_32_64}, .one = {"cc"}, .operands = {dst(), src(), src()}, .needs = {cc_64}},
    {.opcode = Opcode::add, .types = {f32}, .any = {"rn rz rm rp"}, .flags = "ftz sat", .operands = {dst(), src(), src()}},
    {.opcode = Opcode::add, .types = {f64}, .any = {"rn rz rm rp"}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::add, .types = {Type::f32x2}, .any = {"rn rz rm rp"}, .flags = "ftz", .operands = {dst(), reg(), reg()}, .since = pairs},
    {.opcode = Opcode::add, .types = {half}, .any = {"rn"}, .flags = "ftz sat", .operands = {dst(), reg(), reg()}, .since = halves},
    {.opcode = Opcode::add, .types = {brain}, .any = {"rn"}, .operands = {dst(), reg(), reg()}, .since = {{7, 8}, 90}},
    {.opcode = Opcode::add, .types = {f32, f16}, .any = {"rn rz rm rp"}, .flags = "sat", .operands = {dst(), reg(OperandType(1)), src()}, .since = pairs},
    {.opcode = Opcode::add, .types = {f32, bf16}, .any = {"rn rz rm rp"}, .flags = "sat", .operands = {dst(), src(Type::u16), src()}, .since = pairs},
    {.opcode = Opcode::sub, .types = {ints}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::sub, .types = {Type::s32}, .one = {"sat"}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::sub, .types = {ints_32_64}, .one = {"cc"}, .operands = {dst(), src(), src()}, .needs = {cc_64}},
    {.opcode = Opcode::sub, .types = {f32}, .any = {"rn rz rm rp"}, .flags = "ftz sat", .operands = {dst(), src(), src()}},
    {.opcode = Opcode::sub, .types = {f64}, .any = {"rn rz rm rp"}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::sub, .types = {Type::f32x2}, .any = {"rn rz rm rp"}, .flags = "ftz", .operands = {dst(), reg(), reg()}, .since = pairs},
    {.opcode = Opcode::sub, .types = {half}, .any = {"rn"}, .flags = "ftz sat", .operands = {dst(), reg(), reg()}, .since = halves},
    {.opcode = Opcode::sub, .types = {brain}, .any = {"rn"}, .operands = {dst(), reg(), reg()}, .since = {{7, 8}, 90}},
    {.opcode = Opcode::sub, .types = {f32, f16}, .any = {"rn rz rm rp"}, .flags = "sat", .operands = {dst(), reg(OperandType(1)), src()}, .since = pairs},
    {.opcode = Opcode::sub, .types = {f32, bf16}, .any = {"rn rz rm rp"}, .flags = "sat", .operands = {dst(), src(Type::u16), src()}, .since = pairs},
    {.opcode = Opcode::add, .types = {packed_8}, .flags = "sat", .operands = {dst(), reg(), reg()}, .since = bytes},
    {.opcode = Opcode::add, .types = {{Type::u16x2, Type::s16x2}}, .one = {"sat"}, .operands = {dst(), reg(), reg()}, .since = bytes},
    {.opcode = Opcode::add, .types = {Type::u32}, .one = {"sat"}, .operands = {dst(), src(), src()}, .since = bytes},
    {.opcode = Opcode::sub, .types = {packed_8}, .flags = "sat", .operands = {dst(), reg(), reg()}, .since = bytes},
    {.opcode = Opcode::add, .types = {fp8_results, fp8_sources}, .flags = "rn satfinite", .operands = {dst(), fp8_a, reg()}, .since = fp8},
    {.opcode = Opcode::sub, .types = {fp8_results, fp8_sources}, .flags = "rn satfinite", .operands = {dst(), fp8_a, reg()}, .since = fp8},
    {.opcode = Opcode::mul, .types = {fp8_results, fp8_sources, fp8_sources}, .flags = "rn satfinite", .operands = {dst(), fp8_a, fp8_b}, .since = fp8},
    {.opcode = Opcode::fma, .types = {fp8_results, fp8_sources, fp8_sources}, .flags = "rn satfinite", .operands = {dst(), fp8_a, fp8_b, reg()}, .since = fp8},
    {.opcode = Opcode::addc, .types = {ints}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::addc, .types = {ints_32_64}, .one = {"cc"}, .operands = {dst(), src(), src()}, .needs = {cc_64}},
    {.opcode = Opcode::subc, .types = {ints}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::subc, .types = {ints_32_64}, .one = {"cc"}, .operands = {dst(), src(), src()}, .needs = {cc_64}},
    // mul, mad, fma
    {.opcode = Opcode::mul, .types = {ints}, .one = {"lo hi"}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::mul, .types = {TypeSet{Type::u16, Type::s16, Type::u32, Type::s32}}, .one = {"wide"}, .operands = {dst(wide), src(), src()}},
    {.opcode = Opcode::mul, .types = {f32}, .any = {"rn rz rm rp"}, .flags = "ftz sat", .operands = {dst(), src(), src()}},
    {.opcode = Opcode::mul, .types = {f64}, .any = {"rn rz rm rp"}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::mul, .types = {Type::f32x2}, .any = {"rn rz rm rp"}, .flags = "ftz", .operands = {dst(), reg(), reg()}, .since = pairs},
    {.opcode = Opcode::mul, .types = {half}, .any = {"rn"}, .flags = "ftz sat", .operands = {dst(), reg(), reg()}, .since = halves},
    {.opcode = Opcode::mul, .types = {brain}, .any = {"rn"}, .operands = {dst(), reg(), reg()}, .since = {{7, 8}, 90}},
    {.opcode = Opcode::mad, .types = {ints}, .one = {"lo hi"}, .operands = {dst(), src(), src(), src()}},
    {.opcode = Opcode::mad, .types = {TypeSet{Type::u16, Type::s16, Type::u32, Type::s32}}, .one = {"wide"}, .operands = {dst(wide), src(), src(), src(wide)}},
    {.opcode = Opcode::mad, .types = {Type::s32}, .one = {"hi", "sat"}, .operands = {dst(), src(), src(), src()}},
    {.opcode = Opcode::mad, .types = {ints_32_64}, .one = {"lo hi", "cc"}, .operands = {dst(), src(), src(), src()}, .since = {{3, 0}, 20}, .needs = {cc_64}},
    {.opcode = Opcode::mad, .types = {f32}, .one = {"rn rz rm rp"}, .flags = "ftz sat", .operands = {dst(), src(), src(), src()}},
    {.opcode = Opcode::mad, .types = {f32}, .flags = "ftz sat", .operands = {dst(), src(), src(), src()}, .since = until(3, 1), .needs = {{"ftz", {}, {{1, 4}, 0}}}},
    {.opcode = Opcode::mad, .types = {f64}, .operands = {dst(), src(), src(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::mad, .types = {f64}, .one = {"rn rz rm rp"}, .operands = {dst(), src(), src(), src()}},
    {.opcode = Opcode::madc, .types = {ints}, .one = {"lo hi"}, .operands = {dst(), src(), src(), src()}, .since = {{3, 0}, 20}},
    {.opcode = Opcode::madc, .types = {ints_32_64}, .one = {"lo hi", "cc"}, .operands = {dst(), src(), src(), src()}, .since = {{3, 0}, 20}, .needs = {cc_64}},
    {.opcode = Opcode::fma, .types = {f32}, .one = {"rn rz rm rp"}, .flags = "ftz sat", .operands = {dst(), src(), src(), src()}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::fma, .types = {f64}, .one = {"rn rz rm rp"}, .operands = {dst(), src(), src(), src()}},
    {.opcode = Opcode::fma, .types = {Type::f32x2}, .one = {"rn rz rm rp"}, .flags = "ftz", .operands = {dst(), reg(), reg(), reg()}, .since = pairs},
    {.opcode = Opcode::fma, .types = {half}, .one = {"rn"}, .any = {"sat relu"}, .flags = "ftz", .operands = {dst(), reg(), reg(), reg()}, .since = halves, .needs = {{"relu", {}, {{7, 0}, 80}}}},
    {.opcode = Opcode::fma, .types = {brain}, .one = {"rn rz rm rp"}, .flags = "relu", .operands = {dst(), reg(), reg(), reg()}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::fma, .types = {half}, .one = {"rn", "oob"}, .any = {"sat relu"}, .operands = {dst(), reg(), reg(), reg()}, .since = {{8, 1}, 90}},
    {.opcode = Opcode::fma, .types = {brain}, .one = {"rn rz rm rp", "oob"}, .flags = "relu", .operands = {dst(), reg(), reg(), reg()}, .since = {{8, 1}, 90}},
    {.opcode = Opcode::fma, .types = {f32, f16}, .one = {"rn rz rm rp"}, .flags = "sat", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1)), src()}, .since = pairs},
    {.opcode = Opcode::fma, .types = {f32, bf16}, .one = {"rn rz rm rp"}, .flags = "sat", .operands = {dst(), src(Type::u16), src(Type::u16), src()}, .since = pairs},
    // div
    {.opcode = Opcode::div, .types = {ints_to_32}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::div, .types = {ints_64}, .operands = {dst(), no_function(src()), no_function(src())}},
    {.opcode = Opcode::div, .types = {f32}, .one = {"rn rz rm rp approx full"}, .flags = "ftz", .operands = {dst(), src(), src()}},
    {.opcode = Opcode::div, .types = {TypeSet{f32, f64}}, .operands = {dst(), src(), src()}, .since = until(1, 3)},
    {.opcode = Opcode::div, .types = {f64}, .one = {"rn rz rm rp"}, .operands = {dst(), src(), src()}},
    // min, max
    {.opcode = Opcode::min, .types = {ints}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::min, .types = {Type::s32}, .one = {"relu"}, .operands = {dst(), src(), src()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::min, .types = {Type::s16x2}, .one = {"relu"}, .operands = {dst(), reg(), reg()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::min, .types = {packed_16}, .operands = {dst(), reg(), reg()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::min, .types = {f32}, .flags = "ftz NaN", .operands = {dst(), src(), src()}, .needs = {{"NaN", {}, {{7, 0}, 80}}}},
    {.opcode = Opcode::min, .types = {f32}, .one = {"xorsign", "abs"}, .flags = "ftz NaN", .operands = {dst(), src(), src()}, .since = {{7, 2}, 86}},
    {.opcode = Opcode::min, .types = {f32}, .flags = "ftz NaN abs", .operands = {dst(), src(), src(), src()}, .since = {{8, 8}, 100}},
    {.opcode = Opcode::min, .types = {f64}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::min, .types = {half}, .flags = "ftz NaN", .operands = {dst(), reg(), reg()}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::min, .types = {half}, .one = {"xorsign", "abs"}, .flags = "ftz NaN", .operands = {dst(), reg(), reg()}, .since = {{7, 2}, 86}},
    {.opcode = Opcode::min, .types = {brain}, .flags = "NaN", .operands = {dst(), reg(), reg()}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::min, .types = {brain}, .one = {"xorsign", "abs"}, .flags = "NaN", .operands = {dst(), reg(), reg()}, .since = {{7, 2}, 86}},
    {.opcode = Opcode::max, .types = {ints}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::max, .types = {Type::s32}, .one = {"relu"}, .operands = {dst(), src(), src()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::max, .types = {Type::s16x2}, .one = {"relu"}, .operands = {dst(), reg(), reg()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::max, .types = {packed_16}, .operands = {dst(), reg(), reg()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::max, .types = {f32}, .flags = "ftz NaN", .operands = {dst(), src(), src()}, .needs = {{"NaN", {}, {{7, 0}, 80}}}},
    {.opcode = Opcode::max, .types = {f32}, .one = {"xorsign", "abs"}, .flags = "ftz NaN", .operands = {dst(), src(), src()}, .since = {{7, 2}, 86}},
    {.opcode = Opcode::max, .types = {f32}, .flags = "ftz NaN abs", .operands = {dst(), src(), src(), src()}, .since = {{8, 8}, 100}},
    {.opcode = Opcode::max, .types = {f64}, .operands = {dst(), src(), src()}},
    {.opcode = Opcode::max, .types = {half}, .flags = "ftz NaN", .operands = {dst(), reg(), reg()}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::max, .types = {half}, .one = {"xorsign", "abs"}, .flags = "ftz NaN", .operands = {dst(), reg(), reg()}, .since = {{7, 2}, 86}},
    {.opcode = Opcode::max, .types = {brain}, .flags = "NaN", .operands = {dst(), reg(), reg()}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::max, .types = {brain}, .one = {"xorsign", "abs"}, .flags = "NaN", .operands = {dst(), reg(), reg()}, .since = {{7, 2}, 86}},
    {.opcode = Opcode::min, .types = {packed_8}, .operands = {dst(), reg(), reg()}, .since = bytes},
    {.opcode = Opcode::min, .types = {Type::s8x4}, .one = {"relu"}, .operands = {dst(), reg(), reg()}, .since = bytes},
    {.opcode = Opcode::max, .types = {packed_8}, .operands = {dst(), reg(), reg()}, .since = bytes},
    {.opcode = Opcode::max, .types = {Type::s8x4}, .one = {"relu"}, .operands = {dst(), reg(), reg()}, .since = bytes},
    {.opcode = Opcode::neg, .types = {Type::s8x4}, .operands = {dst(), reg()}, .since = bytes},
    // abs, neg
    {.opcode = Opcode::abs, .types = {TypeSet{Type::s16, Type::s32, Type::s64}}, .operands = {dst(), src()}},
    {.opcode = Opcode::abs, .types = {f32}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::abs, .types = {f64}, .operands = {dst(), src()}},
    {.opcode = Opcode::abs, .types = {half}, .flags = "ftz", .operands = {dst(), reg()}, .since = {{6, 5}, 53}},
    {.opcode = Opcode::abs, .types = {brain}, .operands = {dst(), reg()}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::neg, .types = {TypeSet{Type::s16, Type::s32, Type::s64}}, .operands = {dst(), src()}},
    {.opcode = Opcode::neg, .types = {f32}, .flags = "ftz", .operands = {dst(), src()}},
    {.opcode = Opcode::neg, .types = {f64}, .operands = {dst(), src()}},
    {.opcode = Opcode::neg, .types = {half}, .flags = "ftz", .operands = {dst(), reg()}, .since = {{6, 0}, 53}},
    {.opcode = Opcode::neg, .types = {brain}, .operands = {dst(), reg()}, .since = {{7, 0}, 80}},
};
// clang-format on

}  // namespace

std::span<const Signature> arithmetic_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
