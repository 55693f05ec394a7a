// SPDX-License-Identifier: Apache-2.0
// compiler/isa/undocumented.h - forms that NVIDIA's assembler accepts beyond the manual, as rows of
// the same tables (measured with the assembler of CUDA 13.0). For this folder only.
//
// Beside these it takes .x8 of ldmatrix and stmatrix, and the bit operations of one-bit products
// for those of four bits: compiler/isa/signatures/matrix.cc.
#pragma once

#include "compiler/isa/tables.h"

namespace tartan::TARTAN_ABI::isa {

// clang-format off
// stmatrix with a type of memory.
inline constexpr MatrixMove undocumented_moves[] = {
    {Opcode::stmatrix, {16, 8}, Type::b8,    Type::b6x16_p32, 1 + 2 + 4, Trans::Always, 1, {{8, 6}, 100, Reach::Family}},
    {Opcode::stmatrix, {16, 8}, Type::b8x16, Type::b8,        1 + 2 + 4, Trans::Always, 1, {{8, 6}, 100, Reach::Family}},
};

// Products without loads or stores; four-bit ones until sm_89.
inline constexpr Wmma undocumented_products[] = {
    {{16, 16, 16}, f64, f64, true, false, true, BitOp::none, {{7, 0}, 80}},
    {{16, 16, 8},  f64, f64, true, false, true, BitOp::none, {{7, 0}, 80}},
    {{16, 16, 16}, int4, s32, true, true, false, BitOp::none, {.ptx = {6, 3}, .sm = 75, .last_sm = 89}},
    {{32, 8, 16},  int4, s32, true, true, false, BitOp::none, {.ptx = {6, 3}, .sm = 75, .last_sm = 89}},
    {{8, 32, 16},  int4, s32, true, true, false, BitOp::none, {.ptx = {6, 3}, .sm = 75, .last_sm = 89}},
    {{16, 16, 8},  int4, s32, true, true, false, BitOp::none, {.ptx = {7, 0}, .sm = 80, .last_sm = 89}},
    {{8, 8, 4},    int4, s32, true, true, false, BitOp::none, {.ptx = {7, 0}, .sm = 80, .last_sm = 89}},
};

// Accumulators of the integer shapes as f32.
inline constexpr Wmma undocumented_accumulators[] = {
    {{8, 8, 32},  {}, f32, false, false, false, BitOp::none, {{6, 3}, 75}},
    {{8, 8, 128}, {}, f32, false, false, false, BitOp::none, {{6, 3}, 75}},
};

// bf16 and tf32 in the quad-pair shape; f8f6f4 in half its shape; the block-scaled kinds without .block_scale, which then mean f8f6f4.
inline constexpr Mma undocumented_mmas[] = {
    {.shape = {8, 8, 4},   .d = f32, .a = bf16, .b = bf16, .c = f32, .options = any_major, .since = {{7, 0}, 80}},
    {.shape = {8, 8, 4},   .d = f32, .a = tf32, .b = tf32, .c = f32, .options = any_major, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::f8f6f4,   .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::f8f6f4,   .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4,     .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4,     .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 6}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4,     .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4,     .since = {{8, 6}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 64}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 7}, 120, Reach::Family},   .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 6}, 100, Reach::Family},   .sparse = true},
    {.shape = {16, 8, 64}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4,     .since = {{8, 7}, 120, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4,     .since = {{8, 6}, 100, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 120, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::ArchOnly}, .sparse = true},
};
// clang-format on

}  // namespace tartan::TARTAN_ABI::isa
