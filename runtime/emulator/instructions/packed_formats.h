// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/packed_formats.h - pairs of small floats, as cvt has them in one
// register.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>

#include "runtime/emulator/numbers/small_float.h"
#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::emulator {

struct PackedRow {
  Type type;
  SmallFormat format;
  int element_bits;   // between elements of a register
  std::uint32_t nan;  // what a NaN becomes: the largest number where the format has none
  int register_bits;
};

inline constexpr PackedRow packed_rows[] = {
    {Type::f16x2, format_f16, 16, 0x7FFF, 32}, {Type::bf16x2, format_bf16, 16, 0x7FFF, 32},
    {Type::e4m3x2, format_e4m3, 8, 0x7F, 16},  {Type::e5m2x2, format_e5m2, 8, 0x7F, 16},
    {Type::e2m3x2, format_e2m3, 8, 0x1F, 16},  {Type::e3m2x2, format_e3m2, 8, 0x1F, 16},
    {Type::e2m1x2, format_e2m1, 4, 0x7, 8},    {Type::f16, format_f16, 16, 0x7FFF, 16},
    {Type::bf16, format_bf16, 16, 0x7FFF, 16}, {Type::tf32, format_tf32, 32, 0x3FFFF, 32},
};

/// The index of a type's row.
constexpr std::optional<std::uint32_t> packed_row(Type type) {
  for (std::uint32_t i = 0; i < std::size(packed_rows); ++i)
    if (packed_rows[i].type == type) return i;
  return std::nullopt;
}

/// The type of the register that holds one.
constexpr Type register_of(const PackedRow& row) {
  return row.register_bits == 32 ? Type::b32 : row.register_bits == 16 ? Type::b16 : Type::b8;
}

}  // namespace tartan::TARTAN_ABI::emulator
