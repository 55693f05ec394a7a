// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/tensor_descriptor.h - the descriptors of tcgen05: of an instruction, and
// of a tile in shared memory (PTX ISA 9.0, 9.7.16.4).
//
// An instruction descriptor is 32 bits, by its lowest bit:
//   0  sparsity selector    7   type of A     15  A is MN-major    29  id of A's scales
//   2  sparse               10  type of B     16  B is MN-major    31  K = 96
//   3  saturates (i8)       13  negates A     17  N / 8
//   4  type of D, or id     14  negates B     23  type of scales
//      of B's scales                          24  M / 16
// Of a weight-stationary one, bits 30 and 31 are the most by which B's columns are shifted.
//
// The descriptor of a tile is that of wgmma (wgmma.h), with 001 in bits 46 to 48 and another mode:
//   63 61 | 60..53 | 52  | 51..49 | 48 46 | 45..32        | 29..16         | 13..0
//   mode  | 0      | 0   | base   | 001   | stride offset | leading offset | start
// With K = 96, whose rows of 48 bytes may cross a line of 128, bit 52 makes the leading offset the
// address of the tile in which the rest of such a row is.
// Mode 0 has no swizzle, 2, 4 and 6 have 128, 64 and 32 bytes; 1 is 128 bytes in atoms of 32, for
// MN-major tiles of 32-bit elements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/emulator/matrix/wgmma.h"
#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::emulator {

enum class TensorKind : std::uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

constexpr std::string_view name(TensorKind kind) {
  constexpr std::string_view names[] = {"f16",      "tf32", "f8f6f4",  "i8",
                                        "mxf8f6f4", "mxf4", "mxf4nvf4"};
  return names[static_cast<int>(kind)];
}
constexpr bool is_scaled(TensorKind kind) { return kind >= TensorKind::mxf8f6f4; }
/// Whether the kind has K = 96 on "sm_103a" or its like.
constexpr bool has_96(TensorKind kind, std::string_view target) {
  return kind >= TensorKind::mxf4 && target.starts_with("sm_103");
}

struct InstructionDescriptor {
  TensorKind kind = TensorKind::f16;
  Type a = Type::none, b = Type::none, d = Type::none;
  int m = 0, n = 0, k = 0;
  bool saturates = false, negates_a = false, negates_b = false;
  bool transposes_a = false, transposes_b = false;
  bool sparse = false;  // k counts the elements of B: a row of A stores half of them
  Type scale_type = Type::none;
  int scale_a_id = 0, scale_b_id = 0;
  bool pair = false;  // of CTAs: each has half of the rows of A and D, and of the columns of B
  bool stationary = false;  // weight-stationary: .ws
  int most_shift = 0;       // columns of B, of .ws

  /// "M 128, N 64, K 16, A f16, B f16, D f32".
  std::string text() const;
  /// Bits from one element of A or B to the next, in shared memory without a swizzle.
  int container_bits(Type type) const;
  /// Rows of A and D, and columns of B, that a CTA has.
  int rows() const { return pair ? m / 2 : m; }
  int columns() const { return pair ? n / 2 : n; }
  /// Elements of a row of A that are stored.
  int stored() const { return sparse ? k / 2 : k; }
  /// D's columns come in so many parts, each in rows() lanes of its own: layouts E and G of .ws,
  /// and B, of a pair that has 64 rows in each CTA. A in tensor memory is there once for each part.
  int parts() const { return stationary ? 128 / m : pair && m == 128 && !sparse ? 2 : 1; }
  int columns_of_part() const { return n / parts(); }
  /// Whether the rows are in 16 lanes of each 32: layouts C and F.
  bool in_halves() const { return rows() == 64 && parts() == 1; }
};

/// What the words of a product say beside its kind.
struct ProductWords {
  bool sparse = false;      // .sp
  bool pair = false;        // .cta_group::2
  bool stationary = false;  // .ws
};

/// Why `bits` are no descriptor of a product of that kind and with those words, with the name of
/// the field; empty: `to` has them.
std::string decode(TensorKind kind, const ProductWords& words, std::uint32_t bits,
                   InstructionDescriptor& to);

struct TileDescriptor {
  MatrixDescriptor tile;
  bool wide_atoms = false;  // of 32 bytes
  bool absolute = false;    // tile.leading is an address

  /// The byte address of element (x, k), as MatrixDescriptor has it.
  std::uint64_t address(bool mn_major, int element_bits, int x, int k) const;
  /// "start address 0x400, leading offset 0x10, stride offset 0x80, no swizzle".
  std::string text() const;
};

/// Why `bits` do not describe a tile of elements of so many bits, with K = 96 or not; empty: `to`
/// has them.
std::string decode(std::uint64_t bits, bool mn_major, int element_bits, TileDescriptor& to,
                   bool of_96 = false);

}  // namespace tartan::TARTAN_ABI::emulator
