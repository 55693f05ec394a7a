// SPDX-License-Identifier: Apache-2.0
// Which tiles of a result a block computes.
#include "dsl/math.h"
#include "dsl/state.h"

namespace tartan {
namespace {

// The tiles of an m x n result, numbered so that neighbours share operands: groups of `group` rows
// of tiles, walked column by column. A cluster takes `cluster` of them, one below the other, as
// one.
struct Tiles {
  Scalar rows, cols;  // of what a cluster takes
  int group, cluster;
  Scalar in_cluster;

  Scalar count() const { return rows * cols; }
  std::pair<Scalar, Scalar> place(Builder& k, const Scalar& number) const {
    const Scalar in_group = cols * group;
    const Scalar first = number / in_group * group, within = number % in_group;
    const Scalar height = minimum(rows - first, group);
    const Scalar row = k.convert(first + within % height, u32);
    return {row * cluster + in_cluster, k.convert(within / height, u32)};
  }
};

Tiles tiles_of(detail::KernelState& state, const Scalar& m, const Scalar& n, const Tile& tile,
               int group) {
  if (group < 1)
    state.report("operand-count"_rule,
                 fmt::format("a group has at least one row of tiles, found {}", group));
  const int cluster = state.options.cluster;
  const Scalar in_cluster = cluster == 1 ? Scalar(0) : state.block_of_cluster();
  return {ceil_div(m, cluster * tile.m), ceil_div(n, tile.n), std::max(group / cluster, 1), cluster,
          in_cluster};
}

}  // namespace

std::pair<Scalar, Scalar> Builder::block_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                                              int group, Here at) {
  state_->at(at);
  const Tiles tiles = tiles_of(*state_, m, n, tile, group);
  return tiles.place(*this, convert(block_x(at), s32, at) / tiles.cluster);
}

void Builder::each_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                        const std::function<void(Scalar, Scalar)>& body, int group, Here at) {
  state_->at(at);
  if (!state_->has_body(body != nullptr, "each_tile")) return;
  const Tiles tiles = tiles_of(*state_, m, n, tile, group);
  loop(
      convert(block_x(at), s32, at) / tiles.cluster, tiles.count(),
      convert(blocks_x(at), s32, at) / tiles.cluster,
      [&](Scalar number) {
        const auto [row, col] = tiles.place(*this, number);
        body(row, col);
      },
      at);
}

StreamShare StreamShare::of(const Scalar& units, const Scalar& workers, const Scalar& worker) {
  const Scalar each = units / workers, more = units % workers;
  const Scalar begin = worker * each + minimum(worker, more);
  return {begin, begin + each + select(worker < more, 1, 0)};
}

Scalar StreamShare::owner(const Scalar& units, const Scalar& workers, const Scalar& unit) {
  const Scalar each = units / workers, more = units % workers, larger = more * (each + 1);
  return select(unit < larger, unit / (each + 1), more + (unit - larger) / maximum(each, 1));
}

void Builder::stream_tiles(const Scalar& m, const Scalar& n, const Tile& tile, const Scalar& steps,
                           const std::function<void(const TileWork&)>& body, int group, Here at) {
  state_->at(at);
  if (!state_->has_body(body != nullptr, "stream_tiles")) return;
  const Tiles tiles = tiles_of(*state_, m, n, tile, group);
  if (!require(state_->options.cluster == 1, "blocks of a cluster have equal shares of no tile",
               at))
    return;
  const Scalar worker = convert(block_x(at), s32, at);
  const StreamShare share =
      StreamShare::of(tiles.count() * steps, convert(blocks_x(at), s32, at), worker);
  const Scalar first_tile = share.begin / steps;
  loop(
      first_tile, (share.end + steps - 1) / steps, 1,
      [&](Scalar number) {
        const Scalar begin = maximum(share.begin - number * steps, 0),
                     end = minimum(share.end - number * steps, steps);
        const auto [row, col] = tiles.place(*this, number);
        const Scalar slot = worker * 2 + select(number == first_tile, 0, 1);
        body({row, col, begin, end - begin, end - begin == steps, slot});
      },
      at);
}

}  // namespace tartan
