// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/math.h - functions of scalars. Approximations are those of PTX (ISA 9.7.3: ex2.approx,
// lg2.approx, rcp.approx, rsqrt.approx, tanh.approx; f32 only) with the error bounds given there.
#pragma once

#include "tartan/dsl/scalar.h"
#include "tartan/isa/target.h"

namespace tartan::inline TARTAN_ABI {

/// NaN and a number: the number.
Scalar minimum(const Scalar& x, const Scalar& y);
Scalar maximum(const Scalar& x, const Scalar& y);
/// x where `condition` holds, else y.
Scalar select(const Scalar& condition, const Scalar& x, const Scalar& y);
/// 0 if x is negative, else x: NaN stays NaN (maximum() would give 0).
Scalar relu(const Scalar& x);
/// x * y + z with one rounding (floats).
Scalar fma(const Scalar& x, const Scalar& y, const Scalar& z);
/// Two f32, rounded to nearest even and saturated to e4m3 or e5m2, as bits in a u16; `low` is the
/// low byte. Requires has_eight_bits(). Builder::convert() converts single values, in both
/// directions.
Scalar convert_pair(const Scalar& low, const Scalar& high, Type to);
/// Whether a target converts to and from e4m3 and e5m2: sm_89 with PTX 8.1, sm_90 and later.
bool has_eight_bits(const Target& target);
/// The number of blocks of `size` that cover `count`.
Scalar ceil_div(const Scalar& count, const Scalar& size);

Scalar exp2(const Scalar& x);
Scalar log2(const Scalar& x);
Scalar reciprocal(const Scalar& x);
Scalar reciprocal_root(const Scalar& x);
Scalar tanh(const Scalar& x);  // sm_75 on

/// x of the lane whose number differs in the bits of `mask` (shfl.sync.bfly).
Scalar shuffle_xor(const Scalar& x, int mask);

}  // namespace tartan::inline TARTAN_ABI
