// SPDX-License-Identifier: Apache-2.0
// bench/gpu/cublas_words.h - a product in the enumerators of cuBLAS (library_types.h,
// cublas_api.h).
//
// cuBLAS is column-major: it computes C^T (n x m) = B^T * A^T, so that its first operand is B.
#pragma once

#include <optional>

#include "tartan/kernels/gemm.h"

namespace gpu {

/// cudaDataType_t.
inline std::optional<int> data_type(tartan::Type type) {
  using tartan::Type;
  switch (type) {
    case Type::f32:
    case Type::tf32: return 0;
    case Type::f64: return 1;
    case Type::f16: return 2;
    case Type::s8: return 3;
    case Type::s32: return 10;
    case Type::bf16: return 14;
    case Type::e4m3: return 28;
    case Type::e5m2: return 29;
    default: return {};
  }
}

/// cublasComputeType_t: 32F; 32F_FAST_TF32 of f32 in memory; 64F; 32I.
inline int compute_type(const tartan::kernels::Gemm& product) {
  using tartan::Type;
  if (product.accumulator == Type::s32) return 72;
  if (product.accumulator == Type::f64) return 70;
  return product.a == Type::f32 || product.a == Type::tf32 ? 77 : 68;
}

/// A column-major matrix; `transposed` (CUBLAS_OP_T) for the product.
struct Columns {
  int length, count;
  bool transposed;
};

/// Of B (k x n): cuBLAS's first operand, n x k.
inline Columns first_operand(const tartan::kernels::Gemm& product) {
  if (product.b_major == tartan::Major::col) return {product.k, product.n, true};
  return {product.n, product.k, false};
}

/// Of A (m x k): its second, k x m.
inline Columns second_operand(const tartan::kernels::Gemm& product) {
  if (product.a_major == tartan::Major::row) return {product.k, product.m, false};
  return {product.m, product.k, true};
}

/// alpha and beta in the library's scale type: s32, f64 or f32.
struct Scale {
  Scale(const tartan::kernels::Gemm& product, float alpha)
      : integer(static_cast<int>(alpha)),
        wide(alpha),
        single(alpha),
        type(product.c == tartan::Type::s32   ? 10
             : product.c == tartan::Type::f64 ? 1
                                              : 0) {}
  int integer;
  double wide;
  float single;
  int type;  // cudaDataType_t
  const void* address() const {
    return type == 10  ? static_cast<const void*>(&integer)
           : type == 1 ? static_cast<const void*>(&wide)
                       : &single;
  }
};

}  // namespace gpu
