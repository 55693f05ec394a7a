// SPDX-License-Identifier: Apache-2.0
// dsl/units/wgmma/operand_panels.h - operands in shared memory as wgmma and tcgen05.mma see them,
// and their descriptors (PTX ISA 9.0, 9.7.15.5.1 and 9.7.16.4.1). Not installed.
#pragma once

#include <cstdint>
#include <optional>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// Bytes of one instruction along k.
constexpr int tensor_step_bytes = 32;

/// A tile of shared memory as contiguous panels of lines of `width` bytes, with a swizzle of that
/// width.
struct OperandPanels {
  bool along_k = false;    // whether lines are along k
  std::int64_t width = 0;  // bytes
  std::int64_t lines = 0;  // of each panel
  std::int64_t bytes() const { return width * lines; }
  /// From the first row of A, or column of B, to the one `count` further, of elements of `bits`
  /// bits: lines of each panel, or whole panels.
  std::int64_t distance(std::int64_t count, int bits) const {
    return along_k ? count * width : count * bits / 8 / width * bytes();
  }
};

/// The panels of a tile, which products read as `access`; nothing (reported) if it has none.
std::optional<OperandPanels> operand_panels(KernelState& state, const Tensor& tile, Operand operand,
                                            StageAccess access);

/// Descriptors of an operand for the k-steps of a tile: the address of its first element, the
/// distances between panels and between groups of eight lines, the swizzle.
class TileDescriptors {
 public:
  /// `step`: bytes of an instruction along k. `first`: bytes from the tile's beginning on.
  TileDescriptors(KernelState& state, const Tensor& tile, const OperandPanels& panels, int step,
                  const Scalar& first, StageAccess access);
  /// For k-step `step`, of elements of `bits` bits.
  ir::Value at(int step, int bits) const;

 private:
  ir::Value within_block(ir::Value address) const;

  KernelState& state_;
  OperandPanels panels_;
  int step_;
  ir::Value low_;
  std::int64_t high_ = 0;
};

}  // namespace tartan::TARTAN_ABI::detail
