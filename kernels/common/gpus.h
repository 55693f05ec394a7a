// SPDX-License-Identifier: Apache-2.0
// kernels/common/gpus.h - the row of the table of GPUs that a kernels::Gpu is. Not installed.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/isa/gpus.h"
#include "tartan/kernels/gpu.h"

namespace tartan::TARTAN_ABI::detail {

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

}  // namespace tartan::TARTAN_ABI::detail
