// SPDX-License-Identifier: Apache-2.0
// compiler/isa/tensor_descriptors.h - the descriptors of tcgen05 as far as a text decides them: of
// an instruction, and of a tile in shared memory (PTX ISA 9.0, 9.7.16.4).
//
// Of some bits nothing may be known: a field counts where all of its bits are known. What this
// calls illegal the manual does; the emulator (tensor_descriptor.h) also refuses what no source
// tells, such as other selectors of sparse products.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tartan/isa/spelling.h"
#include "tartan/isa/target.h"
#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::isa {

/// A number of which the bits of `known` are known.
struct PartialBits {
  std::uint64_t known = 0, value = 0;  // `value` is 0 elsewhere

  bool has(int low, int width) const { return (known >> low & ones(width)) == ones(width); }
  std::uint32_t get(int low, int width) const {
    return static_cast<std::uint32_t>(value >> low & ones(width));
  }
  static constexpr std::uint64_t ones(int width) {
    return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  }
};

enum class TensorMmaKind : std::uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

/// What the words of a tcgen05.mma say.
struct TensorMma {
  TensorMmaKind kind = TensorMmaKind::f16;
  int group = 1;  // CTAs
  bool sparse = false, stationary = false, a_in_tensor = false;
  int scales = 0;  // of a row; 0: none
  int sm = 100;

  bool scaled() const { return kind >= TensorMmaKind::mxf8f6f4; }
  bool fours() const { return kind >= TensorMmaKind::mxf4; }
};

/// Nothing for kinds that are not of PTX ISA 9.0.
std::optional<TensorMma> tensor_mma(const Spelling& spelling, Arch arch);

/// A product as an instruction descriptor says it.
struct TensorProduct {
  int m = 128, n = 0;
  Type a = Type::none, b = Type::none, d = Type::none;
  bool sparse = false;
  bool negate_a = false, negate_b = false;
  bool mn_major_a = false, mn_major_b = false;
  Type scale = Type::none;       // of block-scaled kinds
  int scale_a = 0, scale_b = 0;  // the byte of a cell that the first scale of a row is
};
/// The instruction descriptor of a product; none: the kind has no such types.
std::optional<std::uint32_t> instruction_descriptor(TensorMmaKind kind,
                                                    const TensorProduct& product);

/// What is illegal in an instruction descriptor; empty: nothing that is known.
std::string instruction_descriptor_fault(const TensorMma& mma, const PartialBits& bits);
/// "M 128, N 64, A f16 K-major, B f16 MN-major, D f32": what is known.
std::string instruction_descriptor_text(const TensorMma& mma, const PartialBits& bits);
/// Whether the tile of A or B is MN-major with elements of 32 bits.
std::optional<bool> wants_wide_atoms(const TensorMma& mma, const PartialBits& idesc, char operand);

/// The same of a tile in shared memory. `wide`: that of wants_wide_atoms().
std::string tile_descriptor_fault(const PartialBits& bits, std::optional<bool> wide,
                                  bool absolute_offsets);
/// "start 0x400, leading offset 0x10, stride offset 0x80, 128-byte swizzle": what is known.
std::string tile_descriptor_text(const PartialBits& bits);

}  // namespace tartan::TARTAN_ABI::isa
