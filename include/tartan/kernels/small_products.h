// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/small_products.h - batches of small products, 8 to 64 in each dimension: each
// of one to eight warps.
//
//   const kernels::SmallProducts wanted{.m = 32, .n = 32, .k = 32, .type = f16};
//   const auto options = tuned(wanted, Target::of(device.arch()));
//   const auto compiled = compile(kernels::small_products(options), device.arch());
//   ...                                                // load it: see tartan/launch.h
//   const Status launched = launch(kernel, *compiled, {options.blocks(batch)},
//                                  Arguments().add(batch).add(a).add(b).add(c));
#pragma once

#include <algorithm>
#include <cstdint>

#include "tartan/dsl/builder.h"
#include "tartan/kernels/gpu.h"

namespace tartan::TARTAN_ABI::kernels {

/// C[i] = A[i] * B[i] for i = 0 .. batch - 1.
///
///   A   [batch][m][k]   of `type`; a_major col: [batch][k][m]
///   B   [batch][k][n]   of `type`; b_major col: [batch][n][k]
///   C   [batch][m][n]   of `c`
///
/// Parameters: batch (s32), A, B, C. Sums are in f32, those of f64 in f64, and in no order that the
/// types alone determine. NaN and infinities are those of the sums; f32 becomes f16 or bf16 by
/// rounding to nearest even, and infinite beyond their range. Blocks beyond the batch do nothing: a
/// batch of 0 needs no launch, and where it is launched, nothing is read or written.
struct SmallProducts {
  int m = 32, n = 32, k = 32;  // multiples of 16 up to 64; f64: multiples of 8
  Type type = f16;             // of A and B: f16, bf16 or f64
  Type c = f32;                // of C: f32 or `type`; f64: f64
  Major a_major = Major::row, b_major = Major::col;
  /// Warps that divide the rows and the columns of a product, up to 8 in all. Their parts have a
  /// multiple of 16 rows and columns (f64: of 8).
  int warps_m = 1, warps_n = 1;
  /// Products of these warps, one after the other, 1 to 8.
  int products = 1;
  /// How many steps along k are loaded ahead of the one that is multiplied, those of the next
  /// products included: registers against latency. A step is 32 of k (f64: 8), or what is left.
  int ahead = 1;
  /// A and B pass through shared memory, all of them at once: of f64, with one product for each
  /// block. Nothing is loaded ahead then.
  bool staged = false;

  int team() const { return warps_m * warps_n; }
  /// Teams of warps in a block: as many as four warps hold, at least one.
  int teams() const { return std::max(4 / std::max(team(), 1), 1); }
  int products_per_block() const { return teams() * std::max(products, 1); }
  /// gridDim.x of a launch.
  unsigned blocks(int batch) const {
    const int each = products_per_block();
    return static_cast<unsigned>((std::int64_t{std::max(batch, 0)} + each - 1) / each);
  }
};
Kernel small_products(const SmallProducts& options = {});

/// `options` with the warps, products, steps ahead and staging that keep most bytes on their way on
/// a GPU from sm_80 on, as an H200 showed for 16 x 16 x 16 to 64 x 64 x 64.
SmallProducts tuned(const SmallProducts& options, const Gpu& gpu);

}  // namespace tartan::TARTAN_ABI::kernels
