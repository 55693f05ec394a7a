// SPDX-License-Identifier: Apache-2.0
// tartan/isa/gpus.h - the table of GPUs: the names of products, their architectures and rates, for
// those who estimate how long a kernel takes.
//
//   const isa::GpuRow* gpu = isa::gpu_named("NVIDIA H100 PCIe");
//   const double seconds = bytes / (gpu->memory * gpu->clock * 1e9);
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::isa {

/// A GPU. Rates are per cycle of its multiprocessors.
struct GpuRow {
  const char* name;      // as find() knows it; its words are in the driver's name of the GPU
  int sm;                // the architecture that it has
  int multiprocessors;   // SMs
  int shared_bytes;      // of an SM, for all of its CTAs
  int cache_bytes;       // of the second level
  double clock;          // GHz
  double mma, wgmma;     // multiply-adds of 16-bit elements of an SM; wgmma 0: none
  double tcgen05 = 0;    // the same, by data sheets; 0: none
  double cache, memory;  // bytes of the whole GPU
  double latency;        // cycles of a load from memory

  /// Bytes per cycle that each multiprocessor has of the memory.
  double memory_of_each() const { return memory / multiprocessors; }
};

/// The usual GPU of an architecture, its first row; of unknown ones the nearest older one's. Null
/// before sm_80.
const GpuRow* find_gpu(Arch arch);
/// All of them.
std::span<const GpuRow> gpus();
/// The rows all of whose words are in a name, without those that others name more closely: of "H100
/// PCIe" only that one.
std::vector<const GpuRow*> gpus_named(std::string_view name, int sm = 0);  // 0: any architecture
/// The row, if there is exactly one; else null.
const GpuRow* gpu_named(std::string_view name, int sm = 0);
/// Whether it runs code of an architecture.
bool runs(const GpuRow& row, Arch code);
/// What is compiled for it alone: with suffix a if its architecture has one.
Arch own_arch(const GpuRow& row);

}  // namespace tartan::TARTAN_ABI::isa
