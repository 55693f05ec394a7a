// SPDX-License-Identifier: Apache-2.0
// kernels/gemm/gemm_direct.h - gemm() of few rows whose warps read B straight from global memory:
// Gemm::direct. Not installed.
#pragma once

#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// Bytes of an access of a lane: what every row of A and column of B is a multiple of, 4 to 16.
/// Shorter multiples take words of 4 bytes, that are shifted.
int direct_bytes(const Gemm& options);
bool direct_shifts(const Gemm& options);
/// The k of a step: an access of all lanes of warps_k warps. tile.k = 0 stands for it.
int direct_step(const Gemm& options);
/// Whether such a kernel multiplies these types, in these major orders, on this target.
bool direct_takes(const Gemm& options, const Target& target);

/// The body of the kernel. tile.k is direct_step().
void describe_direct(Builder& k, const Gemm& options);

}  // namespace tartan::TARTAN_ABI::kernels::detail
