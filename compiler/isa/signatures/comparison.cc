// SPDX-License-Identifier: Apache-2.0
// Comparison and selection (PTX ISA 9.0, 9.7.6 and 9.7.7).
#include "compiler/isa/signatures/families.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr TypeSet bits_of{Type::b16, Type::b32, Type::b64};
constexpr TypeSet unsigned_of{Type::u16, Type::u32, Type::u64};
constexpr TypeSet signed_of{Type::s16, Type::s32, Type::s64};
constexpr TypeSet results{Type::u32, Type::s32, f32, f16, bf16};
constexpr TypeSet exact_results{Type::u32, Type::s32, f32, f16};
constexpr TypeSet half_integers{Type::u16, Type::s16, Type::u32, Type::s32};
constexpr TypeSet selected{Type::b16, Type::b32, Type::b64, Type::u16, Type::u32, Type::u64,
                           Type::s16, Type::s32, Type::s64, f32,       f64};

constexpr QualifierSet equality = "eq ne";
constexpr QualifierSet ordered = "eq ne lt le gt ge";
constexpr QualifierSet ordered_unsigned = "eq ne lt le gt ge lo ls hi hs";
constexpr QualifierSet floating = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan";
constexpr QualifierSet boolean = "and or xor";

// p or p|q.
constexpr OperandRow result{
    .accepts = a_register | a_pair | a_sink, .type = Type::pred, .written = true};
constexpr OperandRow one_result{
    .accepts = a_register | a_sink, .type = Type::pred, .written = true};

constexpr OperandRow register_condition{.accepts = a_register | a_negation, .type = Type::pred};

constexpr Since halves{{4, 2}, 53};
constexpr Since half_to_integer{{6, 5}, 53};
constexpr Since brains{{7, 8}, 90};
constexpr Need half_result{{}, f16, halves}, brain_result{{}, bf16, brains};

std::string_view flushed_brain(const Spelling& spelling) {
  return spelling.has("ftz"_q) && spelling.type() == bf16
             ? "does not accept .ftz with a result of .bf16"
             : "";
}

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::set, .types = {results, bits_of}, .one = {equality}, .operands = {dst(), src(OperandType(1)), src(OperandType(1))}, .needs = {half_result, brain_result}},
    {.opcode = Opcode::set, .types = {exact_results, bits_of}, .one = {equality, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), condition()}, .needs = {half_result}},
    {.opcode = Opcode::set, .types = {bf16, bits_of}, .one = {equality, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), register_condition}, .since = brains},
    {.opcode = Opcode::set, .types = {results, signed_of}, .one = {ordered}, .operands = {dst(), src(OperandType(1)), src(OperandType(1))}, .needs = {half_result, brain_result}},
    {.opcode = Opcode::set, .types = {exact_results, signed_of}, .one = {ordered, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), condition()}, .needs = {half_result}},
    {.opcode = Opcode::set, .types = {bf16, signed_of}, .one = {ordered, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), register_condition}, .since = brains},
    {.opcode = Opcode::set, .types = {results, unsigned_of}, .one = {ordered_unsigned}, .operands = {dst(), src(OperandType(1)), src(OperandType(1))}, .needs = {half_result, brain_result}},
    {.opcode = Opcode::set, .types = {exact_results, unsigned_of}, .one = {ordered_unsigned, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), condition()}, .needs = {half_result}},
    {.opcode = Opcode::set, .types = {bf16, unsigned_of}, .one = {ordered_unsigned, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), register_condition}, .since = brains},
    {.opcode = Opcode::set, .types = {results, f32}, .one = {floating}, .flags = "ftz", .operands = {dst(), src(OperandType(1)), src(OperandType(1))}, .needs = {half_result, brain_result}, .refuses = flushed_brain},
    {.opcode = Opcode::set, .types = {exact_results, f32}, .one = {floating, boolean}, .flags = "ftz", .operands = {dst(), src(OperandType(1)), src(OperandType(1)), condition()}, .needs = {half_result}},
    {.opcode = Opcode::set, .types = {bf16, f32}, .one = {floating, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), register_condition}, .since = brains},
    {.opcode = Opcode::set, .types = {results, f64}, .one = {floating}, .operands = {dst(), src(OperandType(1)), src(OperandType(1))}, .needs = {half_result, brain_result}},
    {.opcode = Opcode::set, .types = {exact_results, f64}, .one = {floating, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), condition()}, .needs = {half_result}},
    {.opcode = Opcode::set, .types = {bf16, f64}, .one = {floating, boolean}, .operands = {dst(), src(OperandType(1)), src(OperandType(1)), register_condition}, .since = brains},
    {.opcode = Opcode::setp, .types = {bits_of}, .one = {equality}, .operands = {result, src(), src()}},
    {.opcode = Opcode::setp, .types = {bits_of}, .one = {equality, boolean}, .operands = {result, src(), src(), condition()}},
    {.opcode = Opcode::setp, .types = {signed_of}, .one = {ordered}, .operands = {result, src(), src()}},
    {.opcode = Opcode::setp, .types = {signed_of}, .one = {ordered, boolean}, .operands = {result, src(), src(), condition()}},
    {.opcode = Opcode::setp, .types = {unsigned_of}, .one = {ordered_unsigned}, .operands = {result, src(), src()}},
    {.opcode = Opcode::setp, .types = {unsigned_of}, .one = {ordered_unsigned, boolean}, .operands = {result, src(), src(), condition()}},
    {.opcode = Opcode::setp, .types = {f32}, .one = {floating}, .flags = "ftz", .operands = {result, src(), src()}},
    {.opcode = Opcode::setp, .types = {f32}, .one = {floating, boolean}, .flags = "ftz", .operands = {result, src(), src(), condition()}},
    {.opcode = Opcode::setp, .types = {f64}, .one = {floating}, .operands = {result, src(), src()}},
    {.opcode = Opcode::setp, .types = {f64}, .one = {floating, boolean}, .operands = {result, src(), src(), condition()}},
    // 16 bits
    {.opcode = Opcode::set, .types = {f16, f16}, .one = {floating}, .flags = "ftz", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1))}, .since = halves},
    {.opcode = Opcode::set, .types = {bf16, f16}, .one = {floating}, .operands = {dst(), reg(OperandType(1)), reg(OperandType(1))}, .since = brains},
    {.opcode = Opcode::set, .types = {f16, f16}, .one = {floating, boolean}, .flags = "ftz", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1)), condition()}, .since = halves},
    {.opcode = Opcode::set, .types = {bf16, f16}, .one = {floating, boolean}, .operands = {dst(), reg(OperandType(1)), reg(OperandType(1)), register_condition}, .since = brains},
    {.opcode = Opcode::set, .types = {half_integers, f16}, .one = {floating}, .flags = "ftz", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1))}, .since = half_to_integer},
    {.opcode = Opcode::set, .types = {half_integers, f16}, .one = {floating, boolean}, .flags = "ftz", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1)), condition()}, .since = half_to_integer},
    {.opcode = Opcode::set, .types = {TypeSet{bf16, Type::u16, Type::s16, Type::u32, Type::s32}, bf16}, .one = {floating}, .operands = {dst(), reg(OperandType(1)), reg(OperandType(1))}, .since = brains},
    {.opcode = Opcode::set, .types = {TypeSet{bf16, Type::u16, Type::s16, Type::u32, Type::s32}, bf16}, .one = {floating, boolean}, .operands = {dst(), reg(OperandType(1)), reg(OperandType(1)), register_condition}, .since = brains},
    {.opcode = Opcode::set, .types = {Type::f16x2, Type::f16x2}, .one = {floating}, .flags = "ftz", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1))}, .since = halves},
    {.opcode = Opcode::set, .types = {Type::f16x2, Type::f16x2}, .one = {floating, boolean}, .flags = "ftz", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1)), condition()}, .since = halves},
    {.opcode = Opcode::set, .types = {ints_32, Type::f16x2}, .one = {floating}, .flags = "ftz", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1))}, .since = half_to_integer},
    {.opcode = Opcode::set, .types = {ints_32, Type::f16x2}, .one = {floating, boolean}, .flags = "ftz", .operands = {dst(), reg(OperandType(1)), reg(OperandType(1)), condition()}, .since = half_to_integer},
    {.opcode = Opcode::set, .types = {TypeSet{Type::bf16x2, Type::u32, Type::s32}, Type::bf16x2}, .one = {floating}, .operands = {dst(), reg(OperandType(1)), reg(OperandType(1))}, .since = brains},
    {.opcode = Opcode::set, .types = {TypeSet{Type::bf16x2, Type::u32, Type::s32}, Type::bf16x2}, .one = {floating, boolean}, .operands = {dst(), reg(OperandType(1)), reg(OperandType(1)), register_condition}, .since = brains},
    {.opcode = Opcode::setp, .types = {f16}, .one = {floating}, .flags = "ftz", .operands = {one_result, reg(), reg()}, .since = halves},
    {.opcode = Opcode::setp, .types = {f16}, .one = {floating, boolean}, .flags = "ftz", .operands = {one_result, reg(), reg(), condition()}, .since = halves},
    {.opcode = Opcode::setp, .types = {Type::f16x2}, .one = {floating}, .flags = "ftz", .operands = {result, reg(), reg()}, .since = halves},
    {.opcode = Opcode::setp, .types = {Type::f16x2}, .one = {floating, boolean}, .flags = "ftz", .operands = {result, reg(), reg(), condition()}, .since = halves},
    {.opcode = Opcode::setp, .types = {bf16}, .one = {floating}, .operands = {one_result, reg(), reg()}, .since = brains},
    {.opcode = Opcode::setp, .types = {bf16}, .one = {floating, boolean}, .operands = {one_result, reg(), reg(), register_condition}, .since = brains},
    {.opcode = Opcode::setp, .types = {Type::bf16x2}, .one = {floating}, .operands = {result, reg(), reg()}, .since = brains},
    {.opcode = Opcode::setp, .types = {Type::bf16x2}, .one = {floating, boolean}, .operands = {result, reg(), reg(), register_condition}, .since = brains},
    // integers of eight and sixteen bits in a register
    {.opcode = Opcode::set, .types = {{Type::s8x4, Type::s16x2}}, .one = {ordered}, .operands = {dst(), reg(), reg()}, .since = rubin},
    {.opcode = Opcode::set, .types = {{Type::u8x4, Type::u16x2}}, .one = {ordered_unsigned}, .operands = {dst(), reg(), reg()}, .since = rubin},
    // selection
    {.opcode = Opcode::selp, .types = {selected}, .operands = {dst(), src(), src(), condition()}},
    {.opcode = Opcode::slct, .types = {selected, Type::s32}, .operands = {dst(), src(), src(), src(OperandType(1))}},
    {.opcode = Opcode::slct, .types = {selected, f32}, .flags = "ftz", .operands = {dst(), src(), src(), src(OperandType(1))}},
};
// clang-format on

}  // namespace

std::span<const Signature> comparison_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
