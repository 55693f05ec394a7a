// SPDX-License-Identifier: Apache-2.0
// Sums, scans, histograms, transposes and compaction: warps and blocks working together.
#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;

__device__ __forceinline__ int warp_total(int value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  return value;
}

extern "C" __global__ void block_sum(const int* in, int* out, int n) {
  __shared__ int totals[32];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  sum = warp_total(sum);
  if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = warp_total(threadIdx.x < blockDim.x / 32 ? totals[threadIdx.x] : 0);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

extern "C" __global__ void inclusive_scan(const unsigned* in, unsigned* out) {
  __shared__ unsigned totals[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned value = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned below = __shfl_up_sync(~0u, value, step);
    if (lane >= step) value += below;
  }
  if (lane == 31) totals[warp] = value;
  __syncthreads();
  for (unsigned i = 0; i < warp; ++i) value += totals[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
  __shared__ unsigned own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], own[i]);
}

extern "C" __global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (x < columns && y + i < rows) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (x < rows && y + i < columns) out[(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i];
}

// The odd words of every warp's 32, in order; how many, behind them.
extern "C" __global__ void compact(const unsigned* in, unsigned* out, int* counts) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned value = in[index];
  const unsigned kept = warp.ballot(value & 1);
  if (value & 1) out[index / 32 * 32 + __popc(kept & ((1u << warp.thread_rank()) - 1))] = value;
  if (warp.thread_rank() == 0) counts[index / 32] = __popc(kept);
}

// Ascending, a block's 2 * blockDim.x words at a time.
extern "C" __global__ void bitonic_sort(const int* in, int* out) {
  extern __shared__ int keys[];
  const int n = 2 * blockDim.x, base = blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) keys[i] = in[base + i];
  for (int size = 2; size <= n; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int low = 2 * threadIdx.x - (threadIdx.x & (stride - 1)), high = low + stride;
      const bool ascending = (threadIdx.x & (size / 2)) == 0;
      const int a = keys[low], b = keys[high];
      if ((a > b) == ascending) {
        keys[low] = b;
        keys[high] = a;
      }
    }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[base + i] = keys[i];
}
