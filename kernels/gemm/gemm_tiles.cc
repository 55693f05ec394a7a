// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/gemm/gemm_schedule.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels::detail {
namespace {

constexpr std::int64_t most_counted = std::numeric_limits<std::int32_t>::max();

// Whether the index type reaches the end of the last whole tile along an axis.
bool reaches(Builder& k, const char* name, const Scalar& size, std::int64_t tile) {
  const std::int64_t known = size.constant().value_or(0);
  return k.require(
      tile < 1 || known <= most_counted / tile * tile,
      fmt::format("{} = {}: tiles of {} would end beyond {}; the largest size is {}", name, known,
                  tile, most_counted, tile < 1 ? 0 : most_counted / tile * tile));
}

}  // namespace

int common_multiple(int x, int y) {
  const std::int64_t out = std::lcm<std::int64_t>(x, y);
  return out > most_counted ? x : static_cast<int>(out);
}

bool sizes_are_possible(Builder& k, const Tile& tile, const Scalar& m, const Scalar& n,
                        const Scalar& depth) {
  const bool inside =
      reaches(k, "m", m, tile.m) & reaches(k, "n", n, tile.n) & reaches(k, "k", depth, tile.k);
  if (!inside || tile.m < 1 || tile.n < 1) return inside;  // tiled_mma() reports the tile
  const std::int64_t rows = ceil_div(m.constant().value_or(0), tile.m).constant().value_or(0),
                     cols = ceil_div(n.constant().value_or(0), tile.n).constant().value_or(0);
  return k.require(
      rows * cols <= most_counted,
      fmt::format(
          "m = {}, n = {}: {} tiles of {} x {} exceed the largest grid, {}; use larger tiles",
          m.constant().value_or(0), n.constant().value_or(0), rows * cols, tile.m, tile.n,
          most_counted));
}

bool parts_are_possible(Builder& k, const Gemm& options, const Scalar& m) {
  const int apart = options.cluster_splits,
            group = options.tile.threads() / 32 / std::max(options.tile.products, 1);
  const std::int64_t tile = std::max(options.tile.m, 1),
                     rows = ceil_div(m.constant().value_or(0), tile).constant().value_or(0) * tile;
  return k.require(options.splits >= 1 && options.splits <= most_splits,
                   fmt::format("splits = {}: expected 1 to {}", options.splits, most_splits)) &&
         k.require(apart == 1 || apart == 2 || apart == 4 || apart == 8,
                   fmt::format("cluster_splits = {}: expected 1, 2, 4 or 8", apart)) &&
         k.require(options.stream_blocks >= 0 && options.stream_blocks <= most_stream_blocks,
                   fmt::format("stream_blocks = {}: expected 0 (off) to {}", options.stream_blocks,
                               most_stream_blocks)) &&
         k.require(
             std::max(rows * options.splits, std::int64_t{2} * options.stream_blocks * tile) <=
                 most_counted,
             fmt::format("{} = {}, splits = {}, stream_blocks = {}: the workspace exceeds {} rows",
                         options.swap ? "n" : "m", m.constant().value_or(0), options.splits,
                         options.stream_blocks, most_counted)) &
             k.require(!options.batched || (options.splits == 1 && options.stream_blocks == 0),
                       "split-K and stream-K are unsupported for batched products") &
             k.require(options.tile.products == 1 || group == 4,
                       fmt::format("tile.products = {}: expected 4 warps of a warpgroup, found {}",
                                   options.tile.products, group)) &
             is_one_way(k, options);
}

Gemm in_tiles(Gemm options) {
  if (!options.swap) return options;
  std::swap(options.m, options.n);
  std::swap(options.a, options.b);
  options.a_major = opposite(std::exchange(options.b_major, opposite(options.a_major)));
  options.swap = false;
  return options;
}

Scalar size(Builder& k, const char* name, int fixed, int multiple) {
  k.require(fixed >= 0 && multiple >= 1,
            fmt::format("{} = {}, divisor {}: expected a positive size, or 0 for a kernel "
                        "parameter, and a divisor of at least 1",
                        name, fixed, multiple));
  return fixed > 0 ? Scalar(fixed) : k.param(name, s32, std::max(multiple, 1));
}

int nearest_multiple(int size, int by) {
  const std::int64_t out = (std::int64_t{size} + by / 2) / by * by;
  return static_cast<int>(std::clamp<std::int64_t>(out, by, most_counted / by * by));
}

int clustered_multiprocessors(int multiprocessors, int cluster) {
  cluster = std::max(cluster, 1);
  const std::int64_t room = cluster > 2 ? std::int64_t{multiprocessors} * 10 / 11 : multiprocessors;
  return static_cast<int>(std::max<std::int64_t>(room / cluster, 1)) * cluster;
}

void release_row(Builder& k, const Scalar& size, int tile) {
  if (k.target().has(Feature::dependent_launch) && size.constant().value_or(tile + 1) <= tile)
    k.griddepcontrol_launch_dependents();
}

void follow_previous_launch(Builder& k) {
  if (k.target().has(Feature::dependent_launch)) k.griddepcontrol_wait();
}

Scalar stride(Builder& k, const char* name, const Gemm& options, int multiple) {
  return options.batched ? k.param(name, s64, multiple) : Scalar(0);
}

Scalar units_each(const Scalar& steps) { return maximum(steps, 1); }

bool suits_warpgroups(const Gemm& options, const Tile& tile) {
  if (bits(options.a) != 16) return options.a_major == Major::row && options.b_major == Major::col;
  return options.b_major == Major::col || tile.n % 16 == 0;
}

Layout workspace(const Gemm& options, const Scalar& m, const Scalar& n) {
  const Tile& tile = options.tile;
  if (options.stream_blocks)
    return row_major(std::int64_t{2} * options.stream_blocks * tile.m, tile.n);
  // As C is: what reads the parts of neighbours in C reads whole lines.
  return stored(options.swap ? Major::col : Major::row,
                ceil_div(m, tile.m) * (std::int64_t{tile.m} * options.splits),
                ceil_div(n, tile.n) * tile.n);
}

GemmTiles::GemmTiles(Builder& k, const Gemm& options, const TiledMma& mma, const Scalar& m,
                     const Scalar& n, const Scalar& depth)
    : k_(k),
      options_(options),
      mma_(mma),
      tile_(mma.tile()),
      m_(m),
      n_(n),
      steps_(ceil_div(depth, tile_.k)) {
  possible_ =
      parts_are_possible(k, options, m) &&
      k.require(options.promote >= 0 && (options.promote == 0 || options.accumulator == f32),
                fmt::format("promote = {}: promotion requires f32 accumulators and a number of "
                            "k-tiles of at least 1 (0: off)",
                            options.promote));
  if (!possible_) return;
  // Partial tiles go to a workspace, whole tiles through the epilogue.
  if (options.splits > 1) parts_ = k.global("C", options.accumulator, workspace(options, m, n));
  else
    finisher_.emplace(k, options.epilogue, options.accumulator, options.c, options.swap ? n : m,
                      options.swap ? m : n, options.swap);
  if (options.stream_blocks)
    parts_ = k.global("parts", options.accumulator, workspace(options, m, n));
}

void GemmTiles::select_matrix(const Scalar& i, const Scalar& stride) {
  if (finisher_) finisher_->select_matrix(i, stride);
}

Accumulator GemmTiles::multiply(const Operands& operands, const Scalar& row, const Scalar& col,
                                const Scalar& first, const Scalar& count) {
  auto sum = mma_.accumulator();
  std::optional<Accumulator> part;
  if (options_.promote > 1) part = mma_.accumulator();
  if (operands.start) operands.start(row, col);
  const auto fill = [&](Scalar t, Scalar stage) {
    if (operands.begin && t.constant() == 0) operands.begin(first);
    operands.fill(row, col, first + t, stage);
  };
  const auto use = [&](Scalar t, Scalar stage, const Operands::Next& next) {
    if (operands.prepare) operands.prepare(first + t);
    add_step(operands, sum, part, t, stage, next);
  };
  if (tile_.products > 1)
    k_.pipeline({.stages = options_.stages, .turns = true}, count, fill,
                [&](Scalar t, Scalar stage) { use(t, stage, [] {}); });
  else k_.pipeline({.stages = options_.stages}, count, fill, operands.ahead, use);
  if (part) sum = sum + *part;
  return sum;
}

// Partial sums of several warps are added first.
void GemmTiles::each_part(const Accumulator& sum, const Store& store) {
  if (tile_.warps_k > 1) store(mma_.sum(sum));
  else sum.each_part(store);
}

// `part`: the tensor cores' accumulators since the last promotion, if promotions are more than a
// k-tile apart.
void GemmTiles::add_step(const Operands& operands, Accumulator& sum,
                         std::optional<Accumulator>& part, const Scalar& t, const Scalar& stage,
                         const Operands::Next& next) {
  if (options_.promote == 0) {
    operands.add(sum, stage, next);
  } else if (!part) {
    auto product = mma_.accumulator();
    operands.add(product, stage, next);
    sum += product;
  } else {
    operands.add(*part, stage, next);
    k_.when(t % options_.promote == options_.promote - 1, [&] {
      sum = sum + *part;
      *part = mma_.accumulator();
    });
  }
}

void GemmTiles::part_of_tile(const Operands& operands, const TileWork& work) {
  const Scalar count = steps_.constant() ? work.count : minimum(work.count, steps_);
  each_part(multiply(operands, work.row, work.col, work.first, count), [&](const WarpTile& sum) {
    // The epilogue comes last: it needs registers, and may reuse those of stored accumulators.
    k_.when(work.count < units_each(steps_), [&] {
      k_.store(parts_.tile({work.slot, 0}, {tile_.m, tile_.n}), sum);
    });
    k_.when(work.whole, [&] { finisher_->store(sum, tile_, work.row, work.col); });
  });
}

// Tile rows and columns are rounded up to whole clusters; those beyond the last repeat its reads.
void GemmTiles::existing_tile(
    const Scalar& row, const Scalar& col,
    const std::function<Accumulator(const Scalar& row, const Scalar& col)>& product,
    const Store& store) {
  const Scalar rows = k_.convert(ceil_div(m_, tile_.m), u32),
               cols = k_.convert(ceil_div(n_, tile_.n), u32);
  const bool rows_exist = options_.cluster == 1 || rows.multiple() % options_.cluster == 0,
             cols_exist =
                 options_.cluster_columns == 1 || cols.multiple() % options_.cluster_columns == 0;
  const Accumulator all =
      product(rows_exist ? row : minimum(row, rows - 1), cols_exist ? col : minimum(col, cols - 1));
  each_part(all, [&](const WarpTile& sum) {
    std::optional<Scalar> exists;
    if (!rows_exist) exists = row < rows;
    if (!cols_exist) exists = exists ? *exists & (col < cols) : col < cols;
    if (exists) k_.when(*exists, [&] { store(sum); });
    else store(sum);
  });
}

void GemmTiles::part_by_y(const Operands& operands, const Scalar& row, const Scalar& col) {
  const auto share = ceil_div(steps_, options_.splits);
  const auto first = k_.convert(k_.block_y(), s32) * share;
  existing_tile(
      row, col,
      [&](const Scalar& r, const Scalar& c) {
        return multiply(operands, r, c, first, minimum(steps_ - first, share));
      },
      [&](const WarpTile& sum) {
        const auto rows = k_.convert(ceil_div(m_, tile_.m), u32);
        k_.store(parts_.tile({k_.block_y() * rows + row, col}, {tile_.m, tile_.n}), sum);
      });
}

// The CTAs of a cluster have a tile together: each multiplies its k-tiles and gets the sum of a
// block of the tile's columns.
void GemmTiles::part_by_rank(const Operands& operands) {
  const int splits = options_.cluster_splits;
  const auto [row, col] = k_.cluster_tile(m_, n_, tile_, options_.group);
  const Scalar rank = k_.cluster_rank();
  const auto share = StreamShare::of(k_.convert(steps_, u32), splits, rank);
  const WarpTile sum = mma_.sum(multiply(operands, row, col, share.begin, share.end - share.begin));
  // Of columns that do not divide, or few, only the first CTAs have a part.
  const int parts = scatter_parts(splits, sum.across());
  const WarpTile total = reduce_scatter(sum, parts);
  const auto store = [&, row = row, col = col] {
    release_next_launch();
    finisher_->store(total, tile_, row, col, {parts, rank});
  };
  if (parts < splits) k_.when(rank < parts, store);
  else store();
}

void GemmTiles::each_tile(const OfTile& tile) {
  if (options_.dynamic) k_.each_launched_tile(m_, n_, tile_, tile, options_.group);
  else k_.each_tile(m_, n_, tile_, tile, options_.group);
}

// Ping-pong: each warpgroup computes every other tile of the CTA, so that the epilogue of one runs
// beside the products of the next.
void GemmTiles::tiles_in_turn(const OfTile& whole_tile) {
  auto turn = k_.variable(k_.constant(u32, 0));
  const auto tile = [&](const Scalar& row, const Scalar& col) {
    k_.warpgroups([&](int w) { k_.when(turn == w, [&] { whole_tile(row, col); }); });
    turn = (turn + 1) % tile_.products;
  };
  each_tile(tile);
}

// Of few k-tiles too: CTAs of longer products end at different times, so that those of the next
// launch would begin in an order in which neighbours read fewer lines together.
void GemmTiles::release_next_launch() {
  constexpr int few = 16;
  if (options_.persistent || !overlaps_) return;
  if (k_.target().has(Feature::dependent_launch) && steps_.constant().value_or(few) < few)
    return k_.griddepcontrol_launch_dependents();
  release_row(k_, m_, tile_.m), release_row(k_, n_, tile_.n);
}

void GemmTiles::compute(const Operands& operands) {
  if (!possible_) return;
  const auto whole_tile = [&](const Scalar& row, const Scalar& col) {
    existing_tile(
        row, col,
        [&](const Scalar& r, const Scalar& c) { return multiply(operands, r, c, 0, steps_); },
        [&, released = false](const WarpTile& sum) mutable {
          if (!std::exchange(released, true)) release_next_launch();
          finisher_->store(sum, tile_, row, col);
        });
  };
  // The launch of gemm_sum() may begin; it waits for the end of this one.
  if ((options_.splits > 1 || options_.stream_blocks) && k_.target().has(Feature::dependent_launch))
    k_.griddepcontrol_launch_dependents();
  if (overlaps_) follow_previous_launch(k_);
  k_.roles([&] {
    if (options_.stream_blocks)
      return k_.stream_tiles(
          m_, n_, tile_, units_each(steps_),
          [&](const TileWork& work) { part_of_tile(operands, work); }, options_.group);
    if (tile_.products > 1) return tiles_in_turn(whole_tile);
    if (options_.persistent) return each_tile(whole_tile);
    if (options_.cluster_splits > 1) return part_by_rank(operands);
    auto [row, col] = k_.block_tile(m_, n_, tile_, options_.group);
    if (options_.splits > 1) part_by_y(operands, row, col);
    else whole_tile(row, col);
  });
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
