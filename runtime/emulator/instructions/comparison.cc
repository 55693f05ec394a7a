// SPDX-License-Identifier: Apache-2.0
// Comparison and selection (PTX ISA 9.0, 9.7.6, 9.7.7): setp, set, selp, slct, testp, copysign.
#include <cmath>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

enum class Compare : std::uint8_t {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan
};

constexpr isa::Qualifier compare_names[] = {"eq"_q,  "ne"_q,  "lt"_q,  "le"_q,  "gt"_q,
                                            "ge"_q,  "equ"_q, "neu"_q, "ltu"_q, "leu"_q,
                                            "gtu"_q, "geu"_q, "num"_q, "nan"_q};

template <Compare C, typename T>
bool holds(T a, T b) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
    return holds<C>(to_float(a), to_float(b));
  } else {
    switch (C) {
      case Compare::eq: return a == b;
      case Compare::ne: return a < b || a > b;  // false for NaN
      case Compare::lt: return a < b;
      case Compare::le: return a <= b;
      case Compare::gt: return a > b;
      case Compare::ge: return a >= b;
      case Compare::equ: return !(a < b || a > b);
      case Compare::neu: return !(a == b);
      case Compare::ltu: return !(a >= b);
      case Compare::leu: return !(a > b);
      case Compare::gtu: return !(a <= b);
      case Compare::geu: return !(a < b);
      case Compare::num: return a == a && b == b;
      case Compare::nan: return !(a == a && b == b);
    }
    return false;
  }
}

// With .ftz only subnormals change, which the handler flushes beforehand.
template <Compare C, typename T, bool Ftz>
std::uint32_t compare(Warp& warp, const Op& op) {
  const auto* a = lanes<Raw<T>>(warp, op.a);
  const auto* b = lanes<Raw<T>>(warp, op.b);
  return lanes_where(warp.mask, [=](int i) {
    T x = Lane<T>::get(a[i]), y = Lane<T>::get(b[i]);
    if constexpr (Ftz) x = flush(x), y = flush(y);
    return holds<C>(x, y);
  });
}

// The two halves of packed values: results in p (low) and q (high).
template <Compare C, typename H, bool Ftz>
void compare_halves(Warp& warp, const Op& op, std::uint32_t& low, std::uint32_t& high) {
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b);
  const auto half = [](std::uint32_t word, int shift) {
    const H out{static_cast<std::uint16_t>(word >> shift)};
    if constexpr (Ftz) return flush(out);
    else return out;
  };
  low = lanes_where(warp.mask, [=](int i) { return holds<C>(half(a[i], 0), half(b[i], 0)); });
  high = lanes_where(warp.mask, [=](int i) { return holds<C>(half(a[i], 16), half(b[i], 16)); });
}

std::uint32_t combine(std::uint8_t how, std::uint32_t bits, std::uint32_t with) {
  switch (how) {
    case 1: return bits & with;
    case 2: return bits | with;
    case 3: return bits ^ with;
    default: return bits;
  }
}

// op.flags: 0 none, 1 and, 2 or, 3 xor with predicate op.c; op.e: the complement's predicate, if
// flag 4 is set.
template <Compare C, typename T, bool Ftz>
void setp(Warp& warp, const Op& op) {
  const std::uint32_t bits = compare<C, T, Ftz>(warp, op);
  const std::uint32_t with = op.flags & 3 ? predicate(warp, op.c) : 0;
  set_predicate(warp, op.d, combine(op.flags & 3, bits, with));
  if (op.flags & 4) set_predicate(warp, op.e, combine(op.flags & 3, ~bits, with));
}

template <Compare C, typename H, bool Ftz>
void setp_halves(Warp& warp, const Op& op) {
  std::uint32_t low, high;
  compare_halves<C, H, Ftz>(warp, op, low, high);
  const std::uint32_t with = op.flags & 3 ? predicate(warp, op.c) : 0;
  set_predicate(warp, op.d, combine(op.flags & 3, low, with));
  if (op.flags & 4) set_predicate(warp, op.e, combine(op.flags & 3, high, with));
}

// The handlers of a family for every comparison, by Compare.
template <template <Compare> class Family>
Handler pick(Compare c) {
  switch (c) {
    case Compare::eq: return Family<Compare::eq>::handler;
    case Compare::ne: return Family<Compare::ne>::handler;
    case Compare::lt: return Family<Compare::lt>::handler;
    case Compare::le: return Family<Compare::le>::handler;
    case Compare::gt: return Family<Compare::gt>::handler;
    case Compare::ge: return Family<Compare::ge>::handler;
    case Compare::equ: return Family<Compare::equ>::handler;
    case Compare::neu: return Family<Compare::neu>::handler;
    case Compare::ltu: return Family<Compare::ltu>::handler;
    case Compare::leu: return Family<Compare::leu>::handler;
    case Compare::gtu: return Family<Compare::gtu>::handler;
    case Compare::geu: return Family<Compare::geu>::handler;
    case Compare::num: return Family<Compare::num>::handler;
    case Compare::nan: return Family<Compare::nan>::handler;
  }
  return nullptr;
}

template <typename T, bool Ftz = false>
struct Of {
  template <Compare C>
  struct Family {
    static constexpr Handler handler = setp<C, T, Ftz>;
  };
};
template <typename H, bool Ftz = false>
struct HalvesOf {
  template <Compare C>
  struct Family {
    static constexpr Handler handler = setp_halves<C, H, Ftz>;
  };
};

Handler setp_handler(Type type, Compare c, bool ftz) {
  if (!info(type).floating && c > Compare::ge) return nullptr;
  switch (type) {
    case Type::b16:
    case Type::u16: return pick<Of<std::uint16_t>::Family>(c);
    case Type::s16: return pick<Of<std::int16_t>::Family>(c);
    case Type::b32:
    case Type::u32: return pick<Of<std::uint32_t>::Family>(c);
    case Type::s32: return pick<Of<std::int32_t>::Family>(c);
    case Type::b64:
    case Type::u64: return pick<Of<std::uint64_t>::Family>(c);
    case Type::s64: return pick<Of<std::int64_t>::Family>(c);
    case Type::f32: return ftz ? pick<Of<float, true>::Family>(c) : pick<Of<float>::Family>(c);
    case Type::f64: return pick<Of<double>::Family>(c);
    case Type::f16: return ftz ? pick<Of<Half, true>::Family>(c) : pick<Of<Half>::Family>(c);
    case Type::bf16: return pick<Of<Bfloat>::Family>(c);
    case Type::f16x2:
      return ftz ? pick<HalvesOf<Half, true>::Family>(c) : pick<HalvesOf<Half>::Family>(c);
    case Type::bf16x2: return pick<HalvesOf<Bfloat>::Family>(c);
    default: return nullptr;
  }
}

std::optional<Compare> comparison(Decoder& d, Type type) {
  // lo, ls, hi, hs: unsigned, whatever the type says.
  constexpr std::pair<isa::Qualifier, Compare> unsigned_names[] = {
      {"lo"_q, Compare::lt}, {"ls"_q, Compare::le}, {"hi"_q, Compare::gt}, {"hs"_q, Compare::ge}};
  if (!info(type).is_signed && !info(type).floating)
    for (const auto& [name, c] : unsigned_names)
      if (d.spelling.has(name)) return c;
  for (std::size_t i = 0; i < std::size(compare_names); ++i)
    if (d.spelling.has(compare_names[i])) return static_cast<Compare>(i);
  d.unsupported("the comparison operator is missing");
  return std::nullopt;
}

std::uint8_t bool_op(Decoder& d) {
  const std::string_view name = d.spelling.any("and or xor");
  return name == "and" ? 1 : name == "or" ? 2 : name == "xor" ? 3 : 0;
}

// Emits the comparison of operands `first` and `first + 1` into predicates p (and q, if there is
// one).
void emit_setp(Decoder& d, Type type, std::size_t first, std::uint32_t p,
               std::optional<std::uint32_t> q) {
  const auto c = comparison(d, type);
  if (!c) return;
  const std::uint8_t how = bool_op(d);
  const Handler handler = setp_handler(type, *c, d.spelling.has("ftz"));
  if (!handler) return d.unsupported();
  if (!d.expect_operands(first + (how ? 3 : 2), first + (how ? 3 : 2))) return;
  const std::uint32_t a = d.source(first, type), b = d.source(first + 1, type);
  const std::uint32_t with = how ? d.predicate_source(d.operand(first + 2)) : 0;
  Op& op = d.emit(handler);
  op.d = p;
  op.e = q.value_or(0);
  op.a = a;
  op.b = b;
  op.c = with;
  op.flags = static_cast<std::uint8_t>(how | (q ? 4 : 0));
}

void decode_setp(Decoder& d) {
  const Type type = d.spelling.type();
  if (d.operand_count() < 3) return void(d.expect_operands(3, 4));
  const ptx::Operand& to = d.operand(0);
  if (to.kind != ptx::OperandKind::Pair)
    return emit_setp(d, type, 1, d.destination(to, Type::pred), std::nullopt);
  const auto pair = d.children(to);
  const std::uint32_t p = d.destination(pair[0], Type::pred),
                      q = d.destination(pair[1], Type::pred);
  emit_setp(d, type, 1, p, q);
}

// A predicate as a value: op.value where it holds, else 0.
void predicate_to_value(Warp& warp, const Op& op) {
  const std::uint32_t p = predicate(warp, op.a);
  const auto value = static_cast<std::uint32_t>(op.value);
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [=](int i) { d[i] = p >> i & 1 ? value : 0; });
}
void predicates_to_halves(Warp& warp, const Op& op) {
  const std::uint32_t p = predicate(warp, op.a), q = predicate(warp, op.b);
  const auto value = static_cast<std::uint32_t>(op.value);
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask,
            [=](int i) { d[i] = (p >> i & 1 ? value : 0) | (q >> i & 1 ? value << 16 : 0); });
}

void decode_set(Decoder& d) {
  if (decode_packed_integers(d)) return;
  const Type to = d.spelling.type(0), type = d.spelling.type(1);
  const std::uint32_t p = d.scratch(1), q = d.scratch(1);
  const bool packed = type == Type::f16x2 || type == Type::bf16x2;
  if (d.operand_count() < 3) return void(d.expect_operands(3, 4));
  const std::uint32_t destination = d.destination(0, to);
  std::uint64_t value = 0;
  switch (to) {
    case Type::u32:
    case Type::s32: value = packed ? 0xFFFF : 0xFFFFFFFF; break;
    case Type::u16:
    case Type::s16: value = 0xFFFF; break;
    case Type::f32: value = 0x3F800000; break;
    case Type::f16:
    case Type::f16x2: value = 0x3C00; break;
    case Type::bf16:
    case Type::bf16x2: value = 0x3F80; break;
    default: return d.unsupported();
  }
  emit_setp(d, type, 1, p, packed ? std::optional(q) : std::nullopt);
  if (d.failed()) return;
  Op& op = d.emit(packed ? predicates_to_halves : predicate_to_value);
  op.d = destination;
  op.a = p;
  op.b = q;
  op.value = value;
}

template <typename R>
void select(Warp& warp, const Op& op) {
  const std::uint32_t p = predicate(warp, op.c);
  auto* d = lanes<R>(warp, op.d);
  const auto *a = lanes<R>(warp, op.a), *b = lanes<R>(warp, op.b);
  each_lane(warp.mask, [=](int i) { d[i] = p >> i & 1 ? a[i] : b[i]; });
}
void select_predicate(Warp& warp, const Op& op) {
  const std::uint32_t p = predicate(warp, op.c);
  set_predicate(warp, op.d, (predicate(warp, op.a) & p) | (predicate(warp, op.b) & ~p));
}

void decode_selp(Decoder& d) {
  const Type type = d.spelling.type();
  if (!d.expect_operands(4, 4)) return;
  const std::uint32_t to = d.destination(0, type), a = d.source(1, type), b = d.source(2, type),
                      c = d.predicate_source(d.operand(3));
  Op& op = d.emit(type == Type::pred ? select_predicate
                  : bits(type) == 64 ? select<std::uint64_t>
                  : bits(type) <= 32 ? select<std::uint32_t>
                                     : nullptr);
  op.d = to;
  op.a = a;
  op.b = b;
  op.c = c;
}

// slct: a where c >= 0, else b; a NaN is not. With Ftz, subnormal numbers are zeros.
template <typename R, bool Float, bool Ftz = false>
void choose_by_sign(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  const auto *a = lanes<R>(warp, op.a), *b = lanes<R>(warp, op.b);
  const auto* c = lanes<std::uint32_t>(warp, op.c);
  each_lane(warp.mask, [=](int i) {
    const auto x = std::bit_cast<float>(c[i]);
    const bool first = Float ? (Ftz ? flush(x) : x) >= 0 : static_cast<std::int32_t>(c[i]) >= 0;
    d[i] = first ? a[i] : b[i];
  });
}

template <typename R>
Handler slct_handler(Type by, bool ftz) {
  if (by == Type::s32) return choose_by_sign<R, false>;
  return ftz ? choose_by_sign<R, true, true> : choose_by_sign<R, true>;
}

void decode_slct(Decoder& d) {
  const Type type = d.spelling.type(0), by = d.spelling.type(1);
  if (!d.expect_operands(4, 4)) return;
  if (by != Type::s32 && by != Type::f32) return d.unsupported();
  const bool ftz = by == Type::f32 && d.spelling.has("ftz");

  const std::uint32_t to = d.destination(0, type), a = d.source(1, type), b = d.source(2, type),
                      c = d.source(3, by);
  Op& op = d.emit(bits(type) == 64 ? slct_handler<std::uint64_t>(by, ftz)
                                   : slct_handler<std::uint32_t>(by, ftz));
  op.d = to;
  op.a = a;
  op.b = b;
  op.c = c;
}

enum class Test : std::uint8_t { finite, infinite, number, notanumber, normal, subnormal };
constexpr isa::Qualifier test_names[] = {"finite"_q,     "infinite"_q, "number"_q,
                                         "notanumber"_q, "normal"_q,   "subnormal"_q};

template <typename T>
void testp(Warp& warp, const Op& op) {
  const auto* a = lanes<Raw<T>>(warp, op.a);
  const std::uint32_t bits = lanes_where(warp.mask, [&](int i) {
    const T x = Lane<T>::get(a[i]);
    switch (static_cast<Test>(op.flags)) {
      case Test::finite: return static_cast<bool>(std::isfinite(x));
      case Test::infinite: return static_cast<bool>(std::isinf(x));
      case Test::number: return !std::isnan(x);
      case Test::notanumber: return static_cast<bool>(std::isnan(x));
      case Test::normal: return static_cast<bool>(std::isnormal(x)) || x == 0;
      case Test::subnormal: return std::fpclassify(x) == FP_SUBNORMAL;
    }
    return false;
  });
  set_predicate(warp, op.d, bits);
}

void decode_testp(Decoder& d) {
  const Type type = d.spelling.type();
  std::optional<std::uint8_t> test;
  for (std::size_t i = 0; i < std::size(test_names); ++i)
    if (d.spelling.has(test_names[i])) test = static_cast<std::uint8_t>(i);
  if (!test || (type != Type::f32 && type != Type::f64)) return d.unsupported();
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t to = d.destination(0, Type::pred), a = d.source(1, type);
  Op& op = d.emit(type == Type::f32 ? testp<float> : testp<double>);
  op.d = to;
  op.a = a;
  op.flags = *test;
}

struct CopySign {  // the sign of a, the rest of b
  template <typename T>
  static T apply(T a, T b) {
    constexpr T sign = T{1} << (8 * sizeof(T) - 1);
    return (a & sign) | (b & ~sign);
  }
};

void decode_copysign(Decoder& d) {
  const Type type = d.spelling.type();
  if (!d.expect_operands(3, 3)) return;
  const std::uint32_t to = d.destination(0, type), a = d.source(1, type), b = d.source(2, type);
  Op& op = d.emit(type == Type::f32   ? binary<CopySign, std::uint32_t, std::uint32_t>
                  : type == Type::f64 ? binary<CopySign, std::uint64_t, std::uint64_t>
                                      : nullptr);
  op.d = to;
  op.a = a;
  op.b = b;
}

}  // namespace

constexpr EmulatedRow comparison_rows[] = {
    computation(Opcode::setp, decode_setp, Flow::Spreads, Meaning::Compares),
    computation(Opcode::set, decode_set, Flow::Spreads, Meaning::Forgets),
    computation(Opcode::selp, decode_selp, Flow::Selects, Meaning::Selects),
    computation(Opcode::slct, decode_slct, Flow::Spreads, Meaning::SelectsBySign),
    computation(Opcode::testp, decode_testp, Flow::Spreads, Meaning::Forgets),
    computation(Opcode::copysign, decode_copysign, Flow::Spreads, Meaning::Functions),
};
static_assert(are_rows_of(comparison_rows, topics::comparison));

}  // namespace tartan::TARTAN_ABI::emulator
