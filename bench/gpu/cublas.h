// SPDX-License-Identifier: Apache-2.0
// bench/gpu/cublas.h - calls cuBLAS and cuBLASLt for comparison. Found with dlopen; declares the
// few entry points that it uses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tartan/kernels/gemm.h"
#include "tartan/runtime/device.h"

namespace gpu {

struct Operands {
  std::uint64_t a = 0, b = 0, c = 0;
};

/// Enqueues C = alpha * A * B on the library's stream; false: the library has no such product.
using Multiply = std::function<bool(const Operands&)>;

/// Workspace that both libraries may use.
inline constexpr std::size_t workspace_bytes = 32 << 20;

class Cublas {
 public:
  /// Works on `stream`. Empty if the library cannot be found or initialized.
  explicit Cublas(tartan::Device& device, const tartan::Stream& stream);
  bool found() const { return gemm_ != nullptr; }
  std::string version() const;
  /// Uses m, n, k, types and major orders of `product`, and alpha if it has one. Empty if the
  /// library does not support the types.
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
  /// The algorithms that the library's heuristics propose, best first, at most `count`. fp8 is
  /// accumulated by the tensor cores alone (FAST_ACCUM).
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
