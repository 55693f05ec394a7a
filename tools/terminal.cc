// SPDX-License-Identifier: Apache-2.0
#include "tools/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tartan/support/source.h"
#include "tools/commands.h"

namespace tartan::tools {
namespace {

std::string wanted = "auto";

bool can_colour(std::FILE* stream) {
  const char* terminal = std::getenv("TERM");
  const std::string_view kind = terminal ? terminal : "";
  const char* const none = std::getenv("NO_COLOR");  // counts where it is not empty
  const bool allowed = !none || *none == '\0';
  return isatty(fileno(stream)) && allowed && !kind.empty() && kind != "dumb";
}

}  // namespace

void set_colour(const std::string& when) { wanted = when; }

bool colour(std::FILE* stream) {
  return wanted == "always" || (wanted == "auto" && can_colour(stream));
}

std::optional<std::size_t> columns(std::FILE* stream) {
  if (const char* stated = std::getenv("COLUMNS")) {
    const std::string_view text = stated;
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number > 0) return number;
  }
  winsize size{};
  if (isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return std::nullopt;
}

Status write_output(const std::string& path, std::string_view text) {
  if (path != "-") return write_file(path, text);
  fmt::print("{}", text);
  return Done{};
}

int fail(int code, const Diags& diags, bool json) {
  if (json) fmt::print("{}\n", diags.json());
  else complain(diags.text(colour(stderr)));
  return code;
}

std::string for_terminal(std::string_view text) {
  constexpr std::string_view kept = "\n\t";
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(kept), text.size());
    out += printable(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

int usage_error(const std::string& message, bool json) {
  return fail(exit_usage, Diags::one("usage"_rule, {}, message), json);
}

}  // namespace tartan::tools
