// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/mixed_gemm.h - mixed-input GEMM: activations of 16 bits, weights of 4 or 8
// (W4A16, W8A16) with scales and zero points.
//
//   const auto packed = kernels::shuffled_weights(weights, scales, zeros, n, k, options);
//   const auto with = tuned(options, target);
//   launch(kernel, compiled, {with.blocks(m, n, multiprocessors)}, arguments);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tartan/dsl/kernel.h"
#include "tartan/kernels/gpu.h"
#include "tartan/support/diagnostic.h"
#include "tartan/support/dim3.h"

namespace tartan::TARTAN_ABI::kernels {

/// Y = X * W with W[i][j] = (weight - zero point) * scale. Scales and zero points belong to `group`
/// neighbours along k of a column. Sums are in f32.
///
///   m, n, k    s32, those that are no constants below; n and k are multiples of 8
///   X          m x k, row-major, of `type`
///   W, S, Z    shuffled_weights() of the weights (b64), scales (two in a u32) and zero points (two
///              in a u16); Z only with `zeros`
///   Y          m x n, row-major, of `type`
///   P          with sums_in_memory(): work space, partial_elements() of f32
///   counters   with sums_in_memory(): counter_elements() of u32, zeros before the first launch,
///              and again after each
///
/// The kernel computes the transposed product: W's columns are the MMA's rows, since its operand A
/// may come from registers, in which weights become numbers of `type`. Without `zeros` the zero
/// point is 8, or 128 for weights of 8 bits. A NaN of X is one in its row of Y, of S in its column;
/// an infinite scale may be either there.
/// The result's bits depend on the options and the grid, not on timing.
struct MixedGemm {
  int m = 0, n = 0, k = 0;  // constants; 0: parameters
  Type type = bf16;         // of X, the scales and Y: f16 or bf16
  Type weight = Type::u4;   // u4 or u8
  int group = 128;          // weights that share a scale: 64 or 128
  bool zeros = false;
  /// Scales multiply sums of 64 products, in f32. Otherwise they multiply weights, which are then
  /// rounded to `type`: less arithmetic where X has many rows.
  bool scale_sums = true;
  int tile_m = 16, tile_n = 64;  // rows and columns of Y: multiples of 8 and of 16
  int tile_k = 256;              // 64, 128, 256 or 512
  int warps_n = 4, warps_k = 2;  // warps that divide the columns, and the k of each k-tile
  int stages = 4;
  int producers = 0;   // producer warps, see Builder::roles()
  int min_blocks = 0;  // CTAs of a multiprocessor, see KernelOptions
  /// wgmma, where the tile and the target have it: see tiled_mma.h. Only with scaled weights and
  /// warps_k = 1.
  bool warpgroups = false;
  /// The k-tiles of all tiles are divided evenly among the CTAs; the last one of those that share a
  /// tile adds their sums, in the order of k; below 2^31 k-tiles in all. Otherwise CTAs have whole
  /// tiles.
  bool split = true;
  /// Without `split`: columns are divided evenly among CTAs, 16 at a time, so that each has a tile,
  /// or as many as others, of up to tile_n columns.
  bool even = false;
  /// CTAs of a cluster: 1, 2, 4 or 8. With `split`, clusters have whole tiles, as with `even`:
  /// the CTAs of one divide the k-tiles, and add their sums in shared memory, in the order of k.
  /// Otherwise they have tiles side by side and share rows of X, which TMA multicasts.
  int cluster = 1;
  /// For programmatic dependent launches (Launch::programmatic), without which it has no effect:
  /// lets the next launch start at once, and producers copy W, S and Z, as much as the stages take,
  /// before this launch waits for the one before it. No launch that may still run then, none of a
  /// chain of programmatic launches, may write W, S or Z.
  bool overlap = false;

  int threads() const { return 32 * warps_n * warps_k; }
  /// Whether sums of CTAs that share a tile go through P.
  bool sums_in_memory() const { return split && cluster == 1; }
  /// Tiles of Y.
  std::int64_t tiles(int rows, int columns) const;
  /// gridDim.x of a launch that fills a GPU. Any other multiple of `cluster` works, too.
  unsigned blocks(int rows, int columns, int multiprocessors) const;
  /// Elements of P for a grid of `blocks`, and of counters.
  std::int64_t partial_elements(unsigned blocks) const;
  std::int64_t counter_elements(int rows, int columns) const { return tiles(rows, columns); }
};
Kernel mixed_gemm(const MixedGemm& options);

/// `options` with the fastest of all that is not the problem itself (sizes, types, group, zeros),
/// `scale_sums` and `split` included, for these sizes and a GPU. A size that is a parameter
/// counts as 4096.
MixedGemm tuned(const MixedGemm& options, const Gpu& gpu);

// ---- The same in parts: what is computed, how, and the launch.

/// What MixedGemm computes: sizes, types and what belongs to the result.
struct MixedGemmProblem {
  int m = 0, n = 0, k = 0;
  Type type = bf16, weight = Type::u4;
  int group = 128;
  bool zeros = false;
};
/// The members are those of MixedGemm.
struct MixedGemmSchedule {
  bool scale_sums = true;
  int tile_m = 16, tile_n = 64, tile_k = 256, warps_n = 4, warps_k = 2;
  int stages = 4, producers = 0, min_blocks = 0;
  bool warpgroups = false, split = true, even = false;
  int cluster = 1;
  bool overlap = false;
};
MixedGemm flat(const MixedGemmProblem& problem, const MixedGemmSchedule& schedule);
MixedGemmProblem problem_of(const MixedGemm& options);
MixedGemmSchedule schedule_of(const MixedGemm& options);

/// A launch of MixedGemm: see of().
struct MixedGemmLaunch {
  Dim3 grid;
  std::int64_t partials = 0, counters = 0;  // elements of P and counters, if there are any

  static MixedGemmLaunch of(const MixedGemm& options, int m, int n, int multiprocessors);
};

/// Weights as mixed_gemm() takes them.
///
/// A block is 16 columns x 64 rows of W with 4 bits, 16 x 32 with 8: 512 bytes, 16 for each lane of
/// a warp, which are its registers of operand A of m16n8k16, transposed: of 4 (2) MMAs along k. For
/// lane = 4 * g + t, register r of such an operand has column g + 8 * (r % 2), and rows
/// 2 * t + 8 * (r / 2) and the one after it, the second half, as its halves h.
///
///   4 bits     32-bit word i is MMA i; bits 4 * (r + 4 * h) and up are register r, half h
///   8 bits     word i has registers r = 2 * (i % 2) and r + 1 of MMA i / 2; byte (r % 2) + 2 * h
///
/// Blocks are in order of k, which is padded to 64 rows, then of columns. Scales: a row of 32-bit
/// words per group along k, eight words per 16 columns: word g has column g, and column g + 8 in
/// the upper half. Zero points are the same in bytes. What is beyond W is zeros.
struct ShuffledWeights {
  std::vector<std::uint64_t> weights;
  std::vector<std::uint32_t> scales;
  std::vector<std::uint16_t> zeros;
};

/// Shuffles an n x k matrix of weights, a byte each: W's column 0 first. `scales` are n x ceil(k /
/// group) elements of options.type, `zeros` as many bytes, or none without options.zeros. Sizes
/// that do not match, and numbers beyond 15 where weights have 4 bits, are errors that name their
/// place.
Result<ShuffledWeights> shuffled_weights(std::span<const std::uint8_t> weights,
                                         std::span<const std::byte> scales,
                                         std::span<const std::uint8_t> zeros, int n, int k,
                                         const MixedGemm& options);

}  // namespace tartan::TARTAN_ABI::kernels
