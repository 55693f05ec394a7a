// SPDX-License-Identifier: Apache-2.0
// add, sub, mul and fma on f32x2: two f32 in a 64-bit register, the first in its low half (PTX ISA
// 9.7.3).
#include <cfenv>
#include <cmath>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint8_t ftz_flag = 4;  // in op.flags, above the rounding

struct Add {
  static float apply(float a, float b, float) { return a + b; }
};
struct Subtract {
  static float apply(float a, float b, float) { return a - b; }
};
struct Multiply {
  static float apply(float a, float b, float) { return a * b; }
  static constexpr bool is_product = true;
};
struct Fused {
  static float apply(float a, float b, float c) { return std::fma(a, b, c); }
  static constexpr bool is_product = true;
};

template <typename F>
std::uint32_t one(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint8_t flags) {
  const bool ftz = flags & ftz_flag;
  const auto in = [=](std::uint64_t raw) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(raw));
    return ftz ? flush(x) : x;
  };
  float out = canonical_nan(F::apply(in(a), in(b), in(c)));
  if (ftz) out = flush(out);
  if constexpr (requires { F::is_product; })
    if (ftz && is_smallest(out) &&
        is_flushed(static_cast<double>(in(a)) * static_cast<double>(in(b)),
                   std::is_same_v<F, Fused> ? static_cast<double>(in(c)) : 0,
                   static_cast<Rounding>(flags & 3), std::signbit(out)))
      out = zero_of(out);
  return std::bit_cast<std::uint32_t>(out);
}

template <typename F>
void pairs(Warp& warp, const Op& op) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  auto* d = lanes<std::uint64_t>(warp, op.d);
  const auto *a = lanes<std::uint64_t>(warp, op.a), *b = lanes<std::uint64_t>(warp, op.b),
             *c = lanes<std::uint64_t>(warp, op.c);
  std::fesetround(modes[op.flags & 3]);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int i = std::countr_zero(m);
    d[i] = std::uint64_t{one<F>(a[i] >> 32, b[i] >> 32, c[i] >> 32, op.flags)} << 32 |
           one<F>(a[i], b[i], c[i], op.flags);
  }
  std::fesetround(FE_TONEAREST);
}

}  // namespace

bool decode_float_pairs(Decoder& d) {
  if (d.spelling.type() != Type::f32x2) return false;
  const std::string_view rounding = d.spelling.any("rn rz rm rp");
  const Opcode opcode = d.spelling.opcode();
  const Handler handler = opcode == Opcode::add   ? pairs<Add>
                          : opcode == Opcode::sub ? pairs<Subtract>
                          : opcode == Opcode::mul ? pairs<Multiply>
                          : opcode == Opcode::fma ? pairs<Fused>
                                                  : nullptr;
  if (!handler) return d.unsupported(), true;
  std::uint8_t flags = rounding == "rz" ? 1 : rounding == "rm" ? 2 : rounding == "rp" ? 3 : 0;
  if (d.spelling.has("ftz")) flags |= ftz_flag;
  const std::size_t sources = opcode == Opcode::fma ? 3 : 2;
  if (!d.expect_operands(sources + 1, sources + 1)) return true;
  const std::uint32_t to = d.destination(0, Type::b64), a = d.source(1, Type::b64),
                      b = d.source(2, Type::b64), c = sources == 3 ? d.source(3, Type::b64) : b;
  Op& op = d.emit(handler);
  op.d = to;
  op.a = a;
  op.b = b;
  op.c = c;
  op.flags = flags;
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
