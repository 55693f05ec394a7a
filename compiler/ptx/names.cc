// SPDX-License-Identifier: Apache-2.0
// Names, and words in place of them that PTX does not take as names: 3d_kernel, my.kernel, f<int>.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ptx/operands.h"

namespace tartan::TARTAN_ABI::ptx {
namespace {

constexpr std::string_view letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%";

bool in_name(char c) { return letters.find(c) != std::string_view::npos || !is_ascii(c); }

// Characters that people write in names, and that are not parts of them.
bool misplaced(char c) { return std::string_view(".-@\\'`?~&").find(c) != std::string_view::npos; }

std::string not_in_names(char c) {
  return fmt::format("'{}' is no part of names, which have letters, digits, _ and $", c);
}

}  // namespace

bool OperandParser::is_misnamed(const Token& token) {
  return token.kind == TokenKind::Number && !parse_literal(token.text) &&
         number_expected(token.text).empty() && std::ranges::all_of(token.text, in_name);
}

void OperandParser::refuse_name(const Token& word, std::uint32_t at, std::string_view why) {
  if (!refused_.insert(word.text).second) return;
  if (!std::ranges::all_of(word.text, is_ascii)) return;  // reported as a whole
  report("syntax"_rule, at, at == word.offset ? word.text.size() : 1,
         fmt::format("{} is no name: {}", word.text.substr(0, 60), why));
}

void OperandParser::refuse_dotted(Token word, std::uint32_t end) {
  const std::uint32_t dot = word.end();
  word.text = source_.text().substr(word.offset, end - word.offset);
  refuse_name(word, dot, not_in_names('.'));
}

std::uint32_t OperandParser::end_of_word(const Token& name) const {
  const std::string_view text = source_.text();
  std::size_t end = name.end();
  const auto template_begins = [&] {  // f<int>, but not %r<4>
    return text[end] == '<' && end + 1 < text.size() && in_name(text[end + 1]) &&
           (text[end + 1] < '0' || text[end + 1] > '9');
  };
  const auto blank_inside = [&] {  // outside ASCII
    const std::size_t blank = foreign_blank(text, end);
    return blank && end + blank < text.size() && in_name(text[end + blank]) ? blank : 0;
  };
  while (end < text.size()) {
    if (const std::size_t blank = blank_inside()) {
      end += blank;
    } else if (template_begins()) {
      const std::size_t close = text.find_first_of(">;{\n", end);
      if (close == std::string_view::npos || text[close] != '>') break;
      end = close + 1;
    } else if (text.substr(end).starts_with("::")) {
      end += 2;
    } else if (misplaced(text[end]) || (end > name.end() && in_name(text[end]))) {
      ++end;
    } else {
      break;
    }
  }
  // k.maxntid 128: without parentheses a directive may follow at once.
  const std::string_view behind = text.substr(name.end());
  if (behind.starts_with('.') && function_ && !text.substr(end).starts_with('(')) end = name.end();
  return static_cast<std::uint32_t>(end);
}

std::optional<Token> OperandParser::take_word() {
  Token word = token_;
  if (word.kind != TokenKind::Identifier && !is_misnamed(word)) return std::nullopt;
  const std::uint32_t end = end_of_word(word);
  const std::uint32_t wrong = word.end();
  word.text = source_.text().substr(word.offset, end - word.offset);
  if (is_misnamed(token_))
    refuse_name(word, word.offset, "a name starts with a letter, _, $ or %, not with a digit");
  else if (end != wrong) refuse_name(word, wrong, not_in_names(source_.text()[wrong]));
  lexer_.rewind(end);
  advance();
  behind_ = end;
  return word;
}

// A word that was refused before: it is not reported again.
bool OperandParser::parse_refused(Operand& operand) {
  const std::string_view here = source_.text().substr(token_.offset);
  for (const std::string_view each : refused_) {
    const bool whole = here.size() <= each.size() || !in_name(here[each.size()]);
    if (!here.starts_with(each) || !whole) continue;
    operand.kind = OperandKind::Name;
    operand.text = each;
    lexer_.rewind(token_.offset + static_cast<std::uint32_t>(each.size()));
    advance();
    return true;
  }
  return false;
}

bool OperandParser::parse_misnamed(Operand& operand) {
  operand.kind = OperandKind::Name;
  operand.text = take_word()->text;
  return true;
}

bool OperandParser::names_refused(const Operand& operand) const {
  return refused_.contains(operand.text) ||
         std::ranges::any_of(module_.children(operand),
                             [&](const Operand& child) { return names_refused(child); });
}

bool OperandParser::names_refused(const Instruction& instruction) const {
  return refused_.contains(instruction.guard) ||
         std::ranges::any_of(module_.operands_of(instruction),
                             [&](const Operand& each) { return names_refused(each); });
}

}  // namespace tartan::TARTAN_ABI::ptx
