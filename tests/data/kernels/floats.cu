// SPDX-License-Identifier: Apache-2.0
// Floating point: rows, stencils, halves, doubles.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// One warp a row.
extern "C" __global__ void softmax(const float* in, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float largest = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < columns; i += 32) largest = fmaxf(largest, row[i]);
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
  for (int i = threadIdx.x; i < columns; i += 32) sum += __expf(row[i] - largest);
  sum = warp_sum(sum);
  for (int i = threadIdx.x; i < columns; i += 32) out[blockIdx.x * columns + i] = __expf(row[i] - largest) / sum;
}

extern "C" __global__ void layer_norm(const float* in, const float* scale, float* out, int columns, float epsilon) {
  const float* row = in + blockIdx.x * columns;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < columns; i += 32) sum += row[i];
  const float mean = warp_sum(sum) / columns;
  for (int i = threadIdx.x; i < columns; i += 32) squares += (row[i] - mean) * (row[i] - mean);
  const float factor = rsqrtf(warp_sum(squares) / columns + epsilon);
  for (int i = threadIdx.x; i < columns; i += 32) out[blockIdx.x * columns + i] = (row[i] - mean) * factor * scale[i];
}

// Five points; the rim is copied.
extern "C" __global__ void stencil(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int i = y * width + x;
  const bool rim = x == 0 || y == 0 || x == width - 1 || y == height - 1;
  out[i] = rim ? in[i] : 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

extern "C" __global__ void halves(const __half2* a, const __half2* b, __half2* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half2 sum = __hfma2(a[i], b[i], __float2half2_rn(0.5f));
  out[3 * i] = __hmax2(sum, __hsub2(a[i], b[i]));
  out[3 * i + 1] = __hlt2(a[i], b[i]);
  out[3 * i + 2] = __hmul2_sat(h2sqrt(__habs2(a[i])), b[i]);
}

extern "C" __global__ void brain_floats(const float* in, __nv_bfloat16* out, float* back, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __nv_bfloat162 pair = __floats2bfloat162_rn(in[2 * i], in[2 * i + 1]);
  const __nv_bfloat162 product = __hfma2(pair, pair, pair);
  out[2 * i] = product.x;
  out[2 * i + 1] = product.y;
  back[i] = __bfloat162float(product.x) - __bfloat162float(pair.y);
}

extern "C" __global__ void doubles(const float* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double x = in[i], y = in[(i + 1) % n];
  out[4 * i] = fma(x, y, 1e-30);
  out[4 * i + 1] = sqrt(fabs(x)) / (1 + y * y);
  out[4 * i + 2] = floor(x * 1000) - trunc(y);
  out[4 * i + 3] = fmin(x, y) * static_cast<double>(static_cast<long long>(x * 1e6));
}

extern "C" __global__ void roundings(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i], y = in[(i + 1) % n];
  float* o = out + 8 * i;
  o[0] = __fadd_rz(x, y);
  o[1] = __fmul_ru(x, y);
  o[2] = __fmaf_rd(x, y, x);
  o[3] = __fdiv_rn(x, y);
  o[4] = __fsqrt_ru(fabsf(x));
  o[5] = rintf(x) + ceilf(y);
  o[6] = __int2float_rz(__float2int_rn(x * 1e9f));
  o[7] = __uint_as_float(__float_as_uint(x) ^ 0x80000000u) + copysignf(y, x);
}
