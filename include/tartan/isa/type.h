// SPDX-License-Identifier: Apache-2.0
// tartan/isa/type.h - element and register types, spelled as PTX spells them (PTX ISA 9.0, 5.2,
// "Types").
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// An element or register type. `none` marks an absent operand or qualifier.
enum class Type : std::uint8_t {
  none,
  pred,
  b1,
  b2,
  b4,
  s4,
  u4,
  e2m1,  // below a byte
  e2m3,
  e3m2,  // six bits
  e4m3,
  e5m2,
  ue8m0,
  ue4m3,
  s8,
  u8,
  b8,  // a byte
  f16,
  bf16,
  s16,
  u16,
  b16,  // 16 bits
  f16x2,
  bf16x2,
  f32,
  tf32,
  s32,
  u32,
  b32,  // 32 bits
  f64,
  s64,
  u64,
  b64,  // 64 bits
  b128,
  b8x16,
  b6x16_p32,
  b4x16_p64,  // ldmatrix: sixteen values in a 16-byte row
  u2,
  s2,  // of cvt.pack
  u16x2,
  s16x2,
  f32x2,
  u8x4,
  s8x4,
  b8x4,  // packed in one register
  e2m1x2,
  e2m1x4,
  e2m3x2,
  e2m3x4,
  e3m2x2,
  e3m2x4,
  e4m3x2,
  e4m3x4,
  e5m2x2,
  e5m2x4,
  e2m1p4x4,
  s2f6x2,
  ue5m3x2,
  ue8m0x4,
  ue8m0x2,  // results and sources of cvt and of packed arithmetic
};

/// A row of the table of types.
struct TypeInfo {
  Type type;
  std::string_view name;
  int bits;  // of one element; for the packed ldmatrix formats, of one value
  bool floating;
  bool is_signed;  // integers only
};

// clang-format off
inline constexpr TypeInfo type_table[] = {
    {Type::none, "", 0, false, false},
    {Type::pred, "pred", 1, false, false},
    {Type::b1, "b1", 1, false, false},
    {Type::b2, "b2", 2, false, false},
    {Type::b4, "b4", 4, false, false},
    {Type::s4, "s4", 4, false, true},
    {Type::u4, "u4", 4, false, false},
    {Type::e2m1, "e2m1", 4, true, false},
    {Type::e2m3, "e2m3", 6, true, false},
    {Type::e3m2, "e3m2", 6, true, false},
    {Type::e4m3, "e4m3", 8, true, false},
    {Type::e5m2, "e5m2", 8, true, false},
    {Type::ue8m0, "ue8m0", 8, true, false},
    {Type::ue4m3, "ue4m3", 8, true, false},
    {Type::s8, "s8", 8, false, true},
    {Type::u8, "u8", 8, false, false},
    {Type::b8, "b8", 8, false, false},
    {Type::f16, "f16", 16, true, false},
    {Type::bf16, "bf16", 16, true, false},
    {Type::s16, "s16", 16, false, true},
    {Type::u16, "u16", 16, false, false},
    {Type::b16, "b16", 16, false, false},
    {Type::f16x2, "f16x2", 32, true, false},
    {Type::bf16x2, "bf16x2", 32, true, false},
    {Type::f32, "f32", 32, true, false},
    {Type::tf32, "tf32", 32, true, false},
    {Type::s32, "s32", 32, false, true},
    {Type::u32, "u32", 32, false, false},
    {Type::b32, "b32", 32, false, false},
    {Type::f64, "f64", 64, true, false},
    {Type::s64, "s64", 64, false, true},
    {Type::u64, "u64", 64, false, false},
    {Type::b64, "b64", 64, false, false},
    {Type::b128, "b128", 128, false, false},
    {Type::b8x16, "b8x16", 8, false, false},
    {Type::b6x16_p32, "b6x16_p32", 6, false, false},
    {Type::b4x16_p64, "b4x16_p64", 4, false, false},
    {Type::u2, "u2", 2, false, false},
    {Type::s2, "s2", 2, false, true},
    {Type::u16x2, "u16x2", 32, false, false},
    {Type::s16x2, "s16x2", 32, false, true},
    {Type::f32x2, "f32x2", 64, true, false},
    {Type::u8x4, "u8x4", 32, false, false},
    {Type::s8x4, "s8x4", 32, false, true},
    {Type::b8x4, "b8x4", 32, false, false},
    {Type::e2m1x2, "e2m1x2", 8, true, false},
    {Type::e2m1x4, "e2m1x4", 16, true, false},
    {Type::e2m3x2, "e2m3x2", 16, true, false},
    {Type::e2m3x4, "e2m3x4", 32, true, false},
    {Type::e3m2x2, "e3m2x2", 16, true, false},
    {Type::e3m2x4, "e3m2x4", 32, true, false},
    {Type::e4m3x2, "e4m3x2", 16, true, false},
    {Type::e4m3x4, "e4m3x4", 32, true, false},
    {Type::e5m2x2, "e5m2x2", 16, true, false},
    {Type::e5m2x4, "e5m2x4", 32, true, false},
    {Type::e2m1p4x4, "e2m1p4x4", 32, true, false},
    {Type::s2f6x2, "s2f6x2", 16, true, false},
    {Type::ue5m3x2, "ue5m3x2", 16, true, false},
    {Type::ue8m0x4, "ue8m0x4", 32, true, false},
    {Type::ue8m0x2, "ue8m0x2", 16, true, false},
};
// clang-format on

constexpr const TypeInfo& info(Type type) { return type_table[static_cast<int>(type)]; }
constexpr std::string_view name(Type type) { return info(type).name; }
constexpr int bits(Type type) { return info(type).bits; }

/// The type spelled `text` (no leading dot), or nothing.
constexpr std::optional<Type> parse_type(std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const TypeInfo& row : type_table)
    if (row.name == text) return row.type;
  return std::nullopt;
}

namespace detail {
constexpr bool type_table_in_order() {
  for (int i = 0; i < static_cast<int>(std::size(type_table)); ++i)
    if (type_table[i].type != static_cast<Type>(i)) return false;
  return true;
}
static_assert(type_table_in_order(), "type_table is indexed by Type");
}  // namespace detail

/// A set of types, for a table column that takes any of several.
struct TypeSet {
  std::uint64_t mask = 0;

  constexpr TypeSet() = default;
  constexpr TypeSet(Type type) : mask(std::uint64_t{1} << static_cast<int>(type)) {}
  constexpr TypeSet(std::initializer_list<Type> types) {
    for (Type type : types) mask |= TypeSet(type).mask;
  }
  constexpr bool has(Type type) const { return mask & TypeSet(type).mask; }
  /// The first type of the set in enum order (the only one, for most rows).
  constexpr Type first() const {
    for (const TypeInfo& row : type_table)
      if (has(row.type)) return row.type;
    return Type::none;
  }
};

// The types as plain names, as a kernel description uses them.
inline constexpr Type f16 = Type::f16, bf16 = Type::bf16, tf32 = Type::tf32, f32 = Type::f32,
                      f64 = Type::f64;
inline constexpr Type s8 = Type::s8, u8 = Type::u8, s32 = Type::s32, u32 = Type::u32,
                      u64 = Type::u64, u16 = Type::u16;
inline constexpr Type s64 = Type::s64, b16 = Type::b16, b32 = Type::b32, b64 = Type::b64;

}  // namespace tartan::TARTAN_ABI
