// SPDX-License-Identifier: Apache-2.0
// Conversions that pack: cvt.pack of integers, and pairs of ue8m0 (PTX
// ISA 9.0, 9.7.9.21, 9.7.9.22).
#include <algorithm>
#include <bit>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/instructions/wide_registers.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// ---- cvt.pack: two integers, clamped to op.count bits, below what c has: {c, a, b}.

void pack_integers(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  const int width = op.count;
  const std::int32_t high = (1 << (op.flags ? width - 1 : width)) - 1,
                     low = op.flags ? -high - 1 : 0;
  const std::uint32_t mask = (1u << width) - 1;
  const auto clamp = [=](std::uint32_t x) {
    return static_cast<std::uint32_t>(std::clamp(static_cast<std::int32_t>(x), low, high)) & mask;
  };
  each_lane(warp.mask, [=](int i) {
    const std::uint32_t above = width == 16 ? 0 : c[i] << 2 * width;
    d[i] = above | clamp(a[i]) << width | clamp(b[i]);
  });
}

}  // namespace

void decode_integer_pack(Decoder& d) {
  d.spelling.ignore("sat");
  const Type to = d.spelling.type(0);
  const int width = bits(to);
  const bool merges = width != 16;
  if (d.spelling.type(1) != Type::s32 || (merges && d.spelling.type(2) != Type::b32))
    return d.unsupported();
  if (!d.expect_operands(merges ? 4 : 3, merges ? 4 : 3)) return;
  const WideResult result(d, Type::u32);
  const std::uint32_t a = narrow_source(d, 1, Type::s32), b = narrow_source(d, 2, Type::s32),
                      c = merges ? narrow_source(d, 3, Type::u32) : b;
  Op& op = d.emit(pack_integers);
  op.d = result.slot;
  op.a = a;
  op.b = b;
  op.c = c;
  op.count = static_cast<std::uint8_t>(width);
  op.flags = info(to).is_signed;
  result.widen(d);
}

namespace {

// ---- ue8m0: a power of two, 2^(bits - 127); 0xFF is NaN. The sign is dropped.

std::uint32_t to_ue8m0(float x, Rounding round, bool saturate) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0xFF;
  const std::uint32_t exponent = magnitude >> 23, fraction = magnitude & 0x7FFFFF;
  // Exponent 0 is 2^-127 here, above or below which a subnormal is.
  const bool above = exponent == 0 ? fraction > 0x400000 : fraction != 0;
  const bool up = round == Rounding::rp && above && magnitude < 0x7F800000;
  return std::min<std::uint32_t>(exponent + up, saturate ? 0xFE : 0xFF);
}

// op.b: the lower element; bf16x2 sources have both in op.a (op.count 1).
void to_powers(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b);
  const auto round = static_cast<Rounding>(op.flags & 7);
  const bool saturate = op.flags & 8;
  each_lane(warp.mask, [&](int i) {
    const std::uint32_t high = op.count == 1 ? a[i] & 0xFFFF0000 : a[i],
                        low = op.count == 1 ? a[i] << 16 : b[i];
    d[i] = to_ue8m0(std::bit_cast<float>(high), round, saturate) << 8 |
           to_ue8m0(std::bit_cast<float>(low), round, saturate);
  });
}

void from_powers(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto* a = lanes<std::uint32_t>(warp, op.a);
  const auto element = [](std::uint32_t bits) -> std::uint32_t {
    bits &= 0xFF;
    return bits == 0xFF ? nan_16 : bits == 0 ? 0x0040 : bits << 7;
  };
  each_lane(warp.mask, [&](int i) { d[i] = element(a[i] >> 8) << 16 | element(a[i]); });
}

}  // namespace

bool decode_powers_of_two(Decoder& d, Rounding round, bool saturate) {
  const Type to = d.spelling.type(0), from = d.spelling.type(1);
  const bool back = from == Type::ue8m0x2, pair = back || from == Type::bf16x2;
  if (to != Type::ue8m0x2 && !back) return false;
  if (back ? to != Type::bf16x2 : !pair && from != Type::f32) return d.unsupported(), true;
  const bool directed = round == Rounding::rz || round == Rounding::rp;
  if (back ? round != Rounding::rn : !directed)
    return d.unsupported("this rounding is not known"), true;
  const std::size_t operands = pair ? 2 : 3;
  if (!d.expect_operands(operands, operands)) return true;
  const std::uint32_t slot = d.destination(0, back ? Type::b32 : Type::b16),
                      a = d.source(1, back ? Type::b16 : Type::b32),
                      b = pair ? a : d.source(2, Type::f32);
  Op& op = d.emit(back ? from_powers : to_powers);
  op.d = slot;
  op.a = a;
  op.b = b;
  op.count = pair ? 1 : 2;
  op.flags = static_cast<std::uint8_t>(static_cast<int>(round) | (saturate ? 8 : 0));
  d.rest_on(Trust::Documented, "the manual's semantics of ue8m0");
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
