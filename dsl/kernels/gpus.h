// SPDX-License-Identifier: Apache-2.0
// dsl/kernels/gpus.h - the table of GPUs: what kernels::Gpu is a row of. Not installed.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tartan/dsl/kernels/gpu.h"

namespace tartan::inline TARTAN_ABI::detail {

/// A GPU. Rates are per cycle of its multiprocessors.
struct GpuRow {
  const char* name;      // as find() knows it; its words are in the driver's name of the GPU
  int sm;                // the architecture that it has
  int multiprocessors;   // SMs
  int shared_bytes;      // of an SM, for all of its CTAs
  int cache_bytes;       // of the second level
  double clock;          // GHz
  double mma, wgmma;     // multiply-adds of 16-bit elements of an SM; wgmma 0: none
  double cache, memory;  // bytes of the whole GPU
  double latency;        // cycles of a load from memory

  double memory_of_each() const { return memory / multiprocessors; }
};
/// The usual GPU of an architecture, its first row; of unknown ones the nearest older one's. Null
/// before sm_80.
const GpuRow* find_gpu(Arch arch);
std::span<const GpuRow> gpus();
/// The row all of whose words are in a name ("NVIDIA H100 PCIe"), of several the one that has those
/// of the others. Null if no row has.
const GpuRow* gpu_named(std::string_view name, int sm = 0);  // of that architecture; 0: of any

/// The row of a GPU, in proportion where it has fewer multiprocessors: a part of one (MIG). None
/// before sm_80.
std::optional<GpuRow> row_of(const kernels::Gpu& gpu);

struct GpuAccess {
  /// The GPU of a device: its name by the driver, its architecture, the kernels' target.
  static kernels::Gpu of(std::string_view name, Arch own, const Target& target,
                         int multiprocessors);
  static const GpuRow* row(const kernels::Gpu& gpu) { return gpu.row_; }
  /// A part of a GPU (MIG), or a variant of it, with so many multiprocessors.
  static kernels::Gpu part(kernels::Gpu gpu, int multiprocessors) {
    gpu.multiprocessors_ = multiprocessors;
    return gpu;
  }
};

}  // namespace tartan::inline TARTAN_ABI::detail
