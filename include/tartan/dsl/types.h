// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/types.h - the types that tartan/isa/type.h does not name by itself, as plain names: a
// kernel description writes `e4m3` for Type::e4m3, as it writes `f16`.
//
//   auto A = k.global("A", e4m3, row_major(m, n));
#pragma once

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI {

// clang-format off
inline constexpr Type pred = Type::pred, b1 = Type::b1, s4 = Type::s4, u4 = Type::u4;
inline constexpr Type e2m1 = Type::e2m1, e2m3 = Type::e2m3, e3m2 = Type::e3m2, e4m3 = Type::e4m3;
inline constexpr Type e5m2 = Type::e5m2, ue8m0 = Type::ue8m0, ue4m3 = Type::ue4m3, b8 = Type::b8;
inline constexpr Type s16 = Type::s16, f16x2 = Type::f16x2, bf16x2 = Type::bf16x2;
inline constexpr Type b128 = Type::b128, b8x16 = Type::b8x16, b6x16_p32 = Type::b6x16_p32;
inline constexpr Type b4x16_p64 = Type::b4x16_p64, u2 = Type::u2, s2 = Type::s2;
inline constexpr Type u16x2 = Type::u16x2, s16x2 = Type::s16x2, f32x2 = Type::f32x2;
inline constexpr Type u8x4 = Type::u8x4, s8x4 = Type::s8x4, b8x4 = Type::b8x4;
inline constexpr Type e2m1x2 = Type::e2m1x2, e2m1x4 = Type::e2m1x4, e2m3x2 = Type::e2m3x2;
inline constexpr Type e2m3x4 = Type::e2m3x4, e3m2x2 = Type::e3m2x2, e3m2x4 = Type::e3m2x4;
inline constexpr Type e4m3x2 = Type::e4m3x2, e4m3x4 = Type::e4m3x4, e5m2x2 = Type::e5m2x2;
inline constexpr Type e5m2x4 = Type::e5m2x4, ue8m0x2 = Type::ue8m0x2;
// clang-format on

}  // namespace tartan::TARTAN_ABI
