// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/lexer.h"

#include <algorithm>
#include <array>

#include "compiler/ptx/encoding.h"

namespace tartan::TARTAN_ABI::ptx {
namespace {

enum CharClass : std::uint8_t {
  kOther = 0,
  kBlank = 1,
  kLetter = 2,
  kDigit = 4,
  kPunctuation = 8,
  kForeign = 16
};

constexpr char ctrl_z = 0x1A;  // the end of a text under DOS; to the assembler a blank

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> out{};
  for (int c = 'a'; c <= 'z'; ++c) out[static_cast<std::size_t>(c)] = kLetter;
  for (int c = 'A'; c <= 'Z'; ++c) out[static_cast<std::size_t>(c)] = kLetter;
  for (int c = '0'; c <= '9'; ++c) out[static_cast<std::size_t>(c)] = kDigit;
  for (std::size_t c = 0x80; c < 0x100; ++c) out[c] = kForeign;
  for (const unsigned char c : {'_', '$'}) out[static_cast<std::size_t>(c)] = kLetter;
  for (const unsigned char c : {' ', '\t', '\n', '\r', '\f', ctrl_z})
    out[static_cast<std::size_t>(c)] = kBlank;
  for (const unsigned char c : {',', ';', ':', '{', '}', '(', ')', '[', ']', '<', '>', '@',
                                '!', '|', '+', '-', '=', '&', '*', '/', '~', '^', '?'})
    out[static_cast<std::size_t>(c)] = kPunctuation;
  return out;
}
constexpr auto classes = make_classes();

std::uint8_t class_of(char c) { return classes[static_cast<unsigned char>(c)]; }

// Bytes that are not ASCII are refused (encoding.h); in a word they are letters, so that it stays
// whole and is refused once.
bool in_word(std::string_view text, std::size_t at) {
  if (class_of(text[at]) & (kLetter | kDigit)) return true;
  return class_of(text[at]) == kForeign && foreign_blank(text, at) == 0;
}

// # 12 "file.cu" 2, which a C preprocessor leaves at the start of a line, with its line break: how
// long it is; 0 if it is something else.
std::size_t line_marker(std::string_view text, std::size_t at) {
  const auto skip = [&](auto&& belongs) {
    const std::size_t from = at;
    while (at < text.size() && belongs(text[at])) ++at;
    return at > from;
  };
  const auto blanks = [&] { return skip([](char c) { return c == ' ' || c == '\t'; }); };
  const auto digits = [&] { return skip([](char c) { return class_of(c) == kDigit; }); };
  const std::size_t begin = at++;
  blanks();
  if (text.substr(at).starts_with("line")) at += 4;
  blanks();
  if (!digits() || !blanks() || at >= text.size() || text[at++] != '"') return 0;
  skip([](char c) { return c != '"' && c != '\n'; });
  if (at >= text.size() || text[at++] != '"') return 0;
  while (blanks() && digits()) {
  }
  skip([](char c) { return c == '\r'; });
  return at < text.size() && text[at] == '\n' ? at + 1 - begin : 0;
}

// Whether a word goes on at the colon of a ratio, as in .sp::2:4.
bool in_ratio(std::string_view text, std::size_t at) {
  if (text[at] != ':' || at + 1 >= text.size() || class_of(text[at + 1]) != kDigit) return false;
  std::size_t first = at;
  while (first > 0 && class_of(text[first - 1]) == kDigit) --first;
  return first < at && first >= 2 && text[first - 1] == ':' && text[first - 2] == ':';
}

}  // namespace

std::uint32_t Lexer::line_end() const {
  return static_cast<std::uint32_t>(std::min(text_.find('\n', at_), text_.size()));
}

bool Lexer::skip_blanks() {
  const char* const data = text_.data();
  const std::uint32_t size = static_cast<std::uint32_t>(text_.size());
  while (at_ < size) {
    if (class_of(data[at_]) == kBlank) {
      ++at_;
    } else if (data[at_] == '/' && at_ + 1 < size && data[at_ + 1] == '/') {
      at_ = line_end();
    } else if (const std::size_t marker = data[at_] == '#' ? line_marker(text_, at_) : 0) {
      at_ += static_cast<std::uint32_t>(marker);
    } else if (data[at_] == '/' && at_ + 1 < size && data[at_ + 1] == '*') {
      const std::size_t close = text_.find("*/", at_ + 2);
      if (close == std::string_view::npos) return false;
      at_ = static_cast<std::uint32_t>(close + 2);
    } else if (const std::size_t blank = is_ascii(data[at_]) ? 0 : foreign_blank(text_, at_)) {
      at_ += static_cast<std::uint32_t>(blank);
    } else {
      break;
    }
    blank_ = true;
  }
  return true;
}

Token Lexer::take(TokenKind kind, std::uint32_t end) {
  const Token token{kind, at_, text_.substr(at_, end - at_), blank_};
  at_ = end;
  return token;
}

Token Lexer::next() {
  const std::uint32_t size = static_cast<std::uint32_t>(text_.size());
  blank_ = at_ == 0;
  if (!skip_blanks()) return take(TokenKind::Unknown, size);
  if (at_ >= size) return take(TokenKind::End, size);
  const char c = text_[at_];
  std::uint32_t end = at_ + 1;
  const auto word = [&] {
    while (end < size && in_word(text_, end)) ++end;
  };
  if (class_of(c) & (kLetter | kForeign) || c == '%') {
    word();
    return take(TokenKind::Identifier, end);
  }
  if (class_of(c) == kDigit) {
    // 1.5e-3, 0x1F, 0f3F800000, 12U: letters and digits; a dot or a sign only inside a decimal
    // float.
    const bool radix = c == '0' && end < size && class_of(text_[end]) == kLetter;
    while (end < size) {
      const char d = text_[end];
      const bool exponent_sign =
          (d == '+' || d == '-') && !radix && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      const bool point = d == '.' && !radix && end + 1 <= size;
      if (!in_word(text_, end) && !exponent_sign && !point) break;
      ++end;
    }
    return take(TokenKind::Number, end);
  }
  if (c == '.') {
    if (end < size && class_of(text_[end]) == kDigit) {  // .5
      while (end < size && in_word(text_, end)) ++end;
      return take(TokenKind::Number, end);
    }
    word();
    while (end + 2 < size && text_[end] == ':' && text_[end + 1] == ':' &&
           in_word(text_, end + 2)) {
      end += 2;
      word();
      if (end < size && in_ratio(text_, end)) ++end, word();
    }
    return take(end == at_ + 1 ? TokenKind::Unknown : TokenKind::Dot, end);
  }
  if (c == '"') {
    while (end < size && text_[end] != '"' && text_[end] != '\n')
      end += text_[end] == '\\' && end + 1 < size ? 2 : 1;
    if (end >= size || text_[end] != '"') return take(TokenKind::Unknown, end < size ? end : size);
    return take(TokenKind::String, end + 1);
  }
  if (c == '#') return take(TokenKind::Unknown, line_end());
  return take(class_of(c) == kPunctuation ? TokenKind::Punctuation : TokenKind::Unknown, end);
}

std::string_view Lexer::extend_opcode(const Token& first) {
  const std::uint32_t size = static_cast<std::uint32_t>(text_.size());
  std::uint32_t end = first.end();
  while (end + 1 < size) {
    const char c = text_[end];
    if (c == '.' && in_word(text_, end + 1)) end += 2;
    else if (c == ':' && text_[end + 1] == ':' && end + 2 < size && in_word(text_, end + 2))
      end += 3;
    else if (in_ratio(text_, end)) end += 2;
    else break;
    while (end < size && in_word(text_, end)) ++end;
  }
  at_ = end;
  return text_.substr(first.offset, end - first.offset);
}

}  // namespace tartan::TARTAN_ABI::ptx
