// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic (PTX ISA 9.0, 9.7.3 to 9.7.5): add, sub, mul, fma, div, min, max, abs,
// neg on f32, f64, f16 and bf16.
//
// f32 and 16-bit results that are NaN are the canonical NaN; f64 passes a NaN operand on, quieted.
// Sums and products of 16-bit floats are computed in f32 and rounded again, which is the same as
// rounding once (24 >= 2 * 11 + 2); their fma goes through an odd-rounded float (f16) or double.
#include <cfenv>
#include <cmath>
#include <limits>

#include "runtime/emulator/instructions/float_operations.h"
#include "runtime/emulator/instructions/half_vectors.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using namespace floats;

template <typename F, bool Ftz, bool Sat>
struct Single {
  template <typename... T>
  static float apply(T... x) {
    float out = canonical_nan(Ftz ? F::apply(flush(x)...) : F::apply(x...));
    if constexpr (Ftz) out = flush(out);
    if constexpr (Sat) out = saturate(out);
    return out;
  }
};

// Of two operands the second's NaN goes before the first's, of three the second's, the third's.
double nan_of(double a, double b) { return double_nan(b, a); }
double nan_of(double a, double b, double c) { return double_nan(b, c, a); }

template <typename F>
struct Double {
  template <typename... T>
  static double apply(T... x) {
    const double out = F::apply(x...);
    return out != out ? nan_of(x...) : out;
  }
};
// The quotient's NaN is the first of a, b.
struct DoubleDivide {
  static double apply(double a, double b) {
    const double out = a / b;
    return out != out ? double_nan(a, b) : out;
  }
};
// abs and neg quiet a NaN and leave its sign.
template <typename F>
struct DoubleSign {
  static double apply(double a) { return a != a ? quiet(a) : F::apply(a); }
};

// x + y rounded to odd. Where x is a product of two f16 and y is one, binary32 holds all that
// decides how the sum is rounded to f16: x itself, and the two bits more than f16 has that odd
// rounding needs.
float sum_to_odd_float(float x, float y) {
  const float sum = x + y, part = sum - x, error = (x - (sum - part)) + (y - part);
  const auto bits = std::bit_cast<std::uint32_t>(sum);
  const bool inexact = (error > 0) | (error < 0);  // false for NaN, which infinities give
  const std::uint32_t step = (error > 0) == (sum > 0) ? 1 : ~std::uint32_t{0};
  return std::bit_cast<float>(bits + (inexact & !(bits & 1) ? step : 0));
}

// A 16-bit float.
template <typename F, typename H, bool Ftz, bool Sat, bool Relu>
struct Small {
  static float in(H x) {
    if constexpr (Ftz && std::is_same_v<H, Half>) x = flush(x);
    return to_float(x);
  }
  static H out(H x, float exact) {
    if constexpr (Ftz && std::is_same_v<H, Half>)
      if (std::fabs(exact) < least_kept_f16) x.bits &= 0x8000;
    if constexpr (Sat) return exact > 0 ? (exact < 1 ? x : from_float<H>(1.0f)) : H{0};
    if constexpr (Relu) return (x.bits & 0x8000) ? H{0} : x;
    return x;
  }
  static H apply(H a, H b) {
    const float r = F::apply(in(a), in(b));
    return out(from_float<H>(r), r);
  }
  static H apply(H a) {
    const float r = F::apply(in(a));
    return out(from_float<H>(r), r);
  }
  static H apply(H a, H b, H c) {
    if constexpr (std::is_same_v<F, FusedNearest> && std::is_same_v<H, Half>) {
      const float r = sum_to_odd_float(in(a)*in(b), in(c));
      return out(to_half(r), r);
    } else if constexpr (std::is_same_v<F, FusedNearest>) {
      const double r = sum_to_odd(static_cast<double>(in(a)) * static_cast<double>(in(b)),
                                  static_cast<double>(in(c)));
      return out(from_double<H>(r), static_cast<float>(r));
    } else {
      const float r = F::apply(in(a), in(b), in(c));
      return out(from_float<H>(r), r);
    }
  }
};

template <typename F, typename H>
struct Pair {
  template <typename... T>
  static std::uint32_t apply(T... x) {
    const H low = F::apply(H{static_cast<std::uint16_t>(x)}...),
            high = F::apply(H{static_cast<std::uint16_t>(x >> 16)}...);
    return std::uint32_t{high.bits} << 16 | low.bits;
  }
};

// Runs a handler in the rounding mode op.flags.
template <Handler Inner>
void rounded(Warp& warp, const Op& op) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(modes[op.flags]);
  Inner(warp, op);
  std::fesetround(FE_TONEAREST);
}

// f32 with .ftz, of functions whose results may have been rounded up to the smallest normal number:
// lanes that have it are looked at again.
template <int N, typename F, bool Sat>
void flushing(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  const auto in = [](std::uint32_t raw) { return flush(std::bit_cast<float>(raw)); };
  float out[32];
  std::uint32_t any = 0;
  for (int i = 0; i < 32; ++i) {
    if constexpr (N == 2) out[i] = flush(canonical_nan(F::apply(in(a[i]), in(b[i]))));
    else out[i] = flush(canonical_nan(F::apply(in(a[i]), in(b[i]), in(c[i]))));
    any |= is_smallest(out[i]);
  }
  const auto round = static_cast<Rounding>(op.flags);
  for (int i = 0; any && i < 32; ++i) {
    if (!is_smallest(out[i])) continue;
    bool is_flushed;
    if constexpr (N == 2) is_flushed = F::is_flushed(in(a[i]), in(b[i]), round, negative(out[i]));
    else is_flushed = F::is_flushed(in(a[i]), in(b[i]), in(c[i]), round, negative(out[i]));
    if (is_flushed) out[i] = zero_of(out[i]);
  }
  each_lane(warp.mask, [=, &out](int i) {
    d[i] = std::bit_cast<std::uint32_t>(Sat ? saturate(out[i]) : out[i]);
  });
}

#if defined(__x86_64__)
// fma.rn.f32 with the host's own instruction, where it has one.
template <bool Sat>
__attribute__((target("avx2,fma"))) void hardware_fma(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  std::uint32_t out[32];
  for (int i = 0; i < 32; ++i) {
    const float x = std::bit_cast<float>(a[i]), y = std::bit_cast<float>(b[i]),
                z = std::bit_cast<float>(c[i]);
    float r = canonical_nan(__builtin_fmaf(x, y, z));
    if constexpr (Sat) r = saturate(r);
    out[i] = std::bit_cast<std::uint32_t>(r);
  }
  each_lane(warp.mask, [=, &out](int i) { d[i] = out[i]; });
}
Handler hardware_fma_of(bool ftz, bool sat) {
  if (!use_vectors()) return nullptr;
  if (ftz) return sat ? on_avx2<flushing<3, Fused, true>> : on_avx2<flushing<3, Fused, false>>;
  return sat ? hardware_fma<true> : hardware_fma<false>;
}
#else
Handler hardware_fma_of(bool, bool) { return nullptr; }
#endif

// fma.rn.f64: NaNs are rare, and have their own rules.
void fused_doubles(Warp& warp, const Op& op) {
  const auto *a = lanes<std::uint64_t>(warp, op.a), *b = lanes<std::uint64_t>(warp, op.b),
             *c = lanes<std::uint64_t>(warp, op.c);
  double out[32];
  std::uint64_t any = 0;
  for (int i = 0; i < 32; ++i) {
    out[i] = __builtin_fma(std::bit_cast<double>(a[i]), std::bit_cast<double>(b[i]),
                           std::bit_cast<double>(c[i]));
    // Above infinity: the top bit.
    any |= 0x7FF0000000000000 - (std::bit_cast<std::uint64_t>(out[i]) << 1 >> 1);
  }
  if (any >> 63) return ternary<Double<Fused>, double, double>(warp, op);
  auto* d = lanes<std::uint64_t>(warp, op.d);
  if (warp.mask == all_lanes) {  // each_lane() would keep these few vector moves a loop
#pragma GCC ivdep
    for (int i = 0; i < 32; ++i) d[i] = std::bit_cast<std::uint64_t>(out[i]);
    return;
  }
  each_lane(warp.mask, [=, &out](int i) { d[i] = std::bit_cast<std::uint64_t>(out[i]); });
}

struct Options {
  Type type;
  int rounding = 0;  // 0 rn, 1 rz, 2 rm, 3 rp
  bool ftz = false, sat = false, relu = false;
};

template <int N, typename F, typename T>
constexpr Handler of_arity() {
  if constexpr (N == 1) return unary<F, T, T>;
  else if constexpr (N == 2) return binary<F, T, T>;
  else return ternary<F, T, T>;
}

template <int N, typename F, bool Sat>
constexpr Handler flushing_single() {
  if constexpr (requires { F::is_flushed; }) return flushing<N, F, Sat>;
  else return of_arity<N, Single<F, true, Sat>, float>();
}

template <int N, typename F, bool Sat>
Handler single_of(bool ftz) {
  if (ftz) return flushing_single<N, F, Sat>();
  return of_arity<N, Single<F, false, Sat>, float>();
}
template <int N, typename F>
Handler single_of(const Options& o) {
  if (!o.sat) return single_of<N, F, false>(o.ftz);
  if constexpr (requires { F::takes_sat; }) return single_of<N, F, true>(o.ftz);
  else return nullptr;
}
template <int N, typename F, bool Sat>
Handler rounded_single_of(bool ftz) {
  if (ftz) return rounded<flushing_single<N, F, Sat>()>;
  return rounded<of_arity<N, Single<F, false, Sat>, float>()>;
}
template <int N, typename F>
Handler rounded_single_of(const Options& o) {
  if (!o.sat) return rounded_single_of<N, F, false>(o.ftz);
  if constexpr (requires { F::takes_sat; }) return rounded_single_of<N, F, true>(o.ftz);
  else return nullptr;
}
template <int N, typename H, typename Operation>
Handler small_of(bool packed) {
  if (packed) return for_machine<of_arity<N, Pair<Operation, H>, std::uint32_t>()>();
  return for_machine<of_arity<N, Operation, H>()>();
}
template <int N, typename F, typename H, bool Ftz>
Handler small_of(const Options& o, bool packed) {
  if (o.relu) {
    if constexpr (requires { F::takes_relu; })
      return small_of<N, H, Small<F, H, Ftz, false, true>>(packed);
    else return nullptr;
  }
  if (o.sat) {
    if constexpr (requires { F::takes_sat; })
      return small_of<N, H, Small<F, H, Ftz, true, false>>(packed);
    else return nullptr;
  }
  return small_of<N, H, Small<F, H, Ftz, false, false>>(packed);
}
template <int N, typename F>
Handler small_of(const Options& o) {
  if constexpr (requires { F::on_halves; })
    if (const Handler handler =
            half_arithmetic(F::on_halves, {.bfloat = o.type == Type::bf16 || o.type == Type::bf16x2,
                                           .ftz = o.ftz,
                                           .sat = o.sat,
                                           .relu = o.relu}))
      return handler;
  switch (o.type) {
    case Type::f16:
      return o.ftz ? small_of<N, F, Half, true>(o, false) : small_of<N, F, Half, false>(o, false);
    case Type::f16x2:
      return o.ftz ? small_of<N, F, Half, true>(o, true) : small_of<N, F, Half, false>(o, true);
    case Type::bf16: return small_of<N, F, Bfloat, false>(o, false);
    case Type::bf16x2: return small_of<N, F, Bfloat, false>(o, true);
    default: return nullptr;
  }
}

// Arithmetic that rounds. `Nearest` may be a faster function for round to nearest even.
template <int N, typename F, typename Nearest = F>
Handler arithmetic(const Options& o) {
  if (o.type == Type::f32)
    return o.rounding ? rounded_single_of<N, F>(o) : single_of<N, Nearest>(o);
  if (o.type == Type::f64)
    return o.rounding ? rounded<of_arity<N, Double<F>, double>()>
           : N == 3   ? for_machine<fused_doubles>()
                      : for_machine<of_arity<N, Double<F>, double>()>();
  if (o.rounding) return nullptr;
  return small_of<N, Nearest>(o);
}

// What does not round.
template <int N, typename F>
Handler selection(const Options& o) {
  if (o.type == Type::f32) return single_of<N, F>(o);
  return small_of<N, F>(o);
}

template <int N, bool Max>
Handler extremum(const Options& o, bool nan, bool xor_sign) {
  if (nan)
    return xor_sign ? selection<N, Extremum<Max, true, true>>(o)
                    : selection<N, Extremum<Max, true, false>>(o);
  return xor_sign ? selection<N, Extremum<Max, false, true>>(o)
                  : selection<N, Extremum<Max, false, false>>(o);
}

Handler extremum(Decoder& d, const Options& o, bool max) {
  const bool nan = d.spelling.has("NaN"), xor_sign = d.spelling.has("xorsign");
  if (xor_sign) d.spelling.ignore("abs");
  if (o.type == Type::f64)
    return max ? binary<Double<Extremum<true, false, false>>, double, double>
               : binary<Double<Extremum<false, false, false>>, double, double>;
  if (d.operand_count() == 4)
    return max ? extremum<3, true>(o, nan, xor_sign) : extremum<3, false>(o, nan, xor_sign);
  return max ? extremum<2, true>(o, nan, xor_sign) : extremum<2, false>(o, nan, xor_sign);
}

// Sign operations keep what is below the sign; .ftz flushes.
template <typename F>
Handler sign(const Options& o) {
  if (o.type == Type::f64) return unary<DoubleSign<F>, double, double>;
  return selection<1, F>(o);
}

// div.approx: at most 2 ulp; the emulator's quotient is the correctly rounded one, except that
// divisors beyond 2^126 give 0 for numbers.
struct ApproximateDivide {
  static float apply(float a, float b) {
    if (std::fabs(b) > 0x1p126f && std::fabs(b) < HUGE_VALF)
      return std::isinf(a) || a != a ? NAN : with_sign(0.0f, negative(a) != negative(b));
    return a / b;
  }
};

Handler division(Decoder& d, const Options& o) {
  if (o.type != Type::f32 && o.type != Type::f64) return nullptr;
  // div.f32 without either is div.approx: PTX 1.3 and earlier.
  const bool approximate = d.spelling.has("approx") ||
                           (o.type == Type::f32 && d.spelling.any("rn rz rm rp full").empty());
  if (approximate || d.spelling.has("full")) d.rest_on(Trust::Documented, approximation_source);
  if (approximate) return o.type == Type::f32 ? single_of<2, ApproximateDivide>(o) : nullptr;
  if (d.spelling.has("full")) return o.type == Type::f32 ? single_of<2, Divide>(o) : nullptr;
  if (o.type == Type::f64)
    return o.rounding ? rounded<binary<DoubleDivide, double, double>>
                      : binary<DoubleDivide, double, double>;
  return arithmetic<2, Divide>(o);
}

template <typename Small>
void widen(Warp& warp, const Op& op) {
  auto* d = lanes<float>(warp, op.d);
  const auto* a = lanes<std::uint32_t>(warp, op.a);
  each_lane(warp.mask, [=](int i) { d[i] = to_float(Small{static_cast<std::uint16_t>(a[i])}); });
}

// fma.oob: what an element outside of a tensor reads as (tensor.cc), of either sign, makes the
// result +0. op.c: the result so far.
constexpr std::uint16_t out_of_bounds = 0x7FF7;

void zero_where_out_of_bounds(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *result = lanes<std::uint32_t>(warp, op.c);
  const auto half = [](std::uint32_t x, std::uint32_t y, int shift) -> std::uint32_t {
    const auto is_outside = [=](std::uint32_t z) { return (z >> shift & 0x7FFF) == out_of_bounds; };
    return is_outside(x) || is_outside(y) ? 0 : std::uint32_t{0xFFFF} << shift;
  };
  each_lane(warp.mask,
            [=](int i) { d[i] = result[i] & (half(a[i], b[i], 0) | half(a[i], b[i], 16)); });
}

// Mixed precision (PTX ISA 9.0, 9.7.5): all sources but the last are 16-bit floats, which f32 has
// all of.
std::uint32_t widened(Decoder& d, std::size_t index, Type type) {
  const std::uint32_t from = d.source(index, type), out = d.scratch(32);
  Op& op = d.emit(type == f16 ? widen<Half> : widen<Bfloat>);
  op.d = out;
  op.a = from;
  return out;
}

// min and max of magnitudes (.abs): those of the sources.
std::uint32_t magnitude_of(Decoder& d, std::size_t index) {
  const std::uint32_t from = d.source(index, Type::f32), out = d.scratch(32);
  Op& op = d.emit(unary<Absolute, float, float>);
  op.d = out;
  op.a = from;
  return out;
}

}  // namespace

void decode_float_arithmetic(Decoder& d) {
  if (decode_float_pairs(d) || decode_small_floats(d)) return;
  Options o{.type = d.spelling.type()};
  const std::string_view rounding = d.spelling.any("rn rz rm rp");
  o.rounding = rounding == "rz" ? 1 : rounding == "rm" ? 2 : rounding == "rp" ? 3 : 0;
  o.ftz = d.spelling.has("ftz");
  o.sat = d.spelling.has("sat");
  o.relu = d.spelling.has("relu");
  const Opcode opcode = d.spelling.opcode();
  const bool multiplies_and_adds = opcode == Opcode::fma || opcode == Opcode::mad;
  const Type narrow = d.spelling.types() == 2 ? d.spelling.type(1) : Type::none;
  const bool mixed = o.type == f32 && (narrow == f16 || narrow == bf16) &&
                     (opcode == Opcode::add || opcode == Opcode::sub || opcode == Opcode::fma);
  if (d.spelling.types() > 1 && !mixed)
    return d.unsupported("mixed precision: f32 results require f16 or bf16 sources");
  std::size_t sources = 2;
  Handler handler = nullptr;
  switch (opcode) {
    case Opcode::add: handler = arithmetic<2, Add>(o); break;
    case Opcode::sub: handler = arithmetic<2, Subtract>(o); break;
    case Opcode::mul: handler = arithmetic<2, Multiply>(o); break;
    case Opcode::div: handler = division(d, o); break;
    case Opcode::fma:
    case Opcode::mad: handler = arithmetic<3, Fused, FusedNearest>(o), sources = 3; break;
    case Opcode::min:
    case Opcode::max:
      handler = extremum(d, o, opcode == Opcode::max);
      sources = d.operand_count() == 4 ? 3 : 2;
      break;
    case Opcode::abs: handler = sign<Absolute>(o), sources = 1; break;
    case Opcode::neg: handler = sign<Negate>(o), sources = 1; break;
    default: break;
  }
  if (!handler) return d.unsupported();
  if (sources == 3 && o.type == Type::f32 && o.rounding == 0 && multiplies_and_adds)
    if (const Handler faster = hardware_fma_of(o.ftz, o.sat)) handler = faster;
  if (!d.expect_operands(sources + 1, sources + 1)) return;
  const bool outside =
      opcode == Opcode::fma && bits(o.type) <= 32 && o.type != f32 && d.spelling.has("oob");
  const std::uint32_t to = d.destination(0, o.type), result = outside ? d.scratch(32) : to;
  const bool magnitudes =
      sources == 3 && o.type == f32 && !multiplies_and_adds && d.spelling.has("abs");
  std::uint32_t from[3] = {};
  for (std::size_t i = 0; i < sources; ++i)
    from[i] = mixed && i + 1 < sources ? widened(d, i + 1, narrow)
              : magnitudes             ? magnitude_of(d, i + 1)
                                       : d.source(i + 1, o.type);
  Op& op = d.emit(handler);
  op.d = result;
  op.a = from[0];
  op.b = from[1];
  op.c = from[2];
  op.flags = static_cast<std::uint8_t>(o.rounding);
  if (!outside) return;
  Op& last = d.emit(zero_where_out_of_bounds);
  last.d = to;
  last.a = from[0];
  last.b = from[1];
  last.c = result;
}

}  // namespace tartan::TARTAN_ABI::emulator
