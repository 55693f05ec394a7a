// SPDX-License-Identifier: Apache-2.0
// Compiled with -ffp-contract=off: what is written here is what is computed.
#include "runtime/emulator/instructions/half_vectors.h"

#include <cstring>

#include "runtime/emulator/machine/lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARTAN_VECTORS __attribute__((target("avx2,fma,f16c")))
#define TARTAN_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC,
              to_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;

void store(Warp& warp, std::uint32_t slot, const std::uint32_t* out) {
  auto* d = lanes<std::uint32_t>(warp, slot);
  if (warp.mask == all_lanes) std::memcpy(d, out, 32 * sizeof *d);
  else each_lane(warp.mask, [=](int i) { d[i] = out[i]; });
}

TARTAN_INLINE __m256i load(const std::uint32_t* words) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
}
TARTAN_INLINE __m256 as_floats(__m256i x) { return _mm256_castsi256_ps(x); }
TARTAN_INLINE __m256i as_bits(__m256 x) { return _mm256_castps_si256(x); }
TARTAN_INLINE __m256i nan_mask(__m256 x) { return as_bits(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }

// x + y rounded to odd (sum_to_odd_float).
TARTAN_INLINE __m256 sum_to_odd(__m256 x, __m256 y) {
  const __m256 zero = _mm256_setzero_ps(), sum = _mm256_add_ps(x, y), part = _mm256_sub_ps(sum, x),
               error = _mm256_add_ps(_mm256_sub_ps(x, _mm256_sub_ps(sum, part)),
                                     _mm256_sub_ps(y, part));
  const __m256i one = _mm256_set1_epi32(1), bits = as_bits(sum);
  const __m256i inexact = as_bits(_mm256_cmp_ps(error, zero, _CMP_NEQ_OQ)),
                down = as_bits(_mm256_xor_ps(_mm256_cmp_ps(error, zero, _CMP_GT_OQ),
                                             _mm256_cmp_ps(sum, zero, _CMP_GT_OQ))),
                even = _mm256_cmpeq_epi32(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  const __m256i step =
      _mm256_and_si256(_mm256_or_si256(down, one), _mm256_and_si256(inexact, even));
  return as_floats(_mm256_add_epi32(bits, step));
}

// The same for doubles, then to floats, again to odd (small_float.h). A mask of doubles is one of
// the even floats of a pair.
struct OddFloats {
  __m128 value;
  __m256d inexact, away;
};

TARTAN_INLINE OddFloats fused_to_odd(__m128 a, __m128 b, __m128 c) {
  const __m256d zero = _mm256_setzero_pd(),
                x = _mm256_mul_pd(_mm256_cvtps_pd(a), _mm256_cvtps_pd(b)), y = _mm256_cvtps_pd(c),
                sum = _mm256_add_pd(x, y), part = _mm256_sub_pd(sum, x),
                error = _mm256_add_pd(_mm256_sub_pd(x, _mm256_sub_pd(sum, part)),
                                      _mm256_sub_pd(y, part));
  const __m256i one = _mm256_set1_epi64x(1), bits = _mm256_castpd_si256(sum);
  const __m256i inexact = _mm256_castpd_si256(_mm256_cmp_pd(error, zero, _CMP_NEQ_OQ)),
                down = _mm256_castpd_si256(_mm256_xor_pd(_mm256_cmp_pd(error, zero, _CMP_GT_OQ),
                                                         _mm256_cmp_pd(sum, zero, _CMP_GT_OQ))),
                even = _mm256_cmpeq_epi64(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  const __m256i step =
      _mm256_and_si256(_mm256_or_si256(down, one), _mm256_and_si256(inexact, even));
  const __m256d exact = _mm256_castsi256_pd(_mm256_add_epi64(bits, step));

  const __m128 value = _mm256_cvtpd_ps(exact);
  const __m256d back = _mm256_cvtps_pd(value), sign = _mm256_set1_pd(-0.0);
  return {value, _mm256_cmp_pd(back, exact, _CMP_NEQ_OQ),
          _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, exact), _CMP_GT_OQ)};
}

// Masks of four doubles each as one of eight floats.
TARTAN_INLINE __m256i narrow_masks(__m256d low, __m256d high) {
  const __m256 mixed =
      _mm256_shuffle_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high), _MM_SHUFFLE(2, 0, 2, 0));
  return _mm256_permute4x64_epi64(as_bits(mixed), _MM_SHUFFLE(3, 1, 2, 0));
}

TARTAN_INLINE __m256 fused_bfloats(__m256 a, __m256 b, __m256 c) {
  const OddFloats low = fused_to_odd(_mm256_castps256_ps128(a), _mm256_castps256_ps128(b),
                                     _mm256_castps256_ps128(c)),
                  high = fused_to_odd(_mm256_extractf128_ps(a, 1), _mm256_extractf128_ps(b, 1),
                                      _mm256_extractf128_ps(c, 1));
  const __m256i bits = as_bits(_mm256_set_m128(high.value, low.value)),
                inexact = narrow_masks(low.inexact, high.inexact),
                away = narrow_masks(low.away, high.away);
  return as_floats(_mm256_or_si256(_mm256_add_epi32(bits, away),
                                   _mm256_and_si256(inexact, _mm256_set1_epi32(1))));
}

template <HalfOperation Operation, bool Bfloat>
TARTAN_INLINE __m256 compute(__m256 a, __m256 b, __m256 c) {
  if constexpr (Operation == HalfOperation::add) return _mm256_add_ps(a, b);
  else if constexpr (Operation == HalfOperation::subtract) return _mm256_sub_ps(a, b);
  else if constexpr (Operation == HalfOperation::multiply) return _mm256_mul_ps(a, b);
  else if constexpr (Bfloat) return fused_bfloats(a, b, c);
  else return sum_to_odd(_mm256_mul_ps(a, b), c);
}

// ---- f16: a register is two of them, in the order of memory.

// Subnormal f16 as zeros of their sign, in eight lanes of 16 bits.
TARTAN_INLINE __m128i flush_halves(__m128i x) {
  const __m128i subnormal =
      _mm_cmpeq_epi16(_mm_and_si128(x, _mm_set1_epi16(0x7C00)), _mm_setzero_si128());
  return _mm_andnot_si128(_mm_and_si128(subnormal, _mm_set1_epi16(0x7FFF)), x);
}

// Eight f32 as f16.
template <int Round>
TARTAN_INLINE __m128i round_to_halves(__m256 x) {
  const __m256i nan = nan_mask(x);
  const __m128i canonical =
      _mm_packs_epi32(_mm256_castsi256_si128(nan), _mm256_extracti128_si256(nan, 1));
  return _mm_blendv_epi8(_mm256_cvtps_ph(x, Round), _mm_set1_epi16(nan_16), canonical);
}

// Where numbers, not rounded yet, are flushed: all bits but the sign, in eight lanes of 16 bits.
TARTAN_INLINE __m128i flushed_magnitudes(__m256 exact) {
  const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), exact);
  const __m256i below =
      as_bits(_mm256_cmp_ps(magnitude, _mm256_set1_ps(least_kept_f16), _CMP_LT_OQ));
  return _mm_and_si128(
      _mm_packs_epi32(_mm256_castsi256_si128(below), _mm256_extracti128_si256(below, 1)),
      _mm_set1_epi16(0x7FFF));
}

template <bool Ftz>
TARTAN_INLINE __m256 eight_halves(const std::uint32_t* words) {
  __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
  if constexpr (Ftz) x = flush_halves(x);
  return _mm256_cvtph_ps(x);
}

template <HalfOperation Operation, bool Ftz, bool Sat, bool Relu>
TARTAN_VECTORS void halves(Warp& warp, const Op& op) {
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  alignas(32) std::uint32_t out[32];
  for (int i = 0; i < 32; i += 4) {
    const __m256 exact = compute<Operation, false>(
        eight_halves<Ftz>(a + i), eight_halves<Ftz>(b + i), eight_halves<Ftz>(c + i));
    __m128i r;
    if constexpr (Sat) {  // NaN gives 0: the second operand of max
      const __m256 clamped =
          _mm256_min_ps(_mm256_max_ps(exact, _mm256_setzero_ps()), _mm256_set1_ps(1.0f));
      r = _mm256_cvtps_ph(clamped, nearest);
    } else {
      r = round_to_halves<nearest>(exact);
    }
    if constexpr (Ftz) r = _mm_andnot_si128(flushed_magnitudes(exact), r);
    if constexpr (Relu) r = _mm_andnot_si128(_mm_srai_epi16(r, 15), r);
    _mm_store_si128(reinterpret_cast<__m128i*>(out + i), r);
  }
  store(warp, op.d, out);
}

// ---- bf16: the upper half of an f32.

// Eight f32 as bf16, in eight lanes of 32 bits.
template <bool ToZero>
TARTAN_INLINE __m256i round_to_bfloats(__m256 x) {
  __m256i bits = as_bits(x);
  if constexpr (!ToZero) {
    const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(bits, _mm256_add_epi32(last, _mm256_set1_epi32(0x7FFF)));
  }
  return _mm256_blendv_epi8(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(nan_16), nan_mask(x));
}

template <HalfOperation Operation, bool Sat, bool Relu>
TARTAN_INLINE __m256i bfloats_of(__m256i a, __m256i b, __m256i c) {
  __m256 exact = compute<Operation, true>(as_floats(a), as_floats(b), as_floats(c));
  if constexpr (Sat)
    exact = _mm256_min_ps(_mm256_max_ps(exact, _mm256_setzero_ps()), _mm256_set1_ps(1.0f));
  const __m256i r = round_to_bfloats<false>(exact);
  if constexpr (Relu) {
    const __m256i negative = _mm256_cmpgt_epi32(r, _mm256_set1_epi32(0x7FFF));
    return _mm256_andnot_si256(negative, r);
  }
  return r;
}

template <HalfOperation Operation, bool Sat, bool Relu>
TARTAN_VECTORS void bfloats(Warp& warp, const Op& op) {
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  alignas(32) std::uint32_t out[32];
  for (int i = 0; i < 32; i += 8) {
    const __m256i x = load(a + i), y = load(b + i), z = load(c + i);
    const __m256i low = bfloats_of<Operation, Sat, Relu>(
        _mm256_slli_epi32(x, 16), _mm256_slli_epi32(y, 16), _mm256_slli_epi32(z, 16));
    const __m256i high = bfloats_of<Operation, Sat, Relu>(
        _mm256_and_si256(x, upper), _mm256_and_si256(y, upper), _mm256_and_si256(z, upper));
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + i),
                       _mm256_or_si256(_mm256_slli_epi32(high, 16), low));
  }
  store(warp, op.d, out);
}

// ---- Conversions.

// Eight f32 as 16-bit floats, in eight lanes of 32 bits.
template <bool Bfloat, bool ToZero, bool Satfinite, bool Relu>
TARTAN_INLINE __m256i converted(const std::uint32_t* words) {
  const __m256 x = as_floats(load(words));
  __m256i r = Bfloat ? round_to_bfloats<ToZero>(x)
                     : _mm256_cvtepu16_epi32(round_to_halves < ToZero ? to_zero : nearest > (x));
  if constexpr (Satfinite) {
    constexpr int infinity = Bfloat ? 0x7F80 : 0x7C00;
    const __m256i infinite = _mm256_cmpeq_epi32(_mm256_and_si256(r, _mm256_set1_epi32(0x7FFF)),
                                                _mm256_set1_epi32(infinity));
    r = _mm256_add_epi32(r, infinite);  // the value before it
  }
  if constexpr (Relu) {
    const __m256i negative = _mm256_andnot_si256(nan_mask(x), _mm256_srai_epi32(as_bits(x), 31));
    r = _mm256_andnot_si256(negative, r);
  }
  return r;
}

template <bool Bfloat, bool Pair, bool ToZero, bool Satfinite, bool Relu>
TARTAN_VECTORS void convert(Warp& warp, const Op& op) {
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b);
  alignas(32) std::uint32_t out[32];
  for (int i = 0; i < 32; i += 8) {
    __m256i r = converted<Bfloat, ToZero, Satfinite, Relu>(a + i);
    if constexpr (Pair)
      r = _mm256_or_si256(_mm256_slli_epi32(r, 16),
                          converted<Bfloat, ToZero, Satfinite, Relu>(b + i));
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + i), r);
  }
  store(warp, op.d, out);
}

TARTAN_VECTORS void widen_halves(Warp& warp, const Op& op) {
  const auto* a = lanes<std::uint32_t>(warp, op.a);
  const __m256i low = _mm256_set1_epi32(0xFFFF);
  alignas(32) std::uint32_t out[32];
  for (int i = 0; i < 32; i += 8) {
    const __m256i x = _mm256_and_si256(load(a + i), low);  // the register may be wider
    const __m256 r = _mm256_cvtph_ps(
        _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
    const __m256i canonical =
        _mm256_blendv_epi8(as_bits(r), _mm256_set1_epi32(nan_f32), nan_mask(r));
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + i), canonical);
  }
  store(warp, op.d, out);
}

// ---- Which one.

bool has_vectors() { return use_vectors() && __builtin_cpu_supports("f16c"); }

template <HalfOperation Operation>
Handler arithmetic_of(const HalfOptions& o) {
  if (o.bfloat)
    return o.relu  ? bfloats<Operation, false, true>
           : o.sat ? bfloats<Operation, true, false>
                   : bfloats<Operation, false, false>;
  if (o.ftz)
    return o.relu  ? halves<Operation, true, false, true>
           : o.sat ? halves<Operation, true, true, false>
                   : halves<Operation, true, false, false>;
  return o.relu  ? halves<Operation, false, false, true>
         : o.sat ? halves<Operation, false, true, false>
                 : halves<Operation, false, false, false>;
}

template <bool... Chosen>
Handler conversion_of(std::span<const bool> choices) {
  if constexpr (sizeof...(Chosen) == 5) return convert<Chosen...>;
  else
    return choices[sizeof...(Chosen)] ? conversion_of<Chosen..., true>(choices)
                                      : conversion_of<Chosen..., false>(choices);
}

}  // namespace

Handler half_arithmetic(HalfOperation operation, const HalfOptions& options) {
  if (!has_vectors()) return nullptr;
  switch (operation) {
    case HalfOperation::add: return arithmetic_of<HalfOperation::add>(options);
    case HalfOperation::subtract: return arithmetic_of<HalfOperation::subtract>(options);
    case HalfOperation::multiply: return arithmetic_of<HalfOperation::multiply>(options);
    case HalfOperation::fused: return arithmetic_of<HalfOperation::fused>(options);
    default: return nullptr;
  }
}

Handler to_halves(const HalfConversion& conversion) {
  if (!has_vectors()) return nullptr;
  const bool choices[] = {conversion.bfloat, conversion.pair, conversion.towards_zero,
                          conversion.satfinite, conversion.relu};
  return conversion_of<>(choices);
}

Handler from_half() { return has_vectors() ? widen_halves : nullptr; }

}  // namespace tartan::TARTAN_ABI::emulator

#else

namespace tartan::TARTAN_ABI::emulator {
Handler half_arithmetic(HalfOperation, const HalfOptions&) { return nullptr; }
Handler to_halves(const HalfConversion&) { return nullptr; }
Handler from_half() { return nullptr; }
}  // namespace tartan::TARTAN_ABI::emulator

#endif
