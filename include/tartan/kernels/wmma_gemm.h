// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/wmma_gemm.h - GEMM by wmma, in each of its shapes, for comparison and for code
// that must use wmma. gemm.h is at least as fast wherever both apply.
#pragma once

#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::kernels {

/// C = A * B for any m, n and k, which are parameters (s32), A and B row- or column-major, C
/// row-major: through shared memory, wmma.load, wmma.mma, wmma.store.
struct WmmaGemm {
  MmaShape shape = wmma_m16n16k16;
  Type a = f16, b = f16;  // elements; tf32: f32 that is already rounded
  Type c = f32;           // accumulators and elements of C
  Major a_major = Major::row, b_major = Major::col;
  int multiple = 8,
      multiple_c = 8;  // what the lengths of lines of A and B, and of C, are multiples of
  MmaOptions with;     // .bit_op for b1
};
Kernel wmma_gemm(const WmmaGemm& options);

/// The tile that a block computes.
Tile wmma_tile(const WmmaGemm& options);

}  // namespace tartan::TARTAN_ABI::kernels
