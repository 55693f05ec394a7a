// SPDX-License-Identifier: Apache-2.0
// dsl/math.h - functions of scalars. Approximations are those of PTX (ISA 9.7.3: ex2.approx,
// lg2.approx, rcp.approx, rsqrt.approx, tanh.approx; f32 only) with the error bounds given there.
#pragma once

#include "dsl/scalar.h"

namespace tartan {

Scalar minimum(const Scalar& x, const Scalar& y);
Scalar maximum(const Scalar& x, const Scalar& y);
/// x where `condition` holds, else y.
Scalar select(const Scalar& condition, const Scalar& x, const Scalar& y);
/// x * y + z with one rounding (floats).
Scalar fma(const Scalar& x, const Scalar& y, const Scalar& z);
/// How many blocks of `size` cover `count`.
Scalar ceil_div(const Scalar& count, const Scalar& size);

Scalar exp2(const Scalar& x);
Scalar log2(const Scalar& x);
Scalar reciprocal(const Scalar& x);
Scalar reciprocal_root(const Scalar& x);
Scalar tanh(const Scalar& x);  // sm_75 on

/// x of the lane whose number differs in the bits of `mask` (shfl.sync.bfly).
Scalar shuffle_xor(const Scalar& x, int mask);

}  // namespace tartan
