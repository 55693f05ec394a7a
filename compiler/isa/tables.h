// SPDX-License-Identifier: Apache-2.0
// compiler/isa/tables.h - the instruction tables: every warp-level matrix instruction and wgmma,
// one row per PTX signature, with the columns of tartan/isa/rows.h.
//
// For this folder only: other folders use tartan/isa/instruction.h, or the rows through rows.h, so
// that a changed row does not recompile them.
#pragma once

#include "tartan/isa/rows.h"

namespace tartan::TARTAN_ABI::isa {

// ldmatrix, stmatrix, movmatrix.
// clang-format off
inline constexpr MatrixMove matrix_moves[] = {
    {.opcode = Opcode::ldmatrix, .shape = {8, 8}, .format = b16, .from = Type::none, .counts = 1 + 2 + 4, .trans = Trans::Optional, .registers = 1, .since = {{6, 5}, 75}},
    {.opcode = Opcode::ldmatrix, .shape = {16, 16}, .format = Type::b8, .from = Type::none, .counts = 1 + 2, .trans = Trans::Always, .registers = 2, .since = {{8, 6}, 100, Reach::Family}},
    {.opcode = Opcode::ldmatrix, .shape = {16, 16}, .format = Type::b8x16, .from = {Type::b6x16_p32, Type::b4x16_p64}, .counts = 1 + 2, .trans = Trans::Always, .registers = 2, .since = {{8, 6}, 100, Reach::Family}},
    {.opcode = Opcode::ldmatrix, .shape = {8, 16}, .format = Type::b8x16, .from = {Type::b6x16_p32, Type::b4x16_p64}, .counts = 1 + 2 + 4, .trans = Trans::Never, .registers = 1, .since = {{8, 6}, 100, Reach::Family}},
    {.opcode = Opcode::ldmatrix, .shape = {8, 16}, .format = Type::s8, .from = Type::s4, .counts = 1 + 2 + 4, .trans = Trans::Never, .registers = 1, .since = {{9, 4}, 90, Reach::Family}},
    {.opcode = Opcode::stmatrix, .shape = {8, 8}, .format = b16, .from = Type::none, .counts = 1 + 2 + 4, .trans = Trans::Optional, .registers = 1, .since = {{7, 8}, 90}},
    {.opcode = Opcode::stmatrix, .shape = {16, 8}, .format = Type::b8, .from = Type::none, .counts = 1 + 2 + 4, .trans = Trans::Always, .registers = 1, .since = {{8, 6}, 100, Reach::Family}},
    {.opcode = Opcode::movmatrix, .shape = {8, 8}, .format = b16, .from = Type::none, .counts = 0, .trans = Trans::Always, .registers = 1, .since = {{7, 8}, 75}},
};
// clang-format on

// wmma.load, wmma.store, wmma.mma.
// clang-format off
inline constexpr Wmma wmmas[] = {
    {.shape = {16, 16, 16}, .ab = f16, .cd = {f16, f32}, .any_major = true, .since = {{6, 3}, 70}, .unaligned = {6, 0}},
    {.shape = {32, 8, 16}, .ab = f16, .cd = {f16, f32}, .any_major = true, .since = {{6, 3}, 70}, .unaligned = {6, 1}},
    {.shape = {8, 32, 16}, .ab = f16, .cd = {f16, f32}, .any_major = true, .since = {{6, 3}, 70}, .unaligned = {6, 1}},
    {.shape = {16, 16, 16}, .ab = {s8, u8}, .cd = s32, .any_major = true, .satfinite = true, .since = {{6, 3}, 72}},
    {.shape = {32, 8, 16}, .ab = {s8, u8}, .cd = s32, .any_major = true, .satfinite = true, .since = {{6, 3}, 72}},
    {.shape = {8, 32, 16}, .ab = {s8, u8}, .cd = s32, .any_major = true, .satfinite = true, .since = {{6, 3}, 72}},
    {.shape = {8, 8, 32}, .ab = {Type::s4, Type::u4}, .cd = s32, .satfinite = true, .since = {{6, 3}, 75}},
    {.shape = {8, 8, 128}, .ab = Type::b1, .cd = s32, .bit_op = BitOp::xor_popc, .since = {{6, 3}, 75}},
    {.shape = {8, 8, 128}, .ab = Type::b1, .cd = s32, .bit_op = BitOp::and_popc, .since = {{7, 1}, 80}},
    {.shape = {16, 16, 16}, .ab = bf16, .cd = f32, .any_major = true, .since = {{7, 0}, 80}},
    {.shape = {32, 8, 16}, .ab = bf16, .cd = f32, .any_major = true, .since = {{7, 0}, 80}},
    {.shape = {8, 32, 16}, .ab = bf16, .cd = f32, .any_major = true, .since = {{7, 0}, 80}},
    {.shape = {16, 16, 8}, .ab = tf32, .cd = f32, .any_major = true, .since = {{7, 0}, 80}},
    {.shape = {8, 8, 4}, .ab = f64, .cd = f64, .any_major = true, .roundings = true, .since = {{7, 0}, 80}},
};
// clang-format on

// mma: dense, sparse and block-scaled.

inline constexpr TypeSet int8{Type::s8, Type::u8};
inline constexpr TypeSet int4{Type::s4, Type::u4};
inline constexpr TypeSet fp8{Type::e4m3, Type::e5m2};
inline constexpr TypeSet fp64{Type::e3m2, Type::e2m3, Type::e2m1};  // six and four bits
inline constexpr TypeSet fp864{Type::e4m3, Type::e5m2, Type::e3m2, Type::e2m3, Type::e2m1};

// clang-format off
inline constexpr Mma mmas[] = {
    // f16
    {.shape = {8, 8, 4},   .d = f16, .a = f16, .b = f16, .c = f16, .options = any_major, .since = {{6, 4}, 70}},
    {.shape = {8, 8, 4},   .d = f32, .a = f16, .b = f16, .c = f16, .options = any_major, .since = {{6, 4}, 70}},
    {.shape = {8, 8, 4},   .d = f32, .a = f16, .b = f16, .c = f32, .options = any_major, .since = {{6, 4}, 70}},
    {.shape = {16, 8, 8},  .d = f16, .a = f16, .b = f16, .c = f16, .options = plain, .since = {{6, 5}, 75}},
    {.shape = {16, 8, 8},  .d = f32, .a = f16, .b = f16, .c = f32, .options = plain, .since = {{6, 5}, 75}},
    {.shape = {16, 8, 16}, .d = f16, .a = f16, .b = f16, .c = f16, .options = plain, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 16}, .d = f32, .a = f16, .b = f16, .c = f32, .options = plain, .since = {{7, 0}, 80}},
    // bf16, tf32
    {.shape = {16, 8, 8},  .d = f32, .a = bf16, .b = bf16, .c = f32, .options = plain, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 16}, .d = f32, .a = bf16, .b = bf16, .c = f32, .options = plain, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 4},  .d = f32, .a = tf32, .b = tf32, .c = f32, .options = plain, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 8},  .d = f32, .a = tf32, .b = tf32, .c = f32, .options = plain, .since = {{7, 0}, 80}},
    // f64
    {.shape = {8, 8, 4},   .d = f64, .a = f64, .b = f64, .c = f64, .options = roundings, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 4},  .d = f64, .a = f64, .b = f64, .c = f64, .options = roundings, .since = {{7, 8}, 90}},
    {.shape = {16, 8, 8},  .d = f64, .a = f64, .b = f64, .c = f64, .options = roundings, .since = {{7, 8}, 90}},
    {.shape = {16, 8, 16}, .d = f64, .a = f64, .b = f64, .c = f64, .options = roundings, .since = {{7, 8}, 90}},
    // integers
    {.shape = {8, 8, 16},  .d = s32, .a = int8, .b = int8, .c = s32, .options = satfinite, .since = {{6, 5}, 75}},
    {.shape = {16, 8, 16}, .d = s32, .a = int8, .b = int8, .c = s32, .options = satfinite, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 32}, .d = s32, .a = int8, .b = int8, .c = s32, .options = satfinite, .since = {{7, 0}, 80}},
    {.shape = {8, 8, 32},  .d = s32, .a = int4, .b = int4, .c = s32, .options = satfinite, .since = {{6, 5}, 75}},
    {.shape = {16, 8, 32}, .d = s32, .a = int4, .b = int4, .c = s32, .options = satfinite, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 64}, .d = s32, .a = int4, .b = int4, .c = s32, .options = satfinite, .since = {{7, 0}, 80}},
    {.shape = {8, 8, 128},  .d = s32, .a = Type::b1, .b = Type::b1, .c = s32, .options = plain, .bit_op = BitOp::xor_popc, .since = {{7, 0}, 75}},
    {.shape = {16, 8, 128}, .d = s32, .a = Type::b1, .b = Type::b1, .c = s32, .options = plain, .bit_op = BitOp::xor_popc, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 256}, .d = s32, .a = Type::b1, .b = Type::b1, .c = s32, .options = plain, .bit_op = BitOp::xor_popc, .since = {{7, 0}, 80}},
    {.shape = {8, 8, 128},  .d = s32, .a = Type::b1, .b = Type::b1, .c = s32, .options = plain, .bit_op = BitOp::and_popc, .since = {{7, 1}, 80}},
    {.shape = {16, 8, 128}, .d = s32, .a = Type::b1, .b = Type::b1, .c = s32, .options = plain, .bit_op = BitOp::and_popc, .since = {{7, 1}, 80}},
    {.shape = {16, 8, 256}, .d = s32, .a = Type::b1, .b = Type::b1, .c = s32, .options = plain, .bit_op = BitOp::and_popc, .since = {{7, 1}, 80}},
    // eight, six and four bit floats
    {.shape = {16, 8, 32}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .since = {{8, 4}, 89}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .since = {{8, 7}, 89}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .since = {{8, 7}, 89}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .since = {{8, 7}, 89}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp8,  .b = fp8,   .c = f32, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 6}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8,  .b = fp8,   .c = f16, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp64, .b = fp864, .c = f32, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 7}, 120, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp8,  .b = fp64,  .c = f32, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 7}, 120, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp64, .b = fp864, .c = f16, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 7}, 120, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8,  .b = fp64,  .c = f16, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 7}, 120, Reach::Family}},
    // block-scaled
    {.shape = {16, 8, 32}, .d = f32, .a = fp864, .b = fp864, .c = f32, .options = plain, .kind = Kind::mxf8f6f4, .scale_vec = 1, .scale_type = Type::ue8m0, .since = {{8, 7}, 120, Reach::Family}},
    {.shape = {16, 8, 64}, .d = f32, .a = Type::e2m1, .b = Type::e2m1, .c = f32, .options = plain, .kind = Kind::mxf4, .scale_vec = 2, .scale_type = Type::ue8m0, .since = {{8, 7}, 120, Reach::Family}},
    {.shape = {16, 8, 64}, .d = f32, .a = Type::e2m1, .b = Type::e2m1, .c = f32, .options = needs_vec, .kind = Kind::mxf4nvf4, .scale_vec = 2, .scale_type = Type::ue8m0, .since = {{8, 7}, 120, Reach::Family}},
    {.shape = {16, 8, 64}, .d = f32, .a = Type::e2m1, .b = Type::e2m1, .c = f32, .options = needs_vec, .kind = Kind::mxf4nvf4, .scale_vec = 4, .scale_type = Type::ue4m3, .since = {{8, 7}, 120, Reach::Family}},
    {.shape = {16, 8, 64}, .d = f32, .a = Type::e2m1, .b = Type::e2m1, .c = f32, .options = needs_vec, .kind = Kind::mxf4nvf4, .scale_vec = 4, .scale_type = Type::ue8m0, .since = {{9, 1}, 120, Reach::Family}},
    // sparse A
    {.shape = {16, 8, 16}, .d = f16, .a = f16,  .b = f16,  .c = f16, .options = plain, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 32}, .d = f16, .a = f16,  .b = f16,  .c = f16, .options = plain, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 16}, .d = f32, .a = f16,  .b = f16,  .c = f32, .options = plain, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 32}, .d = f32, .a = f16,  .b = f16,  .c = f32, .options = plain, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 16}, .d = f32, .a = bf16, .b = bf16, .c = f32, .options = plain, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 32}, .d = f32, .a = bf16, .b = bf16, .c = f32, .options = plain, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 8},  .d = f32, .a = tf32, .b = tf32, .c = f32, .options = plain, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 16}, .d = f32, .a = tf32, .b = tf32, .c = f32, .options = plain, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 32}, .d = s32, .a = int8, .b = int8, .c = s32, .options = satfinite, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 64}, .d = s32, .a = int8, .b = int8, .c = s32, .options = satfinite, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 64}, .d = s32, .a = int4, .b = int4, .c = s32, .options = satfinite, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 128}, .d = s32, .a = int4, .b = int4, .c = s32, .options = satfinite, .since = {{8, 5}, 80}, .sparse = true, .plain_sp = {7, 1}},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8,  .b = fp8,   .c = f32, .options = plain, .since = {{8, 5}, 89}, .sparse = true, .plain_sp = {8, 4}},
    {.shape = {16, 8, 64}, .d = f16, .a = fp8,  .b = fp8,   .c = f16, .options = plain, .since = {{8, 7}, 120, Reach::Family}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8,  .b = fp8,   .c = f32, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 6}, 100, Reach::Family}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp64, .b = fp864, .c = f32, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 7}, 120, Reach::Family}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8,  .b = fp64,  .c = f32, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 7}, 120, Reach::Family}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f16, .a = fp864, .b = fp864, .c = f16, .options = plain, .kind = Kind::f8f6f4, .since = {{8, 7}, 120, Reach::Family}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp864, .b = fp864, .c = f32, .options = plain, .kind = Kind::mxf8f6f4, .scale_vec = 1, .scale_type = Type::ue8m0, .since = {{8, 7}, 120, Reach::Family}, .sparse = true},
    {.shape = {16, 8, 128}, .d = f32, .a = Type::e2m1, .b = Type::e2m1, .c = f32, .options = plain, .kind = Kind::mxf4, .scale_vec = 2, .scale_type = Type::ue8m0, .since = {{8, 7}, 120, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 128}, .d = f32, .a = Type::e2m1, .b = Type::e2m1, .c = f32, .options = needs_vec, .kind = Kind::mxf4nvf4, .scale_vec = 2, .scale_type = Type::ue8m0, .since = {{8, 7}, 120, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 128}, .d = f32, .a = Type::e2m1, .b = Type::e2m1, .c = f32, .options = needs_vec, .kind = Kind::mxf4nvf4, .scale_vec = 4, .scale_type = Type::ue4m3, .since = {{8, 7}, 120, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 128}, .d = f32, .a = Type::e2m1, .b = Type::e2m1, .c = f32, .options = needs_vec, .kind = Kind::mxf4nvf4, .scale_vec = 4, .scale_type = Type::ue8m0, .since = {{9, 1}, 120, Reach::ArchOnly}, .sparse = true},
};
// clang-format on

// wgmma.mma_async.
// clang-format off
inline constexpr Wgmma wgmmas[] = {
    {.k = 16, .d = f16, .a = f16, .b = f16, .every_n = true, .floating = true, .majors = true, .since = {{8, 0}, 90, Reach::ExactArch}, .sparse = {8, 2}},
    {.k = 16, .d = f32, .a = f16, .b = f16, .every_n = true, .floating = true, .majors = true, .since = {{8, 0}, 90, Reach::ExactArch}, .sparse = {8, 2}},
    {.k = 16, .d = f32, .a = bf16, .b = bf16, .every_n = true, .floating = true, .majors = true, .since = {{8, 0}, 90, Reach::ExactArch}, .sparse = {8, 2}},
    {.k = 8, .d = f32, .a = tf32, .b = tf32, .every_n = true, .floating = true, .since = {{8, 0}, 90, Reach::ExactArch}, .sparse = {8, 2}},
    {.k = 32, .d = f16, .a = fp8, .b = fp8, .every_n = true, .floating = true, .since = {{8, 0}, 90, Reach::ExactArch}, .sparse = {8, 2}},
    {.k = 32, .d = f32, .a = fp8, .b = fp8, .every_n = true, .floating = true, .since = {{8, 0}, 90, Reach::ExactArch}, .sparse = {8, 2}},
    {.k = 32, .d = s32, .a = s8, .b = s8, .satfinite = true, .since = {{8, 0}, 90, Reach::ExactArch}, .sparse = {8, 2}},
    {.k = 32, .d = s32, .a = u8, .b = u8, .satfinite = true, .since = {{8, 0}, 90, Reach::ExactArch}, .sparse = {8, 2}},
    {.k = 32, .d = s32, .a = s8, .b = u8, .satfinite = true, .since = {{8, 4}, 90, Reach::ExactArch}, .sparse = {8, 4}},
    {.k = 32, .d = s32, .a = u8, .b = s8, .satfinite = true, .since = {{8, 4}, 90, Reach::ExactArch}, .sparse = {8, 4}},
    {.k = 256, .d = s32, .a = Type::b1, .b = Type::b1, .bit_op = BitOp::and_popc, .since = {{8, 0}, 90, Reach::ExactArch}},
};
// clang-format on

}  // namespace tartan::TARTAN_ABI::isa
