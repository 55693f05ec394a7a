// SPDX-License-Identifier: Apache-2.0
// bench/gpu/cublas.h - cuBLAS and cuBLASLt as far as products are compared with theirs. Found with
// dlopen; own declarations of the few entry points used.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tartan/dsl/kernels/gemm.h"
#include "tartan/runtime/device.h"

namespace gpu {

struct Operands {
  std::uint64_t a = 0, b = 0, c = 0;
};

/// Puts C = alpha * A * B on the library's stream; false: the library has no such product.
using Multiply = std::function<bool(const Operands&)>;

/// Memory that both libraries may use.
inline constexpr std::size_t workspace_bytes = 32 << 20;

class Cublas {
 public:
  /// Works on `stream`. Empty where the library cannot be found or begins with a failure.
  explicit Cublas(tartan::Device& device, const tartan::Stream& stream);
  bool found() const { return gemm_ != nullptr; }
  std::string version() const;
  /// m, n, k, types and majors of `product` count, and alpha if it has one. Empty where the types
  /// are none of the library's.
  Multiply multiply(const tartan::kernels::Gemm& product, float alpha) const;

 private:
  void* library_ = nullptr;
  void* handle_ = nullptr;
  void* gemm_ = nullptr;
  tartan::Buffer workspace_;
};

class CublasLt {
 public:
  explicit CublasLt(tartan::Device& device, const tartan::Stream& stream);
  bool found() const { return handle_ != nullptr; }
  std::string version() const;
  /// The ways that the library's heuristics propose, best first, at most `count`. Sums of fp8 are
  /// the tensor cores' own (FAST_ACCUM).
  std::vector<Multiply> proposals(const tartan::kernels::Gemm& product, float alpha,
                                  int count) const;

 private:
  struct Problem;
  void* library_ = nullptr;
  void* handle_ = nullptr;
  void* stream_ = nullptr;
  tartan::Buffer workspace_;
};

}  // namespace gpu
