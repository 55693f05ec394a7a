// SPDX-License-Identifier: Apache-2.0
// dsl/units/threads/packed_copy.h - copies of six- and four-bit elements for ldmatrix, which
// expands them to bytes. Not installed.
#pragma once

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// Copies a tile of six- or four-bit elements to a tile of b8 of the same shape. Rows of both
/// consist of whole groups of sixteen elements; in b8 each group takes 16 bytes (ldmatrix
/// .b6x16_p32, .b4x16_p64):
///
///   from   | 12 or 8 bytes | 12 or 8 bytes | ..
///   to     | 12 or 8 bytes, rest unused    | 12 or 8 bytes, rest unused    | ..
void copy_packed(KernelState& state, const Tensor& from, const Tensor& to);

}  // namespace tartan::TARTAN_ABI::detail
