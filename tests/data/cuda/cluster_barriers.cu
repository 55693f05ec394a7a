// SPDX-License-Identifier: Apache-2.0
// The CTAs of a cluster exchange words through distributed shared memory, round by round, behind a
// barrier. All but the last kernel are right; docs/emulator.md says what racecheck reports of them.
//
//   nvcc -arch=sm_90a cluster_barriers.cu -o cluster_barriers
//   compute-sanitizer --tool racecheck ./cluster_barriers
#include <cooperative_groups.h>

#include <cstdio>

namespace cg = cooperative_groups;

enum Kind { whole, by_threads, by_warps, race };

constexpr int threads = 128, ctas = 2;

__device__ void arrive(unsigned barrier, int cta) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(barrier),
      "r"(cta)
      : "memory");
}

__device__ void wait(unsigned barrier, int round) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(barrier),
      "r"(round & 1)
      : "memory");
}

template <Kind kind>
__global__ void __cluster_dims__(ctas, 1, 1) exchange(float* out) {
  __shared__ volatile float words[threads];
  __shared__ unsigned long long barrier;
  cg::cluster_group cluster = cg::this_cluster();
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  const int thread = threadIdx.x;
  const int arrivals = kind == by_threads ? ctas * threads : ctas * threads / 32;
  if (thread == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
  cluster.sync();
  volatile float* there = cluster.map_shared_rank(const_cast<float*>(words), cluster.block_rank() ^ 1);
  float sum = 0;
  int passed = 0;
  for (int round = 0; round < 40; ++round) {
    words[thread] = round;
    for (int side = 0; side < 2; ++side) {  // the words are there; all have read them
      if (kind == whole) cluster.sync();
      if (kind == by_threads)
        for (int cta = 0; cta < ctas; ++cta) arrive(at, cta);
      if (kind == by_warps) {  // two lanes for their warp, one at each CTA
        __syncwarp();
        if (thread % 32 < ctas) arrive(at, thread % 32);
      }
      if (kind == by_threads || kind == by_warps) wait(at, passed++);
      if (side == 0) sum += there[(thread + 32) % threads];
    }
  }
  out[blockIdx.x * threads + thread] = sum;
  cluster.sync();
}

template <Kind kind>
void run(const char* name, float* out) {
  exchange<kind><<<8, threads>>>(out);
  const cudaError_t error = cudaDeviceSynchronize();
  float first[8 * threads];
  cudaMemcpy(first, out, sizeof(first), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (const float each : first) wrong += each != 40 * 39 / 2;
  std::printf("%s: %s, %d wrong sums\n", name, cudaGetErrorString(error), wrong);
}

int main() {
  float* out;
  if (cudaMalloc(&out, 8 * threads * sizeof(float)) != cudaSuccess) return 1;
  run<whole>("barrier.cluster", out);
  run<by_threads>("mbarriers, all threads", out);
  run<by_warps>("mbarriers, a lane for its warp", out);
  run<race>("race", out);
}
