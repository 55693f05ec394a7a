// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/cublas.h"

#include <fmt/format.h>

#include "bench/gpu/cublas_words.h"
#include "bench/gpu/library.h"

namespace gpu {

using namespace tartan;

namespace {

// cublasGemmEx: handle; transposed first, second; m, n, k; alpha; first, its type, line; second,
// the same; beta; C, its type, line; compute type; algorithm
using Gemm = int (*)(void*, int, int, int, int, int, const void*, std::uint64_t, int, int,
                     std::uint64_t, int, int, const void*, std::uint64_t, int, int, int, int);
constexpr int default_algorithm = -1;  // CUBLAS_GEMM_DEFAULT

}  // namespace

Cublas::Cublas(Device& device, const Stream& stream) {
  if (device.emulated()) return;
  library_ = load_library({"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
  if (!library_ || call(library_, "cublasCreate_v2", &handle_) != 0) return;
  if (call(library_, "cublasSetStream_v2", handle_, stream.handle()) != 0) return;
  if (auto memory = device.allocate(workspace_bytes)) {
    workspace_ = *memory;
    (void)call(library_, "cublasSetWorkspace_v2", handle_, workspace_.address(), workspace_bytes);
  }
  gemm_ = dlsym(library_, "cublasGemmEx");
}

std::string Cublas::version() const {
  int number = 0;
  if (call(library_, "cublasGetVersion_v2", handle_, &number) != 0) return "?";
  return fmt::format("{}", number);
}

Multiply Cublas::multiply(const kernels::Gemm& product, float alpha) const {
  const auto a = data_type(product.a), b = data_type(product.b), c = data_type(product.c);
  if (!found() || !a || !b || !c) return {};
  return [=, gemm = reinterpret_cast<Gemm>(gemm_), handle = handle_](const Operands& at) {
    const Columns first = first_operand(product), second = second_operand(product);
    const Scale one(product, alpha), zero(product, 0);
    return gemm(handle, first.transposed, second.transposed, product.n, product.m, product.k,
                one.address(), at.b, *b, first.length, at.a, *a, second.length, zero.address(),
                at.c, *c, product.n, compute_type(product), default_algorithm) == 0;
  };
}

}  // namespace gpu
