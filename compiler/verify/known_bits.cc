// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/known_bits.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using isa::PartialBits;
using isa::operator""_q;

constexpr int deepest_value = 64;  // limit of operands followed back

std::uint64_t ones(int width) { return PartialBits::ones(width); }
std::uint64_t zeros_of(const PartialBits& x) { return x.known & ~x.value; }

PartialBits constant(std::uint64_t value) { return {~std::uint64_t{0}, value}; }
PartialBits made(std::uint64_t zero, std::uint64_t one) { return {zero | one, one}; }

// The low bits alone; those above are zeros.
PartialBits truncated(const PartialBits& x, int width) {
  return {x.known | ~ones(width), x.value & ones(width)};
}

PartialBits sum(const PartialBits& x, const PartialBits& y, bool carry) {
  const std::uint64_t most = ~zeros_of(x) + ~zeros_of(y) + carry, least = x.value + y.value + carry;
  const std::uint64_t carries_known =
      ~(most ^ zeros_of(x) ^ zeros_of(y)) | (least ^ x.value ^ y.value);
  const std::uint64_t known = x.known & y.known & carries_known;
  return {known, least & known};
}

PartialBits inverted(const PartialBits& x) { return {x.known, ~x.value & x.known}; }

PartialBits shifted_left(const PartialBits& x, std::uint64_t by) {
  if (by > 63) return constant(0);
  return {x.known << by | ones(static_cast<int>(by)), x.value << by};
}

PartialBits shifted_right(const PartialBits& x, std::uint64_t by, int width, bool arithmetic) {
  const std::uint64_t top = ones(width) & ~ones(width - 1);
  const bool sign_known = !arithmetic || x.known & top, negative = arithmetic && x.value & top;
  const int steps =
      static_cast<int>(std::min<std::uint64_t>(by, static_cast<std::uint64_t>(width)));
  const std::uint64_t filled = ones(width) & ~ones(width - steps);
  PartialBits out{(x.known & ones(width)) >> (steps > 63 ? 63 : steps),
                  (x.value & ones(width)) >> (steps > 63 ? 63 : steps)};
  if (steps > 63) out = {};
  out.known &= ~filled;
  out.value &= ~filled;
  if (sign_known) out.known |= filled;
  if (sign_known && negative) out.value |= filled;
  return out;
}

bool whole(const PartialBits& x, int width) { return (x.known & ones(width)) == ones(width); }

bool of_integers(const isa::Spelling& spelling) {
  for (const Type type : spelling.types)
    if (info(type).floating || type >= Type::u2) return false;
  return spelling.types.size > 0 && !spelling.has("cc"_q) && !spelling.has("sat"_q);
}

}  // namespace

isa::PartialBits KnownBits::of(const ptx::Operand& operand, int depth) {
  if (operand.kind == ptx::OperandKind::Integer) return constant(operand.value);
  if (operand.kind != ptx::OperandKind::Name || operand.adds || depth > deepest_value) return {};
  const ptx::Instruction* by = definitions_.of(operand.text);
  if (!by) return {};
  const auto [known, fresh] = registers_.try_emplace(operand.text);
  if (!fresh) return known->second;  // nothing while it is followed back: a loop
  const PartialBits found = made_by(*by, depth + 1);
  registers_[operand.text] = found;
  return found;
}

isa::PartialBits KnownBits::made_by(const ptx::Instruction& instruction, int depth) {
  const isa::Spelling& spelling = module_.spelling(instruction);
  const auto operands = module_.operands_of(instruction);
  if (operands.size() < 2 || operands[0].kind != ptx::OperandKind::Name || !of_integers(spelling))
    return {};
  const Type type = spelling.types[spelling.types.size - 1u];
  const int width = tartan::bits(type);
  const auto in = [&](std::size_t i) { return truncated(of(operands[i], depth), width); };
  const auto number = [&](std::size_t i) -> std::optional<std::uint64_t> {
    const PartialBits x = of(operands[i], depth);
    return whole(x, 32) ? std::optional(x.value & ones(32)) : std::nullopt;
  };
  const auto out = [&](const PartialBits& x) { return truncated(x, width); };
  const bool three = operands.size() == 3;
  switch (spelling.opcode) {
    case Opcode::mov:
      if (operands[1].kind == ptx::OperandKind::Vector) {
        const auto parts = module_.children(operands[1]);
        if (parts.empty()) return {};
        const int each = width / static_cast<int>(parts.size());
        PartialBits made_of{};
        for (std::size_t i = 0; i < parts.size(); ++i) {
          const PartialBits part = truncated(of(parts[i], depth), each);
          const int at = each * static_cast<int>(i);
          made_of.known |= (part.known & ones(each)) << at;
          made_of.value |= part.value << at;
        }
        return out(made_of);
      }
      return in(1);
    case Opcode::cvt: {
      PartialBits x = in(1);
      const int to = tartan::bits(spelling.type());
      if (info(type).is_signed && to > width) {
        const std::uint64_t top = ones(width) & ~ones(width - 1), above = ~ones(width);
        x.known = (x.known & ~above) | (x.known & top ? above : 0);
        if (x.value & top) x.value |= above;
      }
      return truncated(x, to);
    }
    case Opcode::and_: {
      if (!three) return {};
      const PartialBits x = in(1), y = in(2);
      return out(made(zeros_of(x) | zeros_of(y), x.value & y.value));
    }
    case Opcode::or_: {
      if (!three) return {};
      const PartialBits x = in(1), y = in(2);
      return out(made(zeros_of(x) & zeros_of(y), x.value | y.value));
    }
    case Opcode::xor_: {
      if (!three) return {};
      const PartialBits x = in(1), y = in(2);
      const std::uint64_t known = x.known & y.known;
      return out({known, (x.value ^ y.value) & known});
    }
    case Opcode::not_: return out(inverted(in(1)));
    case Opcode::add: return three ? out(sum(in(1), in(2), false)) : PartialBits{};
    case Opcode::sub: return three ? out(sum(in(1), inverted(in(2)), true)) : PartialBits{};
    case Opcode::shl: {
      const auto by = three ? number(2) : std::nullopt;
      return by ? out(shifted_left(in(1), *by)) : PartialBits{};
    }
    case Opcode::shr: {
      const auto by = three ? number(2) : std::nullopt;
      return by ? out(shifted_right(in(1), *by, width, info(type).is_signed)) : PartialBits{};
    }
    case Opcode::mul: {
      if (!three || spelling.has("hi"_q)) return {};
      const PartialBits x = in(1), y = in(2);
      if (!whole(x, width) || !whole(y, width) || info(type).is_signed) return {};
      const std::uint64_t product = x.value * y.value;
      return spelling.has("wide"_q) ? truncated(constant(product), 2 * width)
                                    : out(constant(product));
    }
    case Opcode::selp: {
      if (operands.size() != 4) return {};
      const PartialBits x = in(1), y = in(2);
      const std::uint64_t known = x.known & y.known & ~(x.value ^ y.value);
      return out({known, x.value & known});
    }
    case Opcode::bfi: {  // insert operand 1 into operand 2
      if (operands.size() != 5) return {};
      const auto at = number(3), length = number(4);
      if (!at || !length || *at + *length > static_cast<std::uint64_t>(width)) return {};
      const std::uint64_t field = ones(static_cast<int>(*length)) << *at;
      const PartialBits from = shifted_left(in(1), *at), into = in(2);
      return out({(from.known & field) | (into.known & ~field),
                  (from.value & field) | (into.value & ~field)});
    }
    default: return {};
  }
}

}  // namespace tartan::TARTAN_ABI::verify
