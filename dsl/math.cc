// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/math.h"

#include "dsl/operations.h"
#include "dsl/scalars.h"

namespace tartan::inline TARTAN_ABI {
namespace {

using codegen::Value;
using detail::KernelState;

// The kernel that the operands belong to; nothing, and a diagnostic, if there is none.
std::shared_ptr<KernelState> common_state(std::initializer_list<const Scalar*> operands) {
  std::shared_ptr<KernelState> out;
  for (const Scalar* each : operands) {
    if (detail::is_bad(*each)) return nullptr;
    if (const auto& state = detail::state_of(*each)) out = state;
  }
  if (auto* const current = detail::Description::current()) out = current->shared_from_this();
  if (!out || !out->is_described()) return nullptr;
  for (const Scalar* each : operands)
    if (detail::state_of(*each) && !out->owns(*each, "an operand")) return nullptr;
  return out;
}

Type common_type(const Scalar& x, const Scalar& y) {
  return x.type() == Type::none ? y.type() : x.type();
}

bool same_types(KernelState& state, const Scalar& x, const Scalar& y) {
  if (x.constant() || y.constant() || x.type() == y.type()) return true;
  state.log.report("scalar-type"_rule,
                   fmt::format("operands of different types, {} and {}; convert() one of them",
                               name(x.type()), name(y.type())));
  return false;
}

using Binary = Value (codegen::FunctionBuilder::*)(Value, Value);

Scalar binary(Binary function, const Scalar& x, const Scalar& y) {
  const auto state = common_state({&x, &y});
  if (!state || !same_types(*state, x, y)) return detail::bad_scalar();
  const Type type = common_type(x, y);
  return state->scalar((state->f().*function)(state->value(x, type), state->value(y, type)));
}

Scalar approximate(codegen::Approximation function, const Scalar& x) {
  const auto state = common_state({&x});
  if (!state) return detail::bad_scalar();
  if (x.type() != f32) {
    state->log.report(
        "scalar-type"_rule,
        fmt::format("expected an f32 operand, found {}; convert() it",
                    x.constant() ? fmt::format("the constant {}", *x.constant())
                                 : fmt::format("a value of type {}", name(x.type()))));
    return detail::bad_scalar();
  }
  return state->scalar(state->f().approximate(function, state->value(x)));
}

}  // namespace

Scalar minimum(const Scalar& x, const Scalar& y) {
  if (x.constant() && y.constant()) return std::min(*x.constant(), *y.constant());
  return binary(&codegen::FunctionBuilder::minimum, x, y);
}
Scalar maximum(const Scalar& x, const Scalar& y) {
  if (x.constant() && y.constant()) return std::max(*x.constant(), *y.constant());
  return binary(&codegen::FunctionBuilder::maximum, x, y);
}

Scalar select(const Scalar& condition, const Scalar& x, const Scalar& y) {
  if (const auto constant = condition.constant()) return *constant ? x : y;
  const auto state = common_state({&condition, &x, &y});
  if (!state || !same_types(*state, x, y)) return detail::bad_scalar();
  if (condition.type() != Type::pred) {
    state->log.report(
        "scalar-type"_rule,
        fmt::format(
            "expected a condition of type pred, such as a comparison, found a value of type {}",
            name(condition.type())));
    return detail::bad_scalar();
  }
  const Type type = common_type(x, y) == Type::none ? u32 : common_type(x, y);
  return state->scalar(
      state->f().select(state->value(condition), state->value(x, type), state->value(y, type)), 1,
      detail::ones(x) | detail::ones(y));
}

Scalar relu(const Scalar& x) { return select(x <= 0, 0, x); }

Scalar fma(const Scalar& x, const Scalar& y, const Scalar& z) {
  const auto state = common_state({&x, &y, &z});
  if (!state || !same_types(*state, x, y) || !same_types(*state, x, z) || !same_types(*state, y, z))
    return detail::bad_scalar();
  const Type type = common_type(common_type(x, y) == Type::none ? z : x.constant() ? y : x, z);
  if (!info(type).floating) return x * y + z;
  return state->scalar(
      state->f().fma(state->value(x, type), state->value(y, type), state->value(z, type)));
}

namespace {

constexpr Since eight_bits{{8, 1}, 89};

}  // namespace

bool has_eight_bits(const Target& target) { return target.arch.sm >= 90 || eight_bits.has(target); }

Scalar detail::refuse_eight_bits(KernelState& state) {
  state.log.would_take(eight_bits);
  state.log.report(
      "no-instruction"_rule,
      fmt::format("conversions of e4m3 and e5m2 require sm_89 and PTX 8.1, the target is {}",
                  state.config.target.text()));
  return detail::bad_scalar();
}

Scalar convert_pair(const Scalar& low, const Scalar& high, Type to) {
  const auto state = common_state({&low, &high});
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

Scalar ceil_div(const Scalar& count, const Scalar& size) { return (count + (size - 1)) / size; }

Scalar exp2(const Scalar& x) { return approximate(codegen::Approximation::ex2, x); }
Scalar log2(const Scalar& x) { return approximate(codegen::Approximation::lg2, x); }
Scalar reciprocal(const Scalar& x) { return approximate(codegen::Approximation::rcp, x); }
Scalar reciprocal_root(const Scalar& x) { return approximate(codegen::Approximation::rsqrt, x); }
Scalar tanh(const Scalar& x) { return approximate(codegen::Approximation::tanh, x); }

Scalar shuffle_xor(const Scalar& x, int mask) {
  if (x.constant()) return x;
  const auto state = common_state({&x});
  if (!state) return detail::bad_scalar();
  if (bits(x.type()) != 32 || mask < 0 || mask > 31) {
    state->log.report(
        "scalar-type"_rule,
        fmt::format("shuffle_xor: expected a 32-bit value and a mask below 32, found {} and {}",
                    name(x.type()), mask));
    return detail::bad_scalar();
  }
  return state->scalar(state->f().shuffle_xor(state->value(x), mask));
}

}  // namespace tartan::inline TARTAN_ABI
