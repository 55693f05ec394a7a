// SPDX-License-Identifier: Apache-2.0
// Sums over the CTAs of a cluster: each CTA writes its part to its own shared memory, and reads the
// parts of all CTAs in the order of their ranks.
#include <algorithm>

#include "dsl/cluster.h"
#include "dsl/fragments.h"
#include "dsl/indices.h"
#include "dsl/scalars.h"
#include "dsl/tiles.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/tile_arithmetic.h"

namespace tartan::inline TARTAN_ABI {
namespace detail {
namespace {

using Combine = Scalar (*)(const Scalar&, const Scalar&);

Scalar plus(const Scalar& x, const Scalar& y) { return x + y; }

int cluster_of(const KernelState& state) { return state.config.options.cluster; }

// Memory that all sums of the kernel share: each leaves it with a cluster barrier.
Shared exchange_memory(KernelState& state, Type type, std::int64_t rows, std::int64_t cols) {
  const std::int64_t bytes = rows * cols * bits(type) / 8;
  int& memory = state.cluster.exchange;
  if (memory < 0 || state.memories.all()[static_cast<std::size_t>(memory)].bytes < bytes) {
    const codegen::Pointer base =
        state.memories.share(state.f(), state.names.unused("cluster_parts"), bytes);
    memory = state.memories.add({base, true, bytes});
  }
  return Shared(Tensor{state.shared_from_this(), "the cluster's parts", type,
                       row_major(rows, cols), 0, memory, state.log.place()});
}

std::vector<Scalar> combined(const std::vector<Scalar>& values, Combine combine, Here at) {
  KernelState& state = *state_of(values[0]);
  const int count = static_cast<int>(values.size()), cluster = cluster_of(state);
  if (cluster == 1 || !has_clusters(state, "a sum over the cluster") || state.f().is_muted())
    return values;
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
  state.log.choose("a sum over the cluster", fmt::format("ld.shared::cluster from {} CTAs", cluster),
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
  const std::vector<Scalar> out = combined(values, combine, at);
  return Values(out.begin(), out.end());
}

// The sum of a tile, divided by columns. A fragment's part in the exchanged memory depends on where
// it is in the tile, not on the warp that has it: the reader of a column may be another warp.
class Scatter {
 public:
  Scatter(Builder& k, KernelState& state, const WarpTile& tile, Here at)
      : k_(k),
        state_(state),
        tile_(tile),
        kind_(tile.fragment(0, 0).kind()),
        shape_(kind_.fragment()),
        cluster_(cluster_of(state)),
        at_(at) {}

  bool is_possible() const {
    const TypeSet types{f16, bf16, f32, f64, s32};
    const WarpPlace& place = tile_.place();
    if (kind_.operand != Operand::c || !types.has(kind_.type) || kind_.shape.wmma ||
        place.rows == 0) {
      state_.log.report("wrong-role"_rule,
                        fmt::format("reduce_scatter: expected a tiled MMA's accumulators of f16, "
                                    "bf16, f32, f64 or s32, found {}",
                                    kind_.text()));
      return false;
    }
    if (tile_.across() % cluster_ == 0) return true;
    const int unit = shape_.cols * warps_n() * cluster_;
    state_.log.report(
        "tile-divide"_rule,
        fmt::format("reduce_scatter: {} columns do not divide among {} CTAs of {} warps across, "
                    "in fragments of {} columns; the nearest number is {}",
                    place.cols, cluster_, warps_n(), shape_.cols,
                    std::max(place.cols / unit, 1) * unit));
    return false;
  }

  WarpTile run() {
    std::vector<std::vector<Fragment>> rows(static_cast<std::size_t>(tile_.down()));
    const int together = columns_together();
    if (!together) return {};
    const Shared parts = exchange_memory(
        state_, kind_.type, std::int64_t{rows_of_fragments()} * groups() * together * 32,
        shape_.elements());
    for (int first = 0; first < own(); first += together) {
      for (int i = 0; i < tile_.down(); ++i)
        for (int j = 0; j < tile_.across(); ++j) {
          const int in_group = j % own() - first;
          if (in_group < 0 || in_group >= together) continue;
          const Scalar group = first_column() / own() + j / own();
          k_.write_vector(parts, slot(i, group, in_group, together), 0,
                          k_.elements(tile_.fragment(i, j), at_), at_);
        }
      cluster_barrier(state_);
      // The columns of this CTA's block that this warp takes are those of one group.
      const Scalar group = k_.cluster_rank(at_) * warps_n() + first_column() / tile_.across();
      for (int i = 0; i < tile_.down(); ++i)
        for (int j = 0; j < together; ++j)
          rows[static_cast<std::size_t>(i)].push_back(sum(parts, slot(i, group, j, together)));
      cluster_barrier(state_);
    }
    std::vector<Fragment> out;
    for (const auto& row : rows) out.insert(out.end(), row.begin(), row.end());
    explain(together);
    const WarpPlace& place = tile_.place();
    return WarpTile(std::move(out), own(),
                    {place.row, place.col / cluster_, place.rows, place.cols / cluster_});
  }

 private:
  int warps_n() const { return tile_.place().cols / (tile_.across() * shape_.cols); }
  int rows_of_fragments() const { return tile_.place().rows / shape_.rows; }
  // Columns of fragments: those that a warp gets, a group, and how many groups the tile has.
  int own() const { return tile_.across() / cluster_; }
  int groups() const { return warps_n() * cluster_; }
  Scalar first_column() const { return tile_.col() / shape_.cols; }

  // How many columns of each group are exchanged at a time: a divisor of own(), as many as fit in
  // half of the shared memory that is left (the rest may stage stores), but at most 64 KB.
  int columns_together() {
    const std::int64_t column = std::int64_t{rows_of_fragments()} * groups() * 32 *
                                shape_.elements() * bits(kind_.type) / 8;
    const std::int64_t left = find_arch(state_.config.target.arch)->shared_bytes -
                              state_.memories.shared_bytes() - 1024;
    const auto& all = state_.memories.all();
    const std::int64_t before =
        state_.cluster.exchange < 0 ? 0 : all[static_cast<std::size_t>(state_.cluster.exchange)].bytes;
    const std::int64_t most = std::max({std::min<std::int64_t>(left / 2, 65536), before});
    for (int out = own(); out > 0; --out)
      if (own() % out == 0 && out * column <= most) return out;
    if (column <= left) return 1;
    state_.log.report("shared-size"_rule,
                      fmt::format("reduce_scatter exchanges at least {} bytes through shared "
                                  "memory, and {} are left; take fewer stages or a smaller tile",
                                  column, std::max<std::int64_t>(left, 0)));
    return 0;
  }

  Scalar slot(int i, const Scalar& group, int in_group, int together) {
    const Scalar row = tile_.row() / shape_.rows + i;
    const Scalar column = (row * groups() + group) * together + in_group;
    return column * 32 + state_.scalar(lane_index(state_), 1, 31);
  }

  Fragment sum(const Shared& parts, const Scalar& row) {
    std::vector<Scalar> out;
    for (int rank = 0; rank < cluster_; ++rank) {
      const std::vector<Scalar> x =
          k_.read_vector(of_cta(parts, rank), row, 0, shape_.elements(), at_);
      for (std::size_t e = 0; e < x.size(); ++e)
        if (rank == 0) out.push_back(x[e]);
        else out[e] = out[e] + x[e];
    }
    return k_.pack(kind_, out, at_);
  }

  const Shared& of_cta(const Shared& parts, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (there_.size() <= at) there_.push_back(parts.of_cta(rank, at_));
    return there_[at];
  }

  void explain(int together) {
    state_.log.choose(
        fmt::format("reduce_scatter {}", kind_.text()),
        fmt::format("ld.shared::cluster from {} CTAs", cluster_),
        fmt::format("each sums {} of {} columns, in the order of ranks; {} barriers of the cluster",
                    tile_.place().cols / cluster_, tile_.place().cols, 2 * (own() / together)));
  }

  Builder& k_;
  KernelState& state_;
  const WarpTile& tile_;
  FragmentKind kind_;
  isa::Fragment shape_;
  int cluster_;
  Here at_;
  std::vector<Shared> there_;
};

}  // namespace
}  // namespace detail

RowValues cluster_sum(const RowValues& values, Here at) {
  return detail::over_cluster(values, detail::plus, at);
}
ColumnValues cluster_sum(const ColumnValues& values, Here at) {
  return detail::over_cluster(values, detail::plus, at);
}
RowValues cluster_maximum(const RowValues& values, Here at) {
  return detail::over_cluster(values, maximum, at);
}
ColumnValues cluster_maximum(const ColumnValues& values, Here at) {
  return detail::over_cluster(values, maximum, at);
}

WarpTile reduce_scatter(const WarpTile& tile, Here at) {
  auto k = detail::builder_of(tile, at);
  if (!k) return {};
  detail::KernelState& state = *detail::state_of(tile.fragment(0, 0));
  if (!detail::has_clusters(state, "reduce_scatter()")) return {};
  if (state.config.options.cluster == 1) return tile;
  detail::Scatter scatter(*k, state, tile, at);
  return scatter.is_possible() ? scatter.run() : WarpTile{};
}

}  // namespace tartan::inline TARTAN_ABI
