// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/declarations.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::TARTAN_ABI::ptx {
namespace {

// ".v4" -> 4
int vector_length(std::string_view word) {
  if (word == ".v2") return 2;
  if (word == ".v4") return 4;
  if (word == ".v8") return 8;
  return 0;
}

bool opaque_type(std::string_view word) {
  return word == ".texref" || word == ".samplerref" || word == ".surfref";
}

}  // namespace

StateSpace declared_space(std::string_view word) {
  if (word == ".shared::cta") return StateSpace::shared;
  if (word == ".reg") return StateSpace::reg;
  for (const StateSpace each : memory_spaces)
    if (word.starts_with('.') && word.substr(1) == name(each)) return each;
  return StateSpace::none;
}

std::string_view DeclarationParser::take_linkage() {
  if (!at_word(".extern") && !at_word(".visible") && !at_word(".weak") && !at_word(".common"))
    return {};
  const std::string_view linkage = token_.text;
  advance();
  return linkage;
}

void DeclarationParser::registers() {
  advance();
  Registers declared;
  if (const int length = token_.kind == TokenKind::Dot ? vector_length(token_.text) : 0) {
    declared.vector = static_cast<std::uint8_t>(length);
    advance();
  }
  const auto type =
      token_.kind == TokenKind::Dot ? parse_type(token_.text.substr(1)) : std::nullopt;
  if (!type) return syntax("a register type such as .b32"), recover();
  declared.type = *type;
  do {
    advance();
    const auto name = take_name("a register's name");
    if (!name) return recover();
    declared.name = name->text;
    declared.offset = name->offset;
    declared.numbered = false;
    declared.count = 1;
    if (token_.is('<')) {
      advance();
      const auto count = numbered("registers");
      if (!count) return recover();
      declared.numbered = true;
      declared.count = *count;
      if (!expect('>')) return recover();
    }
    module_.registers.push_back(declared);
  } while (token_.is(','));
  end_statement("',' or ';'");
}

// The count of r<4>.
std::optional<std::uint32_t> DeclarationParser::numbered(std::string_view what) {
  const std::uint32_t at = token_.offset;
  const auto count = take_integer(fmt::format("the number of {}", what));
  if (!count) return std::nullopt;
  if (*count > UINT32_MAX)
    return refuse(at, fmt::format("too many {}: expected at most {}, found {}", what, UINT32_MAX,
                                  *count)),
           std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

// .align 16 .attribute(.managed) .v4 .f32; for a kernel's parameter also .ptr .global .align 8
// after the type
bool DeclarationParser::type_and_attributes(Variable& variable) {
  std::uint32_t from = 0, to = 0;
  const auto keep = [&](std::uint32_t start) {
    if (!to) from = start;
    to = behind_;
  };
  while (at_word(".align") || at_word(".attribute")) {
    const Token word = token_;
    if (word.text == ".align" ? !alignment(variable.align) : !attribute()) return false;
    if (word.text == ".attribute") keep(word.offset);
  }
  if (const int length = token_.kind == TokenKind::Dot ? vector_length(token_.text) : 0) {
    variable.vector = static_cast<std::uint8_t>(length);
    advance();
  }
  const auto type =
      token_.kind == TokenKind::Dot ? parse_type(token_.text.substr(1)) : std::nullopt;
  if (!type && !(token_.kind == TokenKind::Dot && opaque_type(token_.text)))
    return syntax("a type"), false;
  const std::uint32_t type_at = token_.offset;
  advance();
  if (type) variable.type = *type;
  else keep(type_at);
  if (kernel_parameters_ && at_word(".ptr")) {
    const std::uint32_t start = token_.offset;
    advance();
    if (at_word(".global") || at_word(".const") || at_word(".shared") || at_word(".local"))
      advance();
    std::uint32_t pointee = 0;
    if (at_word(".align") && !alignment(pointee)) return false;
    keep(start);
  } else if (kernel_parameters_ && at_word(".align") && !alignment(variable.align)) {
    return false;
  }
  if (to) variable.attributes = source_.text().substr(from, to - from);
  return true;
}

bool DeclarationParser::alignment(std::uint32_t& into) {
  advance();
  const std::uint32_t at = token_.offset;
  const auto value = take_integer("an alignment in bytes");
  if (!value) return false;
  if (*value == 0 || (*value & (*value - 1)) != 0 || *value > UINT32_MAX)
    report("declaration"_rule, at, 1,
           fmt::format("illegal alignment: expected a power of two, found {}", *value));
  else into = static_cast<std::uint32_t>(*value);
  return true;
}

// .attribute(.managed, .unified(19, 95))
bool DeclarationParser::attribute() {
  advance();
  if (!expect('(')) return false;
  do {
    if (token_.is(',')) advance();
    const bool unified = at_word(".unified");
    if (!unified && !at_word(".managed")) return syntax(".managed or .unified"), false;
    advance();
    if (!unified) continue;
    constexpr std::string_view half = "half of an identifier";
    if (!expect('(') || !take_integer(half) || !expect(',') || !take_integer(half) || !expect(')'))
      return false;
  } while (token_.is(','));
  return expect(')');
}

// Whether a name follows. Neither _, which is only a placeholder, nor a constant is one.
bool DeclarationParser::at_name() const {
  return token_.kind == TokenKind::Identifier && (token_.text != "_" || prototype_) &&
         token_.text != "WARP_SZ" && token_.text != "%";
}

std::optional<Token> DeclarationParser::take_name(std::string_view what) {
  const bool whole = end_of_word(token_) == token_.end();
  if (token_.kind == TokenKind::Identifier && !at_name() && whole)
    return syntax(what), std::nullopt;
  const auto name = take_word();
  if (!name) syntax(what);
  return name;
}

bool DeclarationParser::declarator(Variable& variable) {
  const auto name = take_name(parameters_ ? "a parameter's name" : "a variable's name");
  if (!name) return false;
  variable.name = name->text;
  variable.offset = name->offset;
  if (token_.is('<') && !parameters_) {  // .global .b32 p<4>
    const std::uint32_t start = token_.offset;
    advance();
    const auto count = numbered("variables");
    if (!count) return false;
    const std::uint32_t end = token_.end();
    if (!expect('>')) return false;
    variable.dimensions = source_.text().substr(start, end - start);
    variable.numbered = *count;
    return true;
  }
  const std::uint32_t start = token_.offset;
  std::uint32_t end = start;
  while (token_.is('[') && !(variable.array && parameters_)) {
    const bool first = !variable.array;
    variable.array = true;
    advance();
    if (token_.is(']') && first) {
      variable.unsized = true;
    } else {
      const auto size = take_integer("the number of elements");
      if (!size) return false;
      if (*size != 0 && variable.elements > (std::uint64_t{1} << 48) / *size)
        return syntax("an array that fits in memory"), false;
      variable.elements *= *size;
    }
    end = token_.end();
    if (!expect(']')) return false;
  }
  variable.dimensions = source_.text().substr(start, end - start);
  return true;
}

bool DeclarationParser::initialiser(Variable& variable) {
  advance();
  Operand value;
  initialisers_ = true;
  const bool good = parse_operand(value);
  initialisers_ = false;
  if (!good) return false;
  variable.initialiser = static_cast<std::uint32_t>(module_.operands.size());
  module_.operands.push_back(value);
  return true;
}

bool DeclarationParser::variable(Variable& variable) {
  variable.space = declared_space(token_.text);
  advance();
  return type_and_attributes(variable) && declarator(variable);
}

void DeclarationParser::variables(std::string_view linkage) {
  Variable declared;
  declared.linkage = linkage;
  if (!variable(declared)) return recover();
  while (true) {
    if (token_.is('=') && !declared.numbered && !initialiser(declared)) return recover();
    module_.variables.push_back(declared);
    if (!token_.is(',')) break;
    advance();
    declared.array = declared.unsized = false;
    declared.elements = 1;
    declared.initialiser.reset();
    declared.numbered.reset();
    if (!declarator(declared)) return recover();
  }
  const bool is_row = module_.variables.back().numbered.has_value();
  end_statement(is_row ? "',' or ';'" : "'=', ',' or ';'");
}

bool DeclarationParser::parameters(std::vector<std::uint32_t>& into, bool kernel) {
  parameters_ = true;
  kernel_parameters_ = kernel;
  const bool good = parameter_list(into);
  parameters_ = kernel_parameters_ = false;
  return good;
}

bool DeclarationParser::parameter_list(std::vector<std::uint32_t>& into) {
  advance();
  while (!token_.is(')') || !into.empty()) {
    Variable declared;
    if (token_.kind != TokenKind::Dot || declared_space(token_.text) == StateSpace::none)
      return syntax("a parameter (.param) or ')'"), false;
    if (!variable(declared)) return false;
    into.push_back(static_cast<std::uint32_t>(module_.variables.size()));
    module_.variables.push_back(declared);
    if (!token_.is(',')) break;
    advance();
  }
  return expect(')', "',' or ')'");
}

}  // namespace tartan::TARTAN_ABI::ptx
