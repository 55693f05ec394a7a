// SPDX-License-Identifier: Apache-2.0
// dsl/value/arithmetic.h - operators as functions, for map() and for reductions. They take the line
// of their operands. Not installed.
#pragma once

#include "tartan/dsl/scalar.h"

namespace tartan::TARTAN_ABI::detail {

/// What a reduction makes of two values.
using Combine = Scalar (*)(const ScalarOperand&, const ScalarOperand&);

inline Scalar plus(const ScalarOperand& x, const ScalarOperand& y) { return x + y; }
inline Scalar times(const ScalarOperand& x, const ScalarOperand& y) { return x * y; }

}  // namespace tartan::TARTAN_ABI::detail
