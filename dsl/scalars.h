// SPDX-License-Identifier: Apache-2.0
// dsl/scalars.h - what is known of a Scalar beside its value. Not installed.
#pragma once

#include <cstdint>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

/// The result of a refused operation: every use gives another one, without a further complaint.
Scalar bad_scalar();
bool is_bad(const Scalar& scalar);

/// The constant that is added to its value.
inline std::int64_t addend(const Scalar& scalar) { return HandleParts::addend(scalar); }
/// Whether its value alone may have gone below zero.
inline bool wraps(const Scalar& scalar) { return HandleParts::wraps(scalar); }
/// The bits that may be set, its addend included.
std::uint64_t ones(const Scalar& scalar);

/// Zero of a type.
codegen::Value zero_value(codegen::FunctionBuilder& f, Type type);

}  // namespace tartan::inline TARTAN_ABI::detail
