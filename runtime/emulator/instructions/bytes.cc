// SPDX-License-Identifier: Apache-2.0
// Bytes of registers (PTX ISA 9.0, 9.7.1.23, 9.7.9.7): prmt, dp4a, dp2a.
#include <algorithm>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

void emit(Decoder& d, Handler handler, Type first, Type second, int flags) {
  if (!d.expect_operands(4, 4)) return;
  const std::uint32_t to = d.destination(0, Type::b32), a = d.source(1, first),
                      b = d.source(2, second), c = d.source(3, Type::b32);
  Op& op = d.emit(handler);
  op.d = to;
  op.a = a;
  op.b = b;
  op.c = c;
  op.flags = static_cast<std::uint8_t>(flags);
}

// Selectors of prmt's modes: four nibbles that choose bytes of {b:a}; bit 3 replicates the byte's
// sign.
std::uint32_t selector(std::string_view mode, std::uint32_t control) {
  static constexpr std::uint16_t f4e[] = {0x3210, 0x4321, 0x5432, 0x6543},
                                 b4e[] = {0x5670, 0x6701, 0x7012, 0x0123};
  static constexpr std::uint16_t rc8[] = {0x0000, 0x1111, 0x2222, 0x3333},
                                 ecl[] = {0x3210, 0x3211, 0x3222, 0x3333};
  static constexpr std::uint16_t ecr[] = {0x0000, 0x1110, 0x2210, 0x3210},
                                 rc16[] = {0x1010, 0x3232, 0x1010, 0x3232};
  const std::uint32_t n = control & 3;
  if (mode == "f4e") return f4e[n];
  if (mode == "b4e") return b4e[n];
  if (mode == "rc8") return rc8[n];
  if (mode == "ecl") return ecl[n];
  if (mode == "ecr") return ecr[n];
  return rc16[n];
}

constexpr std::string_view prmt_modes[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};

void permute(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  // A selector for all lanes, without signs, is the usual one: four shifts.
  const std::uint32_t first = c[0];
  if (op.flags == 0 && !(first & 0x8888) && warp.mask == all_lanes &&
      std::all_of(c, c + 32, [=](std::uint32_t other) { return other == first; })) {
    for (int i = 0; i < 32; ++i) {
      const std::uint64_t bytes = std::uint64_t{b[i]} << 32 | a[i];
      d[i] = static_cast<std::uint32_t>((bytes >> 8 * (first & 7) & 0xFF) |
                                        (bytes >> 8 * (first >> 4 & 7) & 0xFF) << 8 |
                                        (bytes >> 8 * (first >> 8 & 7) & 0xFF) << 16 |
                                        (bytes >> 8 * (first >> 12 & 7) & 0xFF) << 24);
    }
    return;
  }
  each_lane(warp.mask, [&](int i) {
    const std::uint32_t control = op.flags ? selector(prmt_modes[op.flags], c[i]) : c[i];
    const std::uint64_t bytes = std::uint64_t{b[i]} << 32 | a[i];
    std::uint32_t out = 0;
    for (int k = 0; k < 4; ++k) {
      const std::uint32_t nibble = control >> 4 * k & 15;
      std::uint32_t byte = bytes >> 8 * (nibble & 7) & 0xFF;
      if (nibble & 8) byte = byte & 0x80 ? 0xFF : 0;
      out |= byte << 8 * k;
    }
    d[i] = out;
  });
}

void decode_prmt(Decoder& d) {
  if (d.spelling.type() != Type::b32) return d.unsupported();
  const auto mode = std::ranges::find(prmt_modes, d.spelling.any("f4e b4e rc8 ecl ecr rc16"));
  emit(d, permute, Type::b32, Type::b32, static_cast<std::uint8_t>(mode - std::begin(prmt_modes)));
}

// dp4a, dp2a: flags 1 a signed, 2 b signed, 4 the upper half of b (dp2a).
template <int Step>
void dot(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  const auto field = [](std::uint32_t word, int low, int width, bool is_signed) {
    const std::uint32_t up = word << (32 - low - width);
    return is_signed ? static_cast<std::uint32_t>(static_cast<std::int32_t>(up) >> (32 - width))
                     : up >> (32 - width);
  };
  each_lane(warp.mask, [&](int i) {
    std::uint32_t sum = c[i];
    for (int k = 0; k < Step; ++k) {
      const int width = 32 / Step, low = Step == 2 && (op.flags & 4) ? 16 : 0;
      sum +=
          field(a[i], width * k, width, op.flags & 1) * field(b[i], low + 8 * k, 8, op.flags & 2);
    }
    d[i] = sum;
  });
}

void decode_dot(Decoder& d) {
  const bool four = d.spelling.opcode() == Opcode::dp4a;
  const Type a = d.spelling.type(0), b = d.spelling.type(1);
  if (bits(a) != 32 || bits(b) != 32) return d.unsupported();
  const std::string_view half = four ? "" : d.spelling.any("lo hi");
  if (!four && half.empty()) return d.unsupported();
  const int flags =
      (info(a).is_signed ? 1 : 0) | (info(b).is_signed ? 2 : 0) | (half == "hi" ? 4 : 0);
  emit(d, four ? dot<4> : dot<2>, a, b, flags);
}

}  // namespace

constexpr EmulatedRow bytes_rows[] = {
    computation(Opcode::prmt, decode_prmt, Flow::Permutes, Meaning::Permutes),
    computation(Opcode::dp4a, decode_dot, Flow::Spreads, Meaning::Fields),
    computation(Opcode::dp2a, decode_dot, Flow::Spreads, Meaning::Fields),
};
static_assert(are_rows_of(bytes_rows, topics::bytes));

}  // namespace tartan::TARTAN_ABI::emulator
