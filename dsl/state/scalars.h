// SPDX-License-Identifier: Apache-2.0
// dsl/state/scalars.h - facts about a Scalar beside its value. Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// The result of a refused operation: using it gives another one, without a further diagnostic.
Scalar bad_scalar();
bool is_bad(const Scalar& scalar);

/// Whether the value is known while the kernel is described, an integer or not.
inline bool is_constant(const Scalar& scalar) { return scalar.type() == Type::none; }
/// A floating-point constant; nothing for integers and values of the kernel.
inline std::optional<double> real(const Scalar& scalar) { return HandleParts::real(scalar); }
/// A constant of either kind as a number.
double number(const Scalar& constant);
/// For messages: "the constant 0.5", "a value of type f16".
std::string text(const Scalar& scalar);

/// The kernel that a function's operands belong to; otherwise nothing, and a diagnostic.
std::shared_ptr<KernelState> common_state(std::initializer_list<const Scalar*> operands);

/// Whether a line is the user's: not this library's, nor of the standard library's headers.
bool is_users(std::string_view file);

/// The constant that is added to its value.
inline std::int64_t addend(const Scalar& scalar) { return HandleParts::addend(scalar); }
/// Whether its value without the addend may be negative.
inline bool wraps(const Scalar& scalar) { return HandleParts::wraps(scalar); }
/// The bits that may be set, its addend included.
std::uint64_t ones(const Scalar& scalar);

/// Zero of a type.
ir::Value zero_value(ir::FunctionBuilder& f, Type type);

}  // namespace tartan::TARTAN_ABI::detail
