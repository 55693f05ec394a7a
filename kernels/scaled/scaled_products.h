// SPDX-License-Identifier: Apache-2.0
// kernels/scaled/scaled_products.h - what scaled_gemm() and k_grouped_gemm() expect alike. Not
// installed.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "tartan/kernels/scaled_gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

inline constexpr int scale_block = 128;  // elements along k that share a scale

/// Of a CTA's tile, what its warpgroups multiply at a time: 16 rows of each warp, n / parts_n
/// columns.
Tile scaled_part(const Tile& tile, int parts_n = 1);

/// Whether there are products of these sizes (0: parameters) and of this tile; reports all that
/// does not fit.
bool is_scaled_product(Builder& k, int rows, int columns, int depth, int multiple_of_columns,
                       const Tile& tile);

/// Whether the options go together; reports all that do not.
bool is_scaled_gemm(Builder& k, const ScaledGemm& options);

/// sum += product * scale, of each element: scale(i, e) is that of element `e` of fragment `i`.
void promote(Builder& k, Accumulator& sum, const WarpTile& product,
             const std::function<Scalar(std::size_t i, std::size_t e)>& scale);
/// A number that stays where it is read: nothing moves across an instruction of the user's own, so
/// that a promotion comes after the wait in front of it.
Scalar kept_here(Builder& k, const Scalar& x);

/// All parts of a tile, to be staged in as few batches as there is room for.
WarpTile joined_parts(const std::deque<Accumulator>& sums, const Tile& tile, int part_m,
                      int parts_n);

/// Whether the CTAs of a cluster share A, not B.
inline bool shares_a(const ScaledGemm& options) {
  return options.cluster > 1 && (options.share_a || options.grouping != Grouping::none);
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
