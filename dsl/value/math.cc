// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/math.h"

#include <cmath>
#include <numbers>

#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::KernelState;
using ir::Value;

Type common_type(const Scalar& x, const Scalar& y) {
  return x.type() == Type::none ? y.type() : x.type();
}

bool same_types(KernelState& state, const Scalar& x, const Scalar& y) {
  if (detail::is_constant(x) || detail::is_constant(y) || x.type() == y.type()) return true;
  state.log.report("scalar-type"_rule,
                   fmt::format("operands of different types, {} and {}; convert() one of them",
                               name(x.type()), name(y.type())));
  return false;
}

// Two constants, at least one of which is not an integer (integers are folded before).
bool are_constants(const Scalar& x, const Scalar& y) {
  return detail::is_constant(x) && detail::is_constant(y);
}

using Binary = Value (ir::FunctionBuilder::*)(Value, Value);

Scalar binary(Binary function, const Scalar& x, const Scalar& y) {
  const auto state = detail::common_state({&x, &y});
  if (!state || !same_types(*state, x, y)) return detail::bad_scalar();
  const Type type = common_type(x, y);
  return state->scalar((state->f().*function)(state->value(x, type), state->value(y, type)));
}

Scalar approximate(ir::Approximation function, const Scalar& x) {
  const auto state = detail::common_state({&x});
  if (!state) return detail::bad_scalar();
  if (x.type() != f32 && !detail::real(x)) {
    state->log.report(
        "scalar-type"_rule,
        fmt::format("expected an f32 operand, found {}; convert() it", detail::text(x)));
    return detail::bad_scalar();
  }
  return state->scalar(state->f().approximate(function, state->value(x, f32)));
}

// The operand; diagnostics are its line's from now on.
const Scalar& value_of(const ScalarOperand& operand) {
  detail::note_line(operand.at);
  return operand.value;
}

}  // namespace

Scalar minimum(const ScalarOperand& left, const ScalarOperand& right) {
  const Scalar &x = value_of(left), &y = value_of(right);
  if (x.constant() && y.constant()) return std::min(*x.constant(), *y.constant());
  if (are_constants(x, y)) return std::min(detail::number(x), detail::number(y));
  return binary(&ir::FunctionBuilder::minimum, x, y);
}
Scalar maximum(const ScalarOperand& left, const ScalarOperand& right) {
  const Scalar &x = value_of(left), &y = value_of(right);
  if (x.constant() && y.constant()) return std::max(*x.constant(), *y.constant());
  if (are_constants(x, y)) return std::max(detail::number(x), detail::number(y));
  return binary(&ir::FunctionBuilder::maximum, x, y);
}

Scalar select(const ScalarOperand& holds, const ScalarOperand& then,
              const ScalarOperand& otherwise) {
  const Scalar &condition = value_of(holds), &x = value_of(then), &y = value_of(otherwise);
  if (const auto constant = condition.constant()) return *constant ? x : y;
  const auto state = detail::common_state({&condition, &x, &y});
  if (!state || !same_types(*state, x, y)) return detail::bad_scalar();
  if (condition.type() != Type::pred) {
    state->log.report(
        "scalar-type"_rule,
        fmt::format("expected a condition of type pred, such as a comparison, found {}",
                    detail::text(condition)));
    return detail::bad_scalar();
  }
  Type type = common_type(x, y);
  if (type == Type::none) type = detail::real(x) || detail::real(y) ? f32 : u32;
  const Scalar out = state->scalar(
      state->f().select(state->value(condition), state->value(x, type), state->value(y, type)), 1,
      detail::ones(x) | detail::ones(y));
  return detail::one_of(*state, out, {&x, &y});
}

Scalar relu(const ScalarOperand& x) { return select({value_of(x) <= 0, x.at}, {0, x.at}, x); }

Scalar fma(const ScalarOperand& left, const ScalarOperand& right, const ScalarOperand& addend) {
  const Scalar &x = value_of(left), &y = value_of(right), &z = value_of(addend);
  const auto state = detail::common_state({&x, &y, &z});
  if (!state || !same_types(*state, x, y) || !same_types(*state, x, z) || !same_types(*state, y, z))
    return detail::bad_scalar();
  const Type type = common_type(detail::is_constant(x) ? y : x, z);
  if (!info(type).floating) return x * y + z;
  return state->scalar(
      state->f().fma(state->value(x, type), state->value(y, type), state->value(z, type)));
}

namespace {

constexpr Since eight_bits{{8, 1}, 89};

}  // namespace

bool has_eight_bits(const Target& target) {
  if (target.has(Feature::eight_bit_conversion)) return true;
  // A description that asks is described again for the version that has them.
  if (KernelState* const state = detail::Description::current()) state->log.asks(eight_bits);
  return false;
}

Scalar detail::refuse_eight_bits(KernelState& state) {
  state.log.would_take(eight_bits);
  state.log.report(
      "no-instruction"_rule,
      fmt::format("conversions of e4m3 and e5m2 require sm_89 and PTX 8.1, the target is {}",
                  state.config.target.text()));
  return detail::bad_scalar();
}

Scalar convert_pair(const ScalarOperand& first, const ScalarOperand& second, Type to) {
  const Scalar &low = value_of(first), &high = value_of(second);
  const auto state = detail::common_state({&low, &high});
  if (!state) return detail::bad_scalar();
  if (to != Type::e4m3 && to != Type::e5m2) {
    state->log.report("no-instruction"_rule,
                      fmt::format("no packed conversion to {}: expected e4m3 or e5m2", name(to)));
    return detail::bad_scalar();
  }
  if (!has_eight_bits(state->config.target)) return refuse_eight_bits(*state);
  return state->scalar(
      state->f().convert_pair(state->value(low, f32), state->value(high, f32), to));
}

Scalar multiple_of(const ScalarOperand& operand, std::int64_t divisor) {
  const Scalar& x = value_of(operand);
  const auto state = detail::common_state({&x});
  if (!state) return detail::bad_scalar();
  const auto constant = x.constant();
  if (divisor < 1 || (constant && *constant % divisor)) {
    state->log.report("immediate-range"_rule,
                      fmt::format("multiple_of: {} is not a multiple of {}",
                                  constant ? detail::text(x) : "a number", divisor));
    return detail::bad_scalar();
  }
  if (!state->is_index(x, "multiple_of")) return detail::bad_scalar();
  if (constant) return x;
  const std::int64_t known = x.multiple();
  const std::int64_t both = known / std::gcd(known, divisor);
  return state->scalar(state->value(x),
                       both > (std::int64_t{1} << 31) / divisor ? divisor : both * divisor);
}

Scalar ceil_div(const ScalarOperand& covered, const ScalarOperand& by) {
  const Scalar &count = value_of(covered), &size = value_of(by);
  if (auto* const state = detail::Description::current();
      state && size.constant().value_or(1) < 1) {
    state->log.report("immediate-range"_rule, fmt::format("ceil_div(): expected a size above 0, "
                                                          "found {}",
                                                          *size.constant()));
    return detail::bad_scalar();
  }
  return (count + (size - 1)) / size;
}

Scalar exp2(const ScalarOperand& x) { return approximate(ir::Approximation::ex2, value_of(x)); }
Scalar log2(const ScalarOperand& x) { return approximate(ir::Approximation::lg2, value_of(x)); }
Scalar reciprocal(const ScalarOperand& x) {
  return approximate(ir::Approximation::rcp, value_of(x));
}
Scalar rsqrt(const ScalarOperand& x) { return approximate(ir::Approximation::rsqrt, value_of(x)); }
Scalar tanh(const ScalarOperand& x) { return approximate(ir::Approximation::tanh, value_of(x)); }

namespace {

// x times a constant: bad for operands that approximate() refuses, which are reported once.
Scalar scaled(const Scalar& x, double factor) {
  return x.type() == f32 || detail::real(x) ? x * factor : x;
}

// Whether a function takes operands of the type of x; reports if not.
bool takes(KernelState& state, std::string_view function, const Scalar& x, TypeSet types,
           std::string_view expected) {
  if (types.has(x.type())) return true;
  state.log.report("scalar-type"_rule, fmt::format("{}: expected {}, found {}; convert() it",
                                                   function, expected, detail::text(x)));
  return false;
}

constexpr TypeSet floats{f16, bf16, f32, f64};

}  // namespace

Scalar exp(const ScalarOperand& x) {
  return exp2({scaled(value_of(x), std::numbers::log2e), x.at});
}
Scalar log(const ScalarOperand& x) { return scaled(log2(x), std::numbers::ln2); }

Scalar abs(const ScalarOperand& operand) {
  const Scalar& x = value_of(operand);
  if (const auto constant = x.constant()) return *constant < 0 ? -x : x;
  if (const auto constant = detail::real(x)) return std::fabs(*constant);
  const auto state = detail::common_state({&x});
  if (!state) return detail::bad_scalar();
  const TypeSet numbers{s8, s16, s32, s64, u8, u16, u32, u64, f16, bf16, f32, f64, f16x2, bf16x2};
  if (!takes(*state, "abs", x, numbers, "an integer, f16, bf16, f32, f64, f16x2 or bf16x2"))
    return detail::bad_scalar();
  if (!info(x.type()).floating && !info(x.type()).is_signed) return x;
  return state->scalar(state->f().absolute(state->value(x)), x.multiple());
}

Scalar sign(const ScalarOperand& operand) {
  const Scalar& x = value_of(operand);
  if (const auto constant = x.constant()) return (*constant > 0) - (*constant < 0);
  if (const auto constant = detail::real(x))
    return *constant > 0 || *constant < 0 ? std::copysign(1.0, *constant) : *constant;
  const auto state = detail::common_state({&x});
  if (!state || !takes(*state, "sign", x, {s8, s16, s32, s64, f32}, "a signed integer or f32"))
    return detail::bad_scalar();
  return state->scalar(state->f().signum(state->value(x)));
}

Scalar floor(const ScalarOperand& operand) {
  const Scalar& x = value_of(operand);
  if (x.constant()) return x;
  if (const auto constant = detail::real(x)) return std::floor(*constant);
  const auto state = detail::common_state({&x});
  if (!state || !takes(*state, "floor", x, floats, "f16, bf16, f32 or f64"))
    return detail::bad_scalar();
  return state->scalar(state->f().floor(state->value(x)));
}

}  // namespace tartan::TARTAN_ABI
