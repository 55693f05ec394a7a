// SPDX-License-Identifier: Apache-2.0
// Kernels of the program's own, compiled by nvcc: each is launched in a stream.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

/// values[i] = ((i * step) % modulus - modulus / 2) / modulus
void fill_pattern(__half* values, int count, int step, int modulus, cudaStream_t stream);
/// values[i] = max(values[i], 0)
void relu(float* values, int count, cudaStream_t stream);
/// Adds to *wrong each element of relu(A * B) that `c` has not; A m x k and C m x n row-major, B k
/// x n column-major.
void count_wrong(const __half* a, const __half* b, const float* c, int m, int n, int k,
                 unsigned* wrong, cudaStream_t stream);
