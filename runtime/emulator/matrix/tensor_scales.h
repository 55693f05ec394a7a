// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/tensor_scales.h - block-scaled products of tcgen05.mma.
//
// The scales of row m of A are in the cells of lanes m % 32, column m / 32 behind the address of
// its scales, in the byte that the id names and those that follow, one for each block of k; those
// of column n of B in the same way. Those behind byte 3, of which K = 96 has some, are in bytes
// from 0 on of the next group of columns: 4 of them for each 128 rows or columns. What the other
// quarters of lanes hold, which must be the same, does not count here. Where a pair of CTAs has M
// 128, the columns of the upper half of N have their scales 64 lanes above those of the lower half.
#pragma once

#include <cstdint>

#include "runtime/emulator/matrix/rule.h"
#include "runtime/emulator/matrix/tensor_product.h"

namespace tartan::TARTAN_ABI::emulator {

struct ScaledProduct {
  const InstructionDescriptor& what;
  const NumericRule& rule;
  int blocks = 1;  // of k, each with a scale
  /// Of a sparse A: the codes of a row, one row after another.
  const std::uint8_t* codes = nullptr;
};

/// D = A * B + C for `rows` rows of A from `first` on, on images (lane_map.h).
void multiply_scaled(const ScaledProduct& product, const TensorOperands& operands, int first,
                     int rows, const std::uint32_t* a, const std::uint32_t* b,
                     const std::uint32_t* c, std::uint32_t* d);

}  // namespace tartan::TARTAN_ABI::emulator
