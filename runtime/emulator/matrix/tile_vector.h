// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/tile_vector.h - vectors of `lanes` numbers, for tile_kernel.h.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __AVX2__
#include <immintrin.h>

#include "tartan/abi.h"
#endif

namespace tartan::TARTAN_ABI::emulator {
namespace {

using Floats = float __attribute__((vector_size(4 * lanes)));
using Ints = std::int32_t __attribute__((vector_size(4 * lanes)));
using Words = std::uint32_t __attribute__((vector_size(4 * lanes)));
using Shorts = std::int16_t __attribute__((vector_size(2 * lanes)));

constexpr std::int16_t zero = -16000;  // the exponent of zeros

template <typename Vector, typename Element>
inline Vector load(const Element* from) {
  Vector out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}
template <typename Vector, typename Element>
inline void store(Element* to, Vector vector) {
  __builtin_memcpy(to, &vector, sizeof vector);
}
template <typename To, typename From>
inline To bits(From from) {
  To out;
  __builtin_memcpy(&out, &from, sizeof out);
  return out;
}
template <typename Vector>
inline Vector larger(Vector x, Vector y) {
  return x > y ? x : y;
}
template <typename Vector>
inline Vector smaller(Vector x, Vector y) {
  return x < y ? x : y;
}
inline Floats floats(Ints x) { return __builtin_convertvector(x, Floats); }
inline Ints ints(Floats x) { return __builtin_convertvector(x, Ints); }
inline Ints ints(Shorts x) {
#ifdef __AVX512F__
  return (Ints)_mm512_maskz_cvtepi16_epi32(0xFFFF, (__m256i)x);
#else
  return __builtin_convertvector(x, Ints);
#endif
}

inline Shorts shorts(Ints x) {
#ifdef __AVX512F__
  return (Shorts)_mm512_maskz_cvtepi32_epi16(0xFFFF, (__m512i)x);
#else
  return __builtin_convertvector(x, Shorts);
#endif
}

// Sums that may overflow 32 bits, which is checked afterwards.
inline Ints plus(Ints x, Ints y) { return bits<Ints>(bits<Words>(x) + bits<Words>(y)); }
inline Ints minus(Ints x, Ints y) { return bits<Ints>(bits<Words>(x) - bits<Words>(y)); }

// 2^exponent, exponents -126..127.
inline Floats power(Ints exponent) { return bits<Floats>((exponent + 127) << 23); }

}  // namespace
}  // namespace tartan::TARTAN_ABI::emulator
