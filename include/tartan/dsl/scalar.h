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
//   Scalar row = k.block_y() * 64 + k.lane() / 4;
//   k.when(row < n && col >= 2, [&] { k.write(out, row, 0, k.read(in, row, 0) * 0.5); });
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>

#include "tartan/codegen/value.h"
#include "tartan/dsl/types.h"
#include "tartan/isa/type.h"

namespace tartan::inline TARTAN_ABI {

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
    assigned_ = now == declared_ ? other.assigned_ : now;
    return *this;
  }
  /// The body; 0: the one in which it was declared.
  int body() const { return assigned_; }

 private:
  /// The innermost one of the kernel that this thread describes; 0: none.
  static int open_body();
  int declared_ = 0, assigned_ = 0;
};

}  // namespace detail

class Scalar {
 public:
  Scalar() : Scalar(0) {}
  template <std::integral T>
  Scalar(T value) : addend_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  Scalar(T value) : real_(static_cast<double>(value)) {}

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
  codegen::Value value_;
  std::int64_t addend_ = 0;
  std::optional<double> real_;              // a floating-point constant, and nothing else
  std::int64_t multiple_ = 1;               // divides value_
  std::uint64_t ones_ = ~std::uint64_t{0};  // the bits of value_ that may be set
  bool wraps_ = false;  // value_ alone may have gone below zero (1 - warp): it is whole only with
                        // its addend, in its own width
  int made_ = 0;        // the body in which the GPU computes value_
  detail::Assignment assignment_;
};

// Of numbers of one type; integers wrap around. A shift's right operand is below the left one's
// number of bits.
Scalar operator-(const Scalar& x);
Scalar operator+(const Scalar& x, const Scalar& y);
Scalar operator-(const Scalar& x, const Scalar& y);
Scalar operator*(const Scalar& x, const Scalar& y);
Scalar operator/(const Scalar& x, const Scalar& y);
Scalar operator%(const Scalar& x, const Scalar& y);
Scalar operator&(const Scalar& x, const Scalar& y);
Scalar operator|(const Scalar& x, const Scalar& y);
Scalar operator^(const Scalar& x, const Scalar& y);
Scalar operator<<(const Scalar& x, const Scalar& y);
Scalar operator>>(const Scalar& x, const Scalar& y);
Scalar operator<(const Scalar& x, const Scalar& y);
Scalar operator<=(const Scalar& x, const Scalar& y);
Scalar operator>(const Scalar& x, const Scalar& y);
Scalar operator>=(const Scalar& x, const Scalar& y);
Scalar operator==(const Scalar& x, const Scalar& y);
Scalar operator!=(const Scalar& x, const Scalar& y);
// Of conditions.
Scalar operator!(const Scalar& x);
Scalar operator&&(const Scalar& x, const Scalar& y);
Scalar operator||(const Scalar& x, const Scalar& y);

/// A scalar that changes: `v += x` in a run-time loop. A copy is the same variable, not its value.
class ScalarVariable {
 public:
  ScalarVariable& operator=(const Scalar& value);
  ScalarVariable& operator=(const ScalarVariable& other) {
    return *this = static_cast<Scalar>(other);
  }
  ScalarVariable(const ScalarVariable&) = default;
  operator Scalar() const;

 private:
  friend class Builder;
  ScalarVariable() = default;
  std::shared_ptr<detail::KernelState> state_;
  codegen::Variable variable_;
};

/// What `x += y` and the like may change.
template <typename T>
concept Assignable = std::same_as<T, Scalar> || std::same_as<T, ScalarVariable>;

template <Assignable X>
X& operator+=(X& x, const Scalar& y) {
  return x = x + y;
}
template <Assignable X>
X& operator-=(X& x, const Scalar& y) {
  return x = x - y;
}
template <Assignable X>
X& operator*=(X& x, const Scalar& y) {
  return x = x * y;
}
template <Assignable X>
X& operator/=(X& x, const Scalar& y) {
  return x = x / y;
}
template <Assignable X>
X& operator%=(X& x, const Scalar& y) {
  return x = x % y;
}
template <Assignable X>
X& operator&=(X& x, const Scalar& y) {
  return x = x & y;
}
template <Assignable X>
X& operator|=(X& x, const Scalar& y) {
  return x = x | y;
}
template <Assignable X>
X& operator^=(X& x, const Scalar& y) {
  return x = x ^ y;
}
template <Assignable X>
X& operator<<=(X& x, const Scalar& y) {
  return x = x << y;
}
template <Assignable X>
X& operator>>=(X& x, const Scalar& y) {
  return x = x >> y;
}

}  // namespace tartan::inline TARTAN_ABI
