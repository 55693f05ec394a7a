// SPDX-License-Identifier: Apache-2.0
#include "runtime/slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "compiler/support/counted.h"

namespace tartan::TARTAN_ABI {
namespace {

// A number, or nothing and `good` false; an empty text is no number and good.
std::optional<std::int64_t> number(std::string_view text, bool& good) {
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  good = false;
  return std::nullopt;
}

}  // namespace

std::optional<Slice> Slice::parse(std::string_view text) {
  Slice out;
  for (const char c : text)
    if (c != ' ') out.text_ += c;
  if (out.text_.starts_with('[') && out.text_.ends_with(']'))
    out.text_ = out.text_.substr(1, out.text_.size() - 2);
  std::string_view rest = out.text_;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    const std::size_t colon = one.find(':');
    bool good = !one.empty();
    Part part;
    part.single = colon == std::string_view::npos;
    part.first = number(one.substr(0, colon), good);
    if (!part.single) part.last = number(one.substr(colon + 1), good);
    if (!good) return std::nullopt;
    out.parts_.push_back(part);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
    if (rest.empty()) return std::nullopt;
  }
  return out;
}

Result<std::vector<IndexRange>> Slice::of(const std::vector<std::uint64_t>& shape) const {
  const auto refuse = [&](const std::string& why) {
    return Diags::one("usage"_rule, {}, fmt::format("[{}]: {}", text_, why));
  };
  if (parts_.size() > shape.size())
    return refuse(fmt::format("the array has {}, {}", detail::counted(shape.size(), "dimension"),
                              fmt::join(shape, "x")));
  std::vector<IndexRange> out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i >= parts_.size()) {
      out.push_back({0, shape[i]});
      continue;
    }
    const Part& part = parts_[i];
    const auto extent = static_cast<std::int64_t>(shape[i]);
    const auto from_end = [&](std::int64_t at) { return at < 0 ? at + extent : at; };
    const std::int64_t first = from_end(part.first.value_or(0));
    const std::int64_t last = part.single ? first + 1 : from_end(part.last.value_or(extent));
    if (first < 0 || first >= extent || last <= first)
      return refuse(fmt::format("no index of dimension {}, which has {}", i, extent));
    out.push_back(
        {static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(std::min(last, extent))});
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
