// SPDX-License-Identifier: Apache-2.0
// atom and red (PTX ISA 9.0, 9.7.13): lanes in order, each an atomic operation on host memory,
// since blocks run on several host threads. A block's shared memory belongs to one of them and
// needs none; and lanes that all mean one word change it together.
#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

struct Add {
  template <typename T>
  static T apply(T old, T b, T) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>)
      return from_float<T>(to_float(old) + to_float(b));
    else if constexpr (std::is_same_v<T, float>) return canonical_nan(old + b);
    else if constexpr (std::is_same_v<T, double>) return shared_sum(old, b);
    else return static_cast<T>(old + b);  // unsigned
  }
};
// In global memory: subnormal numbers of f32 are zeros of their sign, NaNs of f64 stay as they are.
struct GlobalAdd {
  static float apply(float old, float b, float) {
    return flush(canonical_nan(flush(old) + flush(b)));
  }
  static double apply(double old, double b, double) { return global_sum(old, b); }
};
template <bool Max>
struct Extremum {
  template <typename T>
  static T apply(T old, T b, T) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
      const float x = to_float(old), y = to_float(b);
      if (x != x) return y != y ? T{nan_16} : b;
      if (y != y) return old;
      if (x == y) return (old.bits >> 15 != 0) == Max ? b : old;
      return (x < y) != Max ? old : b;
    } else {
      return Max ? std::max(old, b) : std::min(old, b);
    }
  }
};
struct And {
  template <typename T>
  static T apply(T old, T b, T) {
    return old & b;
  }
};
struct Or {
  template <typename T>
  static T apply(T old, T b, T) {
    return old | b;
  }
};
struct Xor {
  template <typename T>
  static T apply(T old, T b, T) {
    return old ^ b;
  }
};
struct Exchange {
  template <typename T>
  static T apply(T, T b, T) {
    return b;
  }
};
struct CompareExchange {
  template <typename T>
  static T apply(T old, T b, T c) {
    return old == b ? c : old;
  }
};
struct Increment {
  template <typename T>
  static T apply(T old, T b, T) {
    return old >= b ? 0 : old + 1;
  }
};
struct Decrement {
  template <typename T>
  static T apply(T old, T b, T) {
    return old == 0 || old > b ? b : old - 1;
  }
};

template <typename F, typename H>
struct Halves {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t b, std::uint32_t) {
    const H low = F::template apply<H>(H{static_cast<std::uint16_t>(old)},
                                       H{static_cast<std::uint16_t>(b)}, {});
    const H high = F::template apply<H>(H{static_cast<std::uint16_t>(old >> 16)},
                                        H{static_cast<std::uint16_t>(b >> 16)}, {});
    return std::uint32_t{high.bits} << 16 | low.bits;
  }
};

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;

template <typename F, typename T>
Word<T> changed(Word<T> old, Raw<T> b, Raw<T> c) {
  return static_cast<Word<T>>(
      Lane<T>::put(F::apply(Lane<T>::get(old), Lane<T>::get(b), Lane<T>::get(c))));
}

// Calls body(lane) for each active lane, the lowest first.
template <typename Body>
inline void in_order(std::uint32_t mask, Body&& body) {
  if (mask == all_lanes)
#pragma GCC unroll 4
    for (int lane = 0; lane < 32; ++lane) body(lane);
  else
    for (; mask; mask &= mask - 1) body(std::countr_zero(mask));
}

// No other host thread sees the memory.
template <typename F, typename T>
void atomic_alone(Warp& warp, const Op& op, const Access& access) {
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const auto *b = lanes<Raw<T>>(warp, slots[1]), *c = lanes<Raw<T>>(warp, op.c);
  auto* d = op.flags & 1 ? nullptr : lanes<Raw<T>>(warp, slots[0]);
  in_order(warp.mask, [=, &access](int lane) {
    auto* at = reinterpret_cast<Word<T>*>(access.at[lane]);
    const Word<T> old = *at;
    *at = changed<F, T>(old, b[lane], c[lane]);
    if (d) d[lane] = old;
  });
}

bool same_place(std::uint32_t mask, const Access& access) {
  const std::byte* first = access.at[std::countr_zero(mask) & 31];
  return !lanes_where(mask, [&](int i) { return access.at[i] != first; });
}

// All lanes at one word: what they make of it one after another, exchanged at once.
template <typename F, typename T>
void atomic_together(Warp& warp, const Op& op, const Access& access) {
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const auto *b = lanes<Raw<T>>(warp, slots[1]), *c = lanes<Raw<T>>(warp, op.c);
  auto* at = reinterpret_cast<Word<T>*>(access.at[std::countr_zero(warp.mask) & 31]);
  Word<T> before[32], old = __atomic_load_n(at, __ATOMIC_RELAXED), value;
  do {
    value = old;
    in_order(warp.mask, [&](int lane) {
      before[lane] = value;
      value = changed<F, T>(value, b[lane], c[lane]);
    });
  } while (
      !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  if (op.flags & 1) return;
  auto* d = lanes<Raw<T>>(warp, slots[0]);
  each_lane(warp.mask, [=, &before](int lane) { d[lane] = before[lane]; });
}

// Exchanges a word for what F makes of it; gives the old one.
template <typename F, typename T>
Word<T> exchange(Word<T>* at, Raw<T> b, Raw<T> c) {
  Word<T> old = __atomic_load_n(at, __ATOMIC_RELAXED), next;
  do next = changed<F, T>(old, b, c);
  while (!__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}

template <typename F, typename T>
void atomic_apart(Warp& warp, const Op& op, const Access& access) {
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const auto *b = lanes<Raw<T>>(warp, slots[1]), *c = lanes<Raw<T>>(warp, op.c);
  auto* d = op.flags & 1 ? nullptr : lanes<Raw<T>>(warp, slots[0]);
  in_order(warp.mask, [=, &access](int lane) {
    const Word<T> old =
        exchange<F, T>(reinterpret_cast<Word<T>*>(access.at[lane]), b[lane], c[lane]);
    if (d) d[lane] = old;
  });
}

template <typename F, typename T>
void atomic_vector(Warp& warp, const Op& op, const Access& access) {
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const auto* third = lanes<Raw<T>>(warp, op.c);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    Raw<T> operands[8];  // all are read before a destination, which may be one of them, is written
    for (int k = 0; k < op.count; ++k) operands[k] = lanes<Raw<T>>(warp, slots[op.count + k])[lane];
    for (int k = 0; k < op.count; ++k) {
      auto* at = reinterpret_cast<Word<T>*>(access.at[lane]) + k;
      const Word<T> old = exchange<F, T>(at, operands[k], third[lane]);
      if (!(op.flags & 1)) lanes<Raw<T>>(warp, slots[k])[lane] = old;
    }
  }
}

// op.list: op.count destination registers (atom), then as many operand registers; op.c: the second
// operand of cas. flags 1: no destination.
template <typename F, typename T>
void atomic(Warp& warp, const Op& op) {
  Access access;
  if (!resolve(warp, op, static_cast<std::uint32_t>(sizeof(T)) * op.count, access)) return;
  if (op.count > 1) return atomic_vector<F, T>(warp, op, access);
  if (op.window == Window::shared) return atomic_alone<F, T>(warp, op, access);
  if (same_place(warp.mask, access)) return atomic_together<F, T>(warp, op, access);
  atomic_apart<F, T>(warp, op, access);
}

// add at generic addresses.
template <typename T>
void add_anywhere(Warp& warp, const Op& op) {
  std::uint64_t at[32];
  addresses(warp, op, at);
  const std::uint32_t whole = warp.mask;
  const std::uint32_t in_global =
      lanes_where(whole, [&](int i) { return window_of(at[i]) == Window::global; });
  if ((warp.mask = in_global)) atomic<GlobalAdd, T>(warp, op);
  if (!warp.leave && (warp.mask = whole & ~in_global)) atomic<Add, T>(warp, op);
  warp.mask = whole;
}

template <typename F, typename H>
struct Packed {
  template <typename T>
  static T apply(T old, T b, T c) {
    return Halves<F, H>::apply(old, b, c);
  }
};

// 128 bits. What stands at `at` where it is `expected`, and is `next` then; else what stands there.
#if defined(__x86_64__)
__attribute__((target("cx16"))) UInt128 exchange_if(std::byte* at, UInt128 expected, UInt128 next) {
  return __sync_val_compare_and_swap(reinterpret_cast<UInt128*>(at), expected, next);
}
#else
// One lock for all: narrower atomics on the same memory do not see it.
UInt128 exchange_if(std::byte* at, UInt128 expected, UInt128 next) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  UInt128 old;
  std::memcpy(&old, at, sizeof old);
  if (old == expected) std::memcpy(at, &next, sizeof next);
  return old;
}
#endif

UInt128 lane_of(const std::uint64_t* words, int lane) {
  return static_cast<UInt128>(words[lane + 32]) << 64 | words[lane];
}

template <bool Compare>
void atomic_128(Warp& warp, const Op& op) {
  Access access;
  if (!resolve(warp, op, 16, access)) return;
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const auto *b = lanes<std::uint64_t>(warp, slots[1]), *c = lanes<std::uint64_t>(warp, op.c);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const UInt128 next = lane_of(Compare ? c : b, lane);
    UInt128 expected = Compare ? lane_of(b, lane) : 0, old;
    while ((old = exchange_if(access.at[lane], expected, next)) != expected && !Compare)
      expected = old;
    if (!(op.flags & 1)) {
      lanes<std::uint64_t>(warp, slots[0])[lane] = static_cast<std::uint64_t>(old);
      lanes<std::uint64_t>(warp, slots[0])[lane + 32] = static_cast<std::uint64_t>(old >> 64);
    }
  }
}

Handler extremum(bool max, Type type) {
  switch (type) {
    case Type::u32:
      return max ? atomic<Extremum<true>, std::uint32_t> : atomic<Extremum<false>, std::uint32_t>;
    case Type::s32:
      return max ? atomic<Extremum<true>, std::int32_t> : atomic<Extremum<false>, std::int32_t>;
    case Type::u64:
      return max ? atomic<Extremum<true>, std::uint64_t> : atomic<Extremum<false>, std::uint64_t>;
    case Type::s64:
      return max ? atomic<Extremum<true>, std::int64_t> : atomic<Extremum<false>, std::int64_t>;
    case Type::f16: return max ? atomic<Extremum<true>, Half> : atomic<Extremum<false>, Half>;
    case Type::bf16: return max ? atomic<Extremum<true>, Bfloat> : atomic<Extremum<false>, Bfloat>;
    case Type::f16x2:
      return max ? atomic<Packed<Extremum<true>, Half>, std::uint32_t>
                 : atomic<Packed<Extremum<false>, Half>, std::uint32_t>;
    case Type::bf16x2:
      return max ? atomic<Packed<Extremum<true>, Bfloat>, std::uint32_t>
                 : atomic<Packed<Extremum<false>, Bfloat>, std::uint32_t>;
    default: return nullptr;
  }
}

template <typename T>
Handler sum_of_floats(Window window) {
  switch (window) {
    case Window::global: return atomic<GlobalAdd, T>;
    case Window::generic: return add_anywhere<T>;
    default: return atomic<Add, T>;
  }
}

// `flushes`: subnormal f32 in global memory are zeros.
Handler sum(Type type, Window window, bool flushes) {
  switch (type) {
    case Type::u32:
    case Type::s32: return atomic<Add, std::uint32_t>;
    case Type::u64:
    case Type::s64: return atomic<Add, std::uint64_t>;
    case Type::f32: return flushes ? sum_of_floats<float>(window) : atomic<Add, float>;
    case Type::f64: return sum_of_floats<double>(window);
    case Type::f16: return atomic<Add, Half>;
    case Type::bf16: return atomic<Add, Bfloat>;
    case Type::f16x2: return atomic<Packed<Add, Half>, std::uint32_t>;
    case Type::bf16x2: return atomic<Packed<Add, Bfloat>, std::uint32_t>;
    default: return nullptr;
  }
}

template <typename F>
Handler bits_of(Type type, bool short_too = false) {
  switch (bits(type)) {
    case 16: return short_too ? atomic<F, std::uint16_t> : nullptr;
    case 32: return atomic<F, std::uint32_t>;
    case 64: return atomic<F, std::uint64_t>;
    default: return nullptr;
  }
}

Handler handler_of(std::string_view name, Type type, Window window, bool flushes) {
  if (name == "add") return sum(type, window, flushes);
  if (name == "min" || name == "max") return extremum(name == "max", type);
  if (name == "and") return bits_of<And>(type);
  if (name == "or") return bits_of<Or>(type);
  if (name == "xor") return bits_of<Xor>(type);
  if (name == "exch") return type == Type::b128 ? atomic_128<false> : bits_of<Exchange>(type);
  if (name == "cas")
    return type == Type::b128 ? atomic_128<true> : bits_of<CompareExchange>(type, true);
  if (name == "inc") return type == Type::u32 ? atomic<Increment, std::uint32_t> : nullptr;
  if (name == "dec") return type == Type::u32 ? atomic<Decrement, std::uint32_t> : nullptr;
  return nullptr;
}

void decode_atomic(Decoder& d) {
  const bool gives = d.spelling.opcode() == Opcode::atom;
  d.spelling.ignore(scopes_and_orders);
  d.spelling.ignore(cache_hints);
  const bool flushes = !d.spelling.has("noftz");
  const Window window = memory_window(d);
  const std::string_view name = d.spelling.any("add min max and or xor exch cas inc dec");
  const int count = d.spelling.vector_length();
  const Type type = d.spelling.type();
  const Handler handler = handler_of(name, type, window, flushes);
  if (!handler) return d.unsupported();
  if (!flushes && type == Type::f32) d.rest_on(Trust::Documented, manual_source);
  const std::size_t first = gives ? 1 : 0, needed = first + (name == "cas" ? 3 : 2);
  if (!d.expect_operands(needed, needed + 1)) return;
  const auto elements = [&](std::size_t i) {
    return d.operand(i).kind == ptx::OperandKind::Vector ? d.children(d.operand(i))
                                                         : std::span(&d.operand(i), 1);
  };
  std::vector<std::uint32_t> slots;
  bool writes = false;
  for (int k = 0; k < count; ++k) {
    if (!gives) {
      slots.push_back(0);
      continue;
    }
    if (elements(0).size() != static_cast<std::size_t>(count))
      return d.unsupported("vectors of different lengths");
    slots.push_back(d.destination(elements(0)[static_cast<std::size_t>(k)], type));
    writes = true;
  }
  if (elements(first + 1).size() != static_cast<std::size_t>(count))
    return d.unsupported("vectors of different lengths");
  for (const ptx::Operand& element : elements(first + 1)) slots.push_back(d.source(element, type));
  const std::uint32_t third = name == "cas" ? d.source(first + 2, type) : slots.back();
  const std::uint32_t list = d.append(slots);
  Op& op = d.emit(handler);
  op.list = list;
  op.count = static_cast<std::uint8_t>(count);
  op.c = third;
  op.flags = writes ? 0 : 1;
  op.writes = true;
  d.address(op, d.operand(first), window);
}

// red.async.release, to global memory, is an ordinary one that may be late: here it never is.
void decode_late(Decoder& d) {
  if (d.spelling.has("release")) decode_atomic(d);
  else decode_reduction_async(d);
}

}  // namespace

constexpr EmulatedRow atomics_rows[] = {
    {Opcode::atom, decode_atomic, Flow::Atomic, ValueSources::None, Meaning::Updates,
     AccessKind::Changes, Idle::No, nothing},
    {Opcode::red, decode_atomic, Flow::Atomic, ValueSources::None, Meaning::Updates,
     AccessKind::Reduces, Idle::No, nothing},
    {Opcode::red_async, decode_late, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(atomics_rows, topics::atomics));

}  // namespace tartan::TARTAN_ABI::emulator
