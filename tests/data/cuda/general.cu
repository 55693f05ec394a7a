// SPDX-License-Identifier: Apache-2.0
// Everything else that compiled kernels have: printf, switch, local arrays, calls, constants, atomics, small types, textures of control flow.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
namespace cg = cooperative_groups;

__constant__ float weights[16] = {1, 2, 3};
__device__ int counter = 7;
__device__ const char* message = "constant";
extern __shared__ float dynamic[];

__global__ void say(int n) { printf("thread %d of %d: %f %s\n", threadIdx.x, n, 1.5, message); }
__global__ void choose(int* p, int n) {
  switch (n & 15) {
    case 0: p[0] = 1; break;
    case 1: p[1] = n; break;
    case 2: p[2] = n * n; break;
    case 3: p[3] = n >> 2; break;
    case 4: p[4] = ~n; break;
    case 5: p[5] = n / 3; break;
    case 6: p[6] = __popc(n); break;
    case 9: p[7] = __clz(n); break;
    default: p[8] = n % 7;
  }
}
__global__ void local_array(float* p, int n) {
  float a[32];
  for (int i = 0; i < 32; ++i) a[i] = p[i] * i;
  p[n] = a[n & 31] + a[(n * 7) & 31];
}
__device__ __noinline__ float callee(float x, int n) { return n > 0 ? x * weights[n & 15] : x; }
__device__ __noinline__ int recursive(int n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }
__global__ void calls(float* p, int n) { p[n] = callee(p[n], n) + recursive(n); }
using Function = float (*)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float thrice(float x) { return 3 * x; }
__device__ Function functions[] = {twice, thrice};
__global__ void indirect(float* p, int n) { p[n] = functions[n & 1](p[n]); }
template <typename T, int N>
__global__ void unrolled(T* p) {
#pragma unroll
  for (int i = 0; i < N; ++i) p[i * blockDim.x + threadIdx.x] += T(i);
}
template __global__ void unrolled<float, 4>(float*);
template __global__ void unrolled<double, 3>(double*);
template __global__ void unrolled<short, 5>(short*);
__global__ void dynamic_shared(float* p, int n) {
  dynamic[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) dynamic[threadIdx.x] += dynamic[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) p[n] = dynamic[0];
}
__global__ void atomics(int* p, float* f, unsigned long long* u) {
  atomicAdd(p, 1), atomicMax(p + 1, threadIdx.x), atomicCAS(p + 2, 3, 4), atomicAdd(f, 1.5f), atomicAdd(u, 1ull), atomicExch(&counter, 5);
  __threadfence();
}
__global__ void halves(__half2* h, __nv_bfloat16* b, __nv_fp8_e4m3* q, float* f) {
  const int i = threadIdx.x;
  h[i] = __hfma2(h[i], h[i + 1], h[i + 2]);
  b[i] = __float2bfloat16(__bfloat162float(b[i]) + f[i]);
  q[i] = __nv_fp8_e4m3(f[i]);
  f[i] = float(q[i + 1]);
}
__global__ void reduce(float* p) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  const float sum = cg::reduce(tile, p[block.thread_rank()], cg::plus<float>());
  if (tile.thread_rank() == 0) atomicAdd(p, sum);
  block.sync();
}
__global__ void shuffles(int* p) {
  int x = p[threadIdx.x];
  for (int i = 16; i; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  if (__any_sync(~0u, x > 3)) p[threadIdx.x] = __ballot_sync(~0u, x & 1) + __match_any_sync(~0u, x);
}
__global__ void floats(double* d, float* f) {
  const int i = threadIdx.x;
  d[i] = sqrt(d[i]) + sin(d[i]), f[i] = __expf(f[i]) + rsqrtf(f[i]) + fmaf(f[i], 2, 3) + __logf(f[i]) + (isnan(f[i]) ? 1 : 0);
}
struct Parameters {
  float4 v;
  int n[5];
};
__global__ void structure(Parameters p, float4* out) { out[p.n[threadIdx.x % 5]] = p.v; }
__global__ void __launch_bounds__(256, 2) bounds(int4* p) {
  int4 x = p[threadIdx.x];
  x.x = min(x.x, x.y), x.z = __byte_perm(x.z, x.w, 0x3210), x.w = __funnelshift_l(x.x, x.y, 5);
  p[threadIdx.x] = x;
  if (x.x == 77) __trap();
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p st.global.s32 [%1], %0; }" ::"r"(x.y), "l"(p) : "memory");
}
__global__ void clocks(long long* p) { p[threadIdx.x] = clock64() + blockIdx.y * gridDim.z; }
