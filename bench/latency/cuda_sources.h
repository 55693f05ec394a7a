// SPDX-License-Identifier: Apache-2.0
// bench/latency/cuda_sources.h - what NVRTC compiles: CUDA C++ for what our kernels compute, with
// the same instructions as these for sm_80 (cp.async, ldmatrix, mma.sync m16n8k16), the same tiles
// and stages, and no header.
#pragma once

namespace latency {

/// one_mma(A, B, D): 32 threads.
extern const char* const one_mma_source;

/// gemm(m, n, k, A, B, C): f16, row-major times column-major, to f32; any m, n and k a multiple of
/// 8. A block of 256 threads for each tile of 128 x 128, along x.
extern const char* const gemm_source;
inline constexpr unsigned gemm_tile = 128, gemm_threads = 256, gemm_shared = 3 * 256 * 64;

/// attention(queries, keys, heads, kv_heads, scale, Q, K, V, O, LSE): f16, a head dimension of 64.
/// A block of 128 threads for 128 queries.
extern const char* const attention_source;
inline constexpr unsigned attention_threads = 128, attention_shared = 48 * 1024;

}  // namespace latency
