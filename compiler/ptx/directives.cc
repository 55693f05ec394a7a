// SPDX-License-Identifier: Apache-2.0
// Directives: .loc, .file, .section, .pragma, .alias, the tables of brx.idx and call, and the
// directives of functions.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "compiler/ptx/declarations.h"
#include "compiler/support/nearest.h"

namespace tartan::TARTAN_ABI::ptx {
namespace {

constexpr std::uint64_t most_labels = 1 << 16;  // of one L<N> in .branchtargets

constexpr std::string_view module_words[] = {
    ".version", ".target", ".address_size", ".entry",  ".func",    ".global", ".const", ".shared",
    ".extern",  ".weak",   ".visible",      ".common", ".section", ".file",   ".alias", ".pragma"};
constexpr auto module_items = std::span(module_words).subspan(3);  // what may follow the header
constexpr std::string_view function_words[] = {
    ".reg",           ".local",  ".shared",          ".param",         ".global",
    ".const",         ".pragma", ".alias",           ".branchtargets", ".calltargets",
    ".callprototype", ".loc",    ".loc_intermediate"};

}  // namespace

bool DeclarationParser::begins_item(std::string_view word) {
  return std::ranges::find(module_words, word) != std::end(module_words);
}

std::uint32_t DeclarationParser::keep_directive(std::string_view name, std::uint32_t from,
                                                std::uint32_t to, bool semicolon) {
  return keep_directive({.name = name,
                         .text = source_.text().substr(from, to - from),
                         .semicolon = semicolon,
                         .offset = from});
}

std::uint32_t DeclarationParser::keep_directive(const Directive& directive) {
  module_.directives.push_back(directive);
  return static_cast<std::uint32_t>(module_.directives.size() - 1);
}

std::optional<std::uint32_t> DeclarationParser::location() {
  Location at;
  at.offset = token_.offset;
  advance();
  for (std::uint32_t* field : {&at.file, &at.line, &at.column}) {
    const auto value = take_integer("a file, line and column number");
    if (!value) return recover_line(), std::nullopt;
    *field = static_cast<std::uint32_t>(*value);
  }
  if (token_.is(',') && !inlining()) return recover_line(), std::nullopt;
  at.text = source_.text().substr(at.offset, behind_ - at.offset);
  module_.locations.push_back(at);
  return static_cast<std::uint32_t>(module_.locations.size() - 1);
}

// .loc_intermediate file line column: of a text between the source and PTX
std::uint32_t DeclarationParser::intermediate_location() {
  Directive out{.name = token_.text, .offset = token_.offset};
  advance();
  for (int i = 0; i < 3; ++i)
    if (!take_integer("a file, line and column number")) {
      recover_line();
      break;
    }
  out.text = source_.text().substr(out.offset, behind_ - out.offset);
  return keep_directive(out);
}

// , function_name label+n, inlined_at file line column
bool DeclarationParser::inlining() {
  advance();
  if (token_.text != "function_name") return syntax("function_name"), false;
  advance();
  if (token_.kind != TokenKind::Identifier && token_.kind != TokenKind::Dot)
    return syntax("a label or a section"), false;
  advance();
  if (token_.is('+') && (advance(), !take_integer("a number"))) return false;
  if (!expect(',')) return false;
  if (token_.text != "inlined_at") return syntax("inlined_at"), false;
  advance();
  for (int i = 0; i < 3; ++i)
    if (!take_integer("a file, line and column number")) return false;
  return true;
}

std::uint32_t DeclarationParser::file() {
  Directive out{.name = token_.text, .offset = token_.offset};
  const Scratch scratch(*this);
  advance();
  const Token number = token_;
  const auto value = take_integer("the number of the file");
  bool good = value.has_value();
  if (good)
    scratch.push({.kind = OperandKind::Integer,
                  .offset = number.offset,
                  .value = *value,
                  .text = number.text});
  if (good && token_.kind != TokenKind::String) syntax("the name of the file"), good = false;
  if (good) advance();
  for (int i = 0; good && i < 2 && token_.is(','); ++i) {  // time, size
    advance();
    good = take_integer("a number").has_value();
  }
  if (!good) recover_line();
  out.first = scratch.store(out.count);
  out.text = source_.text().substr(out.offset, behind_ - out.offset);
  return keep_directive(out);
}

// .section .debug_info { L: .b8 1, -2 .b32 L+4, .debug_str, L1-L2 }
std::uint32_t DeclarationParser::section() {
  const Token first = token_;
  advance();
  bool good = token_.kind == TokenKind::Dot;
  if (!good) syntax("the name of a section, such as .debug_info");
  else advance();
  const bool braces = token_.is('{');
  good = good && expect('{');
  std::uint32_t end = behind_;  // of what is legal
  while (good && !token_.is('}')) {
    good = section_data();
    if (good) end = behind_;
  }
  if (good) advance(), end = behind_;
  if (!good && !braces) recover();
  if (!good && braces) {
    while (token_.kind != TokenKind::End && token_.kind != TokenKind::Unknown && !token_.is('}'))
      advance();
    if (token_.is('}')) advance();
  }
  return keep_directive(first.text, first.offset, end, false);
}

// A label, or `.b8` with its numbers or one address.
bool DeclarationParser::section_data() {
  if (token_.kind == TokenKind::Identifier) return section_label() && expect(':');
  if (!at_word(".b8") && !at_word(".b16") && !at_word(".b32") && !at_word(".b64"))
    return syntax(".b8, .b16, .b32, .b64, a label or '}'"), false;
  advance();
  if (token_.kind == TokenKind::Identifier || token_.kind == TokenKind::Dot)
    return section_address();
  while (true) {
    if (token_.is('-')) advance();
    if (token_.kind != TokenKind::Number) return syntax("a number or a label"), false;
    if (!take_integer("an integer")) return false;
    if (!token_.is(',')) return true;
    advance();
  }
}

bool DeclarationParser::section_label() {
  const Token name = token_;
  advance();
  if (token_.kind != TokenKind::Dot || token_.blank_before) return true;
  return refuse_dotted(name, token_.end()), false;
}

// L+4, .debug_str+4, L1-L2
bool DeclarationParser::section_address() {
  const bool label = token_.kind == TokenKind::Identifier;
  if (!label) advance();
  else if (!section_label()) return false;
  if (token_.is('+')) return advance(), take_integer("a number").has_value();
  if (!label || !token_.is('-')) return true;
  advance();
  if (token_.kind != TokenKind::Identifier) return syntax("a label"), false;
  return advance(), true;
}

std::uint32_t DeclarationParser::function_directive(bool kernel) {
  Directive out{.name = token_.text, .offset = token_.offset};
  if (kernel && at_word(".pragma")) return ended_directive();
  advance();
  const Scratch scratch(*this);
  const bool names = out.name == ".language";
  while (token_.kind == TokenKind::Number || (names && token_.kind == TokenKind::String)) {
    const Token number = token_;
    const bool name = number.kind == TokenKind::String;
    const auto value = name ? std::optional<std::uint64_t>(0) : take_integer("a number");
    if (!value) break;
    if (name) advance();
    scratch.push({.kind = name ? OperandKind::String : OperandKind::Integer,
                  .offset = number.offset,
                  .value = *value,
                  .text = number.text});
    if (!token_.is(',')) break;
    advance();
  }
  out.first = scratch.store(out.count);
  out.text = source_.text().substr(out.offset, behind_ - out.offset);
  return keep_directive(out);
}

bool DeclarationParser::at_item() const {
  return token_.kind == TokenKind::Dot &&
         std::ranges::find(module_items, token_.text) != std::end(module_items);
}

std::uint32_t DeclarationParser::module_directive() {
  if (at_word(".pragma") || at_word(".alias")) return ended_directive();
  return unknown_directive(module_words);
}

std::uint32_t DeclarationParser::statement_directive(bool labelled) {
  if (at_word(".pragma") || at_word(".alias")) return ended_directive();
  if (!at_word(".branchtargets") && !at_word(".calltargets") && !at_word(".callprototype"))
    return unknown_directive(function_words);
  if (!labelled)
    refuse(token_.offset,
           fmt::format("{} has no name: expected a label in front of it, such as table: {}",
                       token_.text, token_.text));
  return ended_directive();
}

std::uint32_t DeclarationParser::unknown_directive(std::span<const std::string_view> known) {
  const Token first = token_;
  report("unknown-directive"_rule, first.offset, first.text.size(),
         fmt::format("unexpected directive {}{}", first.text, nearest_hint(first.text, known)));
  const std::uint32_t end = first.end();
  recover();
  return keep_directive(first.text, first.offset, end, true);
}

// Directives that end with a semicolon.
std::uint32_t DeclarationParser::ended_directive() {
  const Token first = token_;
  Directive out{.name = first.text, .semicolon = true, .offset = first.offset};
  advance();
  const bool good = first.text == ".callprototype" ? prototype(out)
                    : first.text == ".pragma"      ? strings(out)
                                                   : names(out, first.text == ".branchtargets");
  out.text = source_.text().substr(out.offset, behind_ - out.offset);
  if (!good || !expect(';', "',' or ';'")) recover();
  return keep_directive(out);
}

// "nounroll", "frequency 5"
bool DeclarationParser::strings(Directive& directive) {
  const Scratch scratch(*this);
  do {
    if (token_.is(',')) advance();
    if (token_.kind != TokenKind::String) return syntax("a string"), false;
    scratch.push({.kind = OperandKind::String, .offset = token_.offset, .text = token_.text});
    advance();
  } while (token_.is(','));
  directive.first = scratch.store(directive.count);
  return true;
}

// L_1, L_2, L<3>: the last declares L0, L1, L2.
bool DeclarationParser::names(Directive& directive, bool numbered) {
  const Scratch scratch(*this);
  do {
    if (token_.is(',')) advance();
    if (token_.kind != TokenKind::Identifier) return syntax("a name"), false;
    const Token name = token_;
    advance();
    if (!numbered || !token_.is('<')) {
      scratch.push({.kind = OperandKind::Name, .offset = name.offset, .text = name.text});
      continue;
    }
    advance();
    const auto count = take_integer("the number of labels");
    if (!count || !expect('>')) return false;
    if (*count > most_labels)
      return refuse(name.offset, fmt::format("too many labels: expected at most {}, found {}",
                                             most_labels, *count)),
             false;
    for (std::uint64_t i = 0; i < *count; ++i) {
      module_.joined.push_back(
          {std::make_shared<std::string>(fmt::format("{}{}", name.text, i)), name.offset});
      scratch.push(
          {.kind = OperandKind::Name, .offset = name.offset, .text = *module_.joined.back().text});
    }
  } while (token_.is(','));
  directive.first = scratch.store(directive.count);
  return true;
}

// (.param .b32 _) _ (.param .b64 _, .reg .f32 _) .noreturn
bool DeclarationParser::prototype(Directive& directive) {
  Prototype out;
  const auto list = [&](std::vector<Variable>& into) {
    if (!token_.is('(')) return true;
    const auto from = static_cast<std::ptrdiff_t>(module_.variables.size());
    std::vector<std::uint32_t> indices;
    prototype_ = true;
    const bool good = parameters(indices, false);
    prototype_ = false;
    into.assign(module_.variables.begin() + from, module_.variables.end());
    module_.variables.resize(static_cast<std::size_t>(from));
    return good;
  };
  if (!list(out.results)) return false;
  if (token_.text != "_") return syntax("_ in place of the function's name"), false;
  advance();
  if (!list(out.params)) return false;
  if (at_word(".noreturn")) out.returns = false, advance();
  while (at_word(".abi_preserve") || at_word(".abi_preserve_control")) {
    advance();
    if (!take_integer("a number of registers")) return false;
  }
  directive.prototype = static_cast<std::uint32_t>(module_.prototypes.size());
  module_.prototypes.push_back(std::move(out));
  return true;
}

}  // namespace tartan::TARTAN_ABI::ptx
