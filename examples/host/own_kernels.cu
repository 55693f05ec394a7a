// SPDX-License-Identifier: Apache-2.0
#include "own_kernels.h"

namespace {

constexpr int threads = 256;

int blocks(int count) { return (count + threads - 1) / threads; }

__global__ void fill_pattern_kernel(__half* values, int count, int step, int modulus) {
  const int i = blockIdx.x * threads + threadIdx.x;
  if (i < count)
    values[i] = __float2half((static_cast<float>(static_cast<long long>(i) * step % modulus) -
                              modulus / 2) /
                             modulus);
}

__global__ void relu_kernel(float* values, int count) {
  const int i = blockIdx.x * threads + threadIdx.x;
  if (i < count) values[i] = fmaxf(values[i], 0.0f);
}

__global__ void count_wrong_kernel(const __half* a, const __half* b, const float* c, int m, int n,
                                   int k, unsigned* wrong) {
  const int i = blockIdx.x * threads + threadIdx.x;
  if (i >= m * n) return;
  float sum = 0;
  for (int at = 0; at < k; ++at)
    sum += __half2float(a[i / n * k + at]) * __half2float(b[i % n * k + at]);
  if (fabsf(fmaxf(sum, 0.0f) - c[i]) > 1e-3f * k) atomicAdd(wrong, 1u);
}

}  // namespace

void fill_pattern(__half* values, int count, int step, int modulus, cudaStream_t stream) {
  fill_pattern_kernel<<<blocks(count), threads, 0, stream>>>(values, count, step, modulus);
}

void relu(float* values, int count, cudaStream_t stream) {
  relu_kernel<<<blocks(count), threads, 0, stream>>>(values, count);
}

void count_wrong(const __half* a, const __half* b, const float* c, int m, int n, int k,
                 unsigned* wrong, cudaStream_t stream) {
  count_wrong_kernel<<<blocks(m * n), threads, 0, stream>>>(a, b, c, m, n, k, wrong);
}
