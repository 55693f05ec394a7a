// SPDX-License-Identifier: Apache-2.0
// Arithmetic on elements, and conversions between their types.
#include <algorithm>
#include <cmath>

#include "runtime/emulator/algebra/steps.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;
using isa::operator""_q;

std::size_t bytes_of(Type type) { return static_cast<std::size_t>(bits(type)) / 8; }

// Element `k` of a register; scalars of a packed instruction stand for all.
Ref element(Warp& warp, const LaneBytes& bytes, Type type, std::size_t k) {
  const std::size_t at = k * bytes_of(type);
  return algebra_of(warp).read(&warp, bytes.tags + at, bytes.bits + at, type);
}

// The greater or lesser one, which the algebra is told of.
Ref choose(Warp& warp, const isa::Spelling& spelling, Ref a, Ref b, bool greatest) {
  Algebra& algebra = algebra_of(warp);
  Values& values = algebra.values;
  const Ref out = values.extremum(a, b, greatest);
  if (values.choice(a, b))
    algebra.decide(warp, spelling, out == a ? Decision::first : Decision::other);
  return out;
}

Ref clamp(Warp& warp, const isa::Spelling& spelling, Ref x) {
  if (!spelling.has("sat"_q) && !spelling.has("relu"_q)) return x;
  Values& values = algebra_of(warp).values;
  x = choose(warp, spelling, x, values.zero(), true);
  return spelling.has("sat"_q) ? choose(warp, spelling, x, values.constant(1.0), false) : x;
}

// In radians; with .2pi they are turns.
Ref angle(Values& values, const isa::Spelling& spelling, Ref x) {
  constexpr double turn = 0x1.921fb54442d18p+2;
  return spelling.has("2pi"_q) ? values.product(values.constant(turn), x) : x;
}

Ref evaluate(Warp& warp, const Lift& lift, const Ref* x, std::size_t count) {
  Values& values = algebra_of(warp).values;
  const isa::Spelling& spelling = *lift.spelling;
  const auto least = [&](bool greatest) {
    Ref out = x[0];
    for (std::size_t i = 1; i < count; ++i) out = choose(warp, spelling, out, x[i], greatest);
    return out;
  };
  switch (spelling.opcode) {
    case Opcode::add: return values.sum(x[0], x[1]);
    case Opcode::sub: return values.sum(x[0], values.apply(Function::negate, x[1]));
    case Opcode::mul: return values.product(x[0], x[1]);
    case Opcode::mad:
    case Opcode::fma: return values.fused(x[0], x[1], x[2]);
    case Opcode::div: return values.quotient(x[0], x[1]);
    case Opcode::neg: return values.apply(Function::negate, x[0]);
    case Opcode::abs: return values.apply(Function::magnitude, x[0]);
    case Opcode::rcp: return values.apply(Function::reciprocal, x[0]);
    case Opcode::sqrt: return values.apply(Function::root, x[0]);
    case Opcode::rsqrt: return values.apply(Function::rsqrt, x[0]);
    case Opcode::sin: return values.apply(Function::sine, angle(values, spelling, x[0]));
    case Opcode::cos: return values.apply(Function::cosine, angle(values, spelling, x[0]));
    case Opcode::lg2: return values.apply(Function::lg2, x[0]);
    case Opcode::ex2: return values.apply(Function::exp2, x[0]);
    case Opcode::tanh: return values.apply(Function::tanh, x[0]);
    case Opcode::min:
    case Opcode::max: {
      if (spelling.has("abs"_q) || spelling.has("xorsign"_q)) break;
      return least(spelling.opcode == Opcode::max);
    }
    case Opcode::copysign: {
      const Ref magnitude = values.apply(Function::magnitude, x[1]);
      const bool negative = std::signbit(values[x[0]].number.real);
      values.steered |= !values[x[0]].constant;
      return negative ? values.apply(Function::negate, magnitude) : magnitude;
    }
    default: break;
  }
  return algebra_of(warp).undecided(&warp, std::string(spelling.text) + " is not followed");
}

}  // namespace

bool compute_values(Warp& warp, const Op&, const Lift& lift) {
  Algebra& algebra = algebra_of(warp);
  const std::size_t size = bytes_of(lift.to);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    LaneBytes sources[3], out;
    const std::size_t count = std::min<std::size_t>(lift.s.size(), 3);
    for (std::size_t s = 0; s < count; ++s) sources[s] = LaneBytes(warp, lift.s[s], lane);
    for (std::size_t k = 0; k < lift.count; ++k) {
      Ref x[3] = {};
      const bool fused = lift.spelling->opcode == Opcode::fma || count == 3;
      for (std::size_t s = 0; s < count; ++s) {
        const bool last = s + 1 == count && (fused || count == 2);
        x[s] = element(warp, sources[s], last ? lift.to : lift.from, k);
      }
      const Ref made = evaluate(warp, lift, x, count);
      algebra.write(out.tags + k * size, clamp(warp, *lift.spelling, made), lift.to);
    }
    out.write(warp, lift.d[0], lane);
  }
  return true;
}

namespace {

// Rounding to whole numbers, where the instruction says so with equal types.
Ref round_whole(Warp& warp, const isa::Spelling& spelling, Ref x) {
  Values& values = algebra_of(warp).values;
  if (!values[x].constant)
    return algebra_of(warp).undecided(&warp,
                                      std::string(spelling.text) + " rounds to whole numbers");
  const double real = values[x].number.real;
  if (spelling.has("rzi"_q)) return values.constant(std::trunc(real));
  if (spelling.has("rmi"_q)) return values.constant(std::floor(real));
  if (spelling.has("rpi"_q)) return values.constant(std::ceil(real));
  return values.constant(std::nearbyint(real));
}

// Integers of several bytes in inputs are lengths and positions: their bits count.
Ref integer_element(Warp& warp, const LaneBytes& bytes, Type type) {
  Algebra& algebra = algebra_of(warp);
  const std::size_t size = bytes_of(type);
  if (size == 1 || !is_input(bytes.tags[0])) return element(warp, bytes, type, 0);
  algebra.take_bits(bytes.tags, size);
  LaneBytes plain = bytes;
  std::fill(std::begin(plain.tags), std::end(plain.tags), 0);
  return element(warp, plain, type, 0);
}

}  // namespace

// To floating-point types. Of two sources the first is the upper element.
bool convert_values(Warp& warp, const Op&, const Lift& lift) {
  Algebra& algebra = algebra_of(warp);
  const isa::Spelling& spelling = *lift.spelling;
  const std::size_t size = bytes_of(lift.to);
  const bool stochastic = spelling.has("rs"_q);
  const std::size_t sources = std::max<std::size_t>(lift.s.size() - (stochastic ? 1 : 0), 1);
  const bool integers = !info(lift.from).floating;
  const bool whole = spelling.has("rni"_q) || spelling.has("rzi"_q) || spelling.has("rmi"_q) ||
                     spelling.has("rpi"_q);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    LaneBytes out;
    for (std::size_t k = 0; k < lift.count; ++k) {
      const bool apart = sources == lift.count;  // a register for each element
      const LaneBytes from(warp, lift.s[apart ? lift.count - 1 - k : 0], lane);
      Ref x = integers ? integer_element(warp, from, lift.from)
                       : element(warp, from, lift.from, apart ? 0 : k);
      if (whole && !integers) x = round_whole(warp, spelling, x);
      algebra.write(out.tags + k * size, clamp(warp, spelling, x), lift.to);
    }
    out.write(warp, lift.d[0], lane);
  }
  return true;
}

namespace {

// A minimum or maximum of two words.
void decide_words(Warp& warp, const Lift& lift, const LaneBytes* sources) {
  const isa::Spelling& spelling = *lift.spelling;
  const bool least = spelling.opcode == Opcode::min;
  if (!least && spelling.opcode != Opcode::max) return;
  if (!depends(algebra_of(warp).values, sources[0], 4) &&
      !depends(algebra_of(warp).values, sources[1], 4))
    return;
  const auto x = static_cast<std::uint32_t>(sources[0].word()),
             y = static_cast<std::uint32_t>(sources[1].word());
  if (x == y) return;
  const bool lower = info(spelling.type(0)).is_signed
                         ? static_cast<std::int32_t>(x) < static_cast<std::int32_t>(y)
                         : x < y;
  algebra_of(warp).decide(warp, spelling, lower == least ? Decision::first : Decision::other);
}

}  // namespace

// 32-bit integers that matrix products gave.
bool compute_integers(Warp& warp, const Op& op, const Lift& lift) {
  if (!tagged(warp, lift.s)) return forget(warp, op, lift);
  Algebra& algebra = algebra_of(warp);
  Values& values = algebra.values;
  const std::uint32_t all = warp.mask;
  const auto is_integer = [&](const LaneBytes& bytes) {
    return is_valued(bytes.tags[0]) && values[ref_of(bytes.tags[0])].type == Type::s32;
  };
  for (std::uint32_t m = all; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    bool valued = false, usable = lift.spelling->opcode != Opcode::div;
    Ref x[3] = {};
    LaneBytes sources[3];
    const std::size_t count = std::min<std::size_t>(lift.s.size(), 3);
    for (std::size_t s = 0; s < count; ++s) {
      sources[s] = LaneBytes(warp, lift.s[s], lane);
      valued |= is_integer(sources[s]);
      usable &= is_integer(sources[s]) || !is_valued(sources[s].tags[0]);
    }
    if (!valued || !usable) {
      if (count == 2) decide_words(warp, lift, sources);
      warp.mask = std::uint32_t{1} << lane;
      compute_bits(warp, op, lift);
      warp.mask = all;
      continue;
    }
    for (std::size_t s = 0; s < count; ++s) x[s] = integer_element(warp, sources[s], Type::s32);
    LaneBytes out;
    algebra.write(out.tags, evaluate(warp, lift, x, count), Type::s32);
    out.write(warp, lift.d[0], lane);
  }
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
