// SPDX-License-Identifier: Apache-2.0
// Sums over the CTAs of a cluster, or the warps of a CTA that divide k: each writes its part to the
// shared memory of its CTA, and reads the parts of all in their order.
#include <algorithm>

#include "compiler/support/counted.h"
#include "dsl/cluster/cluster.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/layout/tiles.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/model.h"
#include "tartan/dsl/tile_arithmetic.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

// What a sum or maximum makes of two values.
using Combine = Scalar (*)(const ScalarOperand&, const ScalarOperand&);

// How many of its `own` columns of fragments a taker gets at a time: a divisor, as many as fit in
// half of the `left` bytes (the rest may stage stores), but at most 64 KB; or in what the kernel
// exchanges through already. `column`: the bytes of one. At least one, which may not fit.
int columns_exchanged(int own, std::int64_t column, std::int64_t left, std::int64_t already = 0) {
  const std::int64_t most = std::max(std::min<std::int64_t>(left / 2, 64 << 10), already);
  for (int out = own; out > 1; --out)
    if (own % out == 0 && out * column <= most) return out;
  return 1;
}

int cluster_of(const KernelState& state) { return state.config.options.cluster; }

// Memory that all sums of the kernel share: each leaves it with a cluster barrier.
Shared exchange_memory(KernelState& state, Type type, std::int64_t rows, std::int64_t cols) {
  const std::int64_t bytes = rows * cols * bits(type) / 8;
  int& memory = state.cluster.exchange;
  if (memory < 0 || state.memories.all()[static_cast<std::size_t>(memory)].bytes < bytes) {
    const ir::Pointer base =
        state.memories.share(state.f(), state.names.unused("cluster_parts"), bytes);
    memory = state.memories.add({base, true, bytes});
  }
  return Shared(Tensor{state.shared_from_this(), "the cluster's parts", type, row_major(rows, cols),
                       0, memory, state.log.place()});
}

std::vector<Scalar> combined(const std::vector<Scalar>& values, Combine combine, Here at) {
  KernelState& state = *state_of(values[0]);
  const int count = static_cast<int>(values.size()), cluster = cluster_of(state);
  if (cluster == 1 || !has_clusters(state, "a sum or maximum over the cluster")) return values;
  Builder k(state.shared_from_this());
  const Shared parts = exchange_memory(state, values[0].type(), count, thread_count(state));
  const Scalar thread = thread_index(state);
  for (int i = 0; i < count; ++i)
    k.write(parts, i, thread, values[static_cast<std::size_t>(i)], at);
  cluster_barrier(state);
  std::vector<Scalar> out;
  for (int rank = 0; rank < cluster; ++rank) {
    const Shared there = parts.of_cta(rank, at);
    for (int i = 0; i < count; ++i) {
      const Scalar x = k.read(there, i, thread, at);
      if (rank == 0) out.push_back(x);
      else out[static_cast<std::size_t>(i)] = combine(out[static_cast<std::size_t>(i)], x);
    }
  }
  cluster_barrier(state);
  state.log.choose("a sum or maximum over the cluster",
                   fmt::format("ld.shared::cluster from {} CTAs", cluster),
                   "in the order of their ranks; two barriers of the cluster");
  return out;
}

template <typename Values>
Values over_cluster(const Values& values, Combine combine, Here at) {
  for (const Scalar& each : values) {
    if (!state_of(each) || is_bad(each)) return values;
    if (!KernelState::begins(state_of(each), at)) return values;
  }
  if (values.empty()) return values;
  const std::vector<Scalar> all = combined(values, combine, at);
  Values out(all.begin(), all.end());
  LineParts::source(out) = LineParts::source(values);
  return out;
}

// The sum of the parts of a tile that several CTAs of a cluster, or groups of warps of a CTA, have,
// divided among them by columns. A fragment's place in the exchanged memory depends on where it is
// in the tile, not on the warp that has it: the reader of a column may be another warp.
class Scatter {
 public:
  /// Who has the parts.
  struct Among {
    int parts;
    Scalar own;          // the number of this one
    bool ctas;           // CTAs, or warps of this CTA
    int takers;          // how many get a part of the sum, the first of them
    Scalar product = 0;  // of a CTA with several
    int products = 1;
  };

  Scatter(Builder& k, KernelState& state, const WarpTile& tile, Among among, Here at)
      : k_(k),
        state_(state),
        tile_(tile),
        kind_(tile.fragment(0, 0).kind()),
        shape_(kind_.fragment()),
        among_(std::move(among)),
        at_(at) {}

  bool is_possible() const {
    const TypeSet types{f16, bf16, f32, f64, s32};
    const WarpPlace& place = tile_.place();
    if (kind_.operand != Operand::c || !types.has(kind_.type) || kind_.shape.wmma ||
        place.rows == 0) {
      state_.log.report("wrong-role"_rule,
                        fmt::format("{}: expected a tiled MMA's accumulators of f16, bf16, f32, "
                                    "f64 or s32, found {}",
                                    call(), kind_.text()));
      return false;
    }
    if (tile_.across() % among_.takers == 0) return true;
    const int unit = shape_.cols * warps_n() * among_.takers;
    state_.log.report(
        "tile-divide"_rule,
        fmt::format("{}: {} columns do not divide among {} {} of {} across, in fragments of {} "
                    "columns; the nearest number is {}",
                    call(), place.cols, among_.takers, among_.ctas ? "CTAs" : "groups",
                    counted(warps_n(), "warp"), shape_.cols,
                    std::max((place.cols + unit / 2) / unit, 1) * unit));
    return false;
  }

  WarpTile run() {
    std::vector<std::vector<Fragment>> rows(static_cast<std::size_t>(tile_.down()));
    const int together = columns_together();
    if (!together) return {};
    together_ = together;
    const Shared all = exchange_memory(
        state_, kind_.type, lines() * (among_.ctas ? 1 : parts_here()), shape_.elements());
    for (int first = 0; first < own(); first += together) {
      for (int i = 0; i < tile_.down(); ++i)
        for (int j = 0; j < tile_.across(); ++j) {
          const int in_group = j % own() - first;
          if (in_group < 0 || in_group >= together) continue;
          const Scalar group = first_column() / own() + j / own();
          k_.write_vector(all, here() + slot(i, group, in_group), 0,
                          k_.elements(tile_.fragment(i, j), at_), at_);
        }
      wait();
      for (int i = 0; i < tile_.down(); ++i)
        for (int j = 0; j < together; ++j)
          rows[static_cast<std::size_t>(i)].push_back(sum(all, slot(i, own_group(), j)));
      wait();
    }
    explain();
    return result(rows);
  }

 private:
  WarpTile result(const std::vector<std::vector<Fragment>>& rows) const {
    std::vector<Fragment> out;
    for (const auto& row : rows) out.insert(out.end(), row.begin(), row.end());
    WarpPlace place = tile_.place();
    place.partial = 1;
    if (among_.ctas) place.col = place.col / among_.takers, place.cols /= among_.takers;
    else place.col = place.col + among_.own * (own() * shape_.cols);
    return WarpTile(std::move(out), own(), place);
  }
  std::string_view call() const { return among_.ctas ? "reduce_scatter()" : "sum()"; }
  int warps_n() const { return tile_.place().cols / (tile_.across() * shape_.cols); }
  int rows_of_fragments() const { return tile_.place().rows / shape_.rows; }
  // Columns of fragments: those that a warp gets, a group, and how many groups the tile has.
  int own() const { return tile_.across() / among_.takers; }
  int groups() const { return warps_n() * among_.takers; }
  Scalar first_column() const { return tile_.place().col / shape_.cols; }
  // The group that this warp gets: of the columns of the CTA's block of columns, or of the warp's.
  Scalar own_group() const {
    if (!among_.ctas) return first_column() / own() + among_.own;
    const Scalar taker =
        among_.takers < among_.parts ? minimum(among_.own, among_.takers - 1) : among_.own;
    return taker * warps_n() + first_column() / tile_.across();
  }

  // Of the exchanged memory, a fragment's elements of a lane each: those of a part.
  std::int64_t lines() const {
    return std::int64_t{rows_of_fragments()} * groups() * together_ * 32;
  }
  int parts_here() const { return among_.ctas ? 1 : among_.parts * among_.products; }
  // Where part number `part` of this warp's product begins, in its CTA.
  Scalar begin(const Scalar& part) const {
    return among_.ctas ? Scalar(0) : (among_.product * among_.parts + part) * lines();
  }
  Scalar here() const { return begin(among_.own); }

  void wait() { among_.ctas ? cluster_barrier(state_) : block_barrier(state_); }

  // How many columns of each group are exchanged at a time; 0, and reported, if none fits.
  int columns_together() const {
    const std::int64_t column = std::int64_t{rows_of_fragments()} * groups() * 32 *
                                shape_.elements() * bits(kind_.type) / 8 * parts_here();
    const std::int64_t left =
        find_arch(state_.config.target.arch)->shared_bytes - state_.memories.shared_bytes() - 1024;
    const auto& all = state_.memories.all();
    const int memory = state_.cluster.exchange;
    const std::int64_t before = memory < 0 ? 0 : all[static_cast<std::size_t>(memory)].bytes;
    const int out = columns_exchanged(own(), column, left, before);
    if (out > 1 || column <= std::max(left, before)) return out;
    state_.log.report("shared-size"_rule,
                      fmt::format("{} exchanges at least {} bytes through shared memory, and {} "
                                  "are left; take fewer stages or a smaller tile",
                                  call(), column, std::max<std::int64_t>(left, 0)));
    return 0;
  }

  Scalar slot(int i, const Scalar& group, int in_group) {
    const Scalar row = (tile_.place().row + tile_.place().down(i, shape_.rows)) / shape_.rows;
    const Scalar column = (row * groups() + group) * together_ + in_group;
    return column * 32 + state_.scalar(lane_index(state_), 1, 31);
  }

  Fragment sum(const Shared& all, const Scalar& row) {
    std::vector<Scalar> out;
    for (int part = 0; part < among_.parts; ++part) {
      const std::vector<Scalar> x =
          k_.read_vector(of_part(all, part), begin(part) + row, 0, shape_.elements(), at_);
      for (std::size_t e = 0; e < x.size(); ++e)
        if (part == 0) out.push_back(x[e]);
        else out[e] = out[e] + x[e];
    }
    return k_.pack(kind_, out, at_);
  }

  Shared of_part(const Shared& all, int part) {
    if (!among_.ctas) return all;
    const auto at = static_cast<std::size_t>(part);
    if (there_.size() <= at) there_.push_back(all.of_cta(part, at_));
    return there_[at];
  }

  void explain() const {
    const int waits = 2 * (own() / together_);
    state_.log.choose(
        fmt::format("{} of {}", call(), kind_.text()),
        among_.ctas ? fmt::format("ld.shared::cluster from {} CTAs", among_.parts)
                    : fmt::format("{} parts through shared memory", among_.parts),
        fmt::format(
            "{} adds {} of {} columns, in the order of the parts; {} barriers",
            among_.takers < among_.parts ? fmt::format("each of the first {}", among_.takers)
                                         : "each",
            own() * shape_.cols * (among_.ctas ? warps_n() : 1), tile_.place().cols, waits));
  }

  Builder& k_;
  KernelState& state_;
  const WarpTile& tile_;
  FragmentKind kind_;
  isa::Fragment shape_;
  Among among_;
  Here at_;
  int together_ = 1;
  std::vector<Shared> there_;
};

WarpTile scattered(Builder& k, KernelState& state, const WarpTile& tile, Scatter::Among among,
                   Here at) {
  Scatter scatter(k, state, tile, std::move(among), at);
  return scatter.is_possible() ? scatter.run() : WarpTile{};
}

}  // namespace
}  // namespace detail

RowValues cluster_sum(const RowValues& values, Here at) {
  return detail::over_cluster(values, plus, at);
}
ColumnValues cluster_sum(const ColumnValues& values, Here at) {
  return detail::over_cluster(values, plus, at);
}
RowValues cluster_maximum(const RowValues& values, Here at) {
  return detail::over_cluster(values, maximum, at);
}
ColumnValues cluster_maximum(const ColumnValues& values, Here at) {
  return detail::over_cluster(values, maximum, at);
}

int scatter_parts(int ctas, int across) {
  int out = std::clamp(ctas, 1, std::max(across, 1));
  while (across % out != 0) --out;
  return out;
}

std::int64_t model::exchange_bytes(const Tile& tile, int ctas, std::int64_t room) {
  constexpr int fragment = 8;  // columns
  if (ctas <= 1 || tile.warps_n < 1 || tile.n < fragment * tile.warps_n) return 0;
  const int across = tile.n / (fragment * tile.warps_n), parts = scatter_parts(ctas, across),
            own = across / parts;
  const std::int64_t column =
      std::int64_t{bits(f32) / 8} * tile.m * (fragment * tile.warps_n * parts);
  return detail::columns_exchanged(own, column, room) * column;
}

WarpTile reduce_scatter(const WarpTile& tile, Here at) {
  auto k = detail::builder_of(tile, at);
  return k ? reduce_scatter(tile, k->cluster_size(), at) : WarpTile{};
}

WarpTile reduce_scatter(const WarpTile& tile, int ctas, Here at) {
  auto k = detail::builder_of(tile, at);
  if (!k) return {};
  detail::KernelState& state = *detail::state_of(tile.fragment(0, 0));
  if (!detail::has_clusters(state, "reduce_scatter()")) return {};
  const int cluster = state.config.options.cluster;
  if (ctas < 1 || ctas > cluster) {
    state.log.report("kernel-option"_rule,
                     fmt::format("reduce_scatter(): expected 1 to {} CTAs, those of the cluster, "
                                 "found {}; the nearest is {}",
                                 cluster, ctas, std::clamp(ctas, 1, cluster)));
    return {};
  }
  if (cluster == 1) return tile;
  return detail::scattered(
      *k, state, tile,
      {.parts = cluster, .own = detail::block_of_cluster(state), .ctas = true, .takers = ctas}, at);
}

WarpTile TiledMma::sum(const WarpTile& partial, Here at) const {
  if (!detail::KernelState::begins(parts_.state, at)) return {};
  if (partial.fragments().empty()) return parts_.state->log.note_empty("the tile"), WarpTile{};
  for (const Fragment& each : partial.fragments())
    if (!parts_.state->owns(each, "the tile") || detail::is_bad(each)) return {};
  if (parts_.tile.warps_k == 1) return partial;
  if (partial.place().partial != parts_.tile.warps_k) {
    parts_.state->log.report("wrong-role"_rule,
                             fmt::format("sum(): expected partial sums of {} groups of warps, "
                                         "found {}; sum() takes this tiled MMA's results, once",
                                         parts_.tile.warps_k, partial.place().partial));
    return {};
  }
  Builder k(parts_.state);
  return detail::scattered(k, *parts_.state, partial,
                           {.parts = parts_.tile.warps_k,
                            .own = parts_.warp_k,
                            .ctas = false,
                            .takers = parts_.tile.warps_k,
                            .product = parts_.product,
                            .products = parts_.tile.products},
                           at);
}

}  // namespace tartan::TARTAN_ABI
