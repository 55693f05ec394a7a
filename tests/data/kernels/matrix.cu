// SPDX-License-Identifier: Apache-2.0
// Matrix products: wmma, and mma.sync fed by cp.async and ldmatrix.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// C = A * B, a warp a tile of M x N; A by rows, B by columns.
template <typename In, typename Element, typename Out, int M, int N, int K>
__device__ void product(const Element* a, const Element* b, Out* c, int n, int k) {
  const int row = blockIdx.y * M, column = blockIdx.x * N;
  wmma::fragment<wmma::matrix_a, M, N, K, In, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, M, N, K, In, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, M, N, K, Out> sum;
  wmma::fill_fragment(sum, Out(0));
  for (int i = 0; i < k; i += K) {
    wmma::load_matrix_sync(left, a + row * k + i, k);
    wmma::load_matrix_sync(right, b + column * k + i, k);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void wmma_half(const half* a, const half* b, float* c, int n, int k) {
  product<half, half, float, 16, 16, 16>(a, b, c, n, k);
}
extern "C" __global__ void wmma_half_wide(const half* a, const half* b, half* c, int n, int k) {
  product<half, half, half, 8, 32, 16>(a, b, c, n, k);
}
extern "C" __global__ void wmma_bytes(const signed char* a, const signed char* b, int* c, int n, int k) {
  product<signed char, signed char, int, 32, 8, 16>(a, b, c, n, k);
}
extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c, int n, int k) {
  product<wmma::precision::tf32, float, float, 16, 16, 8>(a, b, c, n, k);
}
extern "C" __global__ void wmma_double(const double* a, const double* b, double* c, int n, int k) {
  product<double, double, double, 8, 8, 4>(a, b, c, n, k);
}

__device__ __forceinline__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// A warp computes 16 x 8 of C; 16 columns of A and B a step, two steps in flight.
extern "C" __global__ void staged_gemm(const half* a, const half* b, float* c, int n, int k) {
  __shared__ alignas(128) half left[2][16][16], right[2][8][16];
  const int lane = threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 8;
  const auto fetch = [&](int stage, int at) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&left[stage][lane / 2][lane % 2 * 8])),
                 "l"(a + (row + lane / 2) * k + at + lane % 2 * 8));
    if (lane < 16)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(&right[stage][lane / 2][lane % 2 * 8])),
                   "l"(b + (column + lane / 2) * k + at + lane % 2 * 8));
    asm volatile("cp.async.commit_group;");
  };
  float sum[4] = {};
  fetch(0, 0);
  for (int i = 0; i < k; i += 16) {
    const int stage = i / 16 % 2;
    if (i + 16 < k) fetch(1 - stage, i + 16);
    else asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    unsigned x[4], y[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_address(&left[stage][lane % 16][lane / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(shared_address(&right[stage][lane % 8][lane / 8 % 2 * 8])));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) c[(row + lane / 4 + i / 2 * 8) * n + column + lane % 4 * 2 + i % 2] = sum[i];
}

// Eight-bit floats: one product of 16 x 8 x 32.
extern "C" __global__ void fp8_product(const unsigned* a, const unsigned* b, float* c) {
  const int lane = threadIdx.x;
  float* d = c + 4 * lane;
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
               : "r"(a[lane]), "r"(a[lane + 32]), "r"(a[lane + 64]), "r"(a[lane + 96]), "r"(b[lane]), "r"(b[lane + 32]), "f"(0.5f));
}
