// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/wgmma.h - wgmma.mma_async, and the addresses of its operands in shared
// memory.
//
// A descriptor is 64 bits, offsets and start in units of 16 bytes:
//   63 62 | 51..49 | 45..32        | 29..16         | 13..0
//   mode  | base   | stride offset | leading offset | start
// Mode 0 has no swizzle; 1, 2 and 3 swizzle rows of 128, 64 and 32 bytes. The swizzle XORs bits of
// the absolute shared address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/emulator/matrix/matrix.h"

namespace tartan::TARTAN_ABI::emulator {

struct MatrixDescriptor {
  std::uint32_t start = 0;    // bytes
  std::uint32_t leading = 0;  // bytes
  std::uint32_t stride = 0;   // bytes
  int base = 0;               // 0..7: the tile's offset in the pattern, in units of 128 bytes
  int width = 0;              // bytes of a swizzled row: 0, 128, 64, 32

  static MatrixDescriptor of(std::uint64_t bits);
  /// The byte address of element (x, k): x counts rows of A or columns of B. `mn_major`: elements
  /// along x are contiguous. Elements smaller than a byte: the address of their byte.
  std::uint64_t address(bool mn_major, int element_bits, int x, int k) const;
};

/// A warpgroup's operands. d[r], a[r]: register r of 128 threads.
struct WgmmaOperands {
  std::uint32_t* const* d = nullptr;        // also read if scale_d is set
  const std::uint32_t* const* a = nullptr;  // if A is in registers
  std::uint64_t a_descriptor = 0, b_descriptor = 0;
  std::span<const std::byte> shared;        // the shared window, from address 0
  const std::uint32_t* metadata = nullptr;  // sparse forms: a word per thread
  int selector = 0;
  bool scale_d = true;
  int scale_a = 1, scale_b = 1;  // -1 negates
  int trans_a = 0, trans_b = 0;  // 1: MN-major
};

class WgmmaProduct {
 public:
  /// Any form of wgmma that isa::find knows.
  static Result<WgmmaProduct> make(const isa::Form& form, Path path = Path::best);
  /// Computes D = A * B + D. A descriptor that leads outside the window is a memory fault, and
  /// nothing is written.
  Status run(const WgmmaOperands& operands, Scratch& scratch) const;
  std::uint64_t multiply_adds() const;
  const isa::Form& form() const;
  /// As for MatrixProduct, for the only generation that has the instruction.
  Trust trust() const;
  std::string_view source() const;

 private:
  struct Plan;
  explicit WgmmaProduct(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  std::shared_ptr<const Plan> plan_;
};

}  // namespace tartan::TARTAN_ABI::emulator
