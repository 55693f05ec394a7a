// SPDX-License-Identifier: Apache-2.0
#include "tools/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "tools/commands.h"

namespace tartan::tools {
namespace {

std::string wanted = "auto";

bool can_colour(std::FILE* stream) {
  const char* terminal = std::getenv("TERM");
  const std::string_view kind = terminal ? terminal : "";
  return isatty(fileno(stream)) && !std::getenv("NO_COLOR") && !kind.empty() && kind != "dumb";
}

}  // namespace

void set_colour(const std::string& when) { wanted = when; }

bool colour(std::FILE* stream) {
  return wanted == "always" || (wanted == "auto" && can_colour(stream));
}

int fail(int code, const Diags& diags, bool json) {
  if (json) fmt::print("{}\n", diags.json());
  else fmt::print(stderr, "{}", diags.text(colour(stderr)));
  return code;
}

int usage_error(const std::string& message, bool json) {
  return fail(exit_usage, Diags::one("usage"_rule, {}, message), json);
}

}  // namespace tartan::tools
