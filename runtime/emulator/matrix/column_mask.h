// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/column_mask.h - which columns of B a weight-stationary tcgen05.mma takes
// (PTX ISA 9.0, 9.7.16.4.3).
//
// A descriptor of 64 bits, with a start count and a first span for each part of D's columns:
//   61..56 | 55..48 | 47..40 | 39         | 35..32      | 31..0
//   shift  | used   | zeros  | has a mask | first spans | start counts, 8 bits each
// Spans of `used` + 1 columns of B and of `zeros` + 1 zero columns follow each other. Bit 1 of a
// first span: it is one of zeros; the start count says how many of its columns are left out.
//
// The manual's table of fields has the two spans the other way round. Its four examples, CuTe and
// another emulator's tests have them as above.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/emulator/matrix/tensor_descriptor.h"

namespace tartan::TARTAN_ABI::emulator {

struct ColumnMask {
  std::vector<std::uint8_t> zero;  // of each column of D: whether B's is taken as zeros
  int shift = 0;                   // column n of D has column n + shift of B

  bool takes(int n) const { return zero.empty() || !zero[static_cast<std::size_t>(n)]; }
};

/// Why `bits` are no mask for such a product; empty: `to` has it.
std::string decode(std::uint64_t bits, const InstructionDescriptor& what, ColumnMask& to);

}  // namespace tartan::TARTAN_ABI::emulator
