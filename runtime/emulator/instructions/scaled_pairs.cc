// SPDX-License-Identifier: Apache-2.0
// cvt of pairs with scales, with .pzo, and to and from s2f6x2 and ue5m3x2 (PTX ISA 9.4, 9.7.10.24):
// one number after the other, exactly in double but for the one rounding. A scale is a power of
// two, ue8m0; what becomes narrower is divided by it, what becomes bf16 multiplied.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/emulator/instructions/packed_formats.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/instructions/wide_registers.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// In op.flags, above the rounding.
constexpr std::uint8_t saturates = 8, clips = 16, without_sign = 32, multiplies = 64,
                       one_scale = 128;

// No infinity, and no sign, which goes in front of the format: 0xFF is what 0xFE does not hold.
constexpr SmallFormat format_ue5m3{5, 3, true, 0xFE};
// Eight bits of two's complement that count 1/64; its SmallFormat is unused.
constexpr PackedRow fixed_row{Type::s2f6x2, format_f16, 8, 0x7F, 16};
constexpr PackedRow unsigned_row{Type::ue5m3x2, format_ue5m3, 8, 0xFF, 16};
constexpr int fixed_unit = 64;

const PackedRow* row_of(Type type) {
  if (type == Type::s2f6x2) return &fixed_row;
  if (type == Type::ue5m3x2) return &unsigned_row;
  const auto found = packed_row(type);
  return found && packed_rows[*found].type != Type::tf32 ? &packed_rows[*found] : nullptr;
}

double scale_of(std::uint32_t bits) {
  bits &= 0xFF;
  return bits == 0xFF ? std::numeric_limits<double>::quiet_NaN()
                      : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

double number_of(const PackedRow& from, std::uint32_t bits) {
  if (from.type == Type::s2f6x2)
    return static_cast<std::int8_t>(static_cast<std::uint8_t>(bits)) / double{fixed_unit};
  return widen(from.format, bits & ((1u << from.element_bits) - 1));
}

std::uint32_t bits_of(const PackedRow& to, double x, const Op& op) {
  if (std::isnan(x)) return to.nan;
  const auto round = static_cast<Rounding>(op.flags & 7);
  if ((op.flags & clips) && std::signbit(x)) return 0;
  if (to.type == Type::s2f6x2) {
    x *= fixed_unit;
    x = round == Rounding::rz ? std::trunc(x) : std::nearbyint(x);
    return static_cast<std::uint32_t>(static_cast<int>(std::clamp(x, -128.0, 127.0))) & 0xFF;
  }
  if (to.type == Type::ue5m3x2) x = std::fabs(x);
  const std::uint32_t bits = narrow(to.format, x, round, op.flags & saturates),
                      sign = 1u << (to.format.exponent + to.format.mantissa);
  return (op.flags & without_sign) && bits == sign ? 0 : bits;
}

// With one scale for both elements subnormal numbers are zeros.
double without_subnormals(const SmallFormat& format, double x) {
  return std::fabs(x) < std::ldexp(1.0, 2 - (1 << (format.exponent - 1))) ? std::copysign(0.0, x)
                                                                          : x;
}

// op.a, op.b: the upper and the lower number, or twice the pair; op.c: the scales; op.e, op.list:
// the types.
void convert_scaled(Warp& warp, const Op& op) {
  constexpr SmallFormat single{8, 23, true, 0x7F7FFFFF};
  const PackedRow& to = *row_of(static_cast<Type>(op.e));
  const PackedRow* const from = row_of(static_cast<Type>(op.list));
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *scales = lanes<std::uint32_t>(warp, op.c);
  const auto element = [&](std::uint32_t bits, std::uint32_t scale) {
    double x = from ? number_of(*from, bits) : static_cast<double>(std::bit_cast<float>(bits));
    if (op.flags & one_scale) x = without_subnormals(from ? from->format : single, x);
    return bits_of(to, op.flags & multiplies ? x * scale_of(scale) : x / scale_of(scale), op);
  };
  each_lane(warp.mask, [&](int i) {
    const std::uint32_t upper = from ? a[i] >> from->element_bits : a[i],
                        high = op.flags & one_scale ? scales[i] : scales[i] >> 8;
    d[i] = element(upper, high) << to.element_bits | element(b[i], scales[i]);
  });
}

bool is_here_only(Type type) { return type == Type::s2f6x2 || type == Type::ue5m3x2; }

}  // namespace

bool decode_scaled_pairs(Decoder& d, Rounding round, bool saturate, bool relu) {
  const Type into = d.spelling.type(0), out_of = d.spelling.type(1);
  const bool one = d.spelling.has("scaled::n1::ue8m0"), two = d.spelling.has("scaled::n2::ue8m0"),
             pzo = d.spelling.has("pzo"), apart = out_of == Type::f32;
  if (!one && !two && !pzo && !is_here_only(into) && !is_here_only(out_of)) return false;
  const PackedRow *to = row_of(into), *from = row_of(out_of);
  if (!to || (!from && !apart) || round == Rounding::rm || round == Rounding::rna)
    return d.unsupported(), true;
  const std::size_t sources = apart ? 2 : 1, operands = 1 + sources + (one || two ? 1 : 0);
  if (!d.expect_operands(operands, operands)) return true;
  const WideResult result(d, register_of(*to));
  const std::uint32_t a = apart ? narrow_source(d, 1, Type::f32) : d.source(1, register_of(*from)),
                      b = apart ? narrow_source(d, 2, Type::f32) : a,
                      scales = one   ? d.source(operands - 1, Type::b8)
                               : two ? d.source(operands - 1, Type::b16)
                                     : d.constant(0x7F7F, 32);
  const bool widens = into == Type::bf16x2 || into == Type::f16x2;
  Op& op = d.emit(convert_scaled);
  op.d = result.slot;
  op.a = a;
  op.b = b;
  op.c = scales;
  op.e = static_cast<std::uint32_t>(into);
  op.list = static_cast<std::uint32_t>(out_of);
  op.flags = static_cast<std::uint8_t>(static_cast<int>(round) | (saturate ? saturates : 0) |
                                       (relu ? clips : 0) | (pzo ? without_sign : 0) |
                                       (widens ? multiplies : 0) | (one ? one_scale : 0));
  result.widen(d);
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
