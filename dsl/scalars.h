// SPDX-License-Identifier: Apache-2.0
// dsl/scalars.h - facts about a Scalar beside its value. Not installed.
#pragma once

#include <cstdint>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

/// The result of a refused operation: using it gives another one, without a further diagnostic.
Scalar bad_scalar();
bool is_bad(const Scalar& scalar);

/// The constant that is added to its value.
inline std::int64_t addend(const Scalar& scalar) { return HandleParts::addend(scalar); }
/// Whether its value without the addend may be negative.
inline bool wraps(const Scalar& scalar) { return HandleParts::wraps(scalar); }
/// The bits that may be set, its addend included.
std::uint64_t ones(const Scalar& scalar);

/// Zero of a type.
codegen::Value zero_value(codegen::FunctionBuilder& f, Type type);

}  // namespace tartan::inline TARTAN_ABI::detail
