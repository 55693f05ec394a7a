// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/math.h - functions of scalars. Approximations are those of PTX (ISA 9.7.3: ex2.approx,
// lg2.approx, rcp.approx, rsqrt.approx, tanh.approx; f32 only) with the error bounds given there.
//
//   const Scalar silu = x * reciprocal(1.0 + exp(-x));
//   const Scalar root = rsqrt(sum / 64.0 + 1e-5);
//
// f16x2 and bf16x2 are two numbers in one register: `+ - *`, fma(), minimum(), maximum() and abs()
// compute both with one instruction, and a constant stands for both.
//
//   const Scalar pair = k.bitcast(k.word(low, high), f16x2) * 0.5;
#pragma once

#include "tartan/dsl/scalar.h"
#include "tartan/dsl/warp.h"
#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI {

/// NaN and a number: the number.
Scalar minimum(const ScalarOperand& x, const ScalarOperand& y);
Scalar maximum(const ScalarOperand& x, const ScalarOperand& y);
/// x where `condition` holds, else y.
Scalar select(const ScalarOperand& condition, const ScalarOperand& x, const ScalarOperand& y);
/// 0 if x is negative, else x: NaN stays NaN (maximum() would give 0).
Scalar relu(const ScalarOperand& x);
/// x * y + z with one rounding (floats).
Scalar fma(const ScalarOperand& x, const ScalarOperand& y, const ScalarOperand& z);
/// Two f32, rounded to nearest even and saturated to e4m3 or e5m2, as bits in a u16; `low` is the
/// low byte. Requires has_eight_bits(). Builder::convert() converts single values, in both
/// directions.
Scalar convert_pair(const ScalarOperand& low, const ScalarOperand& high, Type to);
/// Whether a target converts to and from e4m3 and e5m2: sm_89 with PTX 8.1, sm_90 and later.
bool has_eight_bits(const Target& target);
/// x, which the description guarantees to be a multiple of `divisor`: an offset read from memory,
/// say. As with param(), copies of what begins there are wider for it; where x is no multiple at
/// run time, they are misaligned.
///   const Scalar first = multiple_of(k.read(offsets, 0, group), 64);
Scalar multiple_of(const ScalarOperand& x, std::int64_t divisor);
/// The number of blocks of `size` that cover `count`.
Scalar ceil_div(const ScalarOperand& count, const ScalarOperand& size);

Scalar exp2(const ScalarOperand& x);
Scalar log2(const ScalarOperand& x);
Scalar reciprocal(const ScalarOperand& x);
Scalar rsqrt(const ScalarOperand& x);
Scalar tanh(const ScalarOperand& x);  // sm_75 on
/// exp2(x * log2(e)) and log2(x) * ln(2), each with a multiplication by the rounded constant: the
/// relative error of exp() grows with |x|, by 2^-24 * |x * log2(e)|.
Scalar exp(const ScalarOperand& x);
Scalar log(const ScalarOperand& x);

/// Of f16, bf16, f32, f64, f16x2, bf16x2 and integers. NaN stays NaN.
Scalar abs(const ScalarOperand& x);
/// -1, 0 or 1, of the type of x: a signed integer or f32. NaN stays NaN, -0 stays -0.
Scalar sign(const ScalarOperand& x);
/// The largest whole number that is not above x: cvt.rmi of f16, bf16, f32 and f64.
Scalar floor(const ScalarOperand& x);

}  // namespace tartan::TARTAN_ABI
