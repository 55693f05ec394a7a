// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/constant.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace tartan::TARTAN_ABI::ptx {
namespace {

// 0f and 0d: the bits, as hexadecimal digits.
std::optional<Constant> parse_float_bits(std::string_view text) {
  const bool single = text[1] == 'f' || text[1] == 'F';
  text.remove_prefix(2);
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size() ||
      text.size() != (single ? 8u : 16u))
    return std::nullopt;
  return Constant{single ? Type::f32 : Type::f64, bits};
}

std::optional<Constant> parse_decimal_float(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // too large is an error, too small is not
    value = std::strtod(std::string(text).c_str(), nullptr);
    if (std::abs(value) > 1) return std::nullopt;
  }
  return Constant{Type::f64, std::bit_cast<std::uint64_t>(value)};
}

std::optional<Constant> parse_integer(std::string_view text) {
  Type type = Type::s64;
  if (text.ends_with('U') || text.ends_with('u')) {
    type = Type::u64;
    text.remove_suffix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(base == 8 ? 1 : 2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value >> 63) type = Type::u64;
  return Constant{type, value};
}

// Two-letter operators first.
constexpr BinaryOperator operators[] = {
    {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7},
    {"<<", 8}, {">>", 8}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
    {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};

Constant truth(bool value) { return {Type::s64, value}; }

template <typename T>
std::optional<bool> compare(std::string_view by, T x, T y) {
  if (by == "==") return x == y;
  if (by == "!=") return x != y;
  if (by == "<") return x < y;
  if (by == "<=") return x <= y;
  if (by == ">") return x > y;
  if (by == ">=") return x >= y;
  return std::nullopt;
}

std::optional<Constant> on_doubles(std::string_view by, double x, double y) {
  if (const auto order = compare(by, x, y)) return truth(*order);
  const auto made = [](double value) {
    return Constant{Type::f64, std::bit_cast<std::uint64_t>(value)};
  };
  if (by == "+") return made(x + y);
  if (by == "-") return made(x - y);
  if (by == "*") return made(x * y);
  if (by == "/") return made(x / y);
  return std::nullopt;
}

std::uint64_t shifted(std::string_view by, Constant x, std::uint64_t count) {
  const auto value = static_cast<std::int64_t>(x.value);
  const bool arithmetic = by == ">>" && x.type == Type::s64;
  if (count > 63) return arithmetic && value < 0 ? ~std::uint64_t{0} : 0;
  if (arithmetic) return static_cast<std::uint64_t>(value >> count);
  return by == "<<" ? x.value << count : x.value >> count;
}

std::optional<Constant> divided(Type type, std::uint64_t x, std::uint64_t y) {
  if (y == 0) return std::nullopt;
  if (type == Type::u64) return Constant{type, x / y};
  if (y == ~std::uint64_t{0}) return Constant{type, 0 - x};  // by -1: nothing overflows
  const auto quotient = static_cast<std::int64_t>(x) / static_cast<std::int64_t>(y);
  return Constant{type, static_cast<std::uint64_t>(quotient)};
}

std::optional<Constant> on_integers(std::string_view by, Constant x, Constant y) {
  const Type type = x.type == Type::u64 || y.type == Type::u64 ? Type::u64 : Type::s64;
  const auto order = type == Type::u64 ? compare(by, x.value, y.value)
                                       : compare(by, static_cast<std::int64_t>(x.value),
                                                 static_cast<std::int64_t>(y.value));
  if (order) return truth(*order);
  if (by == "<<" || by == ">>") return Constant{x.type, shifted(by, x, y.value)};
  if (by == "||") return truth(x.value != 0 || y.value != 0);
  if (by == "&&") return truth(x.value != 0 && y.value != 0);
  if (by == "/") return divided(type, x.value, y.value);
  switch (by[0]) {
    case '+': return Constant{type, x.value + y.value};
    case '-': return Constant{type, x.value - y.value};
    case '*': return Constant{type, x.value * y.value};
    case '&': return Constant{Type::u64, x.value & y.value};
    case '|': return Constant{Type::u64, x.value | y.value};
    case '^': return Constant{Type::u64, x.value ^ y.value};
    default: break;
  }
  if (y.value == 0) return std::nullopt;  // %
  return Constant{Type::s64, x.value % y.value};
}

}  // namespace

std::optional<Constant> parse_literal(std::string_view text) {
  if (text.size() > 2 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    if (mark == 'f' || mark == 'd') return parse_float_bits(text);
    if (mark == 'x') return parse_integer(text);
  }
  if (text.find_first_of(".eE") != std::string_view::npos) return parse_decimal_float(text);
  return parse_integer(text);
}

std::string_view number_expected(std::string_view text) {
  constexpr std::string_view decimal = "0123456789", hexadecimal = "0123456789abcdefABCDEF";
  const auto consists_of = [](std::string_view word, std::string_view characters) {
    return !word.empty() && word.find_first_not_of(characters) == std::string_view::npos;
  };
  if (parse_literal(text) || text.empty() || decimal.find(text[0]) == std::string_view::npos)
    return {};
  if (consists_of(text, decimal)) return "a number of at most 64 bits";
  if (const std::size_t exponent = text.find_first_of("eE"); exponent != std::string_view::npos)
    if (consists_of(text.substr(0, exponent), "0123456789.") &&
        consists_of(text.substr(exponent + 1), decimal))
      return "a number that f64 can hold";
  if (text[0] != '0' || text.size() < 3 || !consists_of(text.substr(2), hexadecimal)) return {};
  switch (text[1] | 0x20) {
    case 'x': return "a number of at most 64 bits";
    case 'f': return "0f and 8 hexadecimal digits";
    case 'd': return "0d and 16 hexadecimal digits";
    default: return {};
  }
}

const BinaryOperator* binary_operator(std::string_view text, int level) {
  for (const BinaryOperator& row : operators)
    if (text.starts_with(row.text)) return row.level >= level ? &row : nullptr;
  return nullptr;
}

std::optional<Constant> apply(const BinaryOperator& by, Constant x, Constant y) {
  if (x.type == Type::f32 || y.type == Type::f32) return std::nullopt;
  const bool doubles = x.type == Type::f64;
  if (doubles != (y.type == Type::f64)) return std::nullopt;
  return doubles
             ? on_doubles(by.text, std::bit_cast<double>(x.value), std::bit_cast<double>(y.value))
             : on_integers(by.text, x, y);
}

std::optional<Constant> apply(char by, Constant x) {
  const bool floating = info(x.type).floating;
  switch (by) {
    case '+': return x;
    case '-':
      return Constant{x.type,
                      floating ? x.value ^ std::uint64_t{1} << (bits(x.type) - 1) : 0 - x.value};
    case '!': return floating ? std::nullopt : std::optional(truth(x.value == 0));
    case '~': return floating ? std::nullopt : std::optional(Constant{Type::u64, ~x.value});
    default: return std::nullopt;
  }
}

}  // namespace tartan::TARTAN_ABI::ptx
