// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/messages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace tartan::TARTAN_ABI::detail {
namespace {

constexpr std::string_view cut = "...", blanks = " \t\n";
constexpr std::size_t longest_word = 240, kept_word = 60, longest_line = 4000;

// At most `bytes` of it, without a part of a character at the end.
std::string_view first(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

std::string shortened(std::string message) {
  if (message.size() <= longest_word) return message;
  std::string out;
  std::size_t line = 0;  // bytes of the current one
  bool full = false;
  for (std::string_view rest = message; !rest.empty();) {
    const bool blank = blanks.find(rest[0]) != blanks.npos;
    const std::string_view piece =
        blank ? rest.substr(0, 1) : rest.substr(0, rest.find_first_of(blanks));
    rest.remove_prefix(piece.size());
    if (piece == "\n") line = 0, full = false;
    if (full) continue;
    const bool is_long = piece.size() > longest_word;
    line += is_long ? kept_word : piece.size();
    full = line > longest_line;
    if (full) out += cut;
    else out += first(piece, is_long ? kept_word : piece.size()), out += is_long ? cut : "";
  }
  return out;
}

void complain(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void hold_standard_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) == -1) [[maybe_unused]]
      const int held = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace tartan::TARTAN_ABI::detail
