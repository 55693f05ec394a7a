// SPDX-License-Identifier: Apache-2.0
// and, or, xor, not, lop3: bytes that come through whole, and signs that are changed.
#include <algorithm>
#include <optional>

#include "runtime/emulator/algebra/steps.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;

// Bit a * 4 + b * 2 + c of the table is f(a, b, c), as in lop3.
std::uint8_t table_of(Warp& warp, const Lift& lift) {
  switch (lift.spelling->opcode) {
    case Opcode::and_: return 0xC0;
    case Opcode::or_: return 0xFC;
    case Opcode::xor_: return 0x3C;
    case Opcode::not_: return 0x0F;
    default: return static_cast<std::uint8_t>(LaneBytes(warp, lift.s[3], 0).word());
  }
}

// What a byte of the result is.
struct ByteResult {
  enum class Kind : std::uint8_t {
    bits,    // what its bits say
    copy,    // the byte of a source
    negate,  // that, with its sign turned
    clear,   // with the sign of a positive number
    set,     // of a negative one
    sign,    // nothing but its sign
    other,
  };
  Kind kind = Kind::bits;
  int source = 0;
};

// A bit of the result as a function of the one tagged source's bit: bit 0 is f(0), bit 1 f(1).
enum : int { never = 0, inverted = 1, same = 2, always = 3 };

ByteResult classify(const LaneBytes* sources, std::size_t count, std::size_t byte,
                    std::uint8_t table) {
  int tagged_source = -1;
  for (std::size_t s = 0; s < count; ++s) {
    if (!sources[s].tags[byte]) continue;
    if (tagged_source >= 0) {
      // Two that stand in for each other are one.
      if (sources[s].tags[byte] == sources[static_cast<std::size_t>(tagged_source)].tags[byte])
        continue;
      return {ByteResult::Kind::other};
    }
    tagged_source = static_cast<int>(s);
  }
  if (tagged_source < 0) return {};
  const Tag tag = sources[tagged_source].tags[byte];
  int functions[8];
  for (int bit = 0; bit < 8; ++bit) {
    functions[bit] = 0;
    for (int value = 0; value < 2; ++value) {
      int index = 0;
      for (std::size_t s = 0; s < 3; ++s) {
        int in = 0;
        if (s < count) in = sources[s].tags[byte] == tag ? value : sources[s].bits[byte] >> bit & 1;
        index = index * 2 + in;
      }
      functions[bit] |= (table >> index & 1) << value;
    }
  }
  const auto lower = [&](int function) {
    return std::all_of(functions, functions + 7, [=](int each) { return each == function; });
  };
  const bool constants = std::all_of(functions, functions + 7,
                                     [](int each) { return each == never || each == always; });
  using Kind = ByteResult::Kind;
  const int top = functions[7];
  if (lower(same)) {
    const Kind kind = top == same       ? Kind::copy
                      : top == inverted ? Kind::negate
                      : top == never    ? Kind::clear
                                        : Kind::set;
    return {kind, tagged_source};
  }
  if (constants) return {top == never || top == always ? Kind::bits : Kind::sign, tagged_source};
  return {Kind::other};
}

// The element whose highest byte is byte `last` of `source`, with its sign changed.
bool change_sign(Warp& warp, const LaneBytes& source, std::size_t last, ByteResult::Kind kind,
                 Type type, LaneBytes& out) {
  Algebra& algebra = algebra_of(warp);
  const Tag tag = source.tags[last];
  std::size_t size = is_input(tag) ? 0 : size_of_element(tag);
  if (is_input(tag)) size = static_cast<std::size_t>(bits(type)) / 8;
  if (size == 0 || size > last + 1) return false;
  if (!is_input(tag) && part_of(tag) + 1 != size) return false;
  const std::size_t first = last + 1 - size;
  const Ref value = algebra.read(&warp, source.tags + first, source.bits + first, type);
  Values& values = algebra.values;
  const bool turns = kind == ByteResult::Kind::negate;
  Ref made = values.apply(turns ? Function::negate : Function::magnitude, value);
  if (kind == ByteResult::Kind::set) made = values.apply(Function::negate, made);
  algebra.write(out.tags + first, made, type);
  return true;
}

// The type of the element that ends there: of inputs, the one that they were read as, else that of
// its size in a register.
std::optional<Type> type_at(const Algebra& algebra, const LaneBytes& source, std::size_t last,
                            std::size_t room) {
  const Tag tag = source.tags[last];
  if (!is_input(tag)) {
    const Type type = algebra.values[ref_of(tag)].type;
    return type == Type::none ? std::nullopt : std::optional(type);
  }
  for (const std::uint32_t size : {4u, 2u, 8u}) {
    if (input_byte(tag) + 1 < size) continue;
    const Type type = algebra.type(input_byte(tag) + 1 - size);
    if (type != Type::none && static_cast<std::uint32_t>(bits(type)) == 8 * size) return type;
  }
  return room == 8 ? Type::f64 : last == 3 ? std::optional(Type::f32) : std::nullopt;
}

}  // namespace

bool combine_bits(Warp& warp, const Op& op, const Lift& lift) {
  if (lift.spelling->type(0) == Type::pred) return true;
  if (!tagged(warp, lift.s)) return forget(warp, op, lift);
  const std::uint8_t table = table_of(warp, lift);
  const std::size_t count = lift.spelling->opcode == Opcode::lop3 ? 3 : lift.s.size();
  const std::size_t room = room_of(lift.d[0]);
  const std::uint32_t all = warp.mask;
  for (std::uint32_t m = all; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    LaneBytes sources[3], out;
    for (std::size_t s = 0; s < count; ++s) sources[s] = LaneBytes(warp, lift.s[s], lane);
    ByteResult results[8];
    bool good = true;
    for (std::size_t i = 0; i < room; ++i) {
      results[i] = classify(sources, count, i, table);
      good &= results[i].kind != ByteResult::Kind::other;
      if (results[i].kind == ByteResult::Kind::copy)
        out.tags[i] = sources[results[i].source].tags[i];
    }
    for (std::size_t i = 0; good && i < room; ++i) {
      using Kind = ByteResult::Kind;
      if (results[i].kind != Kind::negate && results[i].kind != Kind::clear &&
          results[i].kind != Kind::set)
        continue;
      const LaneBytes& source = sources[results[i].source];
      const auto type = type_at(algebra_of(warp), source, i, room);
      good =
          type && info(*type).floating && change_sign(warp, source, i, results[i].kind, *type, out);
    }
    if (good) {
      out.write(warp, lift.d[0], lane);
      continue;
    }
    warp.mask = std::uint32_t{1} << lane;
    compute_bits(warp, op, lift);
    warp.mask = all;
  }
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
