// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/algebra/values.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <new>

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t most_values = std::size_t{1} << 28;  // tags have 28 bits for them

// Below 2^-10000 there is nothing but what was masked; kernels write that as a large negative
// number, or as an infinity.
constexpr double masked = -10000;

double real_of(Function function, double x) {
  switch (function) {
    case Function::negate: return -x;
    case Function::magnitude: return std::fabs(x);
    case Function::exp2: return std::exp2(x);
    case Function::reciprocal: return 1 / x;
    case Function::root: return std::sqrt(x);
    case Function::rsqrt: return 1 / std::sqrt(x);
    case Function::lg2: return std::log2(x);
    case Function::sine: return std::sin(x);
    case Function::cosine: return std::cos(x);
    case Function::tanh: return std::tanh(x);
  }
  return x;
}

// Whether `y` is exactly function(x).
bool is_exact(Function function, double x, double y) {
  switch (function) {
    case Function::root: return std::fma(y, y, -x) == 0;
    case Function::rsqrt: {
      const double square = y * y;
      return std::fma(y, y, -square) == 0 && std::fma(square, x, -1) == 0;
    }
    case Function::lg2: return y == std::nearbyint(y) && std::exp2(y) == x;
    case Function::sine:
    case Function::tanh: return x == 0;
    case Function::cosine: return x == 0;
    default: return false;
  }
}

}  // namespace

Values::Values() {
  values_.push_back({});  // 0 is no value
  values_.push_back({.constant = true});
  constants_.emplace(0, 1);
}

Ref Values::push(const Value& value) {
  if (values_.size() >= most_values) throw std::bad_alloc();
  values_.push_back(value);
  return static_cast<Ref>(values_.size() - 1);
}

Ref Values::constant(double x) {
  if (x == 0) return zero();
  const auto [at, fresh] = constants_.try_emplace(std::bit_cast<std::uint64_t>(x), 0);
  if (!fresh) return at->second;
  const bool finite = std::isfinite(x);
  return at->second = push({.number = finite ? number_of(x) : Number{.real = x},
                            .kind = finite ? Value::Kind::number : Value::Kind::beyond,
                            .constant = true});
}

Ref Values::constant(std::int64_t x) {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  if (x >= -exact && x <= exact) return constant(static_cast<double>(x));
  return push({.number = number_of(x), .constant = true});
}

Ref Values::input(std::uint64_t key, double real, Type type) {
  if (!std::isfinite(real)) return as(constant(real), type);
  return push({.number = variable(key, real), .type = type});
}

Ref Values::undecided(int line, std::string text) {
  const auto [at, fresh] = undecided_.try_emplace(fmt::format("{}:{}", line, text), 0);
  if (!fresh) return at->second;
  reasons_.push_back({line, std::move(text)});
  return at->second = push({.number = {.p = reasons_.size() - 1, .real = std::nan("")},
                            .kind = Value::Kind::undecided});
}

Ref Values::add(const Number& number, bool constant, bool interpreted) {
  return push({.number = number, .constant = constant, .interpreted = interpreted});
}

Ref Values::as(Ref a, Type type) {
  if (values_[a].type == type || values_[a].kind == Value::Kind::undecided) return a;
  Value copy = values_[a];
  copy.type = type;
  return push(copy);
}

Ref Values::odd(Ref a, Ref b, double real) {
  for (const Ref each : {a, b})
    if (values_[each].kind == Value::Kind::undecided) return each;
  const Ref made = constant(real);
  if (values_[a].constant && values_[b].constant) return made;
  Value copy = values_[made];
  copy.constant = false;
  return push(copy);
}

Ref Values::of_parts(const Number& number, Ref a, Ref b) {
  return push({.number = number,
               .constant = values_[a].constant && values_[b].constant,
               .interpreted = values_[a].interpreted && values_[b].interpreted});
}

Ref Values::sum(Ref a, Ref b) {
  if (a == zero()) return b;
  if (b == zero()) return a;
  const Number x = values_[a].number, y = values_[b].number;
  if (!plain(a) || !plain(b)) return odd(a, b, x.real + y.real);
  return of_parts(x + y, a, b);
}

Ref Values::product(Ref a, Ref b) {
  const Number x = values_[a].number, y = values_[b].number;
  if (!plain(a) || !plain(b)) return odd(a, b, x.real * y.real);
  if (a == zero() || b == zero()) return zero();
  return of_parts(x * y, a, b);
}

Ref Values::fused(Ref a, Ref b, Ref c) { return sum(product(a, b), c); }

Ref Values::apply(Function function, Ref a) {
  const Value x = values_[a];
  const double real = real_of(function, x.number.real);
  if (x.kind != Value::Kind::number) return odd(a, a, real);
  if (!x.constant) note(function, x.number.real);
  if (function == Function::exp2 && x.number.real < masked) return odd(a, a, 0);
  if (function == Function::magnitude && x.number.real >= 0) return a;
  if (a == zero() && function == Function::negate) return a;
  const bool pole = x.number.p == 0 && !std::isfinite(real);
  if (pole || std::isnan(real)) return odd(a, a, real);
  return evaluate(function, x);
}

void Values::note(Function function, double x) {
  constexpr double most = 1000;  // 2^1024 is beyond doubles
  if (function == Function::exp2) extremes += std::fabs(x) > most;
  if (function == Function::root || function == Function::rsqrt) rooted = steered = true;
  if (function == Function::magnitude) steered = true;
}

Ref Values::evaluate(Function function, const Value& a) {
  const Number& x = a.number;
  const double real = real_of(function, x.real);
  if (a.constant && number_of(x.real).p == x.p && is_exact(function, x.real, real))
    return constant(real);
  const auto name = static_cast<std::uint64_t>(function);
  Value out{.constant = a.constant, .interpreted = a.interpreted};
  switch (function) {
    case Function::negate:
    case Function::magnitude: out.number = -x; break;
    case Function::exp2:
      if (a.constant && x.real == std::nearbyint(x.real) && std::fabs(x.real) < 1000 &&
          number_of(x.real).p == x.p)
        return constant(real);
      out.number = emulator::exp2(x);
      break;
    case Function::reciprocal: out.number = inverse(x); break;
    case Function::root: out.number = square_root(x); break;
    case Function::rsqrt: out.number = inverse(square_root(x)); break;
    default: out.number = uninterpreted(name, x, real); out.interpreted = false;
  }
  return push(out);
}

bool Values::choice(Ref a, Ref b) const {
  const Value &x = values_[a], &y = values_[b];
  if (x.constant && y.constant) return false;
  return std::isfinite(x.number.real) && std::isfinite(y.number.real) &&
         x.number.real != y.number.real;
}

Ref Values::extremum(Ref a, Ref b, bool greatest) {
  const Value &x = values_[a], &y = values_[b];
  steered |= !x.constant || !y.constant;
  for (const Ref each : {a, b})
    if (values_[each].kind == Value::Kind::undecided) return each;
  if (std::isnan(x.number.real)) return b;
  if (std::isnan(y.number.real)) return a;
  if (x.number.real != y.number.real) return (x.number.real > y.number.real) == greatest ? a : b;
  return (x.number.p > y.number.p) == greatest ? a : b;
}

}  // namespace tartan::TARTAN_ABI::emulator
