// SPDX-License-Identifier: Apache-2.0
// Extended precision (PTX ISA 9.0, 9.7.2): arithmetic with the condition code's carry.
#include <bit>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint8_t takes_carry = 1, gives_carry = 2, subtracts = 4;

// d = a + b + carry; op.e is the carry predicate. A difference is the sum a + ~b + carry, with a
// carry of 1 where none is taken: what it leaves is the complement of a borrow, and what follows
// takes it as it is, sum or difference.
template <typename T>
void add_carry(Warp& warp, const Op& op) {
  auto* d = lanes<T>(warp, op.d);
  const auto* a = lanes<T>(warp, op.a);
  const auto* b = lanes<T>(warp, op.b);
  const bool subtract = op.flags & subtracts;
  const T flip = subtract ? ~T{0} : T{0};
  const std::uint32_t carry_in = op.flags & takes_carry ? predicate(warp, op.e)
                                 : subtract             ? ~std::uint32_t{0}
                                                        : 0;
  std::uint32_t carry_out = 0;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int i = std::countr_zero(m);
    const T x = a[i], partial = x + (b[i] ^ flip), result = partial + (carry_in >> i & 1);
    carry_out |= static_cast<std::uint32_t>(partial < x || result < partial) << i;
    d[i] = result;
  }
  if (op.flags & gives_carry) set_predicate(warp, op.e, carry_out);
}

template <typename T>
T high_product(T a, T b, bool is_signed) {
  if constexpr (sizeof(T) == 4) {
    if (is_signed)
      return static_cast<T>(
          (std::int64_t{static_cast<std::int32_t>(a)} * static_cast<std::int32_t>(b)) >> 32);
    return static_cast<T>((std::uint64_t{a} * b) >> 32);
  } else {
    if (is_signed)
      return static_cast<T>(
          (static_cast<Int128>(static_cast<std::int64_t>(a)) * static_cast<std::int64_t>(b)) >> 64);
    return static_cast<T>((static_cast<UInt128>(a) * b) >> 64);
  }
}

// d = the low or high half of a * b: the first step of mad.cc and madc. flags: 1 high, 2 signed.
template <typename T>
void product(Warp& warp, const Op& op) {
  auto* d = lanes<T>(warp, op.d);
  const auto* a = lanes<T>(warp, op.a);
  const auto* b = lanes<T>(warp, op.b);
  each_lane(warp.mask, [=](int i) {
    d[i] = op.flags & 1 ? high_product(a[i], b[i], op.flags & 2) : a[i] * b[i];
  });
}

void decode(Decoder& d) {
  const bool wide = bits(d.spelling.type()) == 64, is_signed = info(d.spelling.type()).is_signed;
  const Type type = d.spelling.type();
  if (bits(type) != 32 && !wide) return d.unsupported();
  const Opcode opcode = d.spelling.opcode();
  const bool multiply = opcode == Opcode::mad || opcode == Opcode::madc;
  if (!d.expect_operands(multiply ? 4 : 3, multiply ? 4 : 3)) return;
  std::uint8_t flags = 0;
  if (d.spelling.has("cc")) flags |= gives_carry;
  if (opcode == Opcode::addc || opcode == Opcode::subc || opcode == Opcode::madc)
    flags |= takes_carry;
  if (opcode == Opcode::sub || opcode == Opcode::subc) flags |= subtracts;
  const std::uint32_t to = d.destination(0, type);
  std::uint32_t a = d.source(1, type);
  const std::uint32_t b = d.source(2, type), addend = multiply ? d.source(3, type) : b;
  if (multiply) {
    const bool high = d.spelling.has("hi");
    if (!high && !d.spelling.has("lo")) return d.unsupported();
    const std::uint32_t temporary = d.scratch(wide ? 64 : 32);
    Op& op = d.emit(wide ? product<std::uint64_t> : product<std::uint32_t>);
    op.d = temporary;
    op.a = a;
    op.b = b;
    op.flags = static_cast<std::uint8_t>((high ? 1 : 0) | (is_signed ? 2 : 0));
    a = temporary;
  }
  Op& op = d.emit(wide ? add_carry<std::uint64_t> : add_carry<std::uint32_t>);
  op.d = to;
  op.a = a;
  op.b = addend;
  op.e = d.carry();
  op.flags = flags;
}

// A product without carries, to which c is added without them.
template <bool High>
struct Carryless {
  static std::uint64_t apply(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    std::uint64_t out = c;
    for (int i = 0; i < 64; ++i)
      if (a >> i & 1) out ^= High ? (i ? b >> (64 - i) : 0) : b << i;
    return out;
  }
};

void decode_carryless(Decoder& d) {
  const bool high = d.spelling.has("hi");
  if ((!high && !d.spelling.has("lo")) || bits(d.spelling.type()) != 64) return d.unsupported();
  if (!d.expect_operands(4, 4)) return;
  const std::uint32_t to = d.destination(0, Type::b64), a = d.source(1, Type::b64),
                      b = d.source(2, Type::b64), c = d.source(3, Type::b64);
  Op& op = d.emit(high ? ternary<Carryless<true>, std::uint64_t, std::uint64_t>
                       : ternary<Carryless<false>, std::uint64_t, std::uint64_t>);
  op.d = to;
  op.a = a;
  op.b = b;
  op.c = c;
  d.rest_on(Trust::Documented, manual_source);
}

}  // namespace

void decode_carry(Decoder& decoder) { decode(decoder); }

constexpr EmulatedRow carry_rows[] = {
    {Opcode::addc, decode, Flow::Spreads, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::subc, decode, Flow::Spreads, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::madc, decode, Flow::Spreads, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    computation(Opcode::clmad, decode_carryless, Flow::Spreads, Meaning::Bits),
};
static_assert(are_rows_of(carry_rows, topics::carry));

}  // namespace tartan::TARTAN_ABI::emulator
