// SPDX-License-Identifier: Apache-2.0
// Half of a block writes what all read behind __syncthreads(), step by step, in two places in turn.
// All but the last kernel are right; docs/emulator.md says what racecheck reports of them.
//
//   nvcc -arch=sm_90a two_barriers.cu -o two_barriers && compute-sanitizer --tool racecheck ./two_barriers
#include <cstdio>

enum Kind { plain, of_half, arrival, of_all, race };

template <Kind kind>
__global__ void steps(float* out) {
  __shared__ volatile float words[2][128];
  const int thread = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 40; ++i) {
    __nanosleep((thread / 32 * 37 + i * 13) % 97 * 10);  // warps come in any order
    if (thread < 128) {
      if (kind == of_half) asm volatile("bar.sync 1, 128;" ::: "memory");
      if (kind == arrival || kind == of_all) asm volatile("bar.sync 1, 256;" ::: "memory");
      words[i % 2][thread] = i;
    } else {
      if (kind == arrival) asm volatile("bar.arrive 1, 256;" ::: "memory");
      if (kind == of_all) asm volatile("bar.sync 1, 256;" ::: "memory");
    }
    if (kind != race) __syncthreads();
    sum += words[i % 2][thread % 128];
  }
  out[thread] = sum;
}

template <Kind kind>
void run(const char* name, float* out) {
  steps<kind><<<8, 256>>>(out);
  std::printf("%s: %s\n", name, cudaGetErrorString(cudaDeviceSynchronize()));
}

int main() {
  float* out;
  if (cudaMalloc(&out, 1024) != cudaSuccess) return 1;
  run<plain>("plain", out);
  run<of_half>("half", out);
  run<arrival>("arrival", out);
  run<of_all>("all", out);
  run<race>("race", out);
}
