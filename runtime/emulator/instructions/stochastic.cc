// SPDX-License-Identifier: Apache-2.0
// Random bits are added to what rounding towards zero leaves out, the first of them to its first
// bit; a carry steps away from zero.
#include "runtime/emulator/instructions/stochastic.h"

#include <algorithm>
#include <bit>

#include "runtime/emulator/instructions/wide_registers.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

struct StochasticRow {
  Type type;
  SmallFormat format;
  int elements, element_bits;
  int random_bits;  // of an element
  std::uint32_t nan;
};
constexpr StochasticRow stochastic_rows[] = {
    {Type::f16x2, format_f16, 2, 16, 13, nan_16}, {Type::bf16x2, format_bf16, 2, 16, 16, nan_16},
    {Type::e4m3x4, format_e4m3, 4, 8, 16, 0x7F},  {Type::e5m2x4, format_e5m2, 4, 8, 16, 0x7F},
    {Type::e2m3x4, format_e2m3, 4, 8, 16, 0x1F},  {Type::e3m2x4, format_e3m2, 4, 8, 16, 0x1F},
    {Type::e2m1x4, format_e2m1, 4, 4, 16, 0x7},
};
constexpr std::uint8_t satfinite_flag = 1, relu_flag = 2;

std::uint32_t stochastic(const StochasticRow& row, std::uint32_t bits, std::uint32_t random,
                         std::uint8_t flags) {
  const SmallFormat& format = row.format;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF, fraction = bits & 0x7FFFFF;
  if (magnitude > 0x7F800000) return row.nan;
  const bool negative = bits >> 31;
  if (negative && (flags & relu_flag)) return 0;
  const std::uint32_t sign = static_cast<std::uint32_t>(negative)
                             << (format.exponent + format.mantissa),
                      beyond = flags & satfinite_flag || !format.infinite ? format.largest
                                                                          : format.largest + 1;
  if (magnitude == 0x7F800000) return sign | beyond;
  const int raw = static_cast<int>(magnitude >> 23), exponent = (raw ? raw : 1) - 127,
            least = 2 - (1 << (format.exponent - 1)), scale = std::max(exponent, least),
            shift = 23 - format.mantissa + (scale - exponent);
  if (shift > row.random_bits + 24) return sign;  // no bits reach so far
  const std::uint64_t mantissa = fraction | (raw ? 0x800000u : 0),
                      added = shift >= row.random_bits
                                  ? std::uint64_t{random} << (shift - row.random_bits)
                                  : random >> (row.random_bits - shift),
                      kept = (mantissa + added) >> shift;
  // A mantissa that has its leading bit adds one to the exponent's field below.
  const std::uint64_t result =
      (static_cast<std::uint64_t>(scale - least) << format.mantissa) + kept;
  return sign | static_cast<std::uint32_t>(result > format.largest ? beyond : result);
}

std::uint32_t reversed_16(std::uint32_t x) {
  std::uint32_t out = 0;
  for (int i = 0; i < 16; ++i) out |= (x >> i & 1) << (15 - i);
  return out;
}

// op.list: the elements, the lowest first; op.a: the random bits. A half of them is for two
// elements of four, the upper of which has them in reverse.
void round_stochastically(Warp& warp, const Op& op) {
  const StochasticRow& row = stochastic_rows[op.e];
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto* random = lanes<std::uint32_t>(warp, op.a);
  const std::uint32_t mask = (1u << row.random_bits) - 1;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::uint32_t out = 0;
    for (int i = 0; i < row.elements; ++i) {
      const bool of_four = row.elements == 4;
      const std::uint32_t half = random[lane] >> ((of_four ? i / 2 : i) * 16) & 0xFFFF,
                          bits = of_four && i % 2 ? reversed_16(half) : half & mask;
      out |= stochastic(row, lanes<std::uint32_t>(warp, slots[i])[lane], bits, op.flags)
             << (i * row.element_bits);
    }
    d[lane] = out;
  }
}

}  // namespace

void decode_stochastic(Decoder& d) {
  std::uint32_t which = 0;
  while (which < std::size(stochastic_rows) && stochastic_rows[which].type != d.spelling.type(0))
    ++which;
  const bool satfinite = d.spelling.has("satfinite"), relu = d.spelling.has("relu");
  if (which == std::size(stochastic_rows) || d.spelling.type(1) != Type::f32)
    return d.unsupported();
  const StochasticRow& row = stochastic_rows[which];
  const bool of_four = row.elements == 4;
  if (of_four && !satfinite) return d.unsupported("cvt.rs to four elements requires .satfinite");
  const std::size_t operands = of_four ? 3 : 4;
  if (!d.expect_operands(operands, operands)) return;
  std::vector<std::uint32_t> slots;
  const auto elements =
      of_four ? d.children(d.operand(1)) : std::span(&d.operand(1), 2);  // the highest first
  if (elements.size() != static_cast<std::size_t>(row.elements))
    return d.unsupported("vectors of different lengths");
  const WideResult to(d, row.element_bits == 4 ? Type::b16 : Type::b32);
  for (std::size_t i = elements.size(); i-- > 0;)
    slots.push_back(of_four ? d.source(elements[i], Type::f32)
                            : narrow_source(d, i + 1, Type::f32));
  const std::uint32_t random = d.source(operands - 1, Type::b32), list = d.append(slots);
  Op& op = d.emit(round_stochastically);
  op.d = to.slot;
  op.a = random;
  op.e = which;
  op.list = list;
  op.flags = static_cast<std::uint8_t>((satfinite ? satfinite_flag : 0) | (relu ? relu_flag : 0));
  to.widen(d);
  d.rest_on(Trust::Documented, "the manual's semantics of .rs, and what is published of its bits");
}

}  // namespace tartan::TARTAN_ABI::emulator
