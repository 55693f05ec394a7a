// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_order.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/common/integers.h"
#include "kernels/gemm/gemm_tiles.h"

namespace tartan::TARTAN_ABI::kernels::detail {
namespace {

constexpr int neighbours = 16;  // CTAs of a GPC
constexpr int most_rows = 8;    // of a group

// How many CTAs of a neighbourhood are in each row of tiles, or in each column.
class Occupied {
 public:
  explicit Occupied(int lines) : ctas_(lines) {}
  void add(int line) { lines_ += ctas_[line]++ == 0; }
  void remove(int line) { lines_ -= --ctas_[line] == 0; }
  int lines() const { return lines_; }

 private:
  std::vector<int> ctas_;
  int lines_ = 0;
};

struct Place {
  int row, column;
};

// The numbering of block_tile(), which describes it in the kernel (dsl/describe/schedule.cc).
Place place_of(int cta, const TileGrid& tiles, int height) {
  const int of_group = height * tiles.columns, first = cta / of_group * height,
            within = cta % of_group, rows = std::min(height, tiles.rows - first);
  return {first + within % rows, within / rows};
}

// What neighbourhoods read: the sum of the squares of their rows of A and columns of B.
std::int64_t read_by_neighbours(const TileGrid& tiles, int height) {
  const int ctas = tiles.rows * tiles.columns, number = std::min(neighbours, ctas);
  Occupied rows(tiles.rows), columns(tiles.columns);
  std::int64_t out = 0;
  for (int cta = 0; cta < ctas + number - 1; ++cta) {
    const Place in = place_of(cta % ctas, tiles, height);
    rows.add(in.row), columns.add(in.column);
    if (cta < number - 1) continue;
    const std::int64_t read = std::int64_t{rows.lines()} * tiles.m + columns.lines() * tiles.n;
    out += read * read;
    const Place first = place_of(cta - number + 1, tiles, height);
    rows.remove(first.row), columns.remove(first.column);
  }
  return out;
}

}  // namespace

TileGrid tile_grid(const Gemm& options) {
  const Gemm of = in_tiles(options);
  const auto tiles = [](int size, int each) {
    return static_cast<int>(kernels::quotient_up(size, each));
  };
  return {tiles(of.m, of.tile.m), tiles(of.n, of.tile.n), of.tile.m, of.tile.n};
}

int group_beside(const TileGrid& tiles, int usual) {
  int out = usual;
  std::int64_t least = read_by_neighbours(tiles, std::min(usual, tiles.rows));
  for (int height = 1; height <= std::min(most_rows, tiles.rows); ++height)
    if (const std::int64_t now = read_by_neighbours(tiles, height); now < least)
      least = now, out = height;
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
