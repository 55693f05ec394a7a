// SPDX-License-Identifier: Apache-2.0
// cuda::pipeline with a state that the block shares: all threads produce and consume, or a warp
// produces for another one. Its destructor invalidates the mbarriers.
//
//   nvcc -std=c++17 -ptx -arch=sm_90 pipeline.cu
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void unified(int* out, const int* in) {
  __shared__ int tile[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[i][t], in + 64 * i + t, sizeof(int), pipe);
    pipe.producer_commit();
  }
  for (int i = 0; i < 4; ++i) {
    pipe.consumer_wait();
    sum += tile[i % 2][63 - t];
    pipe.consumer_release();
    if (i < 2) {
      pipe.producer_acquire();
      cuda::memcpy_async(&tile[i][t], in + 64 * (i + 2) + t, sizeof(int), pipe);
      pipe.producer_commit();
    }
  }
  out[t] = sum;
}
extern "C" __global__ void roles(int* out, const int* in) {
  __shared__ int tile[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  const auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  const int t = threadIdx.x & 31;
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      cuda::memcpy_async(&tile[i % 2][t], in + 64 * i + t, sizeof(int), pipe);
      cuda::memcpy_async(&tile[i % 2][t + 32], in + 64 * i + t + 32, sizeof(int), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum += tile[i % 2][31 - t] + tile[i % 2][63 - t];
      pipe.consumer_release();
    }
  }
  if (role == cuda::pipeline_role::consumer) out[t] = sum;
}
