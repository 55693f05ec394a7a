// SPDX-License-Identifier: Apache-2.0
// Logic, shifts and bit fields (PTX ISA 9.0, 9.7.1, 9.7.8).
#include <algorithm>
#include <bit>
#include <limits>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

struct And {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <typename T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <typename T>
  static T apply(T a) {
    return a == 0;
  }
};
// Shifts clamp: an amount of the width or more shifts everything out.
struct ShiftLeft {
  template <typename T>
  static T apply(T a, std::uint32_t n) {
    return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << n);
  }
};
struct ShiftRight {
  template <typename T>
  static T apply(T a, std::uint32_t n) {
    const std::uint32_t clamped = std::min<std::uint32_t>(n, 8 * sizeof(T) - 1);
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> clamped);
    else return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a >> clamped);
  }
};
// shf: 64 bits {b:a}, of which the upper (left) or lower (right) word after the shift is kept.
template <bool Left, bool Wrap>
struct FunnelShift {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t n = Wrap ? c & 31 : std::min(c, 32u);
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    return Left ? static_cast<std::uint32_t>((both << n) >> 32)
                : static_cast<std::uint32_t>(both >> n);
  }
};
struct PopulationCount {
  template <typename T>
  static std::uint32_t apply(T a) {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct LeadingZeros {
  template <typename T>
  static std::uint32_t apply(T a) {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct Reverse {
  template <typename T>
  static T apply(T a) {
    T out = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i)
      out |= static_cast<T>((a >> i & 1) << (8 * sizeof(T) - 1 - i));
    return out;
  }
};
template <bool ShiftAmount>
struct FindLeading {
  template <typename T>
  static std::uint32_t apply(T a) {
    using U = std::make_unsigned_t<T>;
    U bits = static_cast<U>(a);
    if constexpr (std::is_signed_v<T>)
      if (a < 0) bits = ~bits;
    if (bits == 0) return 0xFFFFFFFF;
    const auto zeros = static_cast<std::uint32_t>(std::countl_zero(bits));
    return ShiftAmount ? zeros : static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - zeros;
  }
};
// Position and length of a bit field: 32-bit fields read a byte of them, 64-bit ones all of it
// (which the manual does not say).
template <typename T>
constexpr std::uint32_t field_number(std::uint32_t x) {
  return sizeof(T) == 4 ? x & 0xFF : std::min(x, 255u);
}
// bfe: bits beyond the register are copies of the sign (of the top bit of the field, which ends at
// the register's top bit).
struct Extract {
  template <typename T>
  static T apply(T a, std::uint32_t b, std::uint32_t c) {
    using U = std::make_unsigned_t<T>;
    constexpr int top = 8 * sizeof(T) - 1;
    const int position = static_cast<int>(field_number<T>(b)),
              length = static_cast<int>(field_number<T>(c));
    if (length == 0) return 0;
    const U value = static_cast<U>(a);
    bool sign = false;
    if constexpr (std::is_signed_v<T>) sign = value >> std::min(position + length - 1, top) & 1;
    U out = position > top ? U{0} : static_cast<U>(value >> position);
    const int present = std::min(length, std::max(top + 1 - position, 0));
    if (present <= top) {
      const U field = (U{1} << present) - 1;
      out = (out & field) | (sign ? static_cast<U>(~field) : U{0});
    }
    return static_cast<T>(out);
  }
};
struct Insert {
  template <typename T>
  static T apply(T a, T b, std::uint32_t c, std::uint32_t d) {
    constexpr std::uint32_t width = 8 * sizeof(T);
    const std::uint32_t position = field_number<T>(c), length = field_number<T>(d);
    if (position >= width || length == 0) return b;
    const T field = static_cast<T>((length >= width ? ~T{0} : (T{1} << length) - 1) << position);
    return static_cast<T>((b & ~field) | (static_cast<T>(a << position) & field));
  }
};
template <bool Wrap>
struct Mask {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t from = Wrap ? a & 31 : a, length = Wrap ? b & 31 : b;
    if (from >= 32) return 0;
    return (length >= 32 ? ~0u : (1u << length) - 1) << from;
  }
};
template <bool Wrap, typename T>
struct Extend {
  static T apply(T a, std::uint32_t b) {
    const std::uint32_t n = Wrap ? b & 31 : std::min(b, 32u);
    if (n == 0) return 0;
    const auto up = static_cast<std::uint32_t>(a) << (32 - n);
    return static_cast<T>(static_cast<T>(up) >> (32 - n));
  }
};

template <typename F>
Handler bitwise_of(Type type) {
  switch (bits(type)) {
    case 16: return binary<F, std::uint16_t, std::uint16_t>;
    case 32: return binary<F, std::uint32_t, std::uint32_t>;
    case 64: return binary<F, std::uint64_t, std::uint64_t>;
    default: return nullptr;
  }
}

// Predicates are one word: the guard's lanes of it change.
template <typename F>
void predicate_logic(Warp& warp, const Op& op) {
  set_predicate(warp, op.d,
                F::template apply<std::uint32_t>(predicate(warp, op.a), predicate(warp, op.b)));
}
void predicate_not(Warp& warp, const Op& op) { set_predicate(warp, op.d, ~predicate(warp, op.a)); }

template <typename F>
void decode_logic(Decoder& d) {
  const Type type = d.spelling.type();
  if (!d.expect_operands(3, 3)) return;
  const std::uint32_t to = d.destination(0, type), a = d.source(1, type), b = d.source(2, type);
  Op& op = d.emit(type == Type::pred ? predicate_logic<F> : bitwise_of<F>(type));
  op.d = to;
  op.a = a;
  op.b = b;
}

void emit(Decoder& d, Handler handler, Type to, std::initializer_list<Type> from) {
  if (!d.expect_operands(from.size() + 1, from.size() + 1)) return;
  std::uint32_t slots[4] = {};
  std::size_t i = 0;
  const std::uint32_t destination = d.destination(0, to);
  for (Type type : from) {
    slots[i] = d.source(i + 1, type);
    ++i;
  }
  Op& op = d.emit(handler);
  op.d = destination;
  op.a = slots[0];
  op.b = slots[1];
  op.c = slots[2];
  op.e = slots[3];
}

void decode_not(Decoder& d) {
  const Type type = d.spelling.type();
  Handler handler = nullptr;
  switch (bits(type)) {
    case 1: handler = predicate_not; break;
    case 16: handler = unary<Not, std::uint16_t, std::uint16_t>; break;
    case 32: handler = unary<Not, std::uint32_t, std::uint32_t>; break;
    case 64: handler = unary<Not, std::uint64_t, std::uint64_t>; break;
    default: break;
  }
  emit(d, handler, type, {type});
}

void decode_cnot(Decoder& d) {
  const Type type = d.spelling.type();
  Handler handler = nullptr;
  switch (bits(type)) {
    case 16: handler = unary<LogicalNot, std::uint16_t, std::uint16_t>; break;
    case 32: handler = unary<LogicalNot, std::uint32_t, std::uint32_t>; break;
    case 64: handler = unary<LogicalNot, std::uint64_t, std::uint64_t>; break;
    default: break;
  }
  emit(d, handler, type, {type});
}

template <typename F, typename T>
Handler shift() {
  return for_machine<binary<F, T, T, std::uint32_t>>();
}

template <typename F>
void decode_shift(Decoder& d) {
  const Type type = d.spelling.type();
  Handler handler = nullptr;
  switch (type) {
    case Type::b16:
    case Type::u16: handler = shift<F, std::uint16_t>(); break;
    case Type::s16: handler = shift<F, std::int16_t>(); break;
    case Type::b32:
    case Type::u32: handler = shift<F, std::uint32_t>(); break;
    case Type::s32: handler = shift<F, std::int32_t>(); break;
    case Type::b64:
    case Type::u64: handler = shift<F, std::uint64_t>(); break;
    case Type::s64: handler = shift<F, std::int64_t>(); break;
    default: break;
  }
  emit(d, handler, type, {type, Type::u32});
}

void decode_shf(Decoder& d) {
  const bool left = d.spelling.has("l"), wrap = d.spelling.has("wrap");
  if ((!left && !d.spelling.has("r")) || (!wrap && !d.spelling.has("clamp")) ||
      d.spelling.type() != Type::b32)
    return d.unsupported();
  constexpr auto u = Type::b32;
  emit(d,
       left ? (wrap ? ternary<FunnelShift<true, true>, std::uint32_t, std::uint32_t>
                    : ternary<FunnelShift<true, false>, std::uint32_t, std::uint32_t>)
            : (wrap ? ternary<FunnelShift<false, true>, std::uint32_t, std::uint32_t>
                    : ternary<FunnelShift<false, false>, std::uint32_t, std::uint32_t>),
       u, {u, u, u});
}

template <typename F>
void decode_count(Decoder& d) {
  const Type type = d.spelling.type();
  emit(d,
       type == Type::b32   ? unary<F, std::uint32_t, std::uint32_t>
       : type == Type::b64 ? unary<F, std::uint32_t, std::uint64_t>
                           : nullptr,
       Type::u32, {type});
}

void decode_brev(Decoder& d) {
  const Type type = d.spelling.type();
  emit(d,
       type == Type::b32   ? unary<Reverse, std::uint32_t, std::uint32_t>
       : type == Type::b64 ? unary<Reverse, std::uint64_t, std::uint64_t>
                           : nullptr,
       type, {type});
}

template <bool Amount>
Handler find_leading(Type type) {
  switch (type) {
    case Type::u32: return unary<FindLeading<Amount>, std::uint32_t, std::uint32_t>;
    case Type::s32: return unary<FindLeading<Amount>, std::uint32_t, std::int32_t>;
    case Type::u64: return unary<FindLeading<Amount>, std::uint32_t, std::uint64_t>;
    case Type::s64: return unary<FindLeading<Amount>, std::uint32_t, std::int64_t>;
    default: return nullptr;
  }
}

void decode_bfind(Decoder& d) {
  const Type type = d.spelling.type();
  emit(d, d.spelling.has("shiftamt") ? find_leading<true>(type) : find_leading<false>(type),
       Type::u32, {type});
}

void decode_bfe(Decoder& d) {
  const Type type = d.spelling.type();
  Handler handler = nullptr;
  switch (type) {
    case Type::u32:
      handler = for_machine<
          ternary<Extract, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>>();
      break;
    case Type::s32:
      handler =
          for_machine<ternary<Extract, std::int32_t, std::int32_t, std::uint32_t, std::uint32_t>>();
      break;
    case Type::u64:
      handler = for_machine<
          ternary<Extract, std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>>();
      break;
    case Type::s64:
      handler =
          for_machine<ternary<Extract, std::int64_t, std::int64_t, std::uint32_t, std::uint32_t>>();
      break;
    default: break;
  }
  emit(d, handler, type, {type, Type::u32, Type::u32});
}

template <typename T>
void insert(Warp& warp, const Op& op) {
  auto* d = lanes<T>(warp, op.d);
  const auto* a = lanes<T>(warp, op.a);
  const auto* b = lanes<T>(warp, op.b);
  const auto* position = lanes<std::uint32_t>(warp, op.c);
  const auto* length = lanes<std::uint32_t>(warp, op.e);
  each_lane(warp.mask, [=](int i) { d[i] = Insert::apply<T>(a[i], b[i], position[i], length[i]); });
}

void decode_bfi(Decoder& d) {
  const Type type = d.spelling.type();
  emit(d,
       type == Type::b32   ? insert<std::uint32_t>
       : type == Type::b64 ? insert<std::uint64_t>
                           : nullptr,
       type, {type, type, Type::u32, Type::u32});
}

void decode_bmsk(Decoder& d) {
  const bool wrap = d.spelling.has("wrap");
  if ((!wrap && !d.spelling.has("clamp")) || d.spelling.type() != Type::b32) return d.unsupported();
  emit(d,
       wrap ? binary<Mask<true>, std::uint32_t, std::uint32_t>
            : binary<Mask<false>, std::uint32_t, std::uint32_t>,
       Type::b32, {Type::b32, Type::b32});
}

void decode_szext(Decoder& d) {
  const bool wrap = d.spelling.has("wrap");
  const Type type = d.spelling.type();
  if (!wrap && !d.spelling.has("clamp")) return d.unsupported();
  Handler handler = nullptr;
  if (type == Type::u32)
    handler = wrap ? binary<Extend<true, std::uint32_t>, std::uint32_t, std::uint32_t>
                   : binary<Extend<false, std::uint32_t>, std::uint32_t, std::uint32_t>;
  if (type == Type::s32)
    handler = wrap ? binary<Extend<true, std::int32_t>, std::int32_t, std::int32_t, std::uint32_t>
                   : binary<Extend<false, std::int32_t>, std::int32_t, std::int32_t, std::uint32_t>;
  emit(d, handler, type, {type, Type::u32});
}

// fns: position of the n-th set bit from `base` upwards (n > 0) or downwards (n < 0); n = 0: base
// itself, if its bit is set. The least n, which has no magnitude, gives 0.
void find_nth_set(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *mask = lanes<std::uint32_t>(warp, op.a), *base = lanes<std::uint32_t>(warp, op.b),
             *offset = lanes<std::uint32_t>(warp, op.c);
  each_lane(warp.mask, [=](int i) {
    const auto n = static_cast<std::int32_t>(offset[i]);
    const std::uint32_t first = base[i];
    std::uint32_t found = 0xFFFFFFFF;
    if (n == std::numeric_limits<std::int32_t>::min()) {
      found = 0;
    } else if (first > 31) {  // undefined
    } else if (n == 0) {
      if (mask[i] >> first & 1) found = first;
    } else {
      std::uint32_t left =
          n > 0 ? static_cast<std::uint32_t>(n) : 0 - static_cast<std::uint32_t>(n);
      for (std::int32_t at = static_cast<std::int32_t>(first);
           at >= 0 && at<32; at += n> 0 ? 1 : -1)
        if ((mask[i] >> at & 1) && --left == 0) {
          found = static_cast<std::uint32_t>(at);
          break;
        }
    }
    d[i] = found;
  });
}

void decode_fns(Decoder& d) {
  d.spelling.type();
  emit(d, find_nth_set, Type::b32, {Type::b32, Type::b32, Type::s32});
}

// lop3: op.value is the truth table; bit (4a + 2b + c) is the result.
void lop3(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  std::uint32_t row[8];
  for (int i = 0; i < 8; ++i) row[i] = op.value >> i & 1 ? ~0u : 0;
  each_lane(warp.mask, [&](int i) {
    const std::uint32_t x = a[i], y = b[i], z = c[i];
    d[i] = (row[0] & ~x & ~y & ~z) | (row[1] & ~x & ~y & z) | (row[2] & ~x & y & ~z) |
           (row[3] & ~x & y & z) | (row[4] & x & ~y & ~z) | (row[5] & x & ~y & z) |
           (row[6] & x & y & ~z) | (row[7] & x & y & z);
  });
}

// lop3.or / .and: p = (d != 0) op q as well.
void lop3_test(Warp& warp, const Op& op) {
  lop3(warp, op);
  const auto* d = lanes<std::uint32_t>(warp, op.d);
  const std::uint32_t set = lanes_where(warp.mask, [=](int i) { return d[i] != 0; }),
                      q = predicate(warp, op.list);
  set_predicate(warp, op.e, op.flags ? set & q : set | q);
}

void decode_lop3(Decoder& d) {
  const std::string_view combine = d.spelling.any("or and");
  if (d.spelling.type() != Type::b32) return d.unsupported();
  if (!d.expect_operands(combine.empty() ? 5 : 6, combine.empty() ? 5 : 6)) return;
  const ptx::Operand* to = &d.operand(0);
  std::uint32_t p = 0, q = 0;
  if (!combine.empty()) {
    if (to->kind != ptx::OperandKind::Pair) return d.unsupported("expected d|p");
    p = d.destination(d.children(*to)[1], Type::pred);
    q = d.source(5, Type::pred);
    to = &d.children(*to)[0];
  }
  const std::uint32_t destination = d.destination(*to, Type::b32);
  const std::uint32_t a = d.source(1, Type::b32), b = d.source(2, Type::b32),
                      c = d.source(3, Type::b32);
  const auto table = d.integer(d.operand(4));
  if (!table) return d.error("operand-kind"_rule, "lop3 requires an immediate truth table");
  Op& op = d.emit(combine.empty() ? lop3 : lop3_test);
  op.d = destination;
  op.e = p;
  op.a = a;
  op.b = b;
  op.c = c;
  op.list = q;
  op.value = static_cast<std::uint64_t>(*table);
  op.flags = combine == "and";
}

}  // namespace

constexpr EmulatedRow bits_rows[] = {
    computation(Opcode::and_, decode_logic<And>, Flow::And, Meaning::Combines),
    computation(Opcode::or_, decode_logic<Or>, Flow::Or, Meaning::Combines),
    computation(Opcode::xor_, decode_logic<Xor>, Flow::Xor, Meaning::Combines),
    computation(Opcode::not_, decode_not, Flow::Not, Meaning::Inverts),
    computation(Opcode::cnot, decode_cnot, Flow::Spreads, Meaning::Bits),
    computation(Opcode::shl, decode_shift<ShiftLeft>, Flow::ShiftsLeft, Meaning::ShiftsLeft),
    computation(Opcode::shr, decode_shift<ShiftRight>, Flow::ShiftsRight, Meaning::Shifts),
    computation(Opcode::shf, decode_shf, Flow::Funnels, Meaning::Shifts),
    computation(Opcode::popc, decode_count<PopulationCount>, Flow::Spreads, Meaning::Bits),
    computation(Opcode::clz, decode_count<LeadingZeros>, Flow::Spreads, Meaning::Bits),
    computation(Opcode::brev, decode_brev, Flow::Reverses, Meaning::Bits),
    computation(Opcode::bfind, decode_bfind, Flow::Spreads, Meaning::Bits),
    computation(Opcode::bfe, decode_bfe, Flow::Extracts, Meaning::Shifts),
    computation(Opcode::bfi, decode_bfi, Flow::Inserts, Meaning::Shifts),
    computation(Opcode::bmsk, decode_bmsk, Flow::Spreads, Meaning::Bits),
    computation(Opcode::szext, decode_szext, Flow::Spreads, Meaning::Bits),
    computation(Opcode::fns, decode_fns, Flow::Spreads, Meaning::Bits),
    computation(Opcode::lop3, decode_lop3, Flow::Table, Meaning::Combines),
};
static_assert(are_rows_of(bits_rows, topics::bits));

}  // namespace tartan::TARTAN_ABI::emulator
