// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/tile_kernel.h - the body of tile_portable.cc and the like: each defines
// the lanes of a vector. The namespace is unnamed, so that instruction sets are never mixed.
#pragma once

#include "runtime/emulator/matrix/tile_factors.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// ---- Sums

// All ones if x (at least zero) is not zero.
inline Ints nonzero(Ints x) { return minus(Ints{}, x) >> 31; }

// Sign bit: whether x + y == sum has overflowed 32 bits.
inline Ints overflow(Ints x, Ints y, Ints sum) { return (x ^ sum) & (y ^ sum); }

struct Addend {
  Floats value;
  Ints exponent;  // below every product's where it is zero
  Ints magnitude;
};

template <bool half>
inline Addend addend(Ints c) {
  if constexpr (!half) {
    // Zeros and subnormals get -127: products that binary32 holds have larger exponents. Without
    // such products, see `redo` in finish().
    const Ints magnitude = c & INT32_MAX;
    return {bits<Floats>(c), (magnitude >> 23) - 127, magnitude};
  } else {
    const Ints magnitude = c & 0x7FFF, present = nonzero(magnitude);
    const Ints exponent = larger(magnitude >> 10, Ints{} + 1) - 15;
    const Ints value = bits<Ints>(bits<Floats>(magnitude << 13) * 0x1p112f) | (c & 0x8000) << 16;
    return {bits<Floats>(value), (exponent & present) | (zero & ~present), magnitude};
  }
}

// sum * 2^exponent, toward zero, if that is a normal number or zero. `redo`: negative if it could
// not be computed.
inline Ints round_single(Ints sum, Ints exponent, int mask, Ints& redo) {
#ifdef __AVX512F__
  (void)redo;
  const Ints rounded = (Ints)_mm512_maskz_cvt_roundepi32_ps(
                           0xFFFF, (__m512i)sum, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC) &
                       mask;
  return sum == 0 ? Ints{} : plus(rounded, exponent << 23);
#else
  const Ints negative = sum >> 31, magnitude = minus(sum ^ negative, negative);
  redo |= minus(Ints{} + 0x7FFFFF80, magnitude);
  const Floats nearest = floats(magnitude);
  const Ints rounded = (bits<Ints>(nearest) + (minus(magnitude, ints(nearest)) >> 31)) &
                       mask;  // one unit back where it was rounded up
  return nonzero(magnitude) & (plus(rounded, exponent << 23) | (negative << 31));
#endif
}

// The same as f16, nearest even. Bits beyond the 24 kept are combined into one sticky bit.
inline Ints round_half(Ints sum, Ints exponent, Ints& redo) {
  const Ints negative = sum >> 31, magnitude = minus(sum ^ negative, negative);
  redo |= magnitude;  // -2^31 has no magnitude
  const Ints coarse = (magnitude >> 8) | (((magnitude & 0xFF) != 0) & 1);
  const Ints large = magnitude > 0xFFFFFF;
  const Floats value = floats(large ? coarse : magnitude) * power(exponent + (large & 8));
  const Ints word = bits<Ints>(value);
  const Ints subnormal = bits<Ints>(value + 0.5f) - 0x3F000000;
  const Ints normal = ((word + 0xFFF + ((word >> 13) & 1)) >> 13) - (112 << 10);
  const Ints finite = value < 0x1p-14f ? subnormal : normal;
  const Ints result = value >= 65520.0f ? Ints{} + 0x7C00 : finite;
  return result | ((result != 0) & negative & 0x8000);
}

// Where the factors' elements of one row block and its columns are.
template <int known_rows, int known_columns>
struct Cursor {
  const float *a, *b;
  const std::int16_t* a_exponent;
  const std::uint32_t* b_exponent;
  int row_count, column_count;

  Cursor(const Tile& tile, int row, int column)
      : a(tile.a.value + row),
        b(tile.b.value + column),
        a_exponent(tile.a.exponent + row),
        b_exponent(tile.b.doubled + column),
        row_count(tile.rows),
        column_count(tile.columns) {}
  int rows() const { return count<known_rows>(row_count); }
  int columns() const { return count<known_columns>(column_count); }
};

using HalfWords = std::uint32_t __attribute__((vector_size(2 * lanes)));

// A word's two halves in all lanes.
inline Shorts twice(std::uint32_t word) { return bits<Shorts>(HalfWords{} + word); }

inline bool any_negative(Ints x) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask((__m512i)x) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps((__m256)x) != 0;
#else
  std::int32_t any = 0;
  for (int i = 0; i < lanes; ++i) any |= x[i];
  return any < 0;
#endif
}

constexpr int together = 4;  // columns that share the loads of A

// Sums of `lanes` rows and of `together` columns, products first .. last-1. `c` becomes the result;
// `redo` is negative if it is invalid. `short_sum`: at most 16 products, whose sum cannot overflow.
template <bool half, bool short_sum, typename At>
inline void add(const Tile& tile, const At& at, int first, int last, Ints (&c)[together],
                Ints (&redo)[together]) {
  Shorts most[together];
  for (Shorts& m : most) m = Shorts{} + static_cast<std::int16_t>(tile.floor);
#pragma GCC unroll 16
  for (int k = first; k < last; ++k) {
    const Shorts a = load<Shorts>(at.a_exponent + k * at.rows());
    for (int j = 0; j < together; ++j)
      most[j] = larger<Shorts>(most[j], a + twice(at.b_exponent[k * at.columns() + j]));
  }
  Addend start[together];
  Ints exponent[together], low[together] = {}, high[together] = {};
  Floats scale[together];
  for (int j = 0; j < together; ++j) {
    start[j] = addend<half>(c[j]);
    exponent[j] = larger(ints(most[j]), start[j].exponent);
    scale[j] = bits<Floats>(smaller(tile.fraction + 127 - exponent[j], Ints{} + 254) << 23);
  }
#pragma GCC unroll 8
  for (int k = first; k < last; k += 2) {
    const Floats even = load<Floats>(at.a + k * at.rows()),
                 odd = load<Floats>(at.a + (k + 1) * at.rows());
    for (int j = 0; j < together; ++j) {
      low[j] = plus(low[j], ints(even * at.b[k * at.columns() + j] * scale[j]));
      Ints& other = (short_sum ? low : high)[j];
      other = plus(other, ints(odd * at.b[(k + 1) * at.columns() + j] * scale[j]));
    }
  }
  for (int j = 0; j < together; ++j) {
    const Ints products = short_sum ? low[j] : plus(low[j], high[j]),
               cut = ints(start[j].value * scale[j]), sum = plus(products, cut);
    redo[j] |= overflow(products, cut, sum);
    if constexpr (!short_sum) redo[j] |= overflow(low[j], high[j], products);
    const Ints grid = exponent[j] - tile.fraction;
    if constexpr (half) {
      redo[j] |= 0x7BFF - start[j].magnitude;
      c[j] = round_half(sum, grid, redo[j]);
    } else {
      // Below 2^-126 the grid is too fine to be a scale, but then every product is zero. At large
      // exponents the result may be infinite, or C is.
      redo[j] |= ((grid + 126) & -start[j].magnitude) | (96 - grid);
      c[j] = round_single(sum, grid, -(1 << (24 - tile.kept)), redo[j]);
    }
  }
}

// Constant counts and lengths let the compiler unroll the sums.
template <bool half, int known_rows, int known_columns, int known_length>
bool multiply_known(const Tile& tile) {
  const int rows = count<known_rows>(tile.rows), columns = count<known_columns>(tile.columns),
            length = count<known_length>(tile.length);
  bool complete = true;
  for (int column = 0; column < columns; column += together)
    for (int row = 0; row < rows; row += lanes) {
      const int place = column * rows + row;
      const Cursor<known_rows, known_columns> at(tile, row, column);
      Ints c[together] = {}, redo[together] = {};
      for (int j = 0; tile.c && j < together; ++j) c[j] = load<Ints>(tile.c + place + j * rows);
      for (int first = 0; first < tile.depth; first += length) {
        const int last = known_length || first + length < tile.depth ? first + length : tile.depth;
        add<half, known_length != 0 && known_length <= 16>(tile, at, first, last, c, redo);
      }
      for (int j = 0; j < together; ++j) store(tile.d + place + j * rows, c[j]);
      Ints any = redo[0];
      for (int j = 1; j < together; ++j) any |= redo[j];
      if (!any_negative(any)) continue;
      if (complete) __builtin_memset(tile.redo, 0, static_cast<std::size_t>(rows * columns));
      complete = false;
      for (int j = 0; j < together; ++j)
        for (int i = 0; i < lanes; ++i) tile.redo[place + j * rows + i] = redo[j][i] < 0;
    }
  return complete;
}

template <bool half>
bool multiply_as(const Tile& tile) {
  const bool whole = tile.depth % tile.length == 0;
  if (tile.rows == 16 && tile.columns == 8 && whole && tile.length == 16)
    return multiply_known<half, 16, 8, 16>(tile);
  if (tile.rows == 16 && tile.columns == 8 && whole && tile.length == 8)
    return multiply_known<half, 16, 8, 8>(tile);
  if (tile.rows == 16 && tile.columns == 16 && whole && tile.length == 16)
    return multiply_known<half, 16, 16, 16>(tile);
  return multiply_known<half, 0, 0, 0>(tile);
}

bool multiply(const Tile& tile) {
  return tile.half ? multiply_as<true>(tile) : multiply_as<false>(tile);
}

void multiply_integers(int rows, int columns, int depth, const std::int16_t* a,
                       const std::int16_t* b, std::uint32_t* d) {
  for (int column = 0; column < columns; ++column)
    for (int row = 0; row < rows; row += lanes) {
      Ints sum{};
      for (int k = 0; k < depth; ++k)
        sum += ints(load<Shorts>(a + k * rows + row)) * b[k * columns + column];
      store(d + column * rows + row, sum);
    }
}

// ---- Registers

#ifdef __AVX512F__

using Sixteen = std::uint32_t __attribute__((vector_size(64)));
using Eight = std::uint32_t __attribute__((vector_size(32)));

// The four columns of a block, eight words each: 0 and 1 in one vector, 2 and 3 in the other.
struct Columns {
  Sixteen low, high;
};

inline Columns columns_of(const std::uint32_t* from) {
  const Sixteen x = load<Sixteen>(from), y = load<Sixteen>(from + 16);
  return {
      __builtin_shufflevector(x, y, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29),
      __builtin_shufflevector(x, y, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31)};
}

// Sixteen lanes: stores whole vectors wherever sixteen words are contiguous, so that the next step
// can load them as vectors.
inline void gather_block(const RegisterBlock& block, const void* const* registers,
                         std::uint32_t* to) {
  const int step = block.step;
  const Columns upper = columns_of(static_cast<const std::uint32_t*>(registers[block.reg]));
  if (step == 8) {
    store(to, upper.low);
    store(to + 16, upper.high);
  } else if (block.below >= 0) {
    const Columns lower = columns_of(static_cast<const std::uint32_t*>(registers[block.below]));
    store(to, __builtin_shufflevector(upper.low, lower.low, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19,
                                      20, 21, 22, 23));
    store(to + step, __builtin_shufflevector(upper.low, lower.low, 8, 9, 10, 11, 12, 13, 14, 15, 24,
                                             25, 26, 27, 28, 29, 30, 31));
    store(to + 2 * step, __builtin_shufflevector(upper.high, lower.high, 0, 1, 2, 3, 4, 5, 6, 7, 16,
                                                 17, 18, 19, 20, 21, 22, 23));
    store(to + 3 * step, __builtin_shufflevector(upper.high, lower.high, 8, 9, 10, 11, 12, 13, 14,
                                                 15, 24, 25, 26, 27, 28, 29, 30, 31));
  } else {
    store(to, __builtin_shufflevector(upper.low, upper.low, 0, 1, 2, 3, 4, 5, 6, 7));
    store(to + step, __builtin_shufflevector(upper.low, upper.low, 8, 9, 10, 11, 12, 13, 14, 15));
    store(to + 2 * step, __builtin_shufflevector(upper.high, upper.high, 0, 1, 2, 3, 4, 5, 6, 7));
    store(to + 3 * step,
          __builtin_shufflevector(upper.high, upper.high, 8, 9, 10, 11, 12, 13, 14, 15));
  }
}

inline void scatter_block(const std::uint32_t* from, std::uint32_t* to, int step) {
  const Eight t0 = load<Eight>(from), t1 = load<Eight>(from + step),
              t2 = load<Eight>(from + 2 * step), t3 = load<Eight>(from + 3 * step);
  const Sixteen x =
      __builtin_shufflevector(t0, t1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const Sixteen y =
      __builtin_shufflevector(t2, t3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  store(to,
        __builtin_shufflevector(x, y, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27));
  store(to + 16,
        __builtin_shufflevector(x, y, 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31));
}

#else

inline void gather_columns(const std::uint32_t* from, std::uint32_t* to, int step) {
  for (int t = 0; t < 4; ++t)
    for (int g = 0; g < 8; ++g) to[t * step + g] = from[4 * g + t];
}

inline void gather_block(const RegisterBlock& block, const void* const* registers,
                         std::uint32_t* to) {
  gather_columns(static_cast<const std::uint32_t*>(registers[block.reg]), to, block.step);
  if (block.below >= 0)
    gather_columns(static_cast<const std::uint32_t*>(registers[block.below]), to + 8, block.step);
}

inline void scatter_block(const std::uint32_t* from, std::uint32_t* to, int step) {
  for (int g = 0; g < 8; ++g)
    for (int t = 0; t < 4; ++t) to[4 * g + t] = from[t * step + g];
}

#endif

void gather(const RegisterBlock* blocks, int count, const void* const* registers,
            std::uint32_t* image) {
  for (int i = 0; i < count; ++i) gather_block(blocks[i], registers, image + blocks[i].first);
}

void scatter(const RegisterBlock* blocks, int count, const std::uint32_t* image,
             void* const* registers) {
  for (int i = 0; i < count; ++i) {
    const RegisterBlock block = blocks[i];
    const std::uint32_t* from = image + block.first;
    scatter_block(from, static_cast<std::uint32_t*>(registers[block.reg]), block.step);
    if (block.below >= 0)
      scatter_block(from + 8, static_cast<std::uint32_t*>(registers[block.below]), block.step);
  }
}

}  // namespace
}  // namespace tartan::TARTAN_ABI::emulator
