// SPDX-License-Identifier: Apache-2.0
// Bytes, eight-bit floats, and atomics.
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void to_fp8(const float* in, __nv_fp8x2_e4m3* e4m3, __nv_fp8x2_e5m2* e5m2, __half2* back, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float2 pair = make_float2(in[2 * i] * 64, in[2 * i + 1] * 4096);
  e4m3[i] = __nv_fp8x2_e4m3(pair);
  e5m2[i] = __nv_fp8x2_e5m2(pair);
  back[i] = __hadd2(static_cast<__half2>(e4m3[i]), static_cast<__half2>(e5m2[i]));
}

extern "C" __global__ void dot_bytes(const int* a, const int* b, int* out, int words) {
  int sum = 0;
  for (int i = 0; i < words; ++i) sum = __dp4a(a[threadIdx.x * words + i], b[i], sum);
  unsigned positive = 0;
  for (int i = 0; i < words; ++i) positive = __dp4a(static_cast<unsigned>(a[threadIdx.x * words + i]), static_cast<unsigned>(b[i]), positive);
  out[2 * threadIdx.x] = sum;
  out[2 * threadIdx.x + 1] = static_cast<int>(positive) + __dp2a_lo(a[threadIdx.x], b[0], sum);
}

extern "C" __global__ void wide_atomics(const unsigned long long* in, unsigned long long* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&out[0], in[i]);
    atomicMax(&out[1], in[i]);
    atomicMin(&out[2], in[i]);
    atomicXor(&out[3], in[i]);
    unsigned long long seen = out[4], wanted;  // a sum modulo 1000003, one exchange at a time
    do {
      wanted = seen;
      seen = atomicCAS(&out[4], wanted, (wanted + in[i] % 1000003) % 1000003);
    } while (seen != wanted);
  }
}

// A ticket a thread: every number is drawn once. Their order is nobody's business, their marks are.
extern "C" __global__ void tickets(unsigned* next, unsigned char* drawn) {
  const unsigned ticket = atomicInc(next, 0xFFFF);
  drawn[ticket] = 1;
}

extern "C" __global__ void saturate(const int* in, signed char* out, unsigned short* wide, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int x = in[i] >> 18;
  out[i] = static_cast<signed char>(max(-128, min(127, x)));
  asm("{.reg .u16 t; cvt.sat.u16.s32 t, %1; mov.u16 %0, t;}" : "=h"(wide[i]) : "r"(x));
}
