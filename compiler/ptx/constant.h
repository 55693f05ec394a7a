// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/constant.h - literals and the operators of constant expressions (PTX
// ISA 9.0, 4.5.5): C's, on 64-bit integers and on doubles.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::ptx {

/// A value as in the tree: the bits of its type: s64, u64, f64, or f32 for 0f3F800000.
struct Constant {
  Type type = Type::s64;
  std::uint64_t value = 0;
};

/// 42, 0x1F, 017, 0b101, 1U, 1.5, 0f3F800000, 0d3FF0000000000000.
std::optional<Constant> parse_literal(std::string_view text);
/// What is expected in place of what looks like a number and is no literal: 0f3F80000, 1e400,
/// 0x1FFFFFFFFFFFFFFFF. Empty for other text.
std::string_view number_expected(std::string_view text);

struct BinaryOperator {
  std::string_view text;
  int level;  // precedence
};

/// The operator at the start of `text`, if its precedence is at least `level`; else null.
const BinaryOperator* binary_operator(std::string_view text, int level);

/// Nothing if the manual has no such operation: a division by zero, an integer with a double,
/// arithmetic on 0f3F800000.
std::optional<Constant> apply(const BinaryOperator& by, Constant x, Constant y);
/// `by` is one of - + ~ !
std::optional<Constant> apply(char by, Constant x);

/// Whether a value is true as the condition of ?:.
inline bool holds(Constant x) { return info(x.type).floating ? (x.value << 1) != 0 : x.value != 0; }

}  // namespace tartan::TARTAN_ABI::ptx
