// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/rule.h - the arithmetic of each generation's matrix products: one row per
// (hardware, instruction, types).
#pragma once

#include <initializer_list>

#include "runtime/emulator/matrix/matrix.h"
#include "tartan/isa/form.h"

namespace tartan::TARTAN_ABI::emulator {

enum class Method : std::uint8_t {
  fused_sum,   // chained fused sums, C in the first (runtime/emulator/matrix/fused_sum.h)
  half_pairs,  // 8-bit floats as f16: two fused sums from +0, k mod 4 in {0, 1} first, then {2, 3};
               // C added last, in IEEE arithmetic
  scaled_groups,  // 4-bit floats with block scales: one sum of C and of the exact sums of `length`
                  // stored products each (group_sum in fused_sum.h)
  float_chain,  // f16 m8n8k4 on scalar units: a chain of binary32 fma from +0, k ascending; C added
                // last
  half_tree,  // the same with f16 results: two sums of two products each, added to C one after the
              // other; rounded to f16 at the end
  fma_chain,  // f64: a chain of binary64 fma from C, k ascending
  integer,    // exact; wraps, or clamps once at the end
  popcount,   // exact; wraps
};

/// A row's scope. The first row that matches the form and the hardware applies.
struct NumericRule {
  std::uint8_t hardware = 0;  // bits: 1 << Hardware
  std::uint8_t opcodes = 0;   // bits, below
  TypeSet a;
  Type d = Type::none;  // none: any
  Shape shape = {};     // none: any
  Method method = Method::fused_sum;
  int length = 0;     // products of one fused sum; more of them make a chain, k ascending. Of
                      // scaled_groups: of a group
  int fraction = 0;   // fraction bits after truncation, counted from the largest exponent
  int floor_f32 = 0;  // lower bound of the largest exponent, by the type of the accumulator
  int floor_f16 = 0;
  int kept = 24;  // significant bits of an f32 result
  Trust trust = Trust::Assumed;
  std::string_view source;
  bool directed = false;  // for .rm and .rp alone
};

const NumericRule& rule_of(const isa::Form& form, Hardware hardware);

}  // namespace tartan::TARTAN_ABI::emulator
