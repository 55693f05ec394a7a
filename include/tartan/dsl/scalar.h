// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/scalar.h - one number per thread of a kernel under description: an index, a condition,
// an element.
//
// A Scalar is a constant known while the kernel is described, or a value that the GPU computes.
// Arithmetic on constants is folded; `index + 16` only adjusts a constant that later becomes part
// of an address. Divisibility is tracked (block index times 64 is a multiple of 64) and determines
// how wide a copy may be.
//
// Types do not mix implicitly: with a u32 and an s32, the left operand determines the type of the
// result and the signedness of a comparison. A constant takes the type of the other operand.
// Indices (thread(), block_x(), block_tile(), ElementPlace) are u32: apply k.convert(x, s32) before
// a difference that may be negative.
//
// A floating-point constant takes the floating-point type of the other operand: `x * 0.5` of an f16
// is an f16. Conditions are values of type pred; `&&` and `||` evaluate both operands, like `&` and
// `|`, because a kernel computes them without a branch.
//
// What the GPU changes in a loop or under a condition is a variable(). A Scalar that C++ assigns in
// such a body, to be used after it, is refused.
//
// Operators and functions of scalars take ScalarOperands: a Scalar, a ScalarVariable or a number of
// C++, with the line that it stands on. A mistake is reported there, and so the PTX's .loc.
//
//   Scalar row = k.block_y() * 64 + k.lane() / 4;
//   k.when(row < n && col >= 2, [&] { k.write(out, row, 0, k.read(in, row, 0) * 0.5); });
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>

#include "tartan/dsl/types.h"
#include "tartan/ir/value.h"
#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI {

namespace detail {
struct Flight;
struct HandleParts;
struct KernelState;
struct Tensor;
struct VariableRecord;
}  // namespace detail

namespace detail {

/// In which bodies of loops and conditions a Scalar of C++ was declared and assigned: what C++
/// assigns in a body happens once, while it is described, and the GPU sees nothing of it.
class Assignment {
 public:
  Assignment() : declared_(open_body()) {}
  Assignment(const Assignment& other) : declared_(open_body()), assigned_(other.assigned_) {}
  Assignment& operator=(const Assignment& other) {
    const int now = open_body();
    if (now != declared_) note(now);
    assigned_ = now == declared_ ? other.assigned_ : now;
    return *this;
  }
  /// The body; 0: the one in which it was declared.
  int body() const { return assigned_; }

 private:
  /// The innermost one of the kernel that this thread describes; 0: none.
  static int open_body();
  static void note(int body);  // where it is
  int declared_ = 0, assigned_ = 0;
};

}  // namespace detail

class ScalarVariable;
struct ScalarOperand;

using Here = std::source_location;
/// One number of each thread: a constant of the description, or a value that the GPU computes.
class Scalar {
 public:
  Scalar() : Scalar(0) {}
  template <std::integral T>
  Scalar(T value) : addend_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  Scalar(T value) : real_(static_cast<double>(value)) {}
  /// Its value now.
  Scalar(const ScalarVariable& variable, Here at = Here::current());

  /// The value, if it is an integer that is known while the kernel is described.
  std::optional<std::int64_t> constant() const;
  /// none for constants, which take the type of the other operand.
  Type type() const { return value_.type; }
  /// A guaranteed divisor of the value (0 if the value is known to be 0).
  std::int64_t multiple() const;

 private:
  friend struct detail::HandleParts;

  // The value is value_ + addend_; without a state, addend_ alone.
  std::shared_ptr<detail::KernelState> state_;
  ir::Value value_;
  std::int64_t addend_ = 0;
  std::optional<double> real_;              // a floating-point constant, and nothing else
  std::int64_t multiple_ = 1;               // divides value_
  std::uint64_t ones_ = ~std::uint64_t{0};  // the bits of value_ that may be set
  bool wraps_ = false;  // value_ alone may have gone below zero (1 - warp): it is whole only with
                        // its addend, in its own width
  int made_ = 0;        // the body in which the GPU computes value_
  detail::Assignment assignment_;
};

/// A scalar that changes: `v += x` in a run-time loop. It cannot be copied, because a copy could be
/// its value or the variable itself.
///
///   auto step = k.variable(k.constant(u32, 16));
///   const Scalar old = step;  // its value now
///   auto& same = step;        // the variable; [&] in a lambda
class ScalarVariable {
 public:
  ScalarVariable& operator=(const ScalarOperand& value);
  ScalarVariable& operator=(const ScalarVariable& value);
  ScalarVariable(const ScalarVariable&) = delete;  // Scalar old = v: its value; auto& same = v
  ScalarVariable(ScalarVariable&&) = default;

 private:
  friend class Builder;
  friend class Scalar;
  ScalarVariable() = default;
  std::shared_ptr<detail::KernelState> state_;
  ir::Variable variable_;
};

/// An operand, and the line of its expression.
struct ScalarOperand {
  template <std::convertible_to<Scalar> T>
  ScalarOperand(const T& x, Here from = Here::current()) : value(x), at(from) {}
  ScalarOperand(const ScalarVariable& x, Here from = Here::current()) : value(x, from), at(from) {}
  Scalar value;
  Here at;
};

// Of numbers of one type; integers wrap around. A shift's right operand is below the left one's
// number of bits.
Scalar operator-(const ScalarOperand& x);
Scalar operator+(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator-(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator*(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator/(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator%(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator&(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator|(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator^(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator<<(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator>>(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator<(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator<=(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator>(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator>=(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator==(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator!=(const ScalarOperand& x, const ScalarOperand& y);
// Of conditions.
Scalar operator!(const ScalarOperand& x);
Scalar operator&&(const ScalarOperand& x, const ScalarOperand& y);
Scalar operator||(const ScalarOperand& x, const ScalarOperand& y);

/// What `x += y` and the like may change.
template <typename T>
concept Assignable = std::same_as<T, Scalar> || std::same_as<T, ScalarVariable>;

namespace detail {
inline Scalar& assign(Scalar& x, const ScalarOperand& value) { return x = value.value; }
inline ScalarVariable& assign(ScalarVariable& x, const ScalarOperand& value) { return x = value; }
}  // namespace detail

template <Assignable X>
X& operator+=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) + y, y.at});
}
template <Assignable X>
X& operator-=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) - y, y.at});
}
template <Assignable X>
X& operator*=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) * y, y.at});
}
template <Assignable X>
X& operator/=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) / y, y.at});
}
template <Assignable X>
X& operator%=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) % y, y.at});
}
template <Assignable X>
X& operator&=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) & y, y.at});
}
template <Assignable X>
X& operator|=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) | y, y.at});
}
template <Assignable X>
X& operator^=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) ^ y, y.at});
}
template <Assignable X>
X& operator<<=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) << y, y.at});
}
template <Assignable X>
X& operator>>=(X& x, const ScalarOperand& y) {
  return detail::assign(x, {ScalarOperand(x, y.at) >> y, y.at});
}

}  // namespace tartan::TARTAN_ABI
