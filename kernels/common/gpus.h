// SPDX-License-Identifier: Apache-2.0
// kernels/common/gpus.h - the row of the table of GPUs that a Gpu is. Not installed.
#pragma once

#include <optional>
#include <string_view>

#include "tartan/isa/gpus.h"
#include "tartan/kernels/gpu.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// The row of a GPU, in proportion where it has fewer multiprocessors: a part of one (MIG). None
/// before sm_80.
std::optional<isa::GpuRow> row_of(const Gpu& gpu);

struct GpuAccess {
  /// The GPU of a device: its name by the driver, its architecture, the kernels' target.
  static Gpu of(std::string_view name, Arch own, const Target& target, int multiprocessors);
  static const isa::GpuRow* row(const Gpu& gpu) { return gpu.row_; }
  /// A part of a GPU (MIG), or a variant of it, with so many multiprocessors.
  static Gpu part(Gpu gpu, int multiprocessors) {
    gpu.multiprocessors_ = multiprocessors;
    return gpu;
  }
};

}  // namespace tartan::TARTAN_ABI::kernels::detail
