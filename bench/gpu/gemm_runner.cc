// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/gemm_runner.h"

#include <algorithm>

#include "bench/gpu/elements.h"
#include "tartan/kernels/sparse.h"

namespace gpu {

using namespace tartan;

namespace {

constexpr std::size_t footprint = 256 << 20;  // bytes of all sets, at most
constexpr int usual_multiprocessors = 132;    // if the driver does not report it

std::size_t elements(int rows, int cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

std::size_t bytes(std::size_t count, Type type) {
  return count * static_cast<std::size_t>(bits(type)) / 8;
}

}  // namespace

Matrices::Matrices(Device& device, const Product& product, int most_sets) {
  auto a = random_elements(product.a, elements(product.m, product.k), 7);
  const auto b = random_elements(product.b, elements(product.k, product.n), 8);
  if (product.sparse) compress(device, product, a);
  const std::size_t c = bytes(elements(product.m, product.n), product.c);
  const std::size_t set = a.size() + b.size() + c, enough = (footprint + set - 1) / set;
  const auto sets = std::min(enough, static_cast<std::size_t>(most_sets));
  for (std::size_t i = 0; i < sets; ++i) {
    for (const std::size_t each : {a.size(), b.size(), c})
      buffers_.push_back(must(device.allocate(each)));
    must(this->a(i).write(a));
    must(this->b(i).write(b));
  }
}

void Matrices::compress(Device& device, const Product& product, std::vector<std::uint8_t>& a) {
  prune(product.a, a);
  const auto compressed =
      must(kernels::compress(std::as_bytes(std::span(a)), product.m, product.k, product.a));
  kept_ = must(device.allocate(compressed.values.size()));
  must(kept_.write(compressed.values));
  metadata_ = must(device.allocate(4 * compressed.metadata.size()));
  must(metadata_.write(compressed.metadata));
}

Result<GemmRunner> GemmRunner::make(Session& session, const Config& config, const Product& product,
                                    float alpha, Matrices& matrices) {
  const int found = session.driver.multiprocessors();
  if (config.sparse && !product.sparse)
    return Diags::one("usage"_rule, {}, "a compressed A takes a product with --sparse");
  const kernels::Gemm options = options_of(config, product);
  auto gemm = Runner::make(session.device,
                           config.sparse ? kernels::sparse_gemm(options) : kernels::gemm(options),
                           grid_of(config, product, found ? found : usual_multiprocessors));
  if (!gemm) return gemm.diags();
  if (!config.alone) gemm->overlap();
  GemmRunner out(std::move(*gemm));
  if (auto status = out.add_sum(session, config, product); !status) return status.diags();
  for (std::size_t set = 0; set < matrices.sets(); ++set)
    if (auto status = out.add(config, product, alpha, matrices, set); !status)
      return status.diags();
  return out;
}

// The second launch and the workspace, if needed.
Status GemmRunner::add_sum(Session& session, const Config& config, const Product& product) {
  const kernels::Gemm options = options_of(config, product);
  const unsigned blocks = sum_blocks_of(config, product);
  if (blocks == 0) return Done{};
  auto sum = Runner::make(session.device, kernels::gemm_sum(options), {blocks});
  if (!sum) return sum.diags();
  const auto count = static_cast<std::size_t>(options.workspace_elements(product.m, product.n));
  auto parts = session.device.allocate(bytes(count, options.accumulator));
  if (!parts) return parts.diags();
  sum_.emplace(std::move(*sum)), parts_ = *parts;
  sum_->overlap();
  return Done{};
}

// The parameters in the order of kernels::gemm() and kernels::gemm_sum().
Status GemmRunner::add(const Config& config, const Product& product, float alpha,
                       Matrices& matrices, std::size_t set) {
  const bool split = config.gemm.splits > 1, stream = config.gemm.stream_blocks > 0;
  const auto finish = [&](Arguments& arguments) {
    arguments.add(matrices.c(set));
    if (bits(product.c) == 8) arguments.add(alpha);
  };
  Arguments first, second;
  if (config.dynamic) first.add(product.m).add(product.n).add(product.k);
  if (config.sparse) first.add(matrices.kept()).add(matrices.metadata());
  else first.add(matrices.a(set));
  first.add(matrices.b(set));
  if (!split) finish(first);
  if (split || stream) first.add(parts_);
  if (auto status = gemm_.add(first); !status || !sum_) return status;
  if (config.dynamic) second.add(product.m).add(product.n);
  if (config.dynamic && stream) second.add(product.k);
  second.add(parts_);
  finish(second);
  return sum_->add(second);
}

Status GemmRunner::launch(const Stream& stream, std::size_t set) {
  auto status = gemm_.launch(stream, set);
  return status && sum_ ? sum_->launch(stream, set) : status;
}

}  // namespace gpu
