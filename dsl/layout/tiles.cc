// SPDX-License-Identifier: Apache-2.0
#include "dsl/layout/tiles.h"

#include <algorithm>

#include "dsl/layout/fragments.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

int isa::Coord::*axis(Lines lines) {
  return lines == Lines::rows ? &isa::Coord::row : &isa::Coord::col;
}

}  // namespace

bool is_whole(const WarpTile& tile) {
  if (tile.place().partial == 1 || tile.fragments().empty()) return true;
  state_of(tile.fragments().front())
      ->log.report("wrong-role"_rule,
                   fmt::format("partial sums: {} warps divide the k-steps of this tile "
                               "(Tile::warps_k); take TiledMma::sum() of it first",
                               tile.place().partial));
  return false;
}

std::optional<Builder> builder_of(const WarpTile& tile, const std::source_location& at) {
  if (auto* const current = Description::current(); current && tile.fragments().empty())
    current->at(at), current->log.note_empty("the tile");
  for (const Fragment& each : tile.fragments())
    if (!KernelState::begins(state_of(each), at) || is_bad(each)) return std::nullopt;
  if (tile.fragments().empty() || !is_whole(tile)) return std::nullopt;
  return Builder(state_of(tile.fragments().front()));
}

ElementPlace element_place(Builder& k, const WarpTile& tile, int y, int x, int i,
                           const std::source_location& at) {
  const FragmentKind& kind = tile.fragment(y, x).kind();
  const isa::Fragment shape = kind.fragment();
  ElementPlace out = k.place(kind, i, at);
  out.row = tile.place().row + out.row + tile.place().down(y, shape.rows);
  out.col = tile.place().col + out.col + x * shape.cols;
  return out;
}

LaneLines lane_lines(const FragmentKind& kind, Lines lines) {
  LaneLines out;
  const auto line = [&](int i) { return kind.coord(0, i).*axis(lines); };
  for (int i = 0; i < kind.fragment().elements(); ++i) {
    const auto same = std::ranges::find_if(out.first, [&](int j) { return line(j) == line(i); });
    out.index.push_back(static_cast<int>(same - out.first.begin()));
    if (same == out.first.end()) out.first.push_back(i);
  }
  return out;
}

std::vector<int> masks_along(const FragmentKind& kind, Lines lines) {
  std::vector<int> out;
  const isa::Coord own = kind.coord(0, 0);
  for (int mask = 1; mask < 32; mask *= 2) {
    const isa::Coord other = kind.coord(mask, 0);
    if (other.*axis(lines) == own.*axis(lines) && other.matrix == own.matrix) out.push_back(mask);
  }
  return out;
}

std::size_t line_count(const WarpTile& tile, Lines lines) {
  const int fragments = lines == Lines::rows ? tile.down() : tile.across();
  return lane_lines(tile.fragment(0, 0).kind(), lines).first.size() *
         static_cast<std::size_t>(fragments);
}

std::vector<Scalar> line_places(Builder& k, const WarpTile& tile, Lines lines,
                                const std::source_location& at) {
  const LaneLines lanes = lane_lines(tile.fragment(0, 0).kind(), lines);
  std::vector<Scalar> out;
  for (int j = 0; j < (lines == Lines::rows ? tile.down() : tile.across()); ++j)
    for (const int i : lanes.first) {
      const ElementPlace place = lines == Lines::rows ? element_place(k, tile, j, 0, i, at)
                                                      : element_place(k, tile, 0, j, i, at);
      out.push_back(lines == Lines::rows ? place.row : place.col);
    }
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
