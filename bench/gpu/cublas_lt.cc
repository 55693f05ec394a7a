// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "bench/gpu/cublas.h"
#include "bench/gpu/cublas_words.h"
#include "bench/gpu/library.h"

namespace gpu {

using namespace tartan;

namespace {

// cublasLt.h: attributes of a product and of a preference.
constexpr int transpose_first = 3, transpose_second = 4, first_scale = 17, second_scale = 18,
              fast_accumulation = 25, most_workspace = 1;

struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

// handle, description, alpha, A, its layout, B, its layout, beta, C, its layout, D, its layout,
// algorithm, workspace, its bytes, stream
using Matmul = int (*)(void*, void*, const void*, std::uint64_t, void*, std::uint64_t, void*,
                       const void*, std::uint64_t, void*, std::uint64_t, void*, const void*,
                       std::uint64_t, std::size_t, void*);

bool narrow(Type type) { return type == Type::e4m3 || type == Type::e5m2; }

}  // namespace

// A product in the library's types. Small, and kept until the process ends.
struct CublasLt::Problem {
  Problem(void* library, const kernels::Gemm& product, float alpha, std::uint64_t scale_address)
      : one(product, alpha), zero(product, 0) {
    const Columns first = first_operand(product), second = second_operand(product);
    const auto a = data_type(product.a), b = data_type(product.b), c = data_type(product.c);
    if (!a || !b || !c) return;
    const auto layout = [&](void*& out, int type, int rows, int columns) {
      return call(library, "cublasLtMatrixLayoutCreate", &out, type,
                  static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                  static_cast<std::int64_t>(rows)) == 0;
    };
    const auto set = [&](int attribute, auto value) {
      return call(library, "cublasLtMatmulDescSetAttribute", description, attribute,
                  static_cast<const void*>(&value), sizeof value) == 0;
    };
    good = call(library, "cublasLtMatmulDescCreate", &description, compute_type(product),
                one.type) == 0 &&
           set(transpose_first, int{first.transposed}) &&
           set(transpose_second, int{second.transposed}) &&
           layout(first_layout, *b, first.length, first.count) &&
           layout(second_layout, *a, second.length, second.count) &&
           layout(c_layout, narrow(product.c) ? *data_type(bf16) : *c, product.n, product.m) &&
           layout(d_layout, *c, product.n, product.m);
    if (good && narrow(product.a))
      good = set(fast_accumulation, std::int8_t{1}) && set(first_scale, scale_address) &&
             set(second_scale, scale_address);
  }

  Scale one, zero;
  void *description = nullptr, *first_layout = nullptr, *second_layout = nullptr,
       *c_layout = nullptr, *d_layout = nullptr;
  bool good = false;
};

CublasLt::CublasLt(Device& device, const Stream& stream) : stream_(stream.handle()) {
  if (device.emulated()) return;
  library_ = load_library({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"});
  // The workspace is followed by a 1, the scale of fp8.
  auto memory = device.allocate(workspace_bytes + 256);
  if (!library_ || !memory) return;
  workspace_ = *memory;
  const float one = 1;
  if (!workspace_.write(std::as_bytes(std::span(&one, 1)), workspace_bytes)) return;
  if (call(library_, "cublasLtCreate", &handle_) != 0) handle_ = nullptr;
}

std::string CublasLt::version() const {
  const auto entry = reinterpret_cast<std::size_t (*)()>(dlsym(library_, "cublasLtGetVersion"));
  return entry ? fmt::format("{}", entry()) : "?";
}

std::vector<Multiply> CublasLt::proposals(const kernels::Gemm& product, float alpha,
                                          int count) const {
  if (!found()) return {};
  const auto problem =
      std::make_shared<Problem>(library_, product, alpha, workspace_.address() + workspace_bytes);
  void* preference = nullptr;
  if (!problem->good || call(library_, "cublasLtMatmulPreferenceCreate", &preference) != 0)
    return {};
  const auto bytes = static_cast<std::uint64_t>(workspace_bytes);
  (void)call(library_, "cublasLtMatmulPreferenceSetAttribute", preference, most_workspace,
             static_cast<const void*>(&bytes), sizeof bytes);
  std::vector<Heuristic> found(static_cast<std::size_t>(count));
  int number = 0;
  const int code = call(library_, "cublasLtMatmulAlgoGetHeuristic", handle_, problem->description,
                        problem->first_layout, problem->second_layout, problem->c_layout,
                        problem->d_layout, preference, count, found.data(), &number);
  (void)call(library_, "cublasLtMatmulPreferenceDestroy", preference);
  if (code != 0) return {};
  const auto matmul = reinterpret_cast<Matmul>(dlsym(library_, "cublasLtMatmul"));
  std::vector<Multiply> out;
  for (int i = 0; matmul && i < number; ++i)
    if (const Heuristic& way = found[static_cast<std::size_t>(i)]; way.state == 0)
      out.push_back([=, this](const Operands& at) {
        return matmul(handle_, problem->description, problem->one.address(), at.b,
                      problem->first_layout, at.a, problem->second_layout, problem->zero.address(),
                      at.c, problem->c_layout, at.c, problem->d_layout, way.algorithm,
                      workspace_.address(), workspace_bytes, stream_) == 0;
      });
  return out;
}

}  // namespace gpu
