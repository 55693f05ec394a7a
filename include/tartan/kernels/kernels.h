// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/kernels.h - the built-in kernels: what `tartan emit --list` shows, and what
// examples/ explains.
#pragma once

#include "tartan/dsl/builder.h"
#include "tartan/kernels/attention.h"
#include "tartan/kernels/attention_backward.h"
#include "tartan/kernels/block_scaled.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/gate.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/gpu.h"
#include "tartan/kernels/k_grouped_gemm.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/mla_decode.h"
#include "tartan/kernels/probe.h"
#include "tartan/kernels/scaled_gemm.h"
#include "tartan/kernels/small_products.h"
#include "tartan/kernels/sparse.h"
#include "tartan/kernels/transpose.h"
#include "tartan/kernels/wmma_gemm.h"

namespace tartan::TARTAN_ABI::kernels {

/// D(16x8, f32) = A(16x16, f16, row-major) * B(16x8, f16, column-major): one warp, one m16n8k16.
Kernel one_mma();

/// The same product with A and B row-major or column-major. In BLAS terms: a column-major A is N, a
/// row-major one T; B likewise.
Kernel stored_mma(Major a, Major b);

/// One wmma.mma: D(16x16, f32) = A(16x16, f16) * B(16x16, f16), loaded by wmma.load straight from
/// global memory.
Kernel one_wmma(Major a, Major b);

/// ldmatrix .x`count` of matrices that hold 0, 1, 2, ...; row r of out: register r of each lane,
/// two u16 values per lane.
Kernel ldmatrix_registers(int count, bool trans);
/// The same from a matrix in memory: 8x8 (x1), 8x16 (x2) or 16x16 (x4) f16; each lane writes its
/// values contiguously.
Kernel ldmatrix_matrix(int count, bool trans);
/// The top left 8x8 of a 64x64 f16 matrix that holds 0, 1, 2, ...: by the instruction, or by
/// loading a tile.
Kernel ldmatrix_corner(bool by_tile);
/// stmatrix .x`count` of registers that hold 2 lane and 2 lane + 1 (+ 64 per register); out: the
/// shared memory written.
Kernel stmatrix_registers(int count, bool trans);
/// movmatrix of an 8x8 matrix that holds 0, 1, 2, ...; out: two values a lane.
Kernel movmatrix_registers();

}  // namespace tartan::TARTAN_ABI::kernels
