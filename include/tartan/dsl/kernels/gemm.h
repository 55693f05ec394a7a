// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/kernels/gemm.h - matrix products of any size, in every type that mma.sync has.
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

#include "tartan/dsl/builder.h"

namespace tartan::inline TARTAN_ABI::kernels {

inline constexpr int most_splits = 256, most_stream_blocks = 65536;

/// The activation that an epilogue applies.
enum class Activation : std::uint8_t { none, relu, gelu, silu };  // gelu: the form with tanh

/// What happens to a sum on its way to C, computed in f32 (products of f64: in f64):
///
///   C[i][j] = activation(alpha * row_scale[i] * column_scale[j] * sum + beta * C[i][j] + bias[j])
///             + residual[i][j]
///
/// NaN stays NaN in each activation, as in PyTorch. Integer results are rounded to nearest even and
/// clamped, NaN to the least; results of e4m3 and e5m2 clamp numbers, and keep NaN. Each part is a
/// parameter of the kernel, behind C, in the order of the members: scalars and vectors of f32
/// (f64), the residual of C's type and shape.
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

/// C = A * B for any m, n and k, A and B by rows or columns, C by rows: cp.async pipeline,
/// ldmatrix, mma.sync; with producers on sm_90a the copy engine and wgmma. A size of 0 is a
/// parameter of the kernel (s32, in the order m, n, k). Whole tiles end at 2^31 - 1 at most along
/// each of them, those of all splits together along m, and there are fewer than 2^31 of them: known
/// sizes beyond that are refused.
struct Gemm {
  int m = 256, n = 256, k = 256;
  /// Elements of A and B. tf32: f32 that has been rounded before. f32: rounded to tf32 on the way,
  /// to nearest even, on all targets and by whatever copies them (of NaNs, those without any of the
  /// upper 10 bits of the mantissa become infinities where a tensor map rounds).
  Type a = f16, b = f16;
  Type accumulator = f32;  // f32, f16, f64 or s32
  Type c = f32;            // elements of C: f32, f16, bf16, e4m3, e5m2, f64, s32, s8, u8
  Major a_major = Major::row, b_major = Major::col;
  // Sizes that are parameters: what the lengths of lines in memory are multiples of, in elements.
  int multiple = 8, multiple_c = 8;                                    // of A and B, and of C
  Tile tile = {.m = 64, .n = 64, .k = 0, .warps_m = 2, .warps_n = 2};  // k = 0: lines of 64 bytes
  int stages = 3;
  /// After so many steps of tile.k along k, what the tensor cores have added up is added to sums in
  /// full f32, and they begin anew; 0: never. Tensor cores that multiply fp8 natively (wgmma,
  /// sm_89) keep about 14 bits of a sum. Takes twice the registers for sums; accumulators of f32.
  int promote = 0;
  isa::BitOp bit_op = isa::BitOp::xor_popc;  // of products of b1
  Epilogue epilogue = {};
  /// The blocks' y is which part of k: parts are summed up by gemm_sum(), in their order, so that
  /// the result is the same each time. C then is the workspace, see workspace_elements(). At most
  /// most_splits.
  int splits = 1;
  /// The blocks (x) of a launch, whatever the sizes: each gets as many steps along k as the others,
  /// parts of tiles go to a workspace behind C and are added up by gemm_sum(), a block for each
  /// tile ("stream-K"). 0: a block for each tile. At most most_stream_blocks.
  int stream_blocks = 0;
  /// Tiles are walked in groups of so many rows of them, column by column: what runs together then
  /// reads few of A's rows and B's columns.
  int group = 8;
  /// Any number of blocks: each computes tile after tile.
  bool persistent = false;
  /// Warps beside the tile's that copy for them, see Builder::roles().
  int producers = 0;
  /// Blocks that compute tiles one below the other and read B once for all of them, where the copy
  /// engine does (sm_90a, sm_100a and the like): 1, 2, 4 or 8. The grid's x is a multiple of it.
  /// Not for parts of k.
  int cluster = 1;
  /// The blocks' z is which product of a batch; stride_a, stride_b and stride_c (s64, elements, in
  /// front of A) say how far the matrices are apart, multiples of `multiple` and `multiple_c`.
  bool batched = false;

  /// Tiles of a result, those that only fill up clusters included.
  std::int64_t tiles(int rows, int cols) const {
    const std::int64_t high = std::int64_t{cluster} * tile.m, wide = tile.n;
    return (rows + high - 1) / high * cluster * ((cols + wide - 1) / wide);
  }
  /// Blocks (x) of a launch for sizes m and n; where no launch can have so many, 2^32 - 1.
  unsigned blocks(int rows, int cols) const {
    return static_cast<unsigned>(std::min<std::int64_t>(tiles(rows, cols), 0xFFFFFFFF));
  }
  /// Blocks of a launch of a persistent kernel: no more than a GPU has multiprocessors, and such
  /// that all have the same number of tiles, or one less.
  unsigned persistent_blocks(int rows, int cols, int multiprocessors) const {
    const auto each = static_cast<unsigned>(cluster);
    const std::int64_t whole = tiles(rows, cols) / each,
                       most = std::max(multiprocessors / cluster, 1),
                       rounds = (whole + most - 1) / most;
    return each * static_cast<unsigned>(rounds ? (whole + rounds - 1) / rounds : 1);
  }
  /// Elements of accumulator type that the parts of a product take.
  std::int64_t workspace_elements(int rows, int cols) const {
    if (stream_blocks) return std::int64_t{2} * stream_blocks * tile.m * tile.n;
    return splits * tiles(rows, cols) * tile.m * tile.n;
  }
};
Kernel gemm(const Gemm& options);

/// The same with tile, warps, stages and producers as they were fastest for such sizes on an H100
/// and an H200 (docs/performance.md), for elements of 8 to 32 bits: by wgmma on sm_90a, by mma.sync
/// and cp.async on others from sm_80 on, as given elsewhere. On sm_90a persistent where several
/// tiles fall to a multiprocessor: see persistent_blocks().
Gemm tuned(const Gemm& options, const Target& target);
inline constexpr int h100_multiprocessors = 132;

/// Adds up what a gemm with splits > 1 left in its workspace, and finishes it: parameters (m, n),
/// the workspace, C and those of the epilogue. A thread for each element, 256 in a block. With
/// stream_blocks: parameters (m, n, k), and a block of 256 threads for each tile.
Kernel gemm_sum(const Gemm& options);

}  // namespace tartan::inline TARTAN_ABI::kernels
