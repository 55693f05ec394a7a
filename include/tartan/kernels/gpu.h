// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/gpu.h - which GPU tuned() chooses for. GPUs of one architecture differ in
// multiprocessors and bandwidth, and want different configurations: an H100 and an H200 are sm_90a.
//
//   options = tuned(options, Target::of(device.arch()));   // the usual GPU of sm_90a: an H100
//   options = tuned(options, kernels::Gpu::of(device));    // the GPU at hand
//   const auto gpu = kernels::Gpu::find("H200");           // one that is elsewhere
//   if (!gpu) return gpu.diags();                          // the names of those that are known
//   options = tuned(options, *gpu);
#pragma once

#include <string_view>
#include <vector>

#include "tartan/isa/target.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

class Device;

namespace isa {
struct GpuRow;
}

namespace kernels {

namespace detail {
struct GpuAccess;
}

/// A row of the table of GPUs, and what kernels are compiled for.
class Gpu {
 public:
  /// The usual GPU of an architecture, or of the nearest older one that the table has: an A100 for
  /// sm_80, an H100 for sm_90 and sm_90a. Before sm_80: without a name, and with the
  /// multiprocessors of a V100.
  Gpu(const Target& target);  // NOLINT(google-explicit-constructor)

  /// The GPU of that name, in upper or lower case, or as NVIDIA's driver calls it: "H200", "NVIDIA
  /// H100 PCIe". An error if the table has none, or if it does not run code for `target`.
  static Result<Gpu> find(std::string_view name, const Target& target);
  /// The same with the GPU's own target: that of sm_90a for an H200.
  static Result<Gpu> find(std::string_view name);
  /// The names that find() knows.
  static std::vector<std::string_view> names();

  /// A device's GPU, with the device's own number of multiprocessors. If the table does not have
  /// its name: the usual one of its architecture.
  static Gpu of(const Device& device);
  /// The same for kernels of another target that it runs, such as sm_80.
  static Gpu of(const Device& device, const Target& target);

  const Target& target() const { return target_; }
  /// "H200"; empty: a GPU before sm_80.
  std::string_view name() const;
  int multiprocessors() const { return multiprocessors_; }
  /// GB/s, by its data sheet; 0: unknown.
  double memory_bandwidth() const;

 private:
  friend struct detail::GpuAccess;
  Gpu(const Target& target, const isa::GpuRow* row);

  Target target_;
  const isa::GpuRow* row_;
  int multiprocessors_;
};

}  // namespace kernels
}  // namespace tartan::TARTAN_ABI
