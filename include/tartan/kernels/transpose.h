// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/transpose.h - a transposing copy by ldmatrix.trans.
#pragma once

#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::kernels {

/// out (cols x rows) = the transpose of in (rows x cols), both row-major, of 16-bit elements, any
/// size. Parameters: rows, cols (s32, multiples of `multiple`), in, out (declared f16; bits are
/// copied unchanged). A block of 128 threads transposes 64 x 64 elements: tile (x, y) of the grid
/// is column tile x, row tile y of `in`; a grid has at most 65535 along y, for 4194240 rows.
///
/// A tile is copied to shared memory; each warp loads 16 x 16 pieces of it by ldmatrix.trans and
/// stores them by stmatrix, if the target has it (sm_90).
Kernel transpose(int multiple = 8);

}  // namespace tartan::TARTAN_ABI::kernels
