// SPDX-License-Identifier: Apache-2.0
// What emulator_hopper_test.cc runs: nvcc -ptx -arch=sm_90a hopper.cu, without line directives.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda/barrier>

namespace cg = cooperative_groups;
namespace cde = cuda::device::experimental;

// Counts of values below 256 * blocks: each block of the cluster holds 256 of the counters.
extern "C" __global__ void cluster_histogram(const unsigned* values, unsigned count,
                                             unsigned* counts) {
  __shared__ unsigned bins[256];
  cg::cluster_group cluster = cg::this_cluster();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  cluster.sync();
  const unsigned first = cluster.block_rank() * blockDim.x + threadIdx.x;
  for (unsigned i = first; i < count; i += blockDim.x * cluster.num_blocks())
    atomicAdd(cluster.map_shared_rank(bins, values[i] / 256) + values[i] % 256, 1);
  cluster.sync();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
    counts[cluster.block_rank() * 256 + i] = bins[i];
}

// out = in with every 32 x 32 tile transposed, both through the copy engine.
extern "C" __global__ void transpose_tiles(const __grid_constant__ CUtensorMap in,
                                           const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(128) float from[32][32], to[32][32];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  const int x = blockIdx.x * 32, y = blockIdx.y * 32;
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_global_to_shared(from, &in, x, y, bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(from));
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  for (int row = threadIdx.x / 32; row < 32; row += blockDim.x / 32)
    to[row][threadIdx.x % 32] = from[threadIdx.x % 32][row];
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_shared_to_global(&out, y, x, to);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
  }
}
