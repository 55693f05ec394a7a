// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/half_vectors.h - 16-bit floats, eight at a time, on hosts with
// AVX2, FMA and F16C.
//
// Each handler gives the bits of the scalar code that it stands in for, NaNs included, for any mask
// of lanes. A null handler: the machine has no such vectors, or the spelling no faster way; the
// caller takes its own.
#pragma once

#include "runtime/emulator/instructions/table.h"

namespace tartan::TARTAN_ABI::emulator {

enum class HalfOperation : std::uint8_t { none, add, subtract, multiply, fused };

struct HalfOptions {
  bool bfloat = false, ftz = false, sat = false, relu = false;
};

/// add, sub, mul and fma on f16, f16x2, bf16 and bf16x2. One element and two are the same:
/// registers of 16 bits have zeros above, which give zeros.
Handler half_arithmetic(HalfOperation operation, const HalfOptions& options);

/// What converts between f32 and 16-bit floats.
struct HalfConversion {
  bool bfloat = false;
  bool pair = false;          // two f32, op.a the upper and op.b the lower one, into a pair
  bool towards_zero = false;  // else to nearest even
  bool satfinite = false, relu = false;
};
Handler to_halves(const HalfConversion& conversion);
/// f16 to f32.
Handler from_half();

}  // namespace tartan::TARTAN_ABI::emulator
