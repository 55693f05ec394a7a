// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/scalar.h - products computed by ordinary IEEE operations: f64, and f16
// m8n8k4 after sm_75.
#pragma once

#include <cstdint>

#include "tartan/isa/form.h"

namespace tartan::TARTAN_ABI::emulator {

/// C + (fma chain over a[i] * b[i] from +0): f16 factors as binary32. Returns f32 bits.
std::uint32_t float_chain(const float* a, const float* b, int count, float c);

/// (C + (a0*b0 + a1*b1)) + (a2*b2 + a3*b3), each sum in binary32, rounded to f16 at the end.
/// Returns f16 bits.
std::uint32_t half_tree(const float* a, const float* b, float c);

/// d[row, col] = fma chain from c over k, for column-major c and d (m x n), a[k * m + row], b[k * n
/// + col]; binary64 bits. A NaN operand gives the first NaN among b, accumulator and a, quieted.
void fma_chain(isa::Rounding rounding, int m, int n, int k, const std::uint64_t* a,
               const std::uint64_t* b, const std::uint64_t* c, std::uint64_t* d);

}  // namespace tartan::TARTAN_ABI::emulator
