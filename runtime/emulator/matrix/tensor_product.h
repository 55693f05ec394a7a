// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/tensor_product.h - tcgen05.mma, bit for bit as far as anybody
// knows (rule.h): where its operands are in shared and tensor memory, and what it leaves there.
//
// Tensor memory is 128 lanes of 512 cells of 32 bits. Row m of D and of an A there is in lane m if
// M is 128, in lane 32 * (m / 16) + m % 16 if it is 64, or 16 lanes below. Of a weight-stationary
// product (.ws) with M 64 or 32 row m is in lane m, D's columns are in 2 or 4 parts, each M lanes
// below the one before, and each part has its own A in tensor memory and its own metadata.
//
// Of a pair of CTAs it is what one of them has of D: half of the rows, by B of both. With M 128 D's
// columns are in 2 parts, 64 lanes below each other, with an A for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulator/matrix/column_mask.h"
#include "runtime/emulator/matrix/matrix.h"
#include "runtime/emulator/matrix/tensor_descriptor.h"

namespace tartan::TARTAN_ABI::emulator {

struct NumericRule;

struct TensorOperands {
  std::span<const std::byte> shared;  // the block's, from address 0
  /// Of a pair: of both CTAs, the even one first.
  std::array<std::span<const std::byte>, 2> of_pair = {};
  std::uint32_t* cells = nullptr;  // lane * 512 + column
  TileDescriptor a, b;
  bool a_in_tensor = false, shifts_a = false;  // the latter: tensor_shift.h
  int a_column = 0, d_column = 0;
  int half = 0;  // M 64: 16 where the rows are in the upper lanes
  bool accumulates = false;
  int scale_d = 0;                          // D is divided by 2^scale_d before
  const std::uint32_t* disabled = nullptr;  // lanes that are not written: four words
  int metadata_column = 0;
  int scale_a_column = 0, scale_b_column = 0, blocks = 1;  // block scales along k
  ColumnMask mask;                                         // of .ws
};

/// Columns from the first four scales of each row or column, of `count`, to the next four.
constexpr int columns_of_scales(int count) { return (count + 127) / 128 * 4; }

/// 16 bytes of shared memory with elements of `count` rows or columns from `first` on.
struct TileBytes {
  std::uint64_t address = 0;
  int first = 0, count = 1;
};

class TensorProduct {
 public:
  explicit TensorProduct(const InstructionDescriptor& what, Path path = Path::best);
  /// That of a descriptor with those bits: made once for each that `scratch` has seen.
  static const TensorProduct& of(const InstructionDescriptor& what, std::uint32_t bits,
                                 Scratch& scratch);
  const InstructionDescriptor& what() const;
  /// The lane of each row, in the lower half: of each part of D.
  std::span<const std::uint8_t> lanes() const;
  /// The bytes of a factor in a CTA.
  std::vector<TileBytes> bytes_of_a(const TileDescriptor& tile) const;
  std::vector<TileBytes> bytes_of_b(const TileDescriptor& tile, const ColumnMask& mask = {}) const;
  void run(const TensorOperands& operands, Scratch& scratch) const;
  std::uint64_t multiply_adds() const;
  const NumericRule& rule() const;

  /// Of a sparse A: the first illegal code (PTX ISA 9.0, 9.7.16.10.8), if there is one.
  struct IllegalCode {
    int row = 0, group = 0;  // rows count on from part to part
    std::uint32_t code = 0;
  };
  std::optional<IllegalCode> illegal_code(const TensorOperands& operands) const;
  /// Columns of its metadata.
  int metadata_columns() const;

 private:
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

/// What is known of the arithmetic of a kind whose results are not f16.
Trust tensor_trust(TensorKind kind);
std::string_view tensor_source(TensorKind kind);
/// The least known rule of the products that `scratch` has seen; null: there were none.
const NumericRule* least_known_product(Scratch& scratch);

}  // namespace tartan::TARTAN_ABI::emulator
