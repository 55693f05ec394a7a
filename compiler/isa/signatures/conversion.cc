// SPDX-License-Identifier: Apache-2.0
// cvt and cvt.pack (PTX ISA 9.0, 9.7.9.21 and 9.7.9.22).
#include "compiler/isa/signatures/families.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr TypeSet integers{Type::u8,  Type::s8,  Type::u16, Type::s16,
                           Type::u32, Type::s32, Type::u64, Type::s64};
constexpr TypeSet fp8x2{Type::e4m3x2, Type::e5m2x2};
constexpr TypeSet fp6x2{Type::e2m3x2, Type::e3m2x2};
constexpr QualifierSet to_float = "rn rz rm rp";
constexpr QualifierSet to_integer = "rni rzi rmi rpi";

constexpr OperandRow result = wider(dst());
constexpr OperandRow source = wider(src(OperandType(1)));
constexpr OperandRow integer_source = also(a_special, source);
constexpr OperandRow exact = dst(), exact_source = src(OperandType(1));
constexpr OperandRow packed = dst(), packed_source = reg(OperandType(1));
constexpr OperandRow random_bits{
    .name = "rbits", .accepts = a_register, .type = Type::b32, .fit = Fit::Untyped};
constexpr OperandRow untyped = [] {
  OperandRow out = dst(b32);
  out.fit = Fit::Untyped;
  return out;
}();
constexpr OperandRow f32_source = src(f32), wide_f32 = wider(f32_source);
constexpr OperandRow pack_result = wider(dst(u32)), pack_source = wider(src(Type::s32));
constexpr OperandRow pack_rest = wider(src(u32));

constexpr Since brains{{7, 8}, 90};
constexpr Since small{{8, 1}, 89}, small_90{{7, 8}, 90};
constexpr Since blackwell{.ptx = {8, 6}, .sm = 100, .reach = Reach::Family};
constexpr Since from_pairs{.ptx = {9, 1}, .sm = 100, .reach = Reach::Family};
constexpr Since to_brains{.ptx = {9, 2}, .sm = 100, .reach = Reach::Family};
constexpr Since scaled_pairs{.ptx = {9, 1}, .sm = 100, .reach = Reach::ArchOnly};
constexpr Need truncated{.words = "rz", .since = rubin_a};
// One scale for the result, or one for each of its two elements.
constexpr OperandRow scales = with("scaled::n2::ue8m0", reg(Type::u16, "scale"));
constexpr OperandRow one_scale = with("scaled::n1::ue8m0", reg(Type::b8, "scale"));
constexpr TypeSet small_pairs{Type::e4m3x2, Type::e5m2x2, Type::e2m3x2, Type::e3m2x2, Type::e2m1x2};
constexpr TypeSet pairs{Type::f16x2, Type::bf16x2};
constexpr Since stochastic{.ptx = {8, 7}, .sm = 100, .reach = Reach::ArchOnly, .last_sm = 107};

// .sat must be able to change a value.
std::string_view saturates(const Spelling& spelling) {
  const TypeInfo &to = info(spelling.type()), &from = info(spelling.type(1));
  const bool holds_all =
      to.is_signed == from.is_signed ? to.bits >= from.bits : to.is_signed && to.bits > from.bits;
  return spelling.has("sat"_q) && holds_all
             ? "does not accept .sat when the result type holds every source value"
             : "";
}

// clang-format off
constexpr Signature rows[] = {
    // integers
    {.opcode = Opcode::cvt, .types = {integers, integers}, .flags = "sat", .operands = {result, integer_source}, .refuses = saturates},
    {.opcode = Opcode::cvt, .types = {TypeSet{f16, f64}, integers}, .one = {to_float}, .flags = "sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {f32, integers}, .one = {to_float}, .flags = "sat ftz", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {bf16, ints}, .one = {to_float}, .operands = {exact, exact_source}, .since = brains},
    {.opcode = Opcode::cvt, .types = {integers, TypeSet{f16, f64}}, .one = {to_integer}, .flags = "sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {integers, f32}, .one = {to_integer}, .flags = "sat ftz", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {ints, bf16}, .one = {to_integer}, .operands = {exact, exact_source}, .since = brains},
    // wider floats
    {.opcode = Opcode::cvt, .types = {f32, f16}, .flags = "ftz sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {f64, f16}, .flags = "sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {f64, f32}, .flags = "ftz sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {f32, bf16}, .any = {to_float}, .flags = "ftz", .operands = {exact, exact_source}, .since = {{7, 1}, 80}, .needs = {{"ftz", {}, brains}}},
    {.opcode = Opcode::cvt, .types = {f64, bf16}, .any = {to_float}, .operands = {exact, exact_source}, .since = brains},
    // floats of the same size
    {.opcode = Opcode::cvt, .types = {f16, f16}, .any = {to_integer}, .flags = "sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {f32, f32}, .any = {to_integer}, .flags = "ftz sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {f64, f64}, .any = {to_integer}, .flags = "sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {bf16, bf16}, .any = {to_integer}, .operands = {exact, exact_source}, .since = brains},
    {.opcode = Opcode::cvt, .types = {f16, bf16}, .any = {to_float}, .operands = {exact, exact_source}, .since = brains},
    {.opcode = Opcode::cvt, .types = {bf16, f16}, .any = {to_float}, .operands = {exact, exact_source}, .since = brains},
    // narrower floats
    {.opcode = Opcode::cvt, .types = {f16, f32}, .one = {to_float}, .flags = "ftz sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {f16, f64}, .one = {to_float}, .flags = "sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {f32, f64}, .one = {to_float}, .flags = "ftz sat", .operands = {result, source}},
    {.opcode = Opcode::cvt, .types = {bf16, f64}, .one = {to_float}, .operands = {exact, source}, .since = brains},
    {.opcode = Opcode::cvt, .types = {f16, f32}, .one = {"rn rz", "satfinite"}, .operands = {result, source}, .since = {{8, 1}, 75}},
    {.opcode = Opcode::cvt, .types = {f16, f32}, .one = {"rn rz"}, .flags = "relu satfinite", .operands = {result, source}, .since = {{7, 0}, 80}, .needs = {{"satfinite", {}, {{8, 1}, 80}}}},
    {.opcode = Opcode::cvt, .types = {bf16, f32}, .one = {"rn rz"}, .flags = "relu satfinite", .operands = {exact, exact_source}, .since = {{7, 0}, 80}, .needs = {{"satfinite", {}, {{8, 1}, 80}}}},
    {.opcode = Opcode::cvt, .types = {bf16, f32}, .one = {to_float}, .flags = "ftz", .operands = {exact, exact_source}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::cvt, .types = {Type::f16x2, f32}, .one = {"rn rz"}, .flags = "relu satfinite", .operands = {result, wide_f32, wide_f32}, .since = {{7, 0}, 80}, .needs = {{"satfinite", {}, {{8, 1}, 80}}}},
    {.opcode = Opcode::cvt, .types = {Type::bf16x2, f32}, .one = {"rn rz"}, .flags = "relu satfinite", .operands = {packed, f32_source, f32_source}, .since = {{7, 0}, 80}, .needs = {{"satfinite", {}, {{8, 1}, 80}}}},
    {.opcode = Opcode::cvt, .types = {Type::f16x2, f32}, .one = {"rs"}, .flags = "relu satfinite", .operands = {result, wide_f32, wide_f32, random_bits}, .since = stochastic},
    {.opcode = Opcode::cvt, .types = {Type::bf16x2, f32}, .one = {"rs"}, .flags = "relu satfinite", .operands = {packed, f32_source, f32_source, random_bits}, .since = stochastic},
    {.opcode = Opcode::cvt, .types = {tf32, f32}, .one = {"rna"}, .flags = "satfinite", .operands = {untyped, f32_source}, .since = {{7, 0}, 80}, .needs = {{"satfinite", {}, {{8, 1}, 80}}}},
    {.opcode = Opcode::cvt, .types = {tf32, f32}, .one = {"rn rz"}, .flags = "relu satfinite", .operands = {untyped, f32_source}, .since = brains, .needs = {{"satfinite", {}, {{8, 6}, 100}}}},
    // eight, six and four bits
    {.opcode = Opcode::cvt, .types = {fp8x2, f32}, .one = {"rn", "satfinite"}, .flags = "relu", .operands = {packed, f32_source, f32_source}, .since = small},
    {.opcode = Opcode::cvt, .types = {fp8x2, f32}, .one = {"rn", "satfinite"}, .flags = "relu", .operands = {packed, f32_source, f32_source}, .since = small_90},
    {.opcode = Opcode::cvt, .types = {fp8x2, Type::f16x2}, .one = {"rn", "satfinite"}, .flags = "relu", .operands = {packed, packed_source}, .since = small},
    {.opcode = Opcode::cvt, .types = {fp8x2, Type::f16x2}, .one = {"rn", "satfinite"}, .flags = "relu", .operands = {packed, packed_source}, .since = small_90},
    {.opcode = Opcode::cvt, .types = {Type::f16x2, fp8x2}, .one = {"rn"}, .flags = "relu", .operands = {packed, packed_source}, .since = small},
    {.opcode = Opcode::cvt, .types = {Type::f16x2, fp8x2}, .one = {"rn"}, .flags = "relu", .operands = {packed, packed_source}, .since = small_90},
    {.opcode = Opcode::cvt, .types = {fp6x2, f32}, .one = {"rn", "satfinite"}, .flags = "relu", .operands = {packed, f32_source, f32_source}, .since = blackwell},
    {.opcode = Opcode::cvt, .types = {TypeSet{Type::e2m1x2, Type::e2m3x2, Type::e3m2x2}, pairs}, .one = {"rn", "satfinite"}, .flags = "relu", .operands = {packed, packed_source}, .since = from_pairs},
    {.opcode = Opcode::cvt, .types = {fp8x2, Type::bf16x2}, .one = {"rn", "satfinite"}, .flags = "relu", .operands = {packed, packed_source}, .since = from_pairs},
    {.opcode = Opcode::cvt, .types = {Type::bf16x2, small_pairs}, .one = {"rn"}, .flags = "satfinite relu scaled::n2::ue8m0", .operands = {packed, packed_source, scales}, .since = to_brains},
    {.opcode = Opcode::cvt, .types = {Type::s2f6x2, f32}, .one = {"rn rz", "satfinite"}, .flags = "relu scaled::n2::ue8m0", .operands = {packed, f32_source, f32_source, scales}, .since = scaled_pairs, .needs = {truncated}},
    {.opcode = Opcode::cvt, .types = {Type::s2f6x2, Type::bf16x2}, .one = {"rn rz", "satfinite"}, .flags = "relu scaled::n2::ue8m0", .operands = {packed, packed_source, scales}, .since = scaled_pairs, .needs = {truncated}},
    {.opcode = Opcode::cvt, .types = {Type::bf16x2, Type::s2f6x2}, .one = {"rn"}, .flags = "satfinite relu scaled::n2::ue8m0", .operands = {packed, packed_source, scales}, .since = scaled_pairs},
    {.opcode = Opcode::cvt, .types = {small_pairs, f32}, .one = {"rn rz", "satfinite"}, .flags = "relu pzo scaled::n1::ue8m0", .operands = {packed, f32_source, f32_source, one_scale}, .since = rubin},
    {.opcode = Opcode::cvt, .types = {small_pairs, pairs}, .one = {"rn rz", "satfinite"}, .flags = "relu pzo scaled::n1::ue8m0", .operands = {packed, packed_source, one_scale}, .since = rubin},
    {.opcode = Opcode::cvt, .types = {Type::ue5m3x2, f32}, .one = {"rn rz rp"}, .flags = "satfinite", .operands = {packed, f32_source, f32_source}, .since = rubin},
    {.opcode = Opcode::cvt, .types = {Type::ue5m3x2, f32}, .one = {"rn rz", "scaled::n1::ue8m0"}, .flags = "satfinite", .operands = {packed, f32_source, f32_source, one_scale}, .since = rubin},
    {.opcode = Opcode::cvt, .types = {Type::ue5m3x2, pairs}, .one = {"rn rz rp"}, .flags = "satfinite", .operands = {packed, packed_source}, .since = rubin},
    {.opcode = Opcode::cvt, .types = {Type::ue5m3x2, pairs}, .one = {"rn rz", "scaled::n1::ue8m0"}, .flags = "satfinite", .operands = {packed, packed_source, one_scale}, .since = rubin},
    {.opcode = Opcode::cvt, .types = {Type::f16x2, Type::ue5m3x2}, .one = {"rn"}, .operands = {packed, packed_source}, .since = rubin},
    {.opcode = Opcode::cvt, .types = {Type::bf16x2, Type::ue5m3x2}, .one = {"rn"}, .flags = "satfinite scaled::n2::ue8m0", .operands = {packed, packed_source, scales}, .since = rubin},
    {.opcode = Opcode::cvt, .types = {Type::e2m1x2, f32}, .one = {"rn", "satfinite"}, .flags = "relu", .operands = {packed, f32_source, f32_source}, .since = blackwell},
    {.opcode = Opcode::cvt, .types = {Type::f16x2, fp6x2}, .one = {"rn"}, .flags = "relu", .operands = {packed, packed_source}, .since = blackwell},
    {.opcode = Opcode::cvt, .types = {Type::f16x2, Type::e2m1x2}, .one = {"rn"}, .flags = "relu", .operands = {packed, packed_source}, .since = blackwell},
    {.opcode = Opcode::cvt, .types = {Type::ue8m0x2, f32}, .one = {"rz rp"}, .flags = "satfinite", .operands = {packed, f32_source, f32_source}, .since = blackwell},
    {.opcode = Opcode::cvt, .types = {Type::ue8m0x2, Type::bf16x2}, .one = {"rz rp"}, .flags = "satfinite", .operands = {packed, packed_source}, .since = blackwell},
    {.opcode = Opcode::cvt, .types = {Type::bf16x2, Type::ue8m0x2}, .one = {"rn"}, .operands = {dst(b32), packed_source}, .since = blackwell},
    {.opcode = Opcode::cvt, .types = {TypeSet{Type::e4m3x4, Type::e5m2x4, Type::e2m3x4, Type::e3m2x4}, f32}, .one = {"rs", "satfinite"}, .flags = "relu", .operands = {packed, vec(4, f32), random_bits}, .since = stochastic},
    {.opcode = Opcode::cvt, .types = {Type::e2m1x4, f32}, .one = {"rs", "satfinite"}, .flags = "relu", .operands = {packed, vec(4, f32), random_bits}, .since = stochastic},
    // cvt.pack
    {.opcode = Opcode::cvt_pack, .types = {ints_16, Type::s32}, .one = {"sat"}, .operands = {pack_result, pack_source, pack_source}, .since = {{6, 5}, 72}},
    {.opcode = Opcode::cvt_pack, .types = {TypeSet{Type::u8, Type::s8}, Type::s32, b32}, .one = {"sat"}, .operands = {pack_result, pack_source, pack_source, pack_rest}, .since = {{6, 5}, 72}},
    {.opcode = Opcode::cvt_pack, .types = {TypeSet{Type::u4, Type::s4, Type::u2, Type::s2}, Type::s32, b32}, .one = {"sat"}, .operands = {pack_result, pack_source, pack_source, pack_rest}, .since = {{6, 5}, 75}},
};
// clang-format on

}  // namespace

std::span<const Signature> conversion_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
