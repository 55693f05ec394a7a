// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/lanes.h - a handler's view of registers: 32 lanes of a type, and the
// loops over the active ones.
//
// Registers hold raw bits; Lane<T> converts between them and the C++ type that an instruction
// computes in. All 32 lanes active is the common case and gets a loop of its own, which the
// compiler vectorises.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/emulator/machine/warp.h"
#include "runtime/emulator/numbers/small_float.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr std::uint32_t all_lanes = 0xFFFFFFFF;

template <typename T>
struct Lane {
  using Raw = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static T get(Raw raw) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(raw);
    else if constexpr (sizeof(T) == 2) return std::bit_cast<T>(static_cast<std::uint16_t>(raw));
    else if constexpr (sizeof(T) == 1) return std::bit_cast<T>(static_cast<std::uint8_t>(raw));
    else return std::bit_cast<T>(raw);
  }
  static Raw put(T value) {
    if constexpr (std::is_integral_v<T>) return static_cast<std::make_unsigned_t<T>>(value);
    else if constexpr (sizeof(T) == 2) return std::bit_cast<std::uint16_t>(value);
    else if constexpr (sizeof(T) == 1) return std::bit_cast<std::uint8_t>(value);
    else return std::bit_cast<Raw>(value);
  }
};

template <typename T>
using Raw = typename Lane<T>::Raw;

/// The 32 lanes of a slot.
template <typename R>
R* lanes(Warp& warp, std::uint32_t slot) {
  return reinterpret_cast<R*>(warp.arena + slot);
}

inline std::uint32_t& predicate(Warp& warp, std::uint32_t slot) {
  return *reinterpret_cast<std::uint32_t*>(warp.arena + slot);
}

/// Writes the active lanes' bits of a predicate.
inline void set_predicate(Warp& warp, std::uint32_t slot, std::uint32_t bits) {
  std::uint32_t& p = predicate(warp, slot);
  p = (p & ~warp.mask) | (bits & warp.mask);
}

/// Calls `body(lane)` for each active lane; iterations must not depend on each other. Unrolled,
/// where the loop does not become vector code: the end of 32 rounds is often mispredicted, that of
/// eight hardly ever.
template <typename Body>
inline void each_lane(std::uint32_t mask, Body&& body) {
  if (mask == all_lanes) {
#pragma GCC ivdep
#pragma GCC unroll 4
    for (int lane = 0; lane < 32; ++lane) body(lane);
    return;
  }
  for (; mask; mask &= mask - 1) body(std::countr_zero(mask));
}

/// d = F(a), F(a, b), F(a, b, c), lane by lane.
template <typename F, typename D, typename A>
void unary(Warp& warp, const Op& op) {
  auto* d = lanes<Raw<D>>(warp, op.d);
  const auto* a = lanes<Raw<A>>(warp, op.a);
  each_lane(warp.mask, [=](int i) { d[i] = Lane<D>::put(F::apply(Lane<A>::get(a[i]))); });
}

template <typename F, typename D, typename A, typename B = A>
void binary(Warp& warp, const Op& op) {
  auto* d = lanes<Raw<D>>(warp, op.d);
  const auto* a = lanes<Raw<A>>(warp, op.a);
  const auto* b = lanes<Raw<B>>(warp, op.b);
  each_lane(warp.mask,
            [=](int i) { d[i] = Lane<D>::put(F::apply(Lane<A>::get(a[i]), Lane<B>::get(b[i]))); });
}

template <typename F, typename D, typename A, typename B = A, typename C = A>
void ternary(Warp& warp, const Op& op) {
  auto* d = lanes<Raw<D>>(warp, op.d);
  const auto* a = lanes<Raw<A>>(warp, op.a);
  const auto* b = lanes<Raw<B>>(warp, op.b);
  const auto* c = lanes<Raw<C>>(warp, op.c);
  each_lane(warp.mask, [=](int i) {
    d[i] = Lane<D>::put(F::apply(Lane<A>::get(a[i]), Lane<B>::get(b[i]), Lane<C>::get(c[i])));
  });
}

/// Whether handlers may use AVX2 and FMA: the machine has them, and no test has turned them off.
bool use_vectors();
/// For tests: programs decoded from now on do without vectors, or may have them again. The results
/// are the same.
void set_vectors(bool allowed);

#if defined(__x86_64__)
/// `inner` once more, in 256-bit vectors and with the fused multiply-add.
template <Handler inner>
__attribute__((target("avx2,fma"), flatten)) void on_avx2(Warp& warp, const Op& op) {
  inner(warp, op);
}
/// The handler as the machine runs it fastest; the results are the same.
template <Handler inner>
Handler for_machine() {
  return use_vectors() ? on_avx2<inner> : inner;
}
#else
template <Handler inner>
Handler for_machine() {
  return inner;
}
#endif

/// The mask of lanes for which `test(lane)` holds.
template <typename Test>
inline std::uint32_t lanes_where(std::uint32_t mask, Test&& test) {
  std::uint32_t bits = 0;
  if (mask == all_lanes) {
    // Bytes first: tests of all lanes become vector code. The product moves the lowest bits of
    // eight bytes side by side.
    std::uint8_t holds[32];
    for (int lane = 0; lane < 32; ++lane) holds[lane] = static_cast<bool>(test(lane));
    for (int lane = 0; lane < 32; lane += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, holds + lane, 8);
      bits |= static_cast<std::uint32_t>(eight * 0x0102040810204080 >> 56) << lane;
    }
    return bits;
  }
  for (; mask; mask &= mask - 1) {
    const int lane = std::countr_zero(mask);
    bits |= static_cast<std::uint32_t>(test(lane)) << lane;
  }
  return bits;
}

}  // namespace tartan::TARTAN_ABI::emulator
