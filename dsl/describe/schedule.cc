// SPDX-License-Identifier: Apache-2.0
// The tiles of a result that a block computes.
#include <algorithm>
#include <limits>

#include "dsl/describe/gpc_order.h"
#include "dsl/roles/launched_tiles.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/model.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::int64_t most_counted = std::numeric_limits<std::int32_t>::max();

// The tiles of an m x n result, numbered so that neighbours share operands: groups of `group` tile
// rows, visited column by column. A cluster takes adjacent tiles as one: `down` below each other,
// and `across` columns of them.
struct Tiles {
  Scalar rows, cols;  // of what a cluster takes
  Scalar group;
  int down, across;
  Scalar in_cluster;
  bool fills_clusters, fills_columns;  // the rows do; the columns do

  Scalar count() const { return rows * cols; }
  std::pair<Scalar, Scalar> place(Builder& k, const Scalar& number,
                                  const std::source_location& at) const {
    const Scalar in_group = cols * group;
    const Scalar first = number / in_group * group, within = number % in_group;
    const auto [line, column] = place_in_group(first, within);
    const Scalar row = k.convert(first + line, u32, at);
    const Scalar of_tile = row * down + (across == 1 ? in_cluster : in_cluster % down);
    note(of_tile, fills_clusters);
    const Scalar col = k.convert(column, u32, at);
    if (across == 1) return {of_tile, col};
    const Scalar beside = col * across + in_cluster / down;
    note(beside, fills_columns);
    return {of_tile, beside};
  }
  int cluster() const { return down * across; }
  // The tile of a cluster, of which each has one.
  Scalar of_cluster(const Scalar& number, const Target& target) const {
    const auto all = count().constant();
    return all && model::ordered_by_gpc(target.arch, down, across, *all)
               ? detail::beside_on_gpc(number, *all, cluster())
               : number;
  }

 private:
  // Row and column of a tile of a group. Where it is known how many rows the last group has, no
  // division is by a number that only the GPU knows: those take 200 cycles.
  std::pair<Scalar, Scalar> place_in_group(const Scalar& first, const Scalar& within) const {
    const auto all = rows.constant(), most = group.constant();
    if (!all || !most || *all < 1) {
      const Scalar height = minimum(rows - first, group);
      return {within % height, within / height};
    }
    const std::int64_t height = std::min(*all, *most), rest = *all % height;
    if (rest == 0) return {within % height, within / height};
    const Scalar whole = first + height <= *all;
    return {select(whole, within % height, within % rest),
            select(whole, within / height, within / rest)};
  }

  static void note(const Scalar& tile, bool exists) {
    if (!exists && detail::state_of(tile))
      detail::state_of(tile)->launch.note_beyond(detail::HandleParts::value(tile).id);
  }
};

// `together`: the CTAs of a cluster take the same tile.
Tiles tiles_of(detail::KernelState& state, const Scalar& m, const Scalar& n, Tile tile, int group,
               bool together = false) {
  if (tile.m < 1 || tile.n < 1)
    state.log.report("tile-divide"_rule,
                     fmt::format("illegal tile {} x {}: expected sizes above 0", tile.m, tile.n));
  tile.m = std::max(tile.m, 1), tile.n = std::max(tile.n, 1);
  if (group < 1)
    state.log.report("operand-count"_rule,
                     fmt::format("rows of tiles in a group: expected at least 1, found {}", group));
  const int cluster = together ? 1 : state.config.options.cluster;
  const Scalar in_cluster = cluster == 1 ? Scalar(0) : block_of_cluster(state);
  const int down = together ? 1 : detail::cluster_rows(state), across = cluster / down;
  const Scalar rows = ceil_div(m, std::int64_t{down} * tile.m),
               cols = ceil_div(n, std::int64_t{across} * tile.n);
  // A group has no more rows than the result: its number of tiles must fit 32 bits.
  const int height = std::max(group / down, 1);
  const std::int64_t most_cols = cols.constant().value_or(most_counted / std::max(tile.n, 1) + 1);
  const bool fits = most_cols <= most_counted / height;
  return {.rows = rows,
          .cols = cols,
          .group = fits ? Scalar(height) : minimum(rows, height),
          .down = down,
          .across = across,
          .in_cluster = in_cluster,
          .fills_clusters = m.multiple() % (std::int64_t{down} * tile.m) == 0,
          .fills_columns = n.multiple() % (std::int64_t{across} * tile.n) == 0};
}

// A block for each tile: more would compute tiles that are not there, fewer leave some unwritten.
void expect_grid(detail::KernelState& state, const Tiles& tiles, std::string_view call) {
  const auto rows = map_number(state.launch, tiles.rows),
             cols = map_number(state.launch, tiles.cols);
  if (!rows || !cols || state.conditions > 0) return;
  LaunchBound bound;
  bound.of = LaunchBound::Of::blocks_x, bound.exact = true;
  bound.tiles = {*rows, *cols};
  if (const int cluster = state.config.options.cluster; cluster > 1)
    bound.tiles.push_back({cluster});
  bound.what = call;
  bound.place = state.log.place();
  state.launch.add_bound(std::move(bound));
}

// Blocks along x alone.
void expect_line(detail::KernelState& state, std::string_view call) {
  for (const LaunchBound::Of of : {LaunchBound::Of::blocks_y, LaunchBound::Of::blocks_z}) {
    LaunchBound bound;
    bound.of = of, bound.exact = true;
    bound.tiles = {{1}};
    bound.what = call;
    bound.place = state.log.place();
    state.launch.add_bound(std::move(bound));
  }
}

}  // namespace

std::pair<Scalar, Scalar> Builder::block_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                                              int group, Here at) {
  state_->at(at);
  const Tiles tiles = tiles_of(*state_, m, n, tile, group);
  expect_grid(*state_, tiles, "block_tile(): a block for each tile");
  const Scalar cluster = convert(block_x(at), s32, at) / tiles.cluster();
  return tiles.place(*this, tiles.of_cluster(cluster, state_->config.target), at);
}

std::pair<Scalar, Scalar> Builder::cluster_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                                                int group, Here at) {
  state_->at(at);
  const Tiles tiles = tiles_of(*state_, m, n, tile, group, true);
  expect_grid(*state_, tiles, "cluster_tile(): a cluster for each tile");
  return tiles.place(*this, convert(block_x(at), s32, at) / state_->config.options.cluster, at);
}

void Builder::each_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                        const std::function<void(Scalar, Scalar)>& body, int group, Here at) {
  state_->at(at);
  if (!state_->has_body(body != nullptr, "each_tile")) return;
  const Tiles tiles = tiles_of(*state_, m, n, tile, group);
  loop(
      convert(block_x(at), s32, at) / tiles.cluster(), tiles.count(),
      convert(blocks_x(at), s32, at) / tiles.cluster(),
      [&](Scalar number) {
        const auto [row, col] = tiles.place(*this, number, at);
        body(row, col);
      },
      at);
}

void Builder::each_launched_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                                 const std::function<void(Scalar, Scalar)>& body, int group,
                                 Here at) {
  state_->at(at);
  if (!state_->has_body(body != nullptr, "each_launched_tile")) return;
  // Clusters get an answer together: where tensor memory is, there is a form for that.
  const Target& target = state_->config.target;
  const bool takes = target.has(Feature::cluster_launch_control) &&
                     (state_->config.options.cluster == 1 || target.has(Feature::tensor_memory));
  if (!takes) {
    const auto [row, col] = block_tile(m, n, tile, group, at);
    return body(row, col);
  }
  if (!require(state_->roles.current == detail::Role::consumer,
               "each_launched_tile() outside of roles(): expected it in the body of roles(), whose "
               "producers ask for the next tile",
               at))
    return;
  const Tiles tiles = tiles_of(*state_, m, n, tile, group);
  expect_grid(*state_, tiles, "each_launched_tile(): a block for each tile");
  expect_line(*state_, "each_launched_tile(): blocks along x alone");
  detail::LaunchedTiles launched(*this, *state_, convert(block_x(at), s32, at) / tiles.cluster(),
                                 at);
  state_->log.choose("tiles", "clusterlaunchcontrol.try_cancel",
                     "a CTA takes over the tiles of CTAs that have not started");
  loop_while([&] { return launched.goes_on(); },
             [&] {
               launched.ask();
               const auto [row, col] = tiles.place(*this, launched.number(), at);
               body(row, col);
               state_->at(at);
               launched.take();
             },
             at);
}

Type StreamShare::counter(const Scalar& rows, const Scalar& cols, const Scalar& steps) {
  const auto r = rows.constant(), c = cols.constant(), s = steps.constant();
  if (!r || !c || !s || *r < 1 || *c < 1 || *s < 1) return s64;
  return *r <= most_counted / *c && *r * *c < most_counted / *s ? s32 : s64;
}

StreamShare StreamShare::of(const Scalar& units, const Scalar& workers, const Scalar& worker) {
  const Scalar each = units / workers, more = units % workers;
  const auto begin = [&](const Scalar& of) { return of * each + minimum(of, more); };
  return {begin(worker), begin(worker + 1)};
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
  if (!require(state_->config.options.cluster == 1, "stream-K requires cluster = 1", at)) return;
  const Type type = StreamShare::counter(tiles.rows, tiles.cols, steps);
  const auto as = [&](const Scalar& x, Type wanted) {
    return x.constant() || bits(x.type()) == bits(wanted) ? x : convert(x, wanted, at);
  };
  const Scalar block = convert(block_x(at), s32, at);
  const Scalar worker = as(block, type), each = as(steps, type);
  const Scalar units = as(tiles.rows, type) * as(tiles.cols, type) * each;
  const StreamShare share = StreamShare::of(units, convert(blocks_x(at), type, at), worker);
  const Scalar first_tile = share.begin / each;
  loop(
      first_tile, (share.end + each - 1) / each, 1,
      [&](Scalar number) {
        const Scalar begin = maximum(share.begin - number * each, 0),
                     end = minimum(share.end - number * each, each);
        const auto [row, col] = tiles.place(*this, as(number, s32), at);
        const Scalar slot = block * 2 + select(number == first_tile, 0, 1), count = end - begin;
        body({row, col, as(begin, s32), as(count, s32), count == each, slot});
      },
      at);
}

}  // namespace tartan::TARTAN_ABI
