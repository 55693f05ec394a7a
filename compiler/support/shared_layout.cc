// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/shared_layout.h"

#include <fmt/format.h>

#include <charconv>

namespace tartan::TARTAN_ABI::detail {
namespace {

constexpr std::string_view at = " at ", next = ", ";

}  // namespace

std::string text(std::string_view memory, const SharedLayout& layout) {
  std::string out;
  for (const auto& [name, first] : layout)
    out += fmt::format("{}{}{}{}", out.empty() ? "" : next, name, at, first);
  return out.empty() ? out : fmt::format("// {}: {}\n", memory, out);
}

SharedLayout read_shared_layout(std::string_view ptx, std::string_view memory) {
  SharedLayout out;
  const std::string head = fmt::format("// {}: ", memory);
  std::size_t begin = ptx.find(head);
  if (begin == std::string_view::npos || (begin && ptx[begin - 1] != '\n')) return out;
  begin += head.size();
  std::string_view rest = ptx.substr(begin, ptx.find('\n', begin) - begin);
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(next));
    rest.remove_prefix(std::min(one.size() + next.size(), rest.size()));
    const std::size_t name = one.find(at);
    if (name == std::string_view::npos) return {};
    const char* const number = one.data() + name + at.size();
    std::uint64_t first = 0;
    const auto [end, error] = std::from_chars(number, one.data() + one.size(), first);
    if (error != std::errc() || end != one.data() + one.size()) return {};
    out.emplace_back(one.substr(0, name), first);
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
