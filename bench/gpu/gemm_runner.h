// SPDX-License-Identifier: Apache-2.0
// bench/gpu/gemm_runner.h - a product's matrices, and the kernels that compute it.
#pragma once

#include <optional>
#include <vector>

#include "bench/gpu/cublas.h"
#include "bench/gpu/gemm_config.h"
#include "bench/gpu/measure.h"

namespace gpu {

/// Several copies of A, B and C, so that no product finds the last one's in the cache: 256 MB of
/// sets, but at most `most_sets`.
class Matrices {
 public:
  Matrices(tartan::Device& device, const Product& product, int most_sets);
  std::size_t sets() const { return buffers_.size() / 3; }
  /// The compressed sparse A, the same for all sets.
  tartan::Buffer& kept() { return kept_; }
  tartan::Buffer& metadata() { return metadata_; }
  tartan::Buffer& a(std::size_t set) { return buffers_[3 * set]; }
  tartan::Buffer& b(std::size_t set) { return buffers_[3 * set + 1]; }
  tartan::Buffer& c(std::size_t set) { return buffers_[3 * set + 2]; }
  Operands operands(std::size_t set) {
    return {a(set).address(), b(set).address(), c(set).address()};
  }

 private:
  void compress(tartan::Device& device, const Product& product, std::vector<std::uint8_t>& a);

  std::vector<tartan::Buffer> buffers_;
  tartan::Buffer kept_, metadata_;
};

/// A compiled configuration: one launch, or two with split-K or stream-K.
class GemmRunner {
 public:
  /// `alpha`: the scale of 8-bit results.
  static tartan::Result<GemmRunner> make(Session& session, const Config& config,
                                         const Product& product, float alpha, Matrices& matrices);
  tartan::Status launch(const tartan::Stream& stream, std::size_t set);
  double compile_ms() const { return gemm_.compile_ms() + (sum_ ? sum_->compile_ms() : 0); }
  int shared_bytes() const { return gemm_.shared_bytes(); }

 private:
  explicit GemmRunner(Runner gemm) : gemm_(std::move(gemm)) {}
  tartan::Status add_sum(Session& session, const Config& config, const Product& product);
  tartan::Status add(const Config& config, const Product& product, float alpha, Matrices& matrices,
                     std::size_t set);

  Runner gemm_;
  std::optional<Runner> sum_;
  tartan::Buffer parts_;
};

}  // namespace gpu
