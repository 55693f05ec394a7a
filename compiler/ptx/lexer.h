// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/lexer.h - splits PTX text into tokens (PTX ISA 9.0, 4.1 to 4.5). Tokens are views
// into the text; comments and blanks are skipped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::ptx {

enum class TokenKind : std::uint8_t {
  End,
  Identifier,   // add, %r1, $L_2, _ZN3foo, %tid; no dots
  Dot,          // .word: a directive or qualifier; "::" parts belong to it: .shared::cta
  Number,       // integers, 0f.., 0d.., decimal floats
  String,       // "text"
  Punctuation,  // one of , ; : { } ( ) [ ] < > @ ! | + - = & * / ~ ^ ? %
  Unknown,      // a byte that PTX does not use, an unclosed comment or string, or a line from # on
                // that is no marker
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::uint32_t offset = 0;
  std::string_view text;
  bool blank_before = false;  // blanks or a comment precede it

  bool is(char c) const { return kind == TokenKind::Punctuation && text[0] == c; }
  std::uint32_t end() const { return offset + static_cast<std::uint32_t>(text.size()); }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// The next token; at the end of the text always End.
  Token next();

  /// The offset of the scan; set it to go back.
  std::uint32_t position() const { return at_; }
  void rewind(std::uint32_t position) {
    at_ = std::min(position, static_cast<std::uint32_t>(text_.size()));
  }

  /// Reads a whole opcode, given its first identifier: the identifier and every .qualifier that
  /// follows it without blanks.
  std::string_view extend_opcode(const Token& first);

 private:
  bool skip_blanks();  // comments and line markers too; false: an unclosed comment
  std::uint32_t line_end() const;
  Token take(TokenKind kind, std::uint32_t end);

  std::string_view text_;
  std::uint32_t at_ = 0;
  bool blank_ = false;
};

}  // namespace tartan::TARTAN_ABI::ptx
