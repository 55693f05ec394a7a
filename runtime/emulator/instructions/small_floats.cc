// SPDX-License-Identifier: Apache-2.0
// add, sub, mul and fma with results of e4m3x4 and e5m2x4 (PTX ISA 9.4, 9.7.6): four numbers at
// once, computed exactly and rounded once, to nearest even.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

struct FourRow {
  Type type;
  SmallFormat format;
  int step;  // bits between elements
  Type held;
};
// ue8m0 is a power of two, of which `format` says nothing.
constexpr FourRow rows[] = {
    {Type::e4m3x4, format_e4m3, 8, Type::b32},   {Type::e5m2x4, format_e5m2, 8, Type::b32},
    {Type::e3m2x4, format_e3m2, 8, Type::b32},   {Type::e2m3x4, format_e2m3, 8, Type::b32},
    {Type::e2m1p4x4, format_e2m1, 8, Type::b32}, {Type::e2m1x4, format_e2m1, 4, Type::b16},
    {Type::ue8m0x4, format_f16, 8, Type::b32},
};
// What is too large without .satfinite is NaN.
constexpr SmallFormat e4m3_or_nan{4, 3, true, 0x7E};
constexpr std::uint32_t nan = 0x7F;

std::optional<std::uint32_t> row_of(Type type) {
  for (std::uint32_t i = 0; i < std::size(rows); ++i)
    if (rows[i].type == type) return i;
  return std::nullopt;
}

double number(const FourRow& row, std::uint32_t word, int i) {
  const std::uint32_t bits = word >> i * row.step;
  if (row.type != Type::ue8m0x4)
    return widen(row.format, bits & ((2u << (row.format.exponent + row.format.mantissa)) - 1));
  return (bits & 0xFF) == 0xFF ? std::numeric_limits<double>::quiet_NaN()
                               : std::ldexp(1.0, static_cast<int>(bits & 0xFF) - 127);
}

// In op.flags.
constexpr std::uint8_t multiplies = 1, adds = 2, subtracts = 4, saturates = 8, to_e5m2 = 16;

// op.a, op.b, op.c: the factors and what is added; op.list: their types' rows. A product has at
// most eight bits, so that a double holds it exactly.
void compute_four(Warp& warp, const Op& op) {
  const std::uint32_t* types = warp.program->slots.data() + op.list;
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  const SmallFormat& format = op.flags & to_e5m2 ? format_e5m2 : e4m3_or_nan;
  each_lane(warp.mask, [&](int lane) {
    std::uint32_t out = 0;
    for (int i = 0; i < 4; ++i) {
      double x = number(rows[types[0]], a[lane], i);
      if (op.flags & multiplies) x *= number(rows[types[1]], b[lane], i);
      if (op.flags & (adds | subtracts)) {
        const double y = number(rows[types[2]], c[lane], i);
        x = sum_to_odd(x, op.flags & subtracts ? -y : y);
      }
      const std::uint32_t made =
          std::isnan(x) ? nan : narrow(format, x, Rounding::rn, op.flags & saturates);
      out |= ((made & nan) == nan ? nan : made) << 8 * i;
    }
    d[lane] = out;
  });
}

}  // namespace

bool decode_small_floats(Decoder& d) {
  const Type type = d.spelling.type();
  if (type != Type::e4m3x4 && type != Type::e5m2x4) return false;
  const Opcode opcode = d.spelling.opcode();
  const bool fused = opcode == Opcode::fma, product = fused || opcode == Opcode::mul,
             sum = fused || opcode == Opcode::add || opcode == Opcode::sub;
  d.spelling.ignore("rn");
  const std::uint32_t result = *row_of(type);
  const auto first = row_of(d.spelling.type(1)),
             second = product ? row_of(d.spelling.type(2)) : std::optional(result);
  if ((!product && !sum) || !first || !second) return d.unsupported(), true;
  const std::size_t operands = fused ? 4 : 3;
  if (!d.expect_operands(operands, operands)) return true;
  const std::uint32_t to = d.destination(0, Type::b32), a = d.source(1, rows[*first].held),
                      b = product ? d.source(2, rows[*second].held) : a,
                      c = sum ? d.source(operands - 1, Type::b32) : a;
  const std::uint32_t types[] = {*first, *second, result}, list = d.append(types);
  Op& op = d.emit(compute_four);
  op.d = to;
  op.a = a;
  op.b = b;
  op.c = c;
  op.list = list;
  op.flags = static_cast<std::uint8_t>((product ? multiplies : 0) |
                                       (opcode == Opcode::sub ? subtracts
                                        : sum                 ? adds
                                                              : 0) |
                                       (d.spelling.has("satfinite") ? saturates : 0) |
                                       (type == Type::e5m2x4 ? to_e5m2 : 0));
  d.rest_on(Trust::Documented, manual_source);
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
