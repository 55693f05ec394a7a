// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/gemm.h - GEMM of any size, in every type that mma.sync supports.
//
//   Gemm options{.m = 0, .n = 0, .k = 0};              // sizes are parameters of the kernel
//   options.a = options.b = s8, options.accumulator = s32, options.c = s8;
//   options.epilogue = {.column_scales = true, .bias = true, .activation = Activation::relu};
//   const auto compiled = compile(kernels::gemm(options), device.arch());
//   ...                                                // load it: see tartan/launch.h
//   const Status launched =
//       launch(kernel, *compiled, {options.blocks(m, n)},
//              Arguments().add(m).add(n).add(depth).add(a).add(b).add(c).add(scales).add(bias));
#pragma once

#include <algorithm>
#include <utility>

#include "tartan/dsl/builder.h"
#include "tartan/kernels/gpu.h"

namespace tartan::TARTAN_ABI::kernels {

inline constexpr int most_splits = 256, most_stream_blocks = 65536;

/// The activation that an epilogue applies. gelu: the form with tanh; sigmoid: 1 / (1 + e^-x),
/// silu: x * sigmoid(x).
enum class Activation : std::uint8_t { none, relu, gelu, silu, sigmoid };

/// The epilogue: what is applied to an accumulator before it is stored to C, in f32 (f64 GEMM: in
/// f64):
///
///   C[i][j] = activation(alpha * row_scale[i] * column_scale[j] * sum + beta * C[i][j] + bias[j])
///             + residual[i][j]
///
/// Activations propagate NaN, as in PyTorch. Integer results are rounded to nearest even and
/// saturated, NaN to the minimum; e4m3 and e5m2 results saturate and keep NaN. Each operation adds
/// a kernel parameter after C, in the order of the members: scalars and vectors of f32 (f64), the
/// residual of C's type and shape.
struct Epilogue {
  bool alpha = false, beta = false;
  bool row_scales = false, column_scales = false;
  bool bias = false;
  Activation activation = Activation::none;
  bool residual = false;
  bool empty() const {
    return !(alpha || beta || row_scales || column_scales || bias || residual) &&
           activation == Activation::none;
  }
};

/// C = A * B for any m, n and k; A and B row-major or column-major, C row-major. The mainloop is a
/// cp.async pipeline with ldmatrix and mma.sync; with producer warps on sm_90a, TMA and wgmma.
/// Without producers, rows of f16, bf16 and bytes that begin at any element (of no multiple of four
/// bytes) are read in whole 128-byte lines and shifted in shared memory, if tile.k is whole lines.
/// A size of 0 is a kernel parameter (s32, in the order m, n, k). Each size, rounded up to whole
/// tiles (m times the splits), is at most 2^31 - 1, and there are fewer than 2^31 tiles: larger
/// constant sizes are refused.
struct Gemm {
  int m = 256, n = 256, k = 256;
  /// Element types of A and B. tf32: f32 that is already rounded. f32: the kernel rounds to tf32,
  /// to nearest even, on all targets (where a tensor map rounds, a NaN without any of the upper 10
  /// mantissa bits becomes infinity).
  Type a = f16, b = f16;
  Type accumulator = f32;  // f32, f16, f64 or s32
  Type c = f32;            // type of C: f32, f16, bf16, e4m3, e5m2, f64, s32, s8, u8
  Major a_major = Major::row, b_major = Major::col;
  // Run-time sizes: guaranteed divisor of the leading dimensions, in elements.
  int multiple = 8, multiple_c = 8;                                    // of A and B, and of C
  Tile tile = {.m = 64, .n = 64, .k = 0, .warps_m = 2, .warps_n = 2};  // k = 0: rows of 64 bytes
  int stages = 3;
  /// Number of k-tiles after which the tensor cores' accumulators are added to accumulators in full
  /// f32 and cleared; 0: never. Tensor cores with native fp8 (wgmma, sm_89) accumulate in about 14
  /// bits. Requires f32 accumulators and twice the registers for them.
  int promote = 0;
  isa::BitOp bit_op = isa::BitOp::xor_popc;  // of products of b1
  Epilogue epilogue = {};
  /// Split-K: blockIdx.y selects the split of k; gemm_sum() reduces the splits in order,
  /// deterministically. C is the workspace, see workspace_elements(). At most most_splits.
  int splits = 1;
  /// Split-K within a cluster, one launch without a workspace: so many CTAs (1, 2, 4 or 8) divide
  /// the k-tiles of a tile of C, add their accumulators through distributed shared memory in the
  /// order of their ranks, and store a part of the tile's columns each, with the epilogue: as many
  /// of them as can have the same number of the tile.n / (8 * warps_n) fragments across, such as
  /// three of four for 72 columns. From sm_90 on, for any k; not with `splits`, `stream_blocks`,
  /// `persistent` or `cluster`.
  int cluster_splits = 1;
  /// Stream-K: the number of CTAs (x) of a launch, for any sizes. They divide all k-tiles evenly;
  /// partial tiles go to a workspace after C, and gemm_sum() reduces them, one CTA per tile. 0: one
  /// CTA per tile, no stream-K. At most most_stream_blocks.
  int stream_blocks = 0;
  /// Rasterization: tiles are visited in groups of this many tile rows, column by column, so that
  /// concurrent CTAs share rows of A and columns of B in L2.
  int group = 8;
  /// Persistent: each CTA has tile after tile, tile.products = 2 warpgroups in turn (ping-pong).
  bool persistent = false;
  /// A persistent kernel of a grid with a CTA for each tile, see Builder::each_launched_tile():
  /// CTAs that run take over the tiles of CTAs that have not started (from sm_100 on; on other
  /// targets each CTA has its tile). For tiles that take different times, or GPUs that run other
  /// kernels, too. Requires `persistent` and `producers`.
  bool dynamic = false;
  /// Producer warps of a warp-specialized kernel, see Builder::roles().
  int producers = 0;
  /// Cluster size: CTAs with vertically adjacent tiles that share B by TMA multicast (sm_90a,
  /// sm_100a and the like): 1, 2, 4 or 8. gridDim.x is a multiple of it. Not with stream-K.
  int cluster = 1;
  /// So many columns of such CTAs form a cluster: the CTAs in a row of it share A. `cluster` times
  /// `cluster_columns` is 8 at most. For rows of A and B that begin off 128-byte lines, of which
  /// the second-level cache serves fewer.
  int cluster_columns = 1;
  /// Swaps A and B: the kernel computes the transpose of C, B^T * A^T, so that `tile`, `group` and
  /// `cluster` are those of the transpose, of n rows and m columns. For few rows: a warpgroup of
  /// wgmma has 64 rows of a tile, but from 8 columns on. Parameters and grid functions stay those
  /// of C. Not with `stream_blocks`.
  ///   options.tile = {.m = 64, .n = 16, .k = 128, .warps_m = 4, .warps_n = 1};   // m <= 16
  bool swap = false;
  /// For few rows, up to four (tile.m is 8 at most): no shared memory for A and B. The lanes of a
  /// warp read its tile.n / warps_n columns of B straight from global memory, side by side along k,
  /// in accesses of 16 bytes or what k is a multiple of; where that is less than 4 bytes, in words
  /// that they shift. Sums are f32 (s32), without tensor cores, on any target. warps_k warps divide
  /// k, `stages` is the number of accesses to each row that a lane makes at a time, and tile.k (0:
  /// what it must be) that of an access of all warps_k warps. At most 8 columns of a warp, 32 sums.
  /// A is row-major, B column-major, of f16, bf16, e4m3, e5m2 (from sm_89 on), s8 or u8. Not with
  /// clusters, `producers`, `persistent`, `swap`, splits; `promote` is what it does anyway.
  ///   options.tile = {.m = 1, .n = 16, .k = 0, .warps_m = 1, .warps_n = 4, .warps_k = 2};
  bool direct = false;
  /// Batched GEMM: blockIdx.z selects the product. The parameters stride_a, stride_b and stride_c
  /// (s64, elements, before A) are the batch strides, multiples of `multiple` and `multiple_c`.
  bool batched = false;

  /// Tiles of C, including those that only fill up clusters.
  std::int64_t tiles(int rows, int cols) const {
    if (swap) std::swap(rows, cols);
    const std::int64_t high = std::max(std::int64_t{cluster} * tile.m, std::int64_t{1}),
                       wide = std::max(std::int64_t{cluster_columns} * tile.n, std::int64_t{1});
    return (rows + high - 1) / high * cluster * ((cols + wide - 1) / wide) * cluster_columns;
  }
  /// gridDim.x of one CTA per tile (of `cluster_splits` CTAs), for sizes m and n; 2^32 - 1 if no
  /// launch can have that many.
  unsigned blocks(int rows, int cols) const {
    constexpr std::int64_t most = 0xFFFFFFFF;
    return static_cast<unsigned>(
        std::min(std::min(tiles(rows, cols), most) * cluster_splits, most));
  }
  /// gridDim.x of a launch of a persistent kernel: at most the number of SMs, chosen so that all
  /// CTAs have the same number of tiles, or one less. Clusters of more than two CTAs find room on
  /// ten of eleven SMs, as measured on an H100.
  unsigned persistent_blocks(int rows, int cols, int multiprocessors) const {
    const auto each = static_cast<unsigned>(std::max(cluster * cluster_columns, 1));
    const std::int64_t whole = tiles(rows, cols) / each,
                       room = each > 2 ? multiprocessors * 10 / 11 : multiprocessors,
                       most = std::max<std::int64_t>(room / each, 1),
                       rounds = (whole + most - 1) / most;
    return each * static_cast<unsigned>(rounds ? (whole + rounds - 1) / rounds : 1);
  }
  /// gridDim.x of a launch on a GPU of that many SMs: stream_blocks, persistent_blocks() or
  /// blocks(). gridDim.y is `splits`.
  unsigned grid_x(int rows, int cols, int multiprocessors) const {
    if (stream_blocks) return static_cast<unsigned>(stream_blocks);
    return persistent && !dynamic ? persistent_blocks(rows, cols, multiprocessors)
                                  : blocks(rows, cols);
  }
  /// Size of the workspace of split-K and stream-K, in elements of the accumulator type.
  std::int64_t workspace_elements(int rows, int cols) const {
    if (stream_blocks) return std::int64_t{2} * stream_blocks * tile.m * tile.n;
    return splits * tiles(rows, cols) * tile.m * tile.n;
  }
};
/// Its launch may be Launch::programmatic from sm_90 on: it waits for the launch in front of it
/// before it reads or writes global memory, and begins beside the end of that one.
Kernel gemm(const Gemm& options);

/// `options` with the tile, warps, stages and producers that should be the fastest for such sizes
/// on a GPU (docs/performance.md), for elements of 8 to 32 bits: wgmma or mma.sync on sm_90a,
/// mma.sync and cp.async from sm_80 on; unchanged on other targets. Persistent on sm_90a if there
/// are several tiles per SM: see persistent_blocks(). A Target is its usual GPU: see Gpu.
Gemm tuned(const Gemm& options, const Gpu& gpu);

/// Reduces the workspace of a gemm with splits > 1 and applies the epilogue: parameters (m, n), the
/// workspace, C and those of the epilogue; a thread per element, 256 per block. With stream_blocks
/// (m, n, k), and a block per tile. From sm_90 on its launch may be Launch::programmatic.
Kernel gemm_sum(const Gemm& options);

}  // namespace tartan::TARTAN_ABI::kernels
