// SPDX-License-Identifier: Apache-2.0
// Matrices in shared memory, from the comments of texts that Tartan made:
//
//   // shared matrix sA: f16 32x128:(128,1) swizzle<3,3,4>, 4 stages 4096 elements apart
#include <fmt/format.h>

#include <cstdio>

#include "tools/explore/page.h"
#include "tools/shared_tile.h"

namespace tartan::tools::explore {
namespace {

constexpr std::string_view head = "// shared matrix ";
constexpr std::int64_t most_elements = 1 << 18;  // of a matrix: the shared memory of any target
constexpr int most_stages = 1 << 10;

// Offsets in elements, before the swizzle, along an axis.
Json offsets(const NestedLayout& axis) {
  Json out = Json::array();
  for (std::int64_t i = 0; i < axis.size(); ++i) out.push_back(axis(i));
  return out;
}

// What follows the head in a line; null where it is no such matrix, or has no bytes of its own.
Json of_line(std::string_view line) {
  const std::size_t colon = line.find(": ");
  const std::size_t space = line.find(' ', colon + 2);
  if (colon == std::string_view::npos || space == std::string_view::npos) return nullptr;
  const auto type = parse_type(std::string(line.substr(colon + 2, space - colon - 2)));
  if (!type || bits(*type) % 8 != 0) return nullptr;
  std::string_view notation = line.substr(space + 1);
  int stages = 1;
  long long apart = 0;
  if (const std::size_t ring = notation.find(", "); ring != std::string_view::npos) {
    const std::string words(notation.substr(ring));
    if (std::sscanf(words.c_str(), ", %d stages %lld elements apart", &stages, &apart) != 2 ||
        stages < 1 || stages > most_stages || apart < 1 || apart > most_elements)
      return nullptr;
    notation = notation.substr(0, ring);
  }
  const auto layout = NestedLayout::parse(cute_notation(notation));
  if (!layout || layout->rank() != 2 || layout->size() > most_elements) return nullptr;
  const Swizzle& swizzle = layout->swizzle();
  return {{"name", line.substr(0, colon)},
          {"type", name(*type)},
          {"layout", notation},
          {"size", bits(*type) / 8},
          {"stages", stages},
          {"apart", apart * bits(*type) / 8},
          {"rows", offsets((*layout)[0])},
          {"cols", offsets((*layout)[1])},
          {"swizzle", {swizzle.bits, swizzle.base, swizzle.shift}}};
}

}  // namespace

Json tiles_part(std::string_view ptx, const std::map<std::string, std::uint64_t>& first) {
  Json out = Json::array();
  while (!ptx.empty()) {
    const std::string_view line = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(line.size() + 1, ptx.size()));
    if (line.starts_with(".version")) break;  // comments of the head
    if (!line.starts_with(head)) continue;
    Json tile = of_line(line.substr(head.size()));
    if (tile.is_null()) continue;
    const auto at = first.find(tile["name"].get<std::string>());
    tile["first"] = at == first.end() ? 0 : at->second;
    out.push_back(std::move(tile));
  }
  return out;
}

}  // namespace tartan::tools::explore
