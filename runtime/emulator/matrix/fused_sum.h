// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/fused_sum.h - d = c + a0*b0 + a1*b1 + ..., the way a tensor core adds:
// align, cut, add exactly, round once.
//
//   exponent E = the largest of the products' (sum of their factors') and of c's, at least `floor`
//   |term|  cut to a multiple of 2^(E - fraction)        1.xxxxxxxxxxxxxxxxxxxxxxxxx|yyyy
//   sum     exact                                              0.00xxxxxxxxxxxxxxxxx|yyyyyyyy
//   result  rounded once: f32 toward zero, f16 to nearest even; a zero result is +0, NaN has no
//   sign and no payload
//
// Factors are not normalised, neither subnormals nor products of two or more; zeros have no
// exponent; an infinite result needs an infinite operand.
//
// group_sum() adds sums of groups instead of products: those of 4-bit floats with block scales. A
// group's exponent is that of its scales alone, and a group is cut once.
#pragma once

#include "runtime/emulator/matrix/float_format.h"

namespace tartan::TARTAN_ABI::emulator {

struct FusedSum {
  int product_fraction = 0;  // fraction bits of a product: those of both factors
  Type accumulator = f32;    // of c and of the result: f32 or f16
  int length = 0;    // products of one sum; more of them make a chain whose rounded results are the
                     // next one's c
  int fraction = 0;  // fraction bits that the cut leaves
  int floor = 0;     // smallest E
  int kept = 24;     // significant bits of an f32 result (f16: always 11)
};

/// One chain over `count` products. `c` and the result are bits of the accumulator's type.
std::uint32_t fused_sum(const FusedSum& rule, const Term* a, const Term* b, int count,
                        std::uint32_t c);

/// The exact sum of a group's products, times its scales.
struct Group {
  std::int32_t sum = 0;          // in units of 2^(exponent - product_fraction)
  int exponent = zero_exponent;  // of both scales; zero_exponent: all products are zero
};

/// c and the groups; f32. Only c may be infinite or NaN.
std::uint32_t group_sum(const FusedSum& rule, const Group* groups, int count, std::uint32_t c);

}  // namespace tartan::TARTAN_ABI::emulator
