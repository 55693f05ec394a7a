// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/declarations.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::ptx {
namespace {

struct SpaceName {
  std::string_view name;
  StateSpace space;
};
constexpr SpaceName space_names[] = {
    {".reg", StateSpace::reg},           {".global", StateSpace::global},
    {".const", StateSpace::constant},    {".shared", StateSpace::shared},
    {".local", StateSpace::local},       {".param", StateSpace::param},
    {".shared::cta", StateSpace::shared}};

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

StateSpace state_space(std::string_view word) {
  for (const SpaceName& row : space_names)
    if (row.name == word) return row.space;
  return StateSpace::none;
}

std::string_view name(StateSpace space) {
  for (const SpaceName& row : space_names)
    if (row.space == space) return row.name;
  return "";
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
    if (token_.kind != TokenKind::Identifier) return syntax("a register's name"), recover();
    declared.name = token_.text;
    declared.offset = token_.offset;
    declared.numbered = false;
    declared.count = 1;
    advance();
    if (token_.is('<')) {
      advance();
      const auto count = take_integer("the number of registers");
      if (!count) return recover();
      declared.numbered = true;
      declared.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(*count, UINT32_MAX));
      if (!expect('>')) return recover();
    }
    module_.registers.push_back(declared);
  } while (token_.is(','));
  if (!expect(';', "',' or ';'")) recover();
}

bool DeclarationParser::type_and_attributes(Variable& variable) {
  bool pointer = false;
  std::uint32_t attributes_from = 0, attributes_to = 0;
  const auto attribute = [&](std::uint32_t from, std::uint32_t to) {
    if (!attributes_to) attributes_from = from;
    attributes_to = to;
  };
  while (token_.kind == TokenKind::Dot) {
    const Token word = token_;
    advance();
    if (word.text == ".align") {
      const std::uint32_t end = token_.end();
      const auto align = take_integer("an alignment in bytes");
      if (!align) return false;
      if (!pointer) variable.align = static_cast<std::uint32_t>(*align);
      else attribute(word.offset, end);  // `.ptr .global .align 16`: the pointee's
    } else if (const int length = vector_length(word.text)) {
      variable.vector = static_cast<std::uint8_t>(length);
    } else if (const auto type = parse_type(word.text.substr(1))) {
      variable.type = *type;
    } else if (opaque_type(word.text) || word.text == ".ptr" ||
               state_space(word.text) != StateSpace::none) {
      pointer |= word.text == ".ptr";
      attribute(word.offset, word.end());
    } else if (word.text == ".attribute") {
      attribute(word.offset, word.end());
      int depth = 0;
      do {
        if (token_.kind == TokenKind::End) return syntax("')'"), false;
        depth += token_.is('(') ? 1 : token_.is(')') ? -1 : 0;
        attribute(word.offset, token_.end());
        advance();
      } while (depth > 0);
    } else {
      attribute(word.offset, word.end());
    }
  }
  if (attributes_to)
    variable.attributes = source_.text().substr(attributes_from, attributes_to - attributes_from);
  if (variable.type == Type::none && variable.attributes.empty()) {
    return syntax("a type"), false;
  }
  return true;
}

bool DeclarationParser::declarator(Variable& variable) {
  if (token_.kind != TokenKind::Identifier) return syntax("a variable's name"), false;
  variable.name = token_.text;
  variable.offset = token_.offset;
  advance();
  if (token_.is('<')) {  // parameterised names: .param .b32 p<4>
    const std::uint32_t start = token_.offset;
    advance();
    const auto count = take_integer("the number of variables");
    if (!count) return false;
    const std::uint32_t end = token_.end();
    if (!expect('>')) return false;
    variable.dimensions = source_.text().substr(start, end - start);
    variable.numbered = static_cast<std::uint32_t>(std::min<std::uint64_t>(*count, UINT32_MAX));
    return true;
  }
  const std::uint32_t start = token_.offset;
  std::uint32_t end = start;
  while (token_.is('[')) {
    variable.array = true;
    advance();
    if (token_.is(']')) {
      variable.unsized = true;
    } else {
      const auto size = take_integer("the number of elements");
      if (!size) return false;
      if (*size != 0 && variable.elements > (std::uint64_t{1} << 48) / *size)
        return syntax("an array that fits memory"), false;
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
  variable.space = state_space(token_.text);
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
  if (!expect(';', is_row ? "',' or ';'" : "'=', ',' or ';'")) recover();
}

bool DeclarationParser::parameters(std::vector<std::uint32_t>& into) {
  advance();
  while (!token_.is(')')) {
    Variable declared;
    if (token_.kind != TokenKind::Dot || state_space(token_.text) == StateSpace::none)
      return syntax("a parameter (.param) or ')'"), false;
    if (!variable(declared)) return false;
    into.push_back(static_cast<std::uint32_t>(module_.variables.size()));
    module_.variables.push_back(declared);
    if (!token_.is(',')) break;
    advance();
  }
  return expect(')', "',' or ')'");
}

}  // namespace tartan::ptx
