// SPDX-License-Identifier: Apache-2.0
// The reductions of bulk copies: element by element, in order, each an atomic operation as atom and
// red are (atomics.cc), with which other blocks may change the same memory.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/numbers/small_float.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;

template <typename T, typename F>
void reduce(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; i += sizeof(T)) {
    T b;
    std::memcpy(&b, from + i, sizeof(T));
    auto* at = reinterpret_cast<Word<T>*>(to + i);
    Word<T> old = __atomic_load_n(at, __ATOMIC_RELAXED), next;
    do next = std::bit_cast<Word<T>>(F::apply(std::bit_cast<T>(old), b));
    while (!__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  }
}

template <typename T>
constexpr bool is_small = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

struct Add {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (is_small<T>) return from_float<T>(to_float(a) + to_float(b));
    else if constexpr (std::is_same_v<T, float>) return canonical_nan(a + b);
    else if constexpr (std::is_same_v<T, double>) return global_sum(a, b);
    else return a + b;
  }
};
struct FlushingAdd {
  static float apply(float a, float b) { return flush(canonical_nan(flush(a) + flush(b))); }
};
template <bool Max>
struct Extremum {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (is_small<T>) {
      const float x = to_float(a), y = to_float(b);
      if (x != x) return y != y ? T{nan_16} : b;
      if (y != y) return a;
      if (x == y) return (a.bits >> 15 != 0) == Max ? b : a;
      return (x < y) == Max ? b : a;
    } else {
      return Max ? std::max(a, b) : std::min(a, b);
    }
  }
};
struct And {
  template <typename T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <typename T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <typename T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};
struct Increment {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) { return a >= b ? 0 : a + 1; }
};
struct Decrement {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    return a == 0 || a > b ? b : a - 1;
  }
};

struct ReductionRow {
  std::string_view name;
  Type type;
  Reduction apply;
};
constexpr ReductionRow reductions[] = {
    {"add", Type::u32, reduce<std::uint32_t, Add>},
    {"add", Type::s32, reduce<std::uint32_t, Add>},
    {"add", Type::u64, reduce<std::uint64_t, Add>},
    {"add", Type::s64, reduce<std::uint64_t, Add>},
    {"add", Type::f32, reduce<float, Add>},
    {"add", Type::f64, reduce<double, Add>},
    {"add", Type::f16, reduce<Half, Add>},
    {"add", Type::bf16, reduce<Bfloat, Add>},
    {"min", Type::u32, reduce<std::uint32_t, Extremum<false>>},
    {"min", Type::s32, reduce<std::int32_t, Extremum<false>>},
    {"min", Type::u64, reduce<std::uint64_t, Extremum<false>>},
    {"min", Type::s64, reduce<std::int64_t, Extremum<false>>},
    {"min", Type::f16, reduce<Half, Extremum<false>>},
    {"min", Type::bf16, reduce<Bfloat, Extremum<false>>},
    {"max", Type::u32, reduce<std::uint32_t, Extremum<true>>},
    {"max", Type::s32, reduce<std::int32_t, Extremum<true>>},
    {"max", Type::u64, reduce<std::uint64_t, Extremum<true>>},
    {"max", Type::s64, reduce<std::int64_t, Extremum<true>>},
    {"max", Type::f16, reduce<Half, Extremum<true>>},
    {"max", Type::bf16, reduce<Bfloat, Extremum<true>>},
    {"and", Type::b32, reduce<std::uint32_t, And>},
    {"and", Type::b64, reduce<std::uint64_t, And>},
    {"or", Type::b32, reduce<std::uint32_t, Or>},
    {"or", Type::b64, reduce<std::uint64_t, Or>},
    {"xor", Type::b32, reduce<std::uint32_t, Xor>},
    {"xor", Type::b64, reduce<std::uint64_t, Xor>},
    {"inc", Type::u32, reduce<std::uint32_t, Increment>},
    {"dec", Type::u32, reduce<std::uint32_t, Decrement>},
};

}  // namespace

Reduction find_reduction(std::string_view name, Type type, bool flush) {
  if (flush && name == "add" && type == Type::f32) return reduce<float, FlushingAdd>;
  for (const ReductionRow& row : reductions)
    if (row.name == name && row.type == type) return row.apply;
  return nullptr;
}

std::string_view reduction_name(Decoder& d) {
  return d.spelling.any("add min max and or xor inc dec");
}

ReducedElement reduced_by(Reduction reduction) {
  const auto row = std::ranges::find(reductions, reduction, &ReductionRow::apply);
  if (row == std::end(reductions)) return {"add", Type::f32};  // that flushes subnormal numbers
  return {row->name, row->type};
}

void move_bytes(std::byte* to, const std::byte* from, std::uint32_t bytes, Reduction reduction) {
  if (reduction) reduction(to, from, bytes);
  else std::memmove(to, from, bytes);
}

}  // namespace tartan::TARTAN_ABI::emulator
