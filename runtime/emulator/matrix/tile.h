// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/tile.h - fused sums of a whole tile at once, in vector registers.
//
// The sums of fused_sum.h without their rare cases. Products of two short significands are exact in
// binary32, so one term is
//   int32(a * b * 2^(fraction - E))
// where the conversion truncates toward zero as the hardware does. What does not fit (infinities,
// NaN, results that are subnormal or overflow, sums beyond 31 bits) is marked for the scalar code.
// All vector widths compile from the same source and give the same bits.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// A decoded factor: element (k, outer) at k * outer_count + outer.
struct TileFactor {
  float* value;
  std::int16_t* exponent;  // rows' factor: not normalised (see number.h); zero_exponent for zeros
  std::uint32_t* doubled;  // columns' factor: the same twice, in both halves of a word
  std::uint8_t* special;   // by outer: nonzero where an element is infinite or NaN
  std::int16_t lowest;     // exponents of the elements other than zero
  std::int16_t highest;
};

struct Tile {
  int rows, columns, depth;  // rows: a multiple of 16
  int length;                // products of one sum: a multiple of 4
  TileFactor a, b;
  const std::uint32_t*
      c;  // element (row, column) at column * rows + row: bits of the accumulator's type. Null: +0
  std::uint32_t* d;
  std::uint8_t* redo;  // by element as c, see multiply
  int fraction, floor, kept;
  bool half;  // the accumulator is f16
};

/// The formats that the vector code decodes. e4m3_as_half: with f16's exponents.
enum class TileFormat : std::uint8_t { f16, bf16, tf32, e5m2, e4m3, e4m3_as_half };

/// Cells as `image[cell * outer + i]`, decoded into element (k, i) at order[k] * outer + i.
struct Cells {
  const std::uint32_t* image;
  int cells, outer;           // outer: a multiple of 8, at most 256
  const std::uint8_t* order;  // k to its place in the order of addition
};

/// 32 words of a register as a block of four columns of eight: word 4 * g + t belongs to cell first
/// + g + t * step. `below`: the register of the block with the next eight rows, or -1.
struct RegisterBlock {
  int reg, below, first, step;
};

struct TileKernel {
  /// Registers of 32 words to cells and back.
  void (*gather)(const RegisterBlock* blocks, int count, const void* const* registers,
                 std::uint32_t* image);
  void (*scatter)(const RegisterBlock* blocks, int count, const std::uint32_t* image,
                  void* const* registers);
  /// Fills what `factor` points to: `exponent` or `doubled`, whichever is not null.
  void (*unpack)(TileFormat format, const Cells& cells, TileFactor& factor);
  /// Whether d is complete. If not, fills `redo`: nonzero where d must be computed again.
  bool (*multiply)(const Tile& tile);
  /// Integers of 4 or 8 bits.
  void (*unpack_integers)(int bits, bool is_signed, const Cells& cells, std::int16_t* to);
  /// d[column * rows + row] = the sum of the products of unpacked integers.
  void (*multiply_integers)(int rows, int columns, int depth, const std::int16_t* a,
                            const std::int16_t* b, std::uint32_t* d);
};

enum class Path : std::uint8_t;  // matrix.h

/// The kernel of a path; null for the reference, and if the machine lacks the instructions.
const TileKernel* tile_kernel(Path path);

extern const TileKernel tile_portable, tile_avx2, tile_avx512;

/// Whether the tile's products fit binary32: otherwise the scalar code computes all of it.
constexpr bool fits(const TileFactor& a, const TileFactor& b) {
  return a.lowest + b.lowest >= -100 && a.highest + b.highest <= 126;
}

}  // namespace tartan::TARTAN_ABI::emulator
