// SPDX-License-Identifier: Apache-2.0
#include "bench/latency/cuda_sources.h"

namespace latency {

const char* const one_mma_source = R"(
__device__ unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

extern "C" __global__ void one_mma(const unsigned short* A, const unsigned short* B, float* D) {
  __shared__ __align__(128) unsigned short sa[16 * 16], sb[16 * 8];
  const int lane = threadIdx.x;
  ((uint4*)sa)[lane] = ((const uint4*)A)[lane];
  if (lane < 16) ((uint4*)sb)[lane] = ((const uint4*)B)[lane];
  __syncthreads();
  unsigned a[4], b[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(shared_address(sa + lane % 16 * 16 + lane / 16 * 8)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(shared_address(sb + lane % 8 * 16 + lane / 8 % 2 * 8)));
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  float* to = D + lane / 4 * 8 + lane % 4 * 2;
  *(float2*)to = make_float2(d[0], d[1]);
  *(float2*)(to + 8 * 8) = make_float2(d[2], d[3]);
}
)";

const char* const gemm_source = R"(
constexpr int tile = 128, threads = 256, stages = 3, stage_bytes = 2 * tile * 64;

// A row of a stage is 32 elements, 4 chunks of 16 bytes, swizzled.
__device__ unsigned place(int row, int chunk) { return row * 64 + (chunk ^ (row >> 1 & 3)) * 16; }

// 128 rows of 32 elements of a matrix whose rows are contiguous; zeros beyond its edges.
__device__ void fetch(unsigned to, const unsigned short* from, int first, int k, int rows, int depth) {
  for (int i = threadIdx.x; i < tile * 4; i += threads) {
    const int row = i / 4, chunk = i % 4;
    const bool inside = first + row < rows && k + chunk * 8 < depth;
    const unsigned short* at = inside ? from + (long long)(first + row) * depth + k + chunk * 8 : from;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to + place(row, chunk)), "l"(at), "r"(inside ? 16 : 0));
  }
}

__device__ void load(unsigned (&r)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

__device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2 x 4 warps, 64 x 32 elements of C each.
extern "C" __global__ void __launch_bounds__(threads)
gemm(int m, int n, int k, const unsigned short* A, const unsigned short* B, float* C) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = (unsigned)__cvta_generic_to_shared(memory);
  const int wide = (n + tile - 1) / tile, row0 = blockIdx.x / wide * tile, col0 = blockIdx.x % wide * tile;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp / 4 * 64, warp_col = warp % 4 * 32;
  const int steps = (k + 31) / 32;
  const auto fill = [&](int step) {
    if (step < steps) {
      const unsigned stage = shared + step % stages * stage_bytes;
      fetch(stage, A, row0, step * 32, m, k);
      fetch(stage + tile * 64, B, col0, step * 32, n, k);
    }
    asm volatile("cp.async.commit_group;");
  };
  float sum[4][4][4] = {};
  for (int step = 0; step < stages - 1; ++step) fill(step);
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" :: "n"(stages - 2) : "memory");
    __syncthreads();
    fill(step + stages - 1);
    const unsigned a_tile = shared + step % stages * stage_bytes, b_tile = a_tile + tile * 64;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      unsigned a[4][4], b[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        load(a[i], a_tile + place(warp_row + i * 16 + lane % 16, part * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 2; ++j)
        load(b[j], b_tile + place(warp_col + j * 16 + lane / 16 * 8 + lane % 8, part * 2 + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row0 + warp_row + i * 16 + half * 8 + lane / 4;
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2;
        if (row < m && col < n)
          *(float2*)(C + (long long)row * n + col) = make_float2(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
      }
}
)";

const char* const attention_source = R"(
constexpr int threads = 128, dim = 64, block_queries = 128, step_keys = 64;

// A row is 64 elements, 8 chunks of 16 bytes, swizzled.
__device__ unsigned place(int row, int chunk) { return row * 128 + (chunk ^ (row & 7)) * 16; }

__device__ void fetch(unsigned to, const unsigned short* from, int first, int count, int rows) {
  for (int i = threadIdx.x; i < count * 8; i += threads) {
    const int row = i / 8, chunk = i % 8;
    const bool inside = first + row < rows;
    const unsigned short* at = inside ? from + (long long)(first + row) * dim + chunk * 8 : from;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to + place(row, chunk)), "l"(at), "r"(inside ? 16 : 0));
  }
}

__device__ void load(unsigned (&r)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
__device__ void load_transposed(unsigned (&r)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

__device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ float power_of_2(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
__device__ float logarithm_2(float x) {
  float out;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
__device__ unsigned halves(float low, float high) {
  unsigned out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
__device__ float over_four_lanes(float x, bool maximum) {
#pragma unroll
  for (int step = 1; step <= 2; step *= 2) {
    const float other = __shfl_xor_sync(0xffffffff, x, step);
    x = maximum ? fmaxf(x, other) : x + other;
  }
  return x;
}

// 4 warps, 32 queries each.
extern "C" __global__ void __launch_bounds__(threads)
attention(int queries, int keys, int heads, int kv_heads, float scale, const unsigned short* Q,
          const unsigned short* K, const unsigned short* V, unsigned short* O, float* LSE) {
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned q_tile = (unsigned)__cvta_generic_to_shared(memory);
  const unsigned k_tile = q_tile + block_queries * 128, v_tile = k_tile + 2 * step_keys * 128;
  const int first = blockIdx.x * block_queries, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long head = (long long)blockIdx.z * heads + blockIdx.y;
  const long long kv_head = (long long)blockIdx.z * kv_heads + blockIdx.y / (heads / kv_heads);
  Q += head * queries * dim, O += head * queries * dim, LSE += head * queries;
  K += kv_head * keys * dim, V += kv_head * keys * dim;
  const int steps = (keys + step_keys - 1) / step_keys;
  const auto fill = [&](int step) {
    if (step < steps) {
      fetch(k_tile + step % 2 * step_keys * 128, K, step * step_keys, step_keys, keys);
      fetch(v_tile + step % 2 * step_keys * 128, V, step * step_keys, step_keys, keys);
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch(q_tile, Q, first, block_queries, queries);
  fill(0);
  const float infinity = __int_as_float(0x7f800000), factor = scale * 1.4426950408889634f;
  float out[2][8][4] = {}, total[2][2] = {}, largest[2][2] = {{-infinity, -infinity}, {-infinity, -infinity}};
  for (int step = 0; step < steps; ++step) {
    fill(step + 1);
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    const unsigned k_now = k_tile + step % 2 * step_keys * 128, v_now = v_tile + step % 2 * step_keys * 128;
    float score[2][8][4] = {};
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      unsigned q[2][4], k[4][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) load(q[i], q_tile + place(warp * 32 + i * 16 + lane % 16, part * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 4; ++j)
        load(k[j], k_now + place(j * 16 + lane / 16 * 8 + lane % 8, part * 2 + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) multiply(score[i][j], q[i], k[j / 2][j % 2 * 2], k[j / 2][j % 2 * 2 + 1]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float most = largest[i][half];
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& x = score[i][j][2 * half + e];
            x = step * step_keys + j * 8 + lane % 4 * 2 + e < keys ? x * factor : -infinity;
            most = fmaxf(most, x);
          }
        most = over_four_lanes(most, true);
        const float correction = power_of_2(largest[i][half] - most);
        largest[i][half] = most;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& x = score[i][j][2 * half + e];
            x = power_of_2(x - most);
            sum += x;
            out[i][j][2 * half + e] *= correction;
          }
        total[i][half] = total[i][half] * correction + sum;
      }
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      unsigned v[4][4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        load_transposed(v[j], v_now + place(part * 16 + lane / 8 % 2 * 8 + lane % 8, j * 2 + lane / 16));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float(&x)[4] = score[i][2 * part], (&y)[4] = score[i][2 * part + 1];
        const unsigned p[4] = {halves(x[0], x[1]), halves(x[2], x[3]), halves(y[0], y[1]), halves(y[2], y[3])};
#pragma unroll
        for (int j = 0; j < 8; ++j) multiply(out[i][j], p, v[j / 2][j % 2 * 2], v[j / 2][j % 2 * 2 + 1]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = over_four_lanes(total[i][half], false);
      const int row = first + warp * 32 + i * 16 + half * 8 + lane / 4;
      if (row >= queries) continue;
#pragma unroll
      for (int j = 0; j < 8; ++j)
        *(unsigned*)(O + (long long)row * dim + j * 8 + lane % 4 * 2) =
            halves(out[i][j][2 * half] / sum, out[i][j][2 * half + 1] / sum);
      if (lane % 4 == 0) LSE[row] = (largest[i][half] + logarithm_2(sum)) * 0.6931471805599453f;
    }
}
)";

}  // namespace latency
