// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/foreign_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ptx/lexer.h"

namespace tartan::TARTAN_ABI::ptx {
namespace {

constexpr std::string_view control_words[] = {"for",    "while",  "do",    "if",       "else",
                                              "switch", "return", "break", "continue", "goto"};
constexpr std::string_view declaring_words[] = {
    "__global__", "__device__", "__host__",  "__shared__", "__constant__", "__launch_bounds__",
    "extern",     "template",   "namespace", "using",      "typedef",      "struct",
    "class",      "enum",       "static",    "inline",     "const",        "constexpr",
    "unsigned",   "signed",     "void",      "bool",       "char",         "short",
    "int",        "long",       "float",     "double",     "auto",         "half"};

template <std::size_t N>
bool has(const std::string_view (&words)[N], std::string_view word) {
  return std::ranges::find(words, word) != std::end(words);
}

constexpr std::string_view cuda_c = "CUDA C; compile it with nvcc -ptx";
constexpr std::string_view preprocessor_words[] = {"#include", "#define", "#pragma", "#if"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

bool is_path(std::string_view text) {
  constexpr std::size_t longest = 4096;
  if (text.size() > longest || text.find('\n') != std::string_view::npos) return false;
  if (text.starts_with("//") || text.starts_with("/*")) return false;
  return text.ends_with(".ptx") || text.starts_with('/') || text.starts_with("./") ||
         text.starts_with("../");
}

// What the text seems to be; empty: PTX.
std::string_view seems(std::string_view text) {
  if (text.starts_with('{'))
    return text.find("\"ptx\"") == std::string_view::npos ? "JSON"
                                                          : "a manifest; tartan run takes it";
  if (text.find(".version") != std::string_view::npos) return {};
  for (const std::string_view word : preprocessor_words)
    if (text.starts_with(word)) return cuda_c;
  const Token first = Lexer(text).next();
  return first.kind == TokenKind::Identifier && is_c_word(first.text) ? cuda_c : std::string_view();
}

}  // namespace

bool is_c_word(std::string_view word) { return has(declaring_words, word); }

std::string c_statement(std::string_view word) {
  if (has(control_words, word))
    return fmt::format(
        "PTX has no '{}': expected labels and bra for loops and conditions, as in @p bra LOOP;",
        word);
  if (is_c_word(word))
    return fmt::format("PTX has no '{}': expected a declaration such as .reg .b32 r;", word);
  return {};
}

std::string foreign_text(std::string_view text) {
  text = trimmed(text);
  if (is_path(text))
    return fmt::format("expected PTX, found the path {}; read the file and pass what it contains",
                       text.substr(0, 100));
  const std::string_view what = seems(text);
  return what.empty() ? std::string() : fmt::format("expected PTX, found {}", what);
}

}  // namespace tartan::TARTAN_ABI::ptx
