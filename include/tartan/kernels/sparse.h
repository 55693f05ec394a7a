// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/sparse.h - GEMM with a structured sparse A (mma.sp): at most two nonzero
// elements among four neighbours of a row or, in f32 and tf32, one of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tartan/kernels/gemm.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::kernels {

/// A sparse matrix as the kernel takes it.
struct Compressed {
  std::vector<std::byte> values;        // the kept elements: m x k/2, row-major
  std::vector<std::uint32_t> metadata;  // their positions
};

/// Compresses an m x k matrix of `type` (8, 16 or 32 bits), row-major. k must be a multiple of four
/// (two for 32 bits); a group with too many nonzero elements is an error that names its place.
///
/// The metadata: for each 16 rows, and each k of one instruction (512 / bits(type)), the words of
/// the lanes that supply it, in their order: 16, or 32 for types of 8 bits. Rows and columns beyond
/// the matrix count as zeros. mma.sp and each warp of wgmma.mma_async.sp read the same words from
/// the same lanes, so that one compressed matrix serves both.
Result<Compressed> compress(std::span<const std::byte> dense, int m, int k, Type type);

/// gemm() with a row-major sparse A: parameters (m, n, k), A's values, its metadata (u32), B, C and
/// those of the epilogue. k counts A's columns before compression, and is a multiple of
/// options.multiple; A's rows are half as long. All options of gemm() apply; stream_blocks requires
/// an explicit tile.k. In a batch, stride_a counts kept elements, in multiples of half of
/// `multiple`, and stride_metadata follows stride_c: words, in multiples of four. With producers,
/// sm_90a uses wgmma where gemm() does; TMA loads A if its leading dimension is a multiple of 16
/// bytes.
/// Its launch may be Launch::programmatic, as gemm()'s.
Kernel sparse_gemm(const Gemm& options);

}  // namespace tartan::TARTAN_ABI::kernels
