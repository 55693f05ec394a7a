// SPDX-License-Identifier: Apache-2.0
// Reciprocals, roots and transcendental functions (PTX ISA 9.0, 9.7.3), and fma.
//
// The .approx functions are computed in double and rounded once, so each result is the correctly
// rounded one but for rare double roundings (error below 0.5001 ulp). The hardware's own differ
// from that by at most what the manual states: rcp, sqrt and tanh's relatives 1 to 2 ulp, rsqrt
// 2^-22.9, ex2 2 ulp, lg2 2^-22 absolute on [0.5, 2], sin and cos 2^-20.5 absolute on [-pi, pi],
// tanh 2^-11 relative.
#include <cfenv>
#include <cmath>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

struct Reciprocal {
  static double apply(double x) { return 1 / x; }
};
struct Root {
  static double apply(double x) { return std::sqrt(x); }
};
struct ReciprocalRoot {
  static double apply(double x) { return 1 / std::sqrt(x); }
};
// 2^x to 44 bits, without branches: 2^whole from its bits, 2^rest from the series of e^(rest ln 2)
// on [-1/2, 1/2]. Compiled with -ffp-contract=off: the same bits on every machine. NaN gives a
// number; Single and Small look at x.
struct Exponential {
  static double apply(double x) {
    constexpr double magic = 0x1.8p52;
    x = x < 1000 ? x : 1000;
    x = x > -1000 ? x : -1000;
    const double shifted = x + magic, rest = x - (shifted - magic), y = rest * 0x1.62e42fefa39efp-1;
    double sum = 1.0 / 39916800;
    sum = sum * y + 1.0 / 3628800;
    sum = sum * y + 1.0 / 362880;
    sum = sum * y + 1.0 / 40320;
    sum = sum * y + 1.0 / 5040;
    sum = sum * y + 1.0 / 720;
    sum = sum * y + 1.0 / 120;
    sum = sum * y + 1.0 / 24;
    sum = sum * y + 1.0 / 6;
    sum = sum * y + 0.5;
    sum = sum * y + 1.0;
    sum = sum * y + 1.0;
    const std::uint64_t whole = std::bit_cast<std::uint64_t>(shifted) + 1023;
    return sum * std::bit_cast<double>(whole << 52);
  }
};
struct Logarithm {
  static double apply(double x) { return std::log2(x); }
};
struct Sine {
  static double apply(double x) { return std::sin(x); }
};
struct Cosine {
  static double apply(double x) { return std::cos(x); }
};
struct HyperbolicTangent {
  static double apply(double x) { return std::tanh(x); }
};

// sin and cos of 2 pi times x, exact where the angle is a multiple of a quarter turn.
double sine_of_turns(double x) {
  constexpr double turn = 0x1.921fb54442d18p+2;
  double rest = std::remainder(x, 1.0);  // exact; NaN of infinities
  if (std::fabs(rest) > 0.25) rest = std::copysign(0.5, rest) - rest;
  if (std::fabs(rest) <= 0.125) return std::sin(turn * rest);
  return std::copysign(std::cos(turn * (0.25 - std::fabs(rest))), rest);
}
struct SineOfTurns {
  static double apply(double x) { return sine_of_turns(x); }
};
struct CosineOfTurns {
  static double apply(double x) { return sine_of_turns(0.25 - std::fabs(std::remainder(x, 1.0))); }
};

template <typename F, bool Ftz>
struct Single {
  static float apply(float x) {
    float out = canonical_nan(static_cast<float>(F::apply(Ftz ? flush(x) : x)));
    out = x != x ? std::bit_cast<float>(nan_f32) : out;
    return Ftz ? flush(out) : out;
  }
};

template <typename F, typename H, bool Ftz>
struct Small {
  static H apply(H x) {
    if constexpr (Ftz && std::is_same_v<H, Half>) x = flush(x);
    const float in = to_float(x);
    const double exact = F::apply(in);
    H out = in != in ? H{nan_16} : from_double<H>(exact);
    if constexpr (Ftz && std::is_same_v<H, Half>) out = flush(out);
    else if constexpr (Ftz)
      if (in == in && std::fabs(exact) < smallest_f32) out.bits &= 0x8000;
    return out;
  }
};

template <typename F, typename H, bool Ftz>
struct Pair {
  static std::uint32_t apply(std::uint32_t x) {
    const H low = Small<F, H, Ftz>::apply(H{static_cast<std::uint16_t>(x)}),
            high = Small<F, H, Ftz>::apply(H{static_cast<std::uint16_t>(x >> 16)});
    return std::uint32_t{high.bits} << 16 | low.bits;
  }
};

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 see the upper word of x alone and give that of the
// result, right to 20 bits.
template <typename F>
struct Coarse {
  static double apply(double x) {
    auto in = std::bit_cast<std::uint64_t>(x) & 0xFFFFFFFF00000000;
    if ((in >> 52 & 0x7FF) == 0) in &= std::uint64_t{1} << 63;
    const double out = F::apply(std::bit_cast<double>(in));
    if (out != out) return std::bit_cast<double>(std::uint64_t{0x7FFFFFFF00000000});
    auto bits = std::bit_cast<std::uint64_t>(out);
    if ((bits >> 52 & 0x7FF) == 0) bits &= std::uint64_t{1} << 63;
    return std::bit_cast<double>(bits & 0xFFFFFFFF00000000);
  }
};

// The IEEE forms, in the rounding mode op.flags.
struct DoubleReciprocalRoot {
  static double apply(double x) {
    const double out = ReciprocalRoot::apply(x);
    return out != out ? std::bit_cast<double>(nan_f64) : out;
  }
};

template <typename F, typename T, bool Ftz>
void rounded(Warp& warp, const Op& op) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const auto round = static_cast<Rounding>(op.flags);
  std::fesetround(modes[op.flags]);
  auto* d = lanes<Raw<T>>(warp, op.d);
  const auto* a = lanes<Raw<T>>(warp, op.a);
  each_lane(warp.mask, [=](int i) {
    T x = Lane<T>::get(a[i]);
    if constexpr (Ftz) x = flush(x);
    T out = F::exact(x);
    if constexpr (sizeof(T) == 4) out = canonical_nan(out);
    else if (x != x)
      out = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) | std::uint64_t{1} << 51);
    else if (out != out) out = std::bit_cast<double>(nan_f64);
    if constexpr (Ftz) out = F::is_flushed(x, round) ? zero_of(out) : flush(out);
    d[i] = Lane<T>::put(out);
  });
  std::fesetround(FE_TONEAREST);
}
struct ExactReciprocal {
  template <typename T>
  static T exact(T x) {
    return T{1} / x;
  }
  // Whether .ftz makes a zero of a result that rounds to the smallest normal number.
  static bool is_flushed(float x, Rounding round) {
    const bool negative = std::signbit(x);
    return std::fabs(x) > 0x1p126f && emulator::is_flushed(negative ? -1 : 1, 0, round, negative,
                                                           std::fabs(static_cast<double>(x)));
  }
};
struct ExactRoot {
  template <typename T>
  static T exact(T x) {
    return std::sqrt(x);
  }
  static bool is_flushed(float, Rounding) { return false; }
};

template <typename F>
Handler approximate(Type type, bool ftz) {
  switch (type) {
    case Type::f32:
      return ftz ? for_machine<unary<Single<F, true>, float, float>>()
                 : for_machine<unary<Single<F, false>, float, float>>();
    case Type::f16:
      return ftz ? unary<Small<F, Half, true>, Half, Half>
                 : unary<Small<F, Half, false>, Half, Half>;
    case Type::bf16:
      return ftz ? unary<Small<F, Bfloat, true>, Bfloat, Bfloat>
                 : unary<Small<F, Bfloat, false>, Bfloat, Bfloat>;
    case Type::f16x2:
      return ftz ? unary<Pair<F, Half, true>, std::uint32_t, std::uint32_t>
                 : unary<Pair<F, Half, false>, std::uint32_t, std::uint32_t>;
    case Type::bf16x2:
      return ftz ? unary<Pair<F, Bfloat, true>, std::uint32_t, std::uint32_t>
                 : unary<Pair<F, Bfloat, false>, std::uint32_t, std::uint32_t>;
    case Type::f64:  // of rcp and rsqrt
      if constexpr (std::is_same_v<F, ReciprocalRoot>)
        return ftz ? unary<Coarse<F>, double, double> : unary<DoubleReciprocalRoot, double, double>;
      else if constexpr (std::is_same_v<F, Reciprocal>)
        return ftz ? unary<Coarse<F>, double, double> : nullptr;
      else return nullptr;
    default: return nullptr;
  }
}

template <typename F>
Handler exact(Type type, bool ftz) {
  if (type == Type::f64) return rounded<F, double, false>;
  if (type == Type::f32) return ftz ? rounded<F, float, true> : rounded<F, float, false>;
  return nullptr;
}

void emit(Decoder& d, Handler handler, Type type, std::uint8_t flags = 0) {
  if (!handler) return d.unsupported();
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t to = d.destination(0, type), from = d.source(1, type);
  Op& op = d.emit(handler);
  op.d = to;
  op.a = from;
  op.flags = flags;
}

template <typename F>
void decode_approximate(Decoder& d) {
  d.spelling.ignore("approx");
  d.rest_on(Trust::Documented, approximation_source);
  const bool ftz = d.spelling.has("ftz");
  const Type type = d.spelling.type();
  emit(d, approximate<F>(type, ftz), type);
}

// sin and cos; .2pi has its input in turns.
template <typename F, typename OfTurns>
void decode_circular(Decoder& d) {
  if (!d.spelling.has("2pi")) return decode_approximate<F>(d);
  if (d.spelling.type() != Type::f32 || !d.spelling.has("ftz")) return d.unsupported();
  decode_approximate<OfTurns>(d);
}

template <typename F, typename Exact>
void decode_either(Decoder& d) {
  const std::string_view rounding = d.spelling.any("rn rz rm rp");
  if (rounding.empty()) return decode_approximate<F>(d);
  const bool ftz = d.spelling.has("ftz");
  const Type type = d.spelling.type();
  emit(d, exact<Exact>(type, ftz), type,
       rounding == "rz"   ? 1
       : rounding == "rm" ? 2
       : rounding == "rp" ? 3
                          : 0);
}

}  // namespace

constexpr EmulatedRow approximations_rows[] = {
    computation(Opcode::fma, decode_float_arithmetic, Flow::Spreads, Meaning::Computes),
    computation(Opcode::rcp, decode_either<Reciprocal, ExactReciprocal>, Flow::Spreads,
                Meaning::Functions),
    computation(Opcode::sqrt, decode_either<Root, ExactRoot>, Flow::Spreads, Meaning::Functions),
    computation(Opcode::rsqrt, decode_approximate<ReciprocalRoot>, Flow::Spreads,
                Meaning::Functions),
    computation(Opcode::ex2, decode_approximate<Exponential>, Flow::Spreads, Meaning::Functions),
    computation(Opcode::lg2, decode_approximate<Logarithm>, Flow::Spreads, Meaning::Functions),
    computation(Opcode::sin, decode_circular<Sine, SineOfTurns>, Flow::Spreads, Meaning::Functions),
    computation(Opcode::cos, decode_circular<Cosine, CosineOfTurns>, Flow::Spreads,
                Meaning::Functions),
    computation(Opcode::tanh, decode_approximate<HyperbolicTangent>, Flow::Spreads,
                Meaning::Functions),
};
static_assert(are_rows_of(approximations_rows, topics::approximations));

}  // namespace tartan::TARTAN_ABI::emulator
