// SPDX-License-Identifier: Apache-2.0
// Matrix instructions as CUDA C++ has them: mma.h and inline PTX.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

template <typename T, typename Acc, int M, int N, int K>
__device__ void product(const T* a, const T* b, Acc* d, int steps) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Acc> acc;
  wmma::fill_fragment(acc, Acc(0));
  for (int i = 0; i < steps; ++i) {
    wmma::load_matrix_sync(fa, a + i * K, 16 * K);
    wmma::load_matrix_sync(fb, b + i * K, 16 * K);
    wmma::mma_sync(acc, fa, fb, acc);
  }
  wmma::store_matrix_sync(d, acc, N, wmma::mem_row_major);
}

__global__ void wmma_half(const half* a, const half* b, float* d, int steps) { product<half, float, 16, 16, 16>(a, b, d, steps); }
__global__ void wmma_half_tall(const half* a, const half* b, half* d, int steps) { product<half, half, 32, 8, 16>(a, b, d, steps); }
__global__ void wmma_half_wide(const half* a, const half* b, float* d) { product<half, float, 8, 32, 16>(a, b, d, 4); }
__global__ void wmma_bytes(const signed char* a, const signed char* b, int* d, int steps) { product<signed char, int, 16, 16, 16>(a, b, d, steps); }
__global__ void wmma_scaled(const half* a, half* d) {
  __shared__ half tile[2][16 * 24];
  for (int i = threadIdx.x; i < 16 * 24; i += blockDim.x) tile[0][i] = a[i], tile[1][i] = a[i + 1];
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> acc;
  wmma::load_matrix_sync(fa, tile[0], 24);
  wmma::load_matrix_sync(fb, tile[1], 24);
  wmma::load_matrix_sync(acc, d, 16, wmma::mem_col_major);
  wmma::mma_sync(acc, fa, fb, acc);
  for (int i = 0; i < acc.num_elements; ++i) acc.x[i] = __hmul(acc.x[i], __float2half(0.5f));
  wmma::store_matrix_sync(d, acc, 16, wmma::mem_row_major);
}
#if __CUDA_ARCH__ >= 800
__global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d, int steps) { product<__nv_bfloat16, float, 16, 16, 16>(a, b, d, steps); }
__global__ void wmma_double(const double* a, const double* b, double* d, int steps) { product<double, double, 8, 8, 4>(a, b, d, steps); }
#endif

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// A warp specialised block: the first warp loads, all multiply.
__global__ void inline_mma(const half* a, float* d) {
  __shared__ __align__(16) half tile[16 * 16];
  if (threadIdx.x < 32)
    for (int i = threadIdx.x; i < 256; i += 32) tile[i] = a[i];
  __syncthreads();
  unsigned r[4];
  const unsigned at = shared_address(tile + (threadIdx.x % 16) * 16 + (threadIdx.x % 32) / 16 * 8);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  float c[4] = {};
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[0]), "r"(r[2]));
#else
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]));
#endif
  for (int i = 0; i < 4; ++i) d[threadIdx.x * 4 + i] = c[i];
}

__global__ void inline_integers(const unsigned* a, int* d) {
  int c[2] = {1, 2};
  asm volatile("{\n\t.reg .b32 t;\n\tmov.b32 t, %2;\n\tmma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32 {%0,%1}, {t}, {%3}, {%0,%1};\n\t}"
               : "+r"(c[0]), "+r"(c[1]) : "r"(a[threadIdx.x]), "r"(a[threadIdx.x + 32]));
  d[2 * threadIdx.x] = c[0], d[2 * threadIdx.x + 1] = c[1];
}

#if __CUDA_ARCH__ >= 800
__global__ void staged(const half* in, float* out) {
  __shared__ __align__(128) half tile[2][32 * 8];
  float sum = 0;
  for (int stage = 0; stage < 4; ++stage) {
    const unsigned to = shared_address(&tile[stage % 2][threadIdx.x * 8]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + (stage * 32 + threadIdx.x) * 8));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncwarp();
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(to) : "memory");
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(r));
    sum += __half2float(__ushort_as_half(r & 0xffff));
  }
  out[threadIdx.x] = sum;
}
__global__ void sparse(const unsigned* a, float* d) {
  float c[4] = {};
  asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x1;"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]));
  d[threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}
#endif
#if __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
__global__ void fp8(const unsigned* a, float* d) {
  float c[4] = {};
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  d[threadIdx.x] = c[0];
}
#endif
