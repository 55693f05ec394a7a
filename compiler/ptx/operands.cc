// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ptx/constant.h"

namespace tartan::TARTAN_ABI::ptx {
namespace {

constexpr int max_depth = 32;  // of nested braces in one operand; far beyond any PTX
constexpr std::string_view warp_size = "WARP_SZ";  // 32, to constant expressions

std::string describe(const Token& token) {
  if (token.kind == TokenKind::End) return "the end of the text";
  if (token.kind != TokenKind::Unknown) return fmt::format("'{}'", token.text.substr(0, 60));
  if (token.text.starts_with("/*")) return "an unterminated comment";
  if (token.text.starts_with('"')) return "an unterminated string";
  return token.text.size() == 1 && (token.text[0] < ' ' || token.text[0] > '~')
             ? fmt::format("byte 0x{:02X}", static_cast<unsigned char>(token.text[0]))
             : fmt::format("'{}'", token.text.substr(0, 60));
}

}  // namespace

void OperandParser::syntax(std::string_view expected) {
  if (token_.kind == TokenKind::End) return end_of_text(expected);
  if (!std::ranges::all_of(token_.text, is_ascii)) return;  // reported as a whole
  report("syntax"_rule, token_.offset, token_.text.size(),
         fmt::format("expected {}, found {}", expected, describe(token_)));
}

void OperandParser::refuse(std::uint32_t offset, std::string message) {
  report("syntax"_rule, offset, 1, std::move(message));
}

void OperandParser::report(const Rule& rule, std::uint32_t offset, std::size_t width,
                           std::string message) {
  if (stopped_) return;
  // Of errors that are counted alone, nobody sees the line.
  const bool counted = diags_.left_out() > 0;
  Diag& diag = diags_.report(rule, source_.place(offset), counted ? "" : std::move(message));
  if (!counted) source_.quote(diag, width);
  count_error();
}

void OperandParser::count_error() {
  if (errors_left_ == 0 || --errors_left_ > 0) return;
  stopped_ = true;
  lexer_.rewind(static_cast<std::uint32_t>(source_.text().size()));
  token_ = lexer_.next();
}

bool OperandParser::too_deep(std::string_view what) {
  syntax(fmt::format("fewer nested {}", what));
  while (token_.kind != TokenKind::End && !token_.is(';')) advance();
  return false;
}

void OperandParser::end_of_text(std::string_view expected) {
  if (!whole_ || stopped_) return;
  if (!diags_.empty() && diags_[diags_.size() - 1].id == "unexpected-end") return;  // report once
  diags_.report("unexpected-end"_rule, source_.place(token_.offset),
                fmt::format("unexpected end of the text: expected {}", expected));
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
  do {
    while (token_.kind != TokenKind::End && !token_.is('{') && !token_.is('}')) {
      const bool done = token_.is(';');
      advance();
      if (done) return;
    }
  } while (skip_braces());
}

void OperandParser::end_statement(std::string_view expected) {
  if (!expect(';', expected) && !begins_line()) recover();
}

// Skips the braces of an operand, which are not a block.
bool OperandParser::skip_braces() {
  if (!token_.is('{')) return false;
  const Token brace = token_;
  const int line = source_.line(token_.offset);
  while (token_.kind != TokenKind::End && !token_.is('}') && source_.line(token_.offset) == line)
    advance();
  if (!token_.is('}') || source_.line(token_.offset) != line) {
    lexer_.rewind(brace.offset);
    advance();
    return false;
  }
  advance();
  return true;
}

// #define X, #pragma: reports it, once; what follows may be right.
bool OperandParser::skip_directive() {
  if (!token_.text.starts_with('#')) return false;
  if (token_.end() <= directives_to_) return true;
  directives_to_ = token_.end();
  report("syntax"_rule, token_.offset, token_.text.size(),
         fmt::format("a preprocessor's line: expected PTX or a line marker such as # 1 \"k.cu\", "
                     "found '{}'",
                     token_.text.substr(0, 60)));
  return true;
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

std::string_view OperandParser::join(std::string_view name) {
  auto whole = std::make_shared<std::string>(name);
  for (; token_.kind == TokenKind::Dot; advance()) *whole += token_.text;
  module_.joined.push_back(
      {whole, static_cast<std::uint32_t>(name.data() - source_.text().data())});
  return *whole;
}

bool OperandParser::parse_operand(Operand& operand) {
  if (!parse_primary(operand)) return false;
  if (!token_.is('|')) return true;
  const Scratch scratch(*this);
  scratch.push(operand);
  advance();
  Operand second;
  const Listing listing(listing_, true);  // p|q+1 is no sum
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
  if (!refused_.empty() && parse_refused(operand)) return parse_behind_name(operand);
  switch (token_.kind) {
    case TokenKind::Identifier: return parse_name(operand);
    case TokenKind::Number: return parse_number(operand);
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
    case '(':
      if (lists_ || names_next()) return parse_list(operand, OperandKind::List, ')');
      return parse_constant(operand);
    case '[': return parse_address(operand);
    case '!': return parse_prefixed(operand, OperandKind::Not);
    case '-': return parse_prefixed(operand, OperandKind::Negative);
    case '+':
    case '~': return parse_constant(operand);
    default: syntax("an operand"); return false;
  }
}

// Whether a name, or nothing, follows the punctuation here; no constant starts that way.
bool OperandParser::names_next() {
  const std::uint32_t here = lexer_.position();
  const Token next = lexer_.next();
  lexer_.rewind(here);
  return (next.kind == TokenKind::Identifier && next.text != warp_size) || next.is(')');
}

// !p, -r, or a constant that starts with such a sign.
bool OperandParser::parse_prefixed(Operand& operand, OperandKind kind) {
  if (!names_next()) return parse_constant(operand);
  advance();
  Operand inner;
  inner.offset = token_.offset;
  if (!parse_name(inner)) return false;
  const Scratch scratch(*this);
  scratch.push(inner);
  operand.kind = kind;
  operand.first = scratch.store(operand.count);
  return true;
}

bool OperandParser::parse_list(Operand& operand, OperandKind kind, char close) {
  operand.kind = kind;
  advance();
  const Nesting nesting(depth_);
  const Listing listing(listing_, true);
  if (depth_ > max_depth) return too_deep("braces");
  const Scratch scratch(*this);
  bool good = true;
  if (!token_.is(close)) {
    do {
      Operand child;
      good = parse_operand(child);
      if (good) scratch.push(child);
    } while (good && token_.is(',') && (advance(), true));
  }
  if (!good) return false;
  operand.first = scratch.store(operand.count);
  return expect(close, fmt::format("',' or '{}'", close));
}

bool OperandParser::parse_address(Operand& operand) {
  operand.kind = OperandKind::Address;
  advance();
  const Nesting nesting(depth_);
  const Listing listing(listing_, false);
  if (depth_ > max_depth) return too_deep("brackets");
  const Scratch scratch(*this);
  bool good = true;
  do {
    Operand part;
    good = parse_operand(part);
    if (!good) break;
    if (part.kind == OperandKind::Name) {
      operand.value += part.value;
      operand.adds |= part.adds;
      part.value = 0;
      part.adds = false;
    }
    scratch.push(part);
  } while (token_.is(',') && (advance(), true));
  if (!good) return false;
  operand.first = scratch.store(operand.count);
  if (!expect(']', "an offset, ',' or ']'")) return false;
  if (at_word(".unified")) {
    operand.text = token_.text;
    advance();
  }
  return true;
}

// `name`, `name.x`, `name+16`, `name[4]`, `generic(name)`.
bool OperandParser::parse_name(Operand& operand) {
  operand.kind = OperandKind::Name;
  operand.text = lexer_.extend_opcode(token_);
  advance();
  if (token_.kind == TokenKind::Dot) operand.text = join(operand.text);
  if (operand.text == warp_size && at_operator()) {
    lexer_.rewind(operand.offset);
    advance();
    return parse_constant(operand);
  }
  if (initialisers_ && token_.is('=')) {  // of .samplerref
    advance();
    if (token_.kind != TokenKind::Identifier && token_.kind != TokenKind::Number)
      return syntax("a value"), false;
    advance();
    operand.text = source_.text().substr(operand.offset, behind_ - operand.offset);
    return true;
  }
  if (operand.text == "generic" && token_.is('(')) {
    advance();
    if (token_.kind != TokenKind::Identifier) return syntax("a variable's name"), false;
    advance();
    operand.text = source_.text().substr(operand.offset, token_.end() - operand.offset);
    if (!expect(')')) return false;
  }
  return parse_behind_name(operand);
}

bool OperandParser::parse_behind_name(Operand& operand) {
  if (initialisers_) return parse_offset(operand);
  if (token_.is('[') && depth_ == 0) return parse_element(operand);
  // Elements of vectors, and what stands in braces or lists, are no sums.
  const bool element =
      operand.text.find('.') != std::string_view::npos && !refused_.contains(operand.text);
  return listing_ || element || parse_offset(operand);
}

// The index of `name[4]`, `name[r]` or `name[r+1]`.
bool OperandParser::parse_element(Operand& operand) {
  operand.kind = OperandKind::Element;
  advance();
  const Nesting nesting(depth_);
  const Scratch scratch(*this);
  Operand index;
  index.offset = token_.offset;
  const bool name = token_.kind == TokenKind::Identifier && token_.text != warp_size;
  if (!(name ? parse_name(index) : parse_constant(index))) return false;
  if (index.kind == OperandKind::Float)
    return refuse(index.offset, "an index must be an integer"), false;
  scratch.push(index);
  operand.first = scratch.store(operand.count);
  return expect(']');
}

// The constant that may follow a name: +4, +-4, +2*16. The assembler rejects name-4.
bool OperandParser::parse_offset(Operand& operand) {
  if (token_.is('-')) return syntax("'+' and a constant, such as +-16"), false;
  if (!token_.is('+')) return true;
  advance();
  Operand constant;
  constant.offset = token_.offset;
  if (!parse_constant(constant)) return false;
  if (constant.kind != OperandKind::Integer)
    return refuse(constant.offset, "an offset must be an integer"), false;
  operand.value = constant.value;
  operand.adds = true;
  return true;
}

bool OperandParser::at_operator() const {
  if (token_.kind != TokenKind::Punctuation) return token_.text == "%";
  return token_.is('?') || binary_operator(source_.text().substr(token_.offset, 2), 0);
}

void OperandParser::no_number(std::string_view found) {
  const std::string_view expected = number_expected(found);
  syntax(expected.empty() ? "a number" : expected);
}

// Most constants are one number.
bool OperandParser::parse_number(Operand& operand) {
  const auto literal = parse_literal(token_.text);
  const bool radix = token_.text.starts_with("0x") || token_.text.starts_with("0X");
  if (!literal && is_misnamed(token_) && !radix)
    return parse_misnamed(operand) && parse_behind_name(operand);
  if (!literal) return no_number(token_.text), false;
  const Token number = token_;
  advance();
  if (at_operator()) {
    lexer_.rewind(number.offset);
    advance();
    return parse_constant(operand);
  }
  if (initialisers_ && token_.is('(')) return parse_masked(operand);
  set(operand, *literal, number.text);
  return true;
}

// `0xFF(name)`: some bits of an address.
bool OperandParser::parse_masked(Operand& operand) {
  const std::uint32_t start = operand.offset;
  advance();
  if (token_.kind != TokenKind::Identifier) return syntax("a variable's name"), false;
  Operand address;
  address.offset = token_.offset;
  if (!parse_name(address) || !expect(')')) return false;
  const Scratch scratch(*this);
  scratch.push(address);
  operand.kind = OperandKind::Name;
  operand.first = scratch.store(operand.count);
  operand.text = source_.text().substr(start, behind_ - start);
  return true;
}

void OperandParser::set(Operand& operand, Constant constant, std::string_view text) {
  operand.kind = info(constant.type).floating ? OperandKind::Float : OperandKind::Integer;
  operand.type = constant.type;
  operand.value = constant.value;
  operand.text = text;
}

bool OperandParser::parse_constant(Operand& operand) {
  const std::uint32_t start = token_.offset;
  Constant constant;
  if (!conditional(constant)) return false;
  set(operand, constant, source_.text().substr(start, behind_ - start));
  return true;
}

bool OperandParser::conditional(Constant& value) {
  const Nesting nesting(depth_);
  if (depth_ > max_depth) return too_deep("expressions");
  if (!binary(value, 0)) return false;
  if (!token_.is('?')) return true;
  advance();
  Constant yes, no;
  if (!conditional(yes) || !expect(':') || !conditional(no)) return false;
  value = holds(value) ? yes : no;
  return true;
}

bool OperandParser::binary(Constant& left, int level) {
  if (!unary(left)) return false;
  while (at_operator() && !token_.is('?')) {
    const std::uint32_t at = token_.offset;
    const BinaryOperator* by = binary_operator(source_.text().substr(at, 2), level);
    if (!by) break;
    for (std::size_t i = 0; i < by->text.size(); ++i) advance();
    Constant right;
    if (!binary(right, by->level + 1)) return false;
    const auto value = apply(*by, left, right);
    if (!value)
      return refuse(at, fmt::format("{} requires two integers or two doubles{}", by->text,
                                    by->text == "/" || by->text == "%"
                                        ? " and a divisor other than zero"
                                        : "")),
             false;
    left = *value;
  }
  return true;
}

bool OperandParser::unary(Constant& value) {
  const Nesting nesting(depth_);
  if (depth_ > max_depth) return too_deep("expressions");
  const Token first = token_;
  if (first.kind == TokenKind::Number || first.text == warp_size) {
    const auto literal =
        first.text == warp_size ? Constant{Type::s64, 32} : parse_literal(first.text);
    if (!literal) return no_number(first.text), false;
    value = *literal;
    return advance(), true;
  }
  if (first.is('(')) return parenthesised(value);
  if (!first.is('-') && !first.is('+') && !first.is('~') && !first.is('!'))
    return syntax("a number"), false;
  advance();
  if (token_.text.starts_with("0f") || token_.text.starts_with("0F"))
    return syntax("a number other than a float's bit pattern"), false;
  if (!unary(value)) return false;
  const auto result = apply(first.text[0], value);
  if (!result)
    return refuse(first.offset, fmt::format("{} requires an integer", first.text)), false;
  value = *result;
  return true;
}

// (1+2), (.s64)3
bool OperandParser::parenthesised(Constant& value) {
  advance();
  if (!at_word(".s64") && !at_word(".u64")) return conditional(value) && expect(')');
  const Type type = at_word(".s64") ? Type::s64 : Type::u64;
  const std::uint32_t at = token_.offset;
  advance();
  if (!expect(')') || !unary(value)) return false;
  if (info(value.type).floating) return refuse(at, "a cast requires an integer"), false;
  value.type = type;
  return true;
}

}  // namespace tartan::TARTAN_ABI::ptx
