// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/operands.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

namespace tartan::ptx {
namespace {

constexpr int max_depth = 32;  // of nested braces in one operand; far beyond what PTX has

struct Literal {
  Type type;
  std::uint64_t value;
};

// 0f and 0d: the bits, as hexadecimal digits.
std::optional<Literal> parse_float_bits(std::string_view text) {
  const bool single = text[1] == 'f' || text[1] == 'F';
  text.remove_prefix(2);
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size() ||
      text.size() != (single ? 8u : 16u))
    return std::nullopt;
  return Literal{single ? Type::f32 : Type::f64, bits};
}

std::optional<Literal> parse_decimal_float(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return Literal{Type::f64, std::bit_cast<std::uint64_t>(value)};
}

std::optional<Literal> parse_integer(std::string_view text) {
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
  return Literal{type, value};
}

std::optional<Literal> parse_literal(std::string_view text) {
  if (text.size() > 2 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    if (mark == 'f' || mark == 'd') return parse_float_bits(text);
    if (mark == 'x') return parse_integer(text);
  }
  if (text.find_first_of(".eE") != std::string_view::npos) return parse_decimal_float(text);
  return parse_integer(text);
}

std::string describe(const Token& token) {
  if (token.kind == TokenKind::End) return "the end of the text";
  if (token.kind != TokenKind::Unknown) return fmt::format("'{}'", token.text.substr(0, 60));
  if (token.text.starts_with("/*")) return "a comment that is not closed";
  if (token.text.starts_with('"')) return "a string that is not closed";
  return token.text.size() == 1 && (token.text[0] < ' ' || token.text[0] > '~')
             ? fmt::format("byte 0x{:02X}", static_cast<unsigned char>(token.text[0]))
             : fmt::format("'{}'", token.text.substr(0, 60));
}

}  // namespace

void OperandParser::syntax(std::string_view expected) {
  if (token_.kind == TokenKind::End) return end_of_text(expected);
  Diag& diag = diags_.report("syntax"_rule, source_.place(token_.offset),
                             fmt::format("expected {}, found {}", expected, describe(token_)));
  diag.source = source_.line_text(diag.place.line);
  diag.width = static_cast<int>(token_.text.size());
}

void OperandParser::end_of_text(std::string_view expected) {
  if (!diags_.empty() && diags_[diags_.size() - 1].id == "unexpected-end")
    return;  // once is enough
  diags_.report("unexpected-end"_rule, source_.place(token_.offset),
                fmt::format("the text ends here; expected {}", expected));
}

bool OperandParser::expect(char c, std::string_view expected) {
  if (token_.is(c)) {
    advance();
    return true;
  }
  syntax(expected.empty() ? fmt::format("'{}'", c) : std::string(expected));
  return false;
}

void OperandParser::recover() {
  while (token_.kind != TokenKind::End && !token_.is('{') && !token_.is('}')) {
    const bool done = token_.is(';');
    advance();
    if (done) return;
  }
  // A brace that belongs to an operand is not a block.
  if (token_.is('{')) {
    const int line = source_.line(token_.offset);
    while (token_.kind != TokenKind::End && !token_.is('}') && source_.line(token_.offset) == line)
      advance();
    if (token_.is('}') && source_.line(token_.offset) == line) {
      advance();
      recover();
    }
  }
}

void OperandParser::skip_line() {
  const int line = source_.line(token_.offset);
  while (token_.kind != TokenKind::End && source_.line(token_.offset) == line) advance();
}

void OperandParser::recover_line() { skip_line(); }

std::optional<std::uint64_t> OperandParser::take_integer(std::string_view what) {
  const auto literal = token_.kind == TokenKind::Number ? parse_literal(token_.text) : std::nullopt;
  if (!literal || info(literal->type).floating) {
    syntax(what);
    return std::nullopt;
  }
  advance();
  return literal->value;
}

bool OperandParser::parse_operand(Operand& operand) {
  if (!parse_primary(operand)) return false;
  if (!token_.is('|')) return true;
  const Scratch scratch(*this);
  scratch.push(operand);
  advance();
  Operand second;
  if (!parse_primary(second)) return false;
  scratch.push(second);
  Operand pair{.kind = OperandKind::Pair, .offset = operand.offset};
  pair.first = scratch.store(pair.count);
  operand = pair;
  return true;
}

bool OperandParser::parse_primary(Operand& operand) {
  operand = {};
  operand.offset = token_.offset;
  switch (token_.kind) {
    case TokenKind::Identifier: return parse_name(operand);
    case TokenKind::Number: return parse_number(operand, false);
    case TokenKind::String:
      operand.kind = OperandKind::String;
      operand.text = token_.text;
      advance();
      return true;
    case TokenKind::Punctuation: break;
    default: syntax("an operand"); return false;
  }
  switch (token_.text[0]) {
    case '{': return parse_list(operand, OperandKind::Vector, '}');
    case '(': return parse_list(operand, OperandKind::List, ')');
    case '[': return parse_address(operand);
    case '-':
    case '+': {
      const bool negative = token_.is('-');
      advance();
      if (token_.kind != TokenKind::Number) return syntax("a number"), false;
      return parse_number(operand, negative);
    }
    case '!': {
      advance();
      Operand inner;
      if (token_.kind != TokenKind::Identifier)
        return syntax("a predicate register after !"), false;
      inner.offset = token_.offset;
      if (!parse_name(inner)) return false;
      const Scratch scratch(*this);
      scratch.push(inner);
      operand.kind = OperandKind::Not;
      operand.first = scratch.store(operand.count);
      return true;
    }
    default: syntax("an operand"); return false;
  }
}

bool OperandParser::parse_list(Operand& operand, OperandKind kind, char close) {
  operand.kind = kind;
  advance();
  if (++depth_ > max_depth) return syntax("fewer nested braces"), --depth_, false;
  const Scratch scratch(*this);
  bool good = true;
  if (!token_.is(close)) {
    do {
      Operand child;
      good = parse_operand(child);
      if (good) scratch.push(child);
    } while (good && token_.is(',') && (advance(), true));
  }
  --depth_;
  if (!good) return false;
  operand.first = scratch.store(operand.count);
  return expect(close, fmt::format("',' or '{}'", close));
}

bool OperandParser::parse_address(Operand& operand) {
  operand.kind = OperandKind::Address;
  advance();
  if (++depth_ > max_depth) return syntax("fewer nested brackets"), --depth_, false;
  const Scratch scratch(*this);
  bool good = true;
  do {
    Operand part;
    good = parse_operand(part);
    if (!good) break;
    if (part.kind == OperandKind::Name) {
      operand.value += part.value;
      part.value = 0;
    }
    scratch.push(part);
  } while (token_.is(',') && (advance(), true));
  --depth_;
  if (!good) return false;
  operand.first = scratch.store(operand.count);
  return expect(']', "an offset, ',' or ']'");
}

// `name`, `name.x`, `name+16`, `generic(name)`, `0xFF(name)` of initialisers.
bool OperandParser::parse_name(Operand& operand) {
  operand.kind = OperandKind::Name;
  operand.text = lexer_.extend_opcode(token_);
  advance();
  if (operand.text == "generic" && token_.is('(')) {
    const std::uint32_t start = operand.offset;
    advance();
    if (token_.kind != TokenKind::Identifier) return syntax("a variable's name"), false;
    advance();
    operand.text = source_.text().substr(start, token_.end() - start);
    if (!expect(')')) return false;
  }
  return parse_offset(operand);
}

// The constant that may follow a name: +4, -4, +-4.
bool OperandParser::parse_offset(Operand& operand) {
  while (token_.is('+') || token_.is('-')) {
    bool negative = token_.is('-');
    advance();
    if (token_.is('-')) negative = !negative, advance();
    const auto value = take_integer("an offset");
    if (!value) return false;
    operand.value += negative ? 0 - *value : *value;
  }
  return true;
}

bool OperandParser::parse_number(Operand& operand, bool negative) {
  const auto literal = parse_literal(token_.text);
  if (!literal) return syntax("a number"), false;
  operand.type = literal->type;
  operand.value = literal->value;
  operand.kind = info(literal->type).floating ? OperandKind::Float : OperandKind::Integer;
  if (negative) {
    if (operand.kind == OperandKind::Integer) operand.value = 0 - operand.value;
    else operand.value ^= std::uint64_t{1} << (bits(literal->type) - 1);
  }
  operand.text = source_.text().substr(operand.offset, token_.end() - operand.offset);
  advance();
  return true;
}

}  // namespace tartan::ptx
