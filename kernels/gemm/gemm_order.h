// SPDX-License-Identifier: Apache-2.0
// kernels/gemm/gemm_order.h - the order of the tiles of a product whose CTAs all run at the same
// time. Not installed.
#pragma once

#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// Tiles of a result, rows x columns of them, each m x n elements.
struct TileGrid {
  int rows, columns, m, n;
};
/// Those of a product of constant sizes; if it is swapped, of the transpose that it computes.
TileGrid tile_grid(const Gemm& options);

/// Gemm::group, how many rows of tiles go down a column of them, by which CTAs that follow each
/// other read the least: a GPC (16 multiprocessors on most) has the second-level cache read once
/// what its CTAs ask for at the same time, and runs some that follow each other. With which of them
/// it begins seems to depend on the launch in front, so all sixteen that follow each other count,
/// also the last ones with the first, and those that read the most for more than their share: a
/// last group of one row takes as long as if all had one. `usual` where nothing is better.
int group_beside(const TileGrid& tiles, int usual);

}  // namespace tartan::TARTAN_ABI::kernels::detail
