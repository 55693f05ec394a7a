// SPDX-License-Identifier: Apache-2.0
// dsl/kernels/kernels.h - the built-in kernels: what `tartan emit --list` shows, and what examples/
// explains.
#pragma once

#include <span>
#include <string_view>

#include "dsl/builder.h"

namespace tartan::kernels {

/// D(16x8, f32) = A(16x16, f16, by rows) * B(16x8, f16, by columns): one warp, one mma.m16n8k16.
Kernel one_mma();

/// The same product with A and B stored by rows or columns. In the words of BLAS: a column-major A
/// is N, a row-major one T; B likewise.
Kernel stored_mma(Major a, Major b);

/// C = A * B for any m, n and k, A and B by rows or columns, C by rows: cp.async pipeline, ldmatrix,
/// mma.sync. A size of 0 is a parameter of the kernel (s32, in the order m, n, k).
struct Gemm {
  int m = 256, n = 256, k = 256;
  Type a = f16, b = f16;          // elements of A and B
  Type accumulator = f32;         // f32, f16, f64 or s32
  Type c = f32;                   // elements of C
  Major a_major = Major::row, b_major = Major::col;
  int multiple = 8;  // sizes that are parameters: what the lengths of lines in memory are multiples of
  Tile tile = {.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};
  int stages = 3;
  /// Blocks of a launch for sizes m and n.
  unsigned blocks(int rows, int cols) const {
    return static_cast<unsigned>((rows + tile.m - 1) / tile.m * ((cols + tile.n - 1) / tile.n));
  }
};
Kernel gemm(const Gemm& options);

/// One wmma.mma: D(16x16, f32) = A(16x16, f16) * B(16x16, f16), loaded by wmma.load straight from
/// global memory.
Kernel one_wmma(Major a, Major b);

/// ldmatrix .x`count` of matrices that hold 0, 1, 2, ...; out row r: what each lane got in register
/// r, two values a lane (u16).
Kernel ldmatrix_registers(int count, bool trans);
/// The same from a matrix in memory: 8x8 (x1), 8x16 (x2) or 16x16 (x4) f16; each lane writes its
/// values behind each other.
Kernel ldmatrix_matrix(int count, bool trans);
/// The top left 8x8 of a 64x64 f16 matrix that holds 0, 1, 2, ...: by the instruction, or by
/// loading a tile.
Kernel ldmatrix_corner(bool by_tile);
/// stmatrix .x`count` of registers that hold 2 lane and 2 lane + 1 (+ 64 per register); out: the
/// shared memory written.
Kernel stmatrix_registers(int count, bool trans);
/// movmatrix of an 8x8 matrix that holds 0, 1, 2, ...; out: two values a lane.
Kernel movmatrix_registers();

/// A built-in kernel as the command names it.
struct Named {
  std::string_view name;
  std::string_view summary;
  Kernel (*make)(const Gemm& size);  // size: the options --m --n --k, for those that have them
};
std::span<const Named> all();

}  // namespace tartan::kernels
