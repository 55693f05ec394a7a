// SPDX-License-Identifier: Apache-2.0
// library/tune_bench.h - measures configurations of gemm() on a device: compiles them side by side,
// loads them one after the other, and launches them back to back on sets of matrices that the
// second-level cache does not hold. Not installed.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "kernels/tuner/gemm_cost.h"
#include "library/tune_search.h"
#include "tartan/load.h"

namespace tartan::TARTAN_ABI::detail {

/// Codes of small integers of a type: 0, 1, 2, 3, -1, -2, -3 (unsigned types: 0 to 3).
std::vector<std::uint32_t> small_integers(Type type);

class DeviceBench : public TuneBench {
 public:
  /// Allocates and fills the matrices.
  static Result<std::unique_ptr<DeviceBench>> make(const Device& device,
                                                   const kernels::Gemm& product,
                                                   const isa::GpuRow& gpu, const Cache& cache);
  double seconds() override;
  std::vector<Diags> load(const std::vector<kernels::Gemm>& candidates, double deadline) override;
  Result<std::vector<std::byte>> result(std::size_t candidate) override;
  Result<double> sample(std::size_t candidate) override;

 private:
  using Ready = std::shared_ptr<const ReadyKernel>;
  // A launch of one kernel, with arguments for each set.
  struct Step {
    Ready kernel;
    Launch launch;
    std::vector<Arguments> arguments;
  };
  struct Entry {
    std::vector<Step> steps;  // gemm(), and gemm_sum() of partial sums
    double us = 0;            // of a product, roughly
    // So many products; of short ones a graph. 0: not measured yet.
    int products = 0;
    std::function<Status()> batch;
  };

  DeviceBench(const Device& device, const kernels::Gemm& product, const isa::GpuRow& gpu,
              const Cache& cache);
  Status allocate();
  Status allocate_extras();
  Status fill();
  // A note, and no kernel, if the driver is not asked for it until `deadline`.
  Result<Entry> loaded(const kernels::Gemm& options, double deadline);
  Result<Step> step(const Kernel& kernel, Dim3 grid, const kernels::Gemm& options, bool sum,
                    double deadline);
  Result<Ready> ready(const Kernel& kernel, double deadline);
  void add_epilogue(Arguments& arguments) const;
  Status reserve_parts(const std::vector<kernels::Gemm>& candidates);
  Status launch(Entry& entry, std::size_t set);
  Status some(Entry& entry, int count);
  Status prepare(Entry& entry);
  Result<double> timed(Entry& entry, int batches);
  // On the emulator, which times nothing, the only one.
  std::size_t timed_sets() const { return std::max<std::size_t>(sets_ - 1, 1); }
  std::uint64_t a(std::size_t set) const { return matrices_.address() + set * set_bytes_; }
  std::uint64_t b(std::size_t set) const { return a(set) + a_bytes_; }
  std::uint64_t c(std::size_t set) const { return b(set) + b_bytes_; }

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Device device_;
  const kernels::Gemm product_;
  const isa::GpuRow& gpu_;
  const Cache cache_;
  Loader loader_;
  std::mutex assembling_;
  std::optional<Stream> stream_;
  Buffer matrices_, parts_, vectors_, residual_;
  std::size_t a_bytes_, b_bytes_, c_bytes_, set_bytes_, sets_ = 1, next_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace tartan::TARTAN_ABI::detail
