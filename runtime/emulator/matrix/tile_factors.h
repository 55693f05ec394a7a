// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/tile_factors.h - decodes factors, for tile_kernel.h.
#pragma once

#include "runtime/emulator/matrix/tile.h"
#include "runtime/emulator/matrix/tile_vector.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

struct Part {
  Floats value;
  Ints exponent;
  Ints special;
};

// `shift` moves a magnitude to binary32's place; `rebias` then corrects the exponent.
template <int exponent_bits, int fraction_bits, int shift>
inline Part part(Ints magnitude, Ints sign, float rebias) {
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  const Ints field = magnitude >> fraction_bits;
  const Ints value = bits<Ints>(bits<Floats>(magnitude << shift) * rebias) | sign;
  return {bits<Floats>(value), magnitude == 0 ? Ints{} + zero : larger(field, Ints{} + 1) - bias,
          field == (1 << exponent_bits) - 1};
}

template <TileFormat format>
inline Part take(Ints cell, int index) {
  if constexpr (format == TileFormat::tf32) {
    return part<8, 23, 0>(cell & 0x7FFFE000, cell & INT32_MIN, 1);
  } else if constexpr (format == TileFormat::f16 || format == TileFormat::bf16) {
    const Ints element = cell >> (16 * index), magnitude = element & 0x7FFF,
               sign = (element & 0x8000) << 16;
    if constexpr (format == TileFormat::bf16) return part<8, 7, 16>(magnitude, sign, 1);
    return part<5, 10, 13>(magnitude, sign, 0x1p112f);
  } else {
    const Ints element = cell >> (8 * index), magnitude = element & 0x7F,
               sign = (element & 0x80) << 24;
    if constexpr (format == TileFormat::e5m2) return part<5, 2, 21>(magnitude, sign, 0x1p112f);
    Part out = part<4, 3, 20>(magnitude, sign, 0x1p120f);
    out.special = magnitude == 0x7F;
    if constexpr (format == TileFormat::e4m3_as_half) {
      const Ints normalised = ((bits<Ints>(out.value) & INT32_MAX) >> 23) - 127;
      out.exponent = magnitude == 0 ? out.exponent : normalised;
    }
    return out;
  }
}

// The number of elements side by side: a constant for the common shapes, 0 if it is read at run
// time.
template <int known>
inline int count(int given) {
  return known ? known : given;
}

// Stores the result for element `index` of the cells of vector `block`. A vector may span several
// cells: each group of eight goes to its own.
template <int known, typename Vector, typename Element>
inline void store_parts(const Cells& cells, int block, int per_cell, int index, Vector vector,
                        Element* to) {
  const int outer = count<known>(cells.outer);
  if (outer % lanes == 0) {
    const int cell = block * lanes / outer, first = block * lanes % outer;
    return store(to + cells.order[cell * per_cell + index] * outer + first, vector);
  }
  const auto place = [&](int lane) {
    const int flat = block * lanes + lane;
    return to + cells.order[flat / outer * per_cell + index] * outer + flat % outer;
  };
  if constexpr (lanes == 16) {
    store(place(0), __builtin_shufflevector(vector, vector, 0, 1, 2, 3, 4, 5, 6, 7));
    store(place(8), __builtin_shufflevector(vector, vector, 8, 9, 10, 11, 12, 13, 14, 15));
  } else {
    store(place(0), vector);
  }
}

// Moves the upper half to the lower one.
template <typename Vector>
inline Vector turned(Vector x) {
  if constexpr (sizeof x / sizeof x[0] == 16)
    return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  else return x;
}

template <TileFormat format, int known, bool doubled>
inline void unpack_known(const Cells& given, TileFactor& factor) {
  const Cells cells = given;
  float* const values = factor.value;
  std::int16_t* const exponents = factor.exponent;
  std::uint32_t* const pairs = factor.doubled;
  constexpr bool narrow =
      format != TileFormat::bf16 && format != TileFormat::tf32;  // products always fit binary32
  constexpr int per_cell = format == TileFormat::tf32                                ? 1
                           : format == TileFormat::f16 || format == TileFormat::bf16 ? 2
                                                                                     : 4;
  constexpr int slots = known > lanes ? known / lanes : 1;  // vectors side by side
  const int outer = count<known>(cells.outer);
  Ints lowest = Ints{} + 16000, highest = Ints{} - 16000;
  Ints special[slots] = {};
  std::int32_t flags[256 + lanes];  // instead of `special` if `outer` is not a constant
  for (int i = 0; !known && i < outer + lanes; ++i) flags[i] = 0;
  for (int first = 0; first < cells.cells * outer / lanes; first += slots)
    for (int slot = 0; slot < slots; ++slot) {
      const int block = first + slot;
      const Ints word = load<Ints>(cells.image + block * lanes);
      for (int i = 0; i < per_cell; ++i) {
        const Part p = take<format>(word, i);
        special[slot] |= p.special;
        if constexpr (!narrow) {
          lowest = smaller(lowest, p.exponent == zero ? Ints{} + 16000 : p.exponent);
          highest = larger(highest, p.exponent);
        }
        store_parts<known>(cells, block, per_cell, i, p.value, values);
        if constexpr (doubled)
          store_parts<known>(cells, block, per_cell, i, (p.exponent & 0xFFFF) | p.exponent << 16,
                             pairs);
        else store_parts<known>(cells, block, per_cell, i, shorts(p.exponent), exponents);
      }
      if constexpr (!known) {
        std::int32_t* to =
            flags + block * lanes % outer;  // writes beyond the end are folded back below
        store(to, load<Ints>(to) | special[0]);
        special[0] = Ints{};
      }
    }
  if constexpr (known != 0) {
    using Bytes = std::int8_t __attribute__((vector_size(lanes)));
    for (int slot = 0; slot < slots; ++slot) {
      const Bytes bytes = __builtin_convertvector(special[slot], Bytes);
      if constexpr (known >= lanes) store(factor.special + slot * lanes, bytes);
      else {
        const Bytes both = bytes | turned(bytes);
        __builtin_memcpy(factor.special, &both, known);
      }
    }
  } else {
    for (int i = 0; i < outer; ++i)
      factor.special[i] = (flags[i] | (i < lanes ? flags[outer + i] : 0)) != 0;
  }
  factor.lowest = narrow ? -16 : 16000;
  factor.highest = narrow ? 16 : -16000;
  if constexpr (!narrow)
    for (int i = 0; i < lanes; ++i) {
      if (lowest[i] < factor.lowest) factor.lowest = static_cast<std::int16_t>(lowest[i]);
      if (highest[i] > factor.highest) factor.highest = static_cast<std::int16_t>(highest[i]);
    }
}

// f16, whose elements are added in the order of k. Computes the exponents of both halves of a word
// at once.
using Halves = std::int16_t __attribute__((vector_size(4 * lanes)));

inline Floats half_values(Ints word, int index) {
#ifdef __AVX512F__
  return (Floats)_mm512_maskz_cvtph_ps(0xFFFF, (__m256i)shorts(word >> (16 * index)));
#else
  const Ints element = word >> (16 * index);
  return bits<Floats>(bits<Ints>(bits<Floats>((element & 0x7FFF) << 13) * 0x1p112f) |
                      (element & 0x8000) << 16);
#endif
}

// Nonzero bytes for the nonzero lanes of x, `count` of them.
template <int count>
inline void store_flags(std::uint8_t* to, Ints x) {
#ifdef __AVX512F__
  const __m128i bytes = _mm_movm_epi8(_mm512_test_epi32_mask((__m512i)x, (__m512i)x));
#else
  using Bytes = std::int8_t __attribute__((vector_size(lanes)));
  const Bytes bytes = __builtin_convertvector(x != 0, Bytes);
#endif
  __builtin_memcpy(to, &bytes, count);
}

// Stores a vector that may span several cells, whose elements are `apart` elements apart.
template <int known, typename Vector, typename Element>
inline void store_cells(Element* to, int apart, Vector vector) {
  if constexpr (known >= lanes) {
    store(to, vector);
  } else {
    static_assert(known == 8 && lanes == 16);
    store(to, __builtin_shufflevector(vector, vector, 0, 1, 2, 3, 4, 5, 6, 7));
    store(to + apart, __builtin_shufflevector(vector, vector, 8, 9, 10, 11, 12, 13, 14, 15));
  }
}

template <int known, bool doubled>
inline void unpack_halves(const Cells& cells, TileFactor& factor) {
  constexpr int slots = known > lanes ? known / lanes : 1,  // vectors of a cell
      cells_at_once = known > lanes ? 1 : lanes / known;
  const int count = cells.cells;
  const std::uint32_t* image = cells.image;
  float* values = factor.value;
  std::int16_t* exponents = factor.exponent;
  std::uint32_t* pairs = factor.doubled;
  Ints special[slots] = {};
  for (int cell = 0; cell < count; cell += cells_at_once)
    for (int slot = 0; slot < slots; ++slot) {
      const Ints word = load<Ints>(image + cell * known + slot * lanes);
      const Halves magnitude = bits<Halves>(word) & 0x7FFF, field = magnitude >> 10;
      const Halves exponent = magnitude == 0 ? Halves{} + zero : larger(field, Halves{} + 1) - 15;
      special[slot] |= bits<Ints>(field == 31);
      const Words both = bits<Words>(exponent);
      for (int i = 0; i < 2; ++i) {
        const int to = (2 * cell + i) * known + slot * lanes;
        store_cells<known>(values + to, 2 * known, half_values(word, i));
        if constexpr (doubled)
          store_cells<known>(pairs + to, 2 * known,
                             i ? (both >> 16) | (both & 0xFFFF0000) : (both & 0xFFFF) | both << 16);
        else store_cells<known>(exponents + to, 2 * known, shorts(bits<Ints>(both >> (16 * i))));
      }
    }
  for (int slot = 0; slot < slots; ++slot) {
    const Ints all = known < lanes ? special[slot] | turned(special[slot]) : special[slot];
    store_flags < known<lanes ? known : lanes>(factor.special + slot * lanes, all);
  }
  factor.lowest = -16;
  factor.highest = 16;
}

template <TileFormat format>
void unpack_as(const Cells& cells, TileFactor& factor) {
  if constexpr (format == TileFormat::f16) {
    if (cells.outer == 16 && !factor.doubled) return unpack_halves<16, false>(cells, factor);
    if (cells.outer == 16) return unpack_halves<16, true>(cells, factor);
    if (cells.outer == 8 && factor.doubled) return unpack_halves<8, true>(cells, factor);
  }
  if (factor.doubled) {
    if (cells.outer == 8) unpack_known<format, 8, true>(cells, factor);
    else if (cells.outer == 16) unpack_known<format, 16, true>(cells, factor);
    else unpack_known<format, 0, true>(cells, factor);
  } else {
    if (cells.outer == 16) unpack_known<format, 16, false>(cells, factor);
    else unpack_known<format, 0, false>(cells, factor);
  }
}

void unpack(TileFormat format, const Cells& cells, TileFactor& factor) {
  switch (format) {
    case TileFormat::f16: return unpack_as<TileFormat::f16>(cells, factor);
    case TileFormat::bf16: return unpack_as<TileFormat::bf16>(cells, factor);
    case TileFormat::tf32: return unpack_as<TileFormat::tf32>(cells, factor);
    case TileFormat::e5m2: return unpack_as<TileFormat::e5m2>(cells, factor);
    case TileFormat::e4m3: return unpack_as<TileFormat::e4m3>(cells, factor);
    case TileFormat::e4m3_as_half: return unpack_as<TileFormat::e4m3_as_half>(cells, factor);
  }
}

template <int known>
inline void unpack_integers_known(int bits, bool is_signed, const Cells& cells, std::int16_t* to) {
  const int per_cell = 32 / bits, outer = count<known>(cells.outer);
  for (int block = 0; block < cells.cells * outer / lanes; ++block) {
    const Words word = load<Words>(cells.image + block * lanes);
    for (int i = 0; i < per_cell; ++i) {
      const Words top = word << (32 - bits * (i + 1));
      const Ints value = is_signed ? tartan::emulator::bits<Ints>(top) >> (32 - bits)
                                   : tartan::emulator::bits<Ints>(top >> (32 - bits));
      store_parts<known>(cells, block, per_cell, i, shorts(value), to);
    }
  }
}

void unpack_integers(int bits, bool is_signed, const Cells& cells, std::int16_t* to) {
  if (cells.outer == 16) unpack_integers_known<16>(bits, is_signed, cells, to);
  else if (cells.outer == 8) unpack_integers_known<8>(bits, is_signed, cells, to);
  else unpack_integers_known<0>(bits, is_signed, cells, to);
}

}  // namespace
}  // namespace tartan::TARTAN_ABI::emulator
