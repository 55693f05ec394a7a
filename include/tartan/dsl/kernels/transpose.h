// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/kernels/transpose.h - a transposing copy that lets ldmatrix do the turning.
#pragma once

#include "tartan/dsl/builder.h"

namespace tartan::inline TARTAN_ABI::kernels {

/// out (cols x rows) = the transposed of in (rows x cols), both row-major, of 16-bit elements, of
/// any size: parameters rows, cols (s32, multiples of `multiple`), in, out (declared f16; nothing
/// looks at their bits). A block of 128 threads turns 64 x 64 elements: tile (x, y) of the grid is
/// column tile x, row tile y of `in`; a grid has at most 65535 along y, for 4194240 rows.
///
/// A tile goes to shared memory, each warp takes 16 x 16 pieces of it to registers by
/// ldmatrix.trans, and back by stmatrix where the target has that (sm_90).
Kernel transpose(int multiple = 8);

}  // namespace tartan::inline TARTAN_ABI::kernels
