// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/values.h - the values that elements of registers and memory have in a
// launch under algebra, and what arithmetic makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/algebra/field.h"
#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::emulator {

/// A value by its number.
using Ref = std::uint32_t;

struct Value {
  enum class Kind : std::uint8_t {
    number,
    beyond,     // an infinity or NaN: `real`
    undecided,  // p: index of the reason
  };
  Number number;
  Kind kind = Kind::number;
  Type type = Type::none;   // of the element that holds it; none: of any
  bool constant = false;    // no input is in it
  bool interpreted = true;  // no function is in it of which nothing is known
};

/// Why a value is not known.
struct Reason {
  int line = 0;  // of the PTX text
  std::string text;
};

/// Functions of one value. Those behind `root` are uninterpreted but for what is exact.
enum class Function : std::uint8_t {
  negate,
  magnitude,
  exp2,
  reciprocal,
  root,
  rsqrt,
  lg2,
  sine,
  cosine,
  tanh
};

class Values {
 public:
  Values();
  const Value& operator[](Ref ref) const { return values_[ref]; }
  std::size_t size() const { return values_.size(); }
  const std::vector<Reason>& reasons() const { return reasons_; }

  Ref zero() const { return 1; }
  Ref constant(double x);
  Ref constant(std::int64_t x);
  Ref input(std::uint64_t key, double real, Type type);
  Ref undecided(int line, std::string text);
  /// A number that arithmetic elsewhere gave, of values with those flags.
  Ref add(const Number& number, bool constant, bool interpreted);
  /// The same value as an element of `type`.
  Ref as(Ref a, Type type);

  Ref sum(Ref a, Ref b);
  Ref product(Ref a, Ref b);
  Ref fused(Ref a, Ref b, Ref c);
  Ref quotient(Ref a, Ref b) { return product(a, apply(Function::reciprocal, b)); }
  Ref apply(Function function, Ref a);
  /// The greater or lesser one; among equals that with the greater image.
  Ref extremum(Ref a, Ref b, bool greatest);
  bool plain(Ref a) const { return values_[a].kind == Value::Kind::number; }

  /// Which of the two extremum() takes depends on the inputs: neither is infinite, nor are both
  /// constants or equal.
  bool choice(Ref a, Ref b) const;

  /// The numbers decided on images somewhere: other numbers may lead to other functions.
  bool steered = false;
  /// A root was taken of what is no constant.
  bool rooted = false;
  /// Exponentials outside of what doubles hold: masks, and inputs that are too large.
  std::uint64_t extremes = 0;

 private:
  Ref push(const Value& value);
  /// Of an operation on values of which one is no number: what `real` says.
  Ref odd(Ref a, Ref b, double real);
  Ref of_parts(const Number& number, Ref a, Ref b);
  Ref evaluate(Function function, const Value& a);
  void note(Function function, double x);

  std::vector<Value> values_;
  std::vector<Reason> reasons_;
  std::unordered_map<std::uint64_t, Ref> constants_;
  std::unordered_map<std::string, Ref> undecided_;
};

}  // namespace tartan::TARTAN_ABI::emulator
