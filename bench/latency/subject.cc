// SPDX-License-Identifier: Apache-2.0
#include "bench/latency/subject.h"

#include <algorithm>
#include <memory>

#include "bench/latency/cuda_sources.h"

namespace latency {
namespace {

using namespace tartan;

constexpr Arch ampere{80, 0}, hopper{90, 'a'};

Kernel one_mma() {
  return kernel("one_mma", {.block = 32},
                [](Builder& k) {
                  auto a = k.global("A", f16, row_major(16, 16));
                  auto b = k.global("B", f16, col_major(16, 8));
                  auto d = k.global("D", f32, row_major(16, 8));
                  auto sa = k.shared("sa", f16, a.layout());
                  auto sb = k.shared("sb", f16, b.layout());
                  k.copy(a, sa);
                  k.copy(b, sb);
                  k.barrier();
                  auto fa = k.load(operand_a(m16n8k16, f16), sa);
                  auto fb = k.load(operand_b(m16n8k16, f16), sb);
                  k.store(d, k.mma(fa, fb, zero(f32)));
                })
      .keyed("latency one_mma revision=1");
}

// Allocates what a problem needs, and remembers the first failure.
class Memory {
 public:
  explicit Memory(Device& device) : device_(device) {}

  /// Elements that are all `value`.
  template <typename T>
  Buffer filled(std::size_t count, T value) {
    auto buffer = device_.allocate(count * sizeof(T));
    if (buffer)
      if (Status status = buffer->write(std::vector<T>(count, value)); !status)
        failed_.append(status.diags());
    if (!buffer) failed_.append(buffer.diags());
    if (!failed_.ok()) return {};
    buffers_.push_back(*buffer);
    return *buffer;
  }
  /// A problem whose result is right if all elements of `out` are `value`.
  template <typename T>
  Result<Problem> problem(Arguments arguments, Buffer out, T value) {
    if (!failed_.ok()) return failed_;
    const auto is_right = [out, value] {
      const auto found = out.read_all<T>();
      return found && std::ranges::all_of(*found, [&](T each) {
               return static_cast<float>(each) == static_cast<float>(value);
             });
    };
    return Problem{std::move(arguments), buffers_, is_right};
  }

 private:
  Device& device_;
  std::vector<Buffer> buffers_;
  Diags failed_;
};

const host::f16 one(1.0);

Result<Problem> one_product(Device& device) {
  Memory memory(device);
  const Buffer a = memory.filled(16 * 16, one), b = memory.filled(16 * 8, one),
               d = memory.filled(16 * 8, 0.0F);
  return memory.problem(Arguments().add(a).add(b).add(d), d, 16.0F);
}

constexpr int rows = 128, cols = 256, depth = 64;

Result<Problem> product(Device& device) {
  Memory memory(device);
  const Buffer a = memory.filled(rows * depth, one), b = memory.filled(cols * depth, one),
               c = memory.filled(rows * cols, 0.0F);
  return memory.problem(Arguments().add(rows).add(cols).add(depth).add(a).add(b).add(c), c,
                        static_cast<float>(depth));
}

constexpr int queries = 128, keys = 128, head_dim = 64;

Result<Problem> attention_of_one_head(Device& device) {
  Memory memory(device);
  const Buffer q = memory.filled(queries * head_dim, one), k = memory.filled(keys * head_dim, one),
               v = memory.filled(keys * head_dim, one),
               o = memory.filled(queries * head_dim, host::f16(0.0)),
               lse = memory.filled(queries, 0.0F);
  const Arguments arguments =
      Arguments().add(queries).add(keys).add(1).add(1).add(0.125F).add(q).add(k).add(v).add(o).add(
          lse);
  return memory.problem(arguments, o, one);  // V is 1 everywhere, and weights sum up to 1
}

Subject one_mma_subject() {
  return {"one_mma", ampere,      one_mma,
          {1},       one_product, {"one_mma", one_mma_source, {.grid = {1}, .block = {32}}}};
}

// The tile of the CUDA source.
Subject gemm_subject() {
  const kernels::Gemm options{
      .m = 0, .n = 0, .k = 0, .tile = {.m = 128, .n = 128, .k = 32, .warps_m = 2, .warps_n = 4}};
  const Dim3 grid{options.blocks(rows, cols)};
  return {"gemm 128x128x32",
          ampere,
          [=] { return kernels::gemm(options); },
          grid,
          product,
          {"gemm",
           gemm_source,
           {.grid = grid, .block = {gemm_threads}, .dynamic_shared = gemm_shared}}};
}

Subject tuned_gemm_subject() {
  const auto options = kernels::tuned(kernels::Gemm{.m = 0, .n = 0, .k = 0}, Target::of(hopper));
  return {"tuned gemm",
          hopper,
          [=] { return kernels::gemm(options); },
          {options.grid_x(rows, cols, kernels::Gpu(Target::of(hopper)).multiprocessors())},
          product};
}

Subject attention_subject() {
  const kernels::Attention options{.head_dim = head_dim};
  const Dim3 grid{options.blocks(queries)};
  return {"attention",
          ampere,
          [=] { return kernels::attention(options); },
          grid,
          attention_of_one_head,
          {"attention",
           attention_source,
           {.grid = grid, .block = {attention_threads}, .dynamic_shared = attention_shared}}};
}

Subject tuned_attention_subject() {
  const auto options = kernels::tuned(kernels::Attention{.head_dim = head_dim}, Target::of(hopper));
  return {"tuned attention",
          hopper,
          [=] { return kernels::attention(options); },
          {options.blocks(queries)},
          attention_of_one_head};
}

}  // namespace

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {one_mma_subject(), gemm_subject(), tuned_gemm_subject(),
                                           attention_subject(), tuned_attention_subject()};
  return all;
}

}  // namespace latency
