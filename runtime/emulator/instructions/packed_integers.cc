// SPDX-License-Identifier: Apache-2.0
// Arithmetic and comparisons on four bytes or two halves of a register, each element by itself, and
// add.sat.u32 (PTX ISA 9.2 and 9.4, 9.7.1 and 9.7.7.1).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using Wide = std::int64_t;  // holds every element's result

struct Add {
  static Wide apply(Wide a, Wide b) { return a + b; }
};
struct Subtract {
  static Wide apply(Wide a, Wide b) { return a - b; }
};
struct Minimum {
  static Wide apply(Wide a, Wide b) { return std::min(a, b); }
};
struct Maximum {
  static Wide apply(Wide a, Wide b) { return std::max(a, b); }
};
template <typename F>
struct Relu {
  static Wide apply(Wide a, Wide b) { return std::max<Wide>(F::apply(a, b), 0); }
};

// Results wrap, or are clamped to what T holds.
template <typename F, typename T, bool Saturates>
struct Elements {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t out = 0;
    for (std::size_t at = 0; at < 32; at += 8 * sizeof(T)) {
      Wide made = F::apply(static_cast<T>(a >> at), static_cast<T>(b >> at));
      if (Saturates)
        made = std::clamp<Wide>(made, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
      out |= static_cast<std::uint32_t>(static_cast<std::make_unsigned_t<T>>(made)) << at;
    }
    return out;
  }
};

template <typename F, bool Saturates = false>
Handler elements_of(Type type) {
  const auto handler = [](auto element) -> Handler {
    return binary<Elements<F, decltype(element), Saturates>, std::uint32_t, std::uint32_t>;
  };
  switch (type) {
    case Type::u8x4: return handler(std::uint8_t{});
    case Type::s8x4: return handler(std::int8_t{});
    case Type::u16x2: return handler(std::uint16_t{});
    case Type::s16x2: return handler(std::int16_t{});
    case Type::u32: return handler(std::uint32_t{});
    default: return nullptr;
  }
}

// Ones where the comparison holds; a row's words are those of the manual.
enum class Order : std::uint8_t { equal, unequal, less, at_most, greater, at_least };

bool holds(Order order, Wide a, Wide b) {
  switch (order) {
    case Order::equal: return a == b;
    case Order::unequal: return a != b;
    case Order::less: return a < b;
    case Order::at_most: return a <= b;
    case Order::greater: return a > b;
    case Order::at_least: return a >= b;
  }
  return false;
}

template <Order order>
struct Compare {
  static Wide apply(Wide a, Wide b) { return holds(order, a, b) ? -1 : 0; }
};

Handler comparison(std::string_view name, Type type) {
  if (name == "eq") return elements_of<Compare<Order::equal>>(type);
  if (name == "ne") return elements_of<Compare<Order::unequal>>(type);
  if (name == "lt" || name == "lo") return elements_of<Compare<Order::less>>(type);
  if (name == "le" || name == "ls") return elements_of<Compare<Order::at_most>>(type);
  if (name == "gt" || name == "hi") return elements_of<Compare<Order::greater>>(type);
  if (name == "ge" || name == "hs") return elements_of<Compare<Order::at_least>>(type);
  return nullptr;
}

Handler handler_of(Decoder& d, Type type, bool saturates) {
  switch (d.spelling.opcode()) {
    case Opcode::add: return saturates ? elements_of<Add, true>(type) : elements_of<Add>(type);
    case Opcode::sub:
    case Opcode::neg:
      return saturates ? elements_of<Subtract, true>(type) : elements_of<Subtract>(type);
    case Opcode::min:
      return d.spelling.has("relu") ? elements_of<Relu<Minimum>>(type) : elements_of<Minimum>(type);
    case Opcode::max:
      return d.spelling.has("relu") ? elements_of<Relu<Maximum>>(type) : elements_of<Maximum>(type);
    case Opcode::set: return comparison(d.spelling.any("eq ne lt le gt ge lo ls hi hs"), type);
    default: return nullptr;
  }
}

}  // namespace

bool decode_packed_integers(Decoder& d) {
  const Type type = d.spelling.type();
  const bool bytes = type == Type::u8x4 || type == Type::s8x4,
             halves = type == Type::u16x2 || type == Type::s16x2,
             negates = d.spelling.opcode() == Opcode::neg;
  if (!bytes && !halves && type != Type::u32) return false;
  const bool saturates = d.spelling.has("sat");
  if (!bytes && !saturates && !(halves && d.spelling.opcode() == Opcode::set)) return false;
  const Handler handler = handler_of(d, type, saturates);
  if (!handler) return d.unsupported(), true;
  const std::size_t operands = negates ? 2 : 3;
  if (!d.expect_operands(operands, operands)) return true;
  const std::uint32_t to = d.destination(0, Type::b32),
                      a = negates ? d.constant(0, 32) : d.source(1, Type::b32),
                      b = d.source(operands - 1, Type::b32);
  Op& op = d.emit(handler);
  op.d = to;
  op.a = a;
  op.b = b;
  d.rest_on(Trust::Documented, manual_source);
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
