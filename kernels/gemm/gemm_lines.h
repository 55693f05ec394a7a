// SPDX-License-Identifier: Apache-2.0
// kernels/gemm/gemm_lines.h - GEMM of rows that begin at any element: the operands are read line by
// line and aligned, see tartan/dsl/line_ring.h. Not installed.
#pragma once

#include "kernels/gemm/gemm_tiles.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// Whether gemm() may do so: where what is known to divide rows is less than a word of 4 bytes. Of
/// words, cp.async is faster: 27 x 4596 x 11382 in f16 takes 42 us on an H200, 50 line by line.
bool reads_lines(const Gemm& options);
/// Whether it does so on that target, where the ring of lines fits into shared memory: it takes two
/// stages more.
bool reads_lines(const Gemm& options, const Target& target);

/// The operands `left` * `right`, aligned in the only stages of `a` and `b`.
Operands aligned_operands(Builder& k, const Gemm& options, const TiledMma& mma, const Global& left,
                          const Global& right, const Ring& a, const Ring& b);

}  // namespace tartan::TARTAN_ABI::kernels::detail
