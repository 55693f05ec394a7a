// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/scalar.h"

#include "dsl/state/scalars.h"
#include "dsl/value/operators.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

using Parts = HandleParts;
using ir::Value;

Value emit(ir::FunctionBuilder& f, Operator op, Value x, Value y) {
  switch (op) {
    case Operator::add: return f.add(x, y);
    case Operator::subtract: return f.subtract(x, y);
    case Operator::multiply: return f.multiply(x, y);
    case Operator::divide: return f.divide(x, y);
    case Operator::remainder: return f.remainder(x, y);
    case Operator::bit_and: return f.bit_and(x, y);
    case Operator::bit_or: return f.bit_or(x, y);
    case Operator::bit_xor: return f.bit_xor(x, y);
    case Operator::shift_left: return f.shift_left(x, y);
    case Operator::shift_right: return f.shift_right(x, y);
    case Operator::lt: return f.compare(ir::Compare::lt, x, y);
    case Operator::le: return f.compare(ir::Compare::le, x, y);
    case Operator::gt: return f.compare(ir::Compare::gt, x, y);
    case Operator::ge: return f.compare(ir::Compare::ge, x, y);
    case Operator::eq: return f.compare(ir::Compare::eq, x, y);
    case Operator::ne: return f.compare(ir::Compare::ne, x, y);
  }
  return {};
}

bool takes(Operator op, Type type) {
  if (type == Type::pred)
    return op == Operator::bit_and || op == Operator::bit_or || op == Operator::bit_xor;
  if (type == b32) return op >= Operator::bit_and && op <= Operator::shift_left;
  if (!info(type).floating) return true;
  const TypeSet packed{f16x2, bf16x2}, single{f16, bf16, f32, f64};
  if (packed.has(type)) return op <= Operator::multiply;
  return single.has(type) && (op <= Operator::divide || is_comparison(op));
}

}  // namespace

ir::Value zero_value(ir::FunctionBuilder& f, Type type) {
  return info(type).floating ? f.constant(type, 0.0) : f.constant(type, std::int64_t{0});
}

// The bits of x that may be set, its addend included.
std::uint64_t ones(const Scalar& x) {
  const std::uint64_t all = ~std::uint64_t{0};
  if (Parts::addend(x) < 0 || Parts::wraps(x) || real(x)) return all;
  if (x.type() == Type::none) return static_cast<std::uint64_t>(Parts::addend(x));
  if (info(x.type()).floating || info(x.type()).is_signed) return all;
  return sum_ones(Parts::ones(x), static_cast<std::uint64_t>(Parts::addend(x)));
}

Scalar KernelState::scalar(Value value, std::int64_t multiple, std::uint64_t ones) {
  if (!is_described()) return bad_scalar();
  Scalar out;
  Parts::state(out) = shared_from_this();
  Parts::value(out) = value;
  Parts::multiple(out) = multiple;
  Parts::ones(out) = ones;
  Parts::made_in(out) = flights.scope();
  return out;
}

int Assignment::open_body() {
  const KernelState* const state = Description::current();
  return state ? state->flights.scope() : 0;
}

void Assignment::note(int body) {
  if (KernelState* const state = Description::current())
    state->assignments[body] = state->log.place();
}

// A value that the body computes is found by codegen::values_out_of_scope().
void KernelState::check_assigned(const Scalar& scalar) {
  const int body = Parts::assigned_in(scalar);
  if (flights.is_open(body)) return;
  const bool computed = !is_constant(scalar) && !flights.is_open(Parts::made_in(scalar)) &&
                        !f().is_constant(Parts::value(scalar));
  if (computed || !assignments_told.insert(body).second) return;
  log.report("value-scope"_rule,
             fmt::format("{} was assigned by C++ in the body of a loop, condition or pipeline, at "
                         "{}, and is used after it, as if the body ran once: expected a "
                         "variable() that the GPU changes",
                         is_constant(scalar) ? text(scalar) : "a number", text(assignments[body])));
}

// A value with a type but no state: using it gives another one, without a further diagnostic.
Scalar bad_scalar() {
  Scalar out;
  Parts::value(out) = {-1, u32};
  return out;
}

bool is_bad(const Scalar& scalar) {
  return Parts::value(scalar).type != Type::none && !Parts::value(scalar).valid();
}

double number(const Scalar& constant) {
  return real(constant).value_or(static_cast<double>(Parts::addend(constant)));
}

std::string text(const Scalar& scalar) {
  if (!is_constant(scalar)) return fmt::format("a value of type {}", name(scalar.type()));
  return fmt::format("the constant {}", number(scalar));
}

bool KernelState::fits(std::int64_t constant, Type type) {
  const int width = bits(type);
  if (info(type).floating || width == 0 || width >= 64) return true;
  const std::int64_t most = (std::int64_t{1} << width) - 1;
  const std::int64_t least = type == Type::pred ? 0 : -(most / 2) - 1;
  if (constant >= least && constant <= most) return true;
  log.report("immediate-range"_rule,
             fmt::format("the constant {} does not fit type {}; the nearest value is {}", constant,
                         name(type), constant < least ? least : most));
  return false;
}

ir::Value KernelState::dynamic(const Scalar& scalar) {
  check_assigned(scalar);
  return is_bad(scalar) || (Parts::state(scalar) && !owns(scalar, "a value"))
             ? zero_value(f(), scalar.type())
             : Parts::value(scalar);
}

ir::Value KernelState::value(const Scalar& scalar, Type type) {
  check_assigned(scalar);
  if (type == Type::none) type = !is_constant(scalar) ? scalar.type() : real(scalar) ? f32 : u32;
  if (const auto constant = real(scalar)) {
    if (info(type).floating) return f().constant(type, *constant);
    log.report("scalar-type"_rule,
               fmt::format("the constant {} where a value of type {} is expected: convert() the "
                           "value to a floating-point type, or write an integer",
                           *constant, name(type)));
    return zero_value(f(), type);
  }
  if (is_bad(scalar) || (Parts::state(scalar) && !owns(scalar, "a value")))
    return zero_value(f(), type);
  if (scalar.type() == Type::none) {
    if (!fits(Parts::addend(scalar), type)) return zero_value(f(), type);
    if (info(type).floating) return f().constant(type, static_cast<double>(Parts::addend(scalar)));
    return f().constant(type, Parts::addend(scalar));
  }
  Value value = Parts::value(scalar);
  if (Parts::addend(scalar))
    value = f().add(value, f().constant(value.type, Parts::addend(scalar)));
  return value.type == type ? value : f().convert(value, type);
}

bool KernelState::owns(const Scalar& scalar, std::string_view what) {
  return real(scalar) ? is_described() : owns_state(state_of(scalar), what);
}

namespace {

// Records how a launch computes `result`, op of x and a constant.
void derive_number(LaunchInterface& launch, const Scalar& result, Operator op, const Scalar& x,
                   std::int64_t y) {
  if (y <= 0 || Parts::wraps(x) || Parts::value(result).type == Type::none) return;
  auto number = launch.find(Parts::value(x).id);
  if (!number) return;
  if (op == Operator::multiply) {
    number->value *= y;
  } else if (op == Operator::divide && number->value == 1 && number->divisor == 1) {
    // x / y without a remainder, or (x + y - 1) / y: rounded up.
    if (Parts::addend(x) != y - 1 && (Parts::addend(x) || Parts::multiple(x) % y)) return;
    number->divisor = y;
  } else {
    return;
  }
  launch.note(Parts::value(result).id, *number);
}

// Records what an index times a constant is at most.
void derive_range(LaunchInterface& launch, const Scalar& result, const Scalar& x,
                  std::int64_t factor) {
  auto range = launch.range(Parts::value(x).id);
  if (!range || factor < 1 || Parts::wraps(x)) return;
  std::int64_t* const scaled[] = {&range->addend, &range->factor};
  for (std::int64_t* const each : scaled)
    if (__builtin_mul_overflow(*each, factor, each)) return;
  launch.note_range(Parts::value(result).id, *range);
}

// Records what each thread has in `value`, op of x and y.
void note_threads(KernelState& state, Value value, Operator op, Type type,
                  const ThreadValues::Term& x, const ThreadValues::Term& y) {
  const auto folded = [op](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
    if (is_division(op) && b == 0) return std::nullopt;
    return fold(op, a, b);
  };
  state.threads.note(value.id, type, folded, x, y);
}

ThreadValues::Term term(const Scalar& x) {
  return {x.constant() ? -1 : Parts::value(x).id, Parts::addend(x)};
}

// The comparison with its operands exchanged.
Operator mirrored(Operator op) {
  switch (op) {
    case Operator::lt: return Operator::gt;
    case Operator::le: return Operator::ge;
    case Operator::gt: return Operator::lt;
    case Operator::ge: return Operator::le;
    default: return op;
  }
}

std::string_view sign(Operator op) {
  switch (op) {
    case Operator::lt: return "<";
    case Operator::le: return "<=";
    case Operator::gt: return ">";
    default: return ">=";
  }
}

// Warns of an unsigned value that is compared with what it is never below, and of a difference that
// is compared with 0 to ask which of two numbers is greater.
void check_comparison(KernelState& state, Operator op, const Scalar& x, const Scalar& y) {
  if (!is_comparison(op) || op == Operator::eq || op == Operator::ne) return;
  const bool turned = is_constant(x);
  const Scalar& value = turned ? y : x;
  const auto constant = (turned ? x : y).constant();
  if (!constant || is_constant(value) || is_bad(value) || info(value.type()).floating ||
      info(value.type()).is_signed)
    return;
  if (turned) op = mirrored(op);
  const std::string_view type = name(value.type()),
                         other = bits(value.type()) == 64 ? "s64" : "s32";
  if (*constant == 0 && (op == Operator::ge || op == Operator::lt) && !wraps(value))
    state.log.warn(
        "scalar-type"_rule,
        fmt::format("a value of type {} {} 0 {} holds: it is never below 0; convert() it "
                    "to {} before the difference that may be negative",
                    type, sign(op), op == Operator::ge ? "always" : "never", other));
  else if (*constant < 0)
    state.log.warn(
        "scalar-type"_rule,
        fmt::format("a value of type {} {} {}: the constant is taken as {}; convert() "
                    "the value to {}",
                    type, sign(op), *constant,
                    bits(value.type()) == 64 ? static_cast<std::uint64_t>(*constant)
                                             : static_cast<std::uint64_t>(*constant) & 0xffffffff,
                    other));
  else if (*constant == 0 && wraps(value))
    state.log.warn("scalar-type"_rule,
                   fmt::format("a difference of type {0} {1} 0: below 0 it wraps around; compare "
                               "its operands with each other, or convert() them to {2}",
                               type, sign(op), other));
}

Scalar arithmetic(Operator op, const Scalar& x, const Scalar& y) {
  if (is_bad(x) || is_bad(y)) return bad_scalar();
  KernelState* const of_x = state_of(x).get();
  KernelState* const of_y = state_of(y).get();
  KernelState* const state = Description::current() ? Description::current() : of_x ? of_x : of_y;
  const auto cx = x.constant(), cy = y.constant();
  const auto refused = [&](const Rule& rule, std::string message) {
    if (state) state->log.report(rule, std::move(message));
    return bad_scalar();
  };
  if (is_division(op) && cy == 0 && !info(x.type()).floating)
    return refused("immediate-range"_rule, "division by the constant 0");
  if (state && state->is_described())
    for (const Scalar* each : {&x, &y}) state->check_assigned(*each);
  if (cx && cy) return fold(op, *cx, *cy);
  if (is_constant(x) && is_constant(y)) {
    if (const auto folded = fold(op, number(x), number(y))) return *folded;
    return refused("scalar-type"_rule,
                   fmt::format("no such operation on {} and {}", text(x), text(y)));
  }
  for (KernelState* const each : {of_x, of_y})
    if (each && (each != state || !state->is_described()))
      return refused("foreign-value"_rule,
                     of_x && of_y && of_x != of_y
                         ? "the operands of this expression belong to different kernels"
                         : "an operand of this expression belongs to another kernel");
  const Type type = of_x ? x.type() : y.type();
  if ((of_x && of_y && bits(x.type()) != bits(y.type())) || !takes(op, type) ||
      (of_x && of_y && x.type() != y.type() &&
       (info(x.type()).floating || info(y.type()).floating)))
    return refused("scalar-type"_rule,
                   is_constant(x) || is_constant(y)
                       ? fmt::format("no such operation on {} and {}", text(x), text(y))
                       : fmt::format("no such operation on operands of type {} and {}; convert() "
                                     "one of them",
                                     name(x.type()), name(y.type())));
  if ((real(x) || real(y)) && !info(type).floating)
    return refused("scalar-type"_rule,
                   fmt::format("{} and {} in one expression: expected a floating-point value; "
                               "convert() it, or write an integer",
                               text(x), text(y)));
  if ((cx && !state->fits(*cx, type)) || (cy && !state->fits(*cy, type))) return bad_scalar();
  if (is_shift(op) && cy && (*cy < 0 || *cy >= bits(type)))
    return refused("immediate-range"_rule,
                   fmt::format("shift of a value of type {}: expected 0 to {} bits, found {}",
                               name(type), bits(type) - 1, *cy));
  // Constants move outward: (v + 3) + 4 = v + 7, (v + 3) * 2 = 2v + 6. Not for floats, whose
  // rounding would change.
  if (!info(type).floating && type != Type::pred) {
    if ((op == Operator::add && (cx || cy)) || (op == Operator::subtract && cy)) {
      Scalar out = cy ? x : y;
      Parts::addend(out) = fold(op, Parts::addend(out), cy ? *cy : *cx);
      return out;
    }
    if (op == Operator::multiply && (cx || cy)) {
      const std::int64_t factor = cy ? *cy : *cx;
      const Scalar& variable = cy ? x : y;
      if (factor == 0) return 0;
      if (factor == 1) return variable;
      Scalar out = state->scalar(
          state->f().multiply(Parts::value(variable), state->f().constant(type, factor)),
          product(Parts::multiple(variable), factor),
          combined_ones(op, Parts::ones(variable), 0, factor));
      derive_number(state->launch, out, op, variable, factor);
      derive_range(state->launch, out, variable, factor);
      note_threads(*state, Parts::value(out), op, type, {Parts::value(variable).id, 0},
                   {-1, factor});
      Parts::addend(out) = fold(op, Parts::addend(variable), factor);
      Parts::wraps(out) = Parts::wraps(variable) || factor < 0;
      return out;
    }
    if (op == Operator::add || op == Operator::subtract) {
      Scalar left = x, right = y;
      Parts::addend(left) = Parts::addend(right) = 0;
      const Value value = emit(state->f(), op, state->value(left, type), state->value(right, type));
      note_threads(*state, value, op, type, term(left), term(right));
      const bool sum = op == Operator::add && !Parts::wraps(x) && !Parts::wraps(y);
      Scalar out =
          state->scalar(value, std::gcd(of_x ? Parts::multiple(x) : 0, Parts::multiple(y)),
                        sum ? sum_ones(Parts::ones(x), Parts::ones(y)) : ~std::uint64_t{0});
      Parts::addend(out) = fold(op, Parts::addend(x), Parts::addend(y));
      Parts::wraps(out) = op == Operator::subtract || Parts::wraps(x) || Parts::wraps(y);
      return out;
    }
    // (v + 32) / 8 = v / 8 + 4, and (v + 32) % 8 = v % 8, if v is not negative.
    if (is_division(op) && !info(type).is_signed && cy && *cy > 0 && Parts::addend(x) > 0 &&
        Parts::addend(x) % *cy == 0 && !Parts::wraps(x)) {
      Scalar variable = x;
      Parts::addend(variable) = 0;
      const Scalar out = arithmetic(op, variable, y);
      return op == Operator::divide ? arithmetic(Operator::add, out, Parts::addend(x) / *cy) : out;
    }
  }
  const Value value = emit(state->f(), op, state->value(x, type), state->value(y, type));
  if (!info(type).floating) note_threads(*state, value, op, type, term(x), term(y));
  const Scalar out = state->scalar(
      value,
      is_comparison(op) ? 1 : combined_multiple(op, x.multiple(), y.multiple(), y.constant()),
      combined_ones(op, ones(x), ones(y), y.constant()));
  if (const auto constant = y.constant()) derive_number(state->launch, out, op, x, *constant);
  return out;
}

}  // namespace

}  // namespace detail

using detail::Operator;

std::optional<std::int64_t> Scalar::constant() const {
  if (value_.type != Type::none || real_) return std::nullopt;
  return addend_;
}

std::int64_t Scalar::multiple() const {
  if (real_) return 1;
  if (value_.type == Type::none) return detail::magnitude(addend_);
  if (info(value_.type).floating) return 1;
  return std::gcd(multiple_, detail::magnitude(addend_));
}

namespace {

// A constant, or a value of type pred; reports others.
bool is_truth(const Scalar& x) {
  if (detail::is_bad(x)) return false;
  if (x.constant() || x.type() == Type::pred) return true;
  if (auto* const state = detail::Description::current())
    state->log.report(
        "scalar-type"_rule,
        fmt::format("expected a condition of type pred, such as a comparison, found {}",
                    detail::text(x)));
  return false;
}

// A constant as 0 or 1.
Scalar truth(const Scalar& x) {
  const auto constant = x.constant();
  return constant ? Scalar(*constant != 0) : x;
}

Scalar binary(Operator op, const ScalarOperand& x, const ScalarOperand& y) {
  detail::note_line(y.at);
  if (auto* const state = detail::Description::current();
      state && state->is_described() && detail::is_users(y.at.file_name()))
    detail::check_comparison(*state, op, x.value, y.value);
  return detail::arithmetic(op, x.value, y.value);
}

}  // namespace

Scalar operator-(const ScalarOperand& operand) {
  detail::note_line(operand.at);
  const Scalar& x = operand.value;
  if (detail::is_bad(x)) return detail::bad_scalar();
  if (const auto constant = detail::real(x)) return -*constant;
  if (detail::is_constant(x) || !info(x.type()).floating)
    return detail::arithmetic(Operator::subtract, 0, x);
  detail::KernelState* const state = detail::Description::current();
  if (!state || !state->owns(x, "an operand")) return detail::bad_scalar();
  return state->scalar(state->f().negate(state->value(x)));
}

Scalar operator!(const ScalarOperand& operand) {
  detail::note_line(operand.at);
  const Scalar& x = operand.value;
  if (!is_truth(x)) return detail::bad_scalar();
  if (const auto constant = x.constant()) return *constant == 0;
  return detail::arithmetic(Operator::bit_xor, x, 1);
}
Scalar operator&&(const ScalarOperand& x, const ScalarOperand& y) {
  detail::note_line(y.at);
  if (!is_truth(x.value) || !is_truth(y.value)) return detail::bad_scalar();
  return detail::arithmetic(Operator::bit_and, truth(x.value), truth(y.value));
}
Scalar operator||(const ScalarOperand& x, const ScalarOperand& y) {
  detail::note_line(y.at);
  if (!is_truth(x.value) || !is_truth(y.value)) return detail::bad_scalar();
  return detail::arithmetic(Operator::bit_or, truth(x.value), truth(y.value));
}

Scalar operator+(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::add, x, y);
}
Scalar operator-(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::subtract, x, y);
}
Scalar operator*(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::multiply, x, y);
}
Scalar operator/(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::divide, x, y);
}
Scalar operator%(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::remainder, x, y);
}
Scalar operator&(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::bit_and, x, y);
}
Scalar operator|(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::bit_or, x, y);
}
Scalar operator^(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::bit_xor, x, y);
}
Scalar operator<<(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::shift_left, x, y);
}
Scalar operator>>(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::shift_right, x, y);
}
Scalar operator<(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::lt, x, y);
}
Scalar operator<=(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::le, x, y);
}
Scalar operator>(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::gt, x, y);
}
Scalar operator>=(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::ge, x, y);
}
Scalar operator==(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::eq, x, y);
}
Scalar operator!=(const ScalarOperand& x, const ScalarOperand& y) {
  return binary(Operator::ne, x, y);
}

}  // namespace tartan::TARTAN_ABI
