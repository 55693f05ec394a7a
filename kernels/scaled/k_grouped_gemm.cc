// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/k_grouped_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "kernels/common/keys.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/scaled/scaled_products.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int block = detail::scale_block;

// Whether the options go together; reports all that do not.
bool possible(Builder& k, const KGroupedGemm& options) {
  const Tile& tile = options.tile;
  bool good = detail::is_scaled_product(k, options.m, options.n, options.k, 4, tile);
  good &= k.require(tile.n >= 8 && tile.n <= 256 && tile.n % 8 == 0,
                    fmt::format("tile.n = {}: expected a multiple of 8 from 8 to 256", tile.n));
  good &= k.require(options.stages >= 1 && options.stages <= 256,
                    fmt::format("stages = {}: expected 1 to 256", options.stages));
  good &= k.require(!options.share_a || options.cluster > 1,
                    "share_a: expected a cluster of two CTAs or more, which share A");
  good &= k.require(options.group >= 1,
                    fmt::format("group = {}: expected at least one row of tiles", options.group));
  return good;
}

// The tiles of all groups that a CTA computes.
class Products {
 public:
  Products(Builder& k, const KGroupedGemm& options)
      : k_(k),
        options_(options),
        part_(detail::scaled_part(options.tile)),
        parts_(options.tile.m / part_.m),
        m_(detail::size(k, "m", options.m, 1)),
        n_(detail::size(k, "n", options.n, 4)),
        depth_(detail::size(k, "k", options.k, 16)),
        steps_(ceil_div(depth_, block)),
        groups_(k.param("groups", s32)) {
    const auto lines = m_.multiple() % 4 == 0 ? m_ : ceil_div(m_, 4) * 4;
    a_ = k.global("A", Type::e4m3, row_major(m_, depth_));
    scales_a_ = k.global("SA", f32, col_major(lines, steps_));
    b_ = k.global("B", Type::e4m3, row_major(n_, depth_)).transposed();
    scales_b_ = k.global("SB", f32, row_major(steps_, n_));
    c_ = k.global("C", f32, row_major(m_, n_));
    depths_ = k.global("depth_of_group", s32, row_major(1, groups_));
    mma_.emplace(k.tiled_mma(k.best_mma(Type::e4m3, Type::e4m3, f32), part_));
    shared_a_ = k.shared("sA", Type::e4m3, mma_->shared_a(options.stages * parts_, Major::row));
    shared_b_ = k.shared("sB", Type::e4m3, mma_->shared_b(options.stages, Major::col));
    shared_scales_a_ =
        k.shared("sSA", f32, RingLayout{col_major(part_.m, 1), options.stages * parts_});
    shared_scales_b_ =
        k.shared("sSB", f32, RingLayout{row_major(1, columns_of_scales()), options.stages});
  }

  void compute() {
    detail::follow_previous_launch(k_);
    k_.roles([&] { each_group(); });
  }

 private:
  struct Place {
    Scalar row, col;      // of tiles
    Scalar first, steps;  // of the group's k-tiles
    Global c;
  };

  // TMA writes to multiples of 128 bytes: scales that nothing needs fill them up.
  int columns_of_scales() const { return (part_.n + 31) / 32 * 32; }

  int cluster_rows() const { return options_.share_a ? 1 : options_.cluster; }
  int cluster_columns() const { return options_.share_a ? options_.cluster : 1; }

  // All groups have as many tiles. Their numbers go on from group to group, so that each CTA has as
  // many as the others of all groups together, or one less.
  void each_group() {
    const auto number = [&](const Scalar& x) { return k_.convert(x, s32); };
    const Scalar stride = number(k_.blocks_x()) / options_.cluster,
                 down = ceil_div(m_, std::int64_t{cluster_rows()} * options_.tile.m),
                 across = ceil_div(n_, std::int64_t{cluster_columns()} * options_.tile.n);
    auto next = k_.variable(number(k_.block_x()) / options_.cluster);
    auto first = k_.variable(k_.constant(s32, 0));
    k_.loop(0, groups_, 1, [&](const Scalar& group) {
      const Scalar begin = first, depth = minimum(maximum(k_.read(depths_, 0, group), 0), depth_);
      const Scalar steps = minimum(ceil_div(depth, block), steps_ - begin);
      Scalar count = down * across;
      if (options_.accumulate) count = select(steps > 0, count, 0);
      k_.loop(next, count, stride, [&](const Scalar& i) {
        Place at = place(i, down, across);
        at.first = begin, at.steps = steps, at.c = c_.matrix(group);
        tile(at);
      });
      next = next + ceil_div(maximum(count - next, 0), stride) * stride - count;
      first = begin + steps;
    });
  }

  // Rows of tiles form bands, which are visited column by column: neighbours in time share A and B
  // in the L2.
  Place place(const Scalar& i, const Scalar& down, const Scalar& across) const {
    const int height = std::max(options_.group / cluster_rows(), 1);
    const Scalar each = across * height, band = i / each, top = band * height,
                 tall = minimum(down - top, height), inside = i - band * each;
    const Scalar row = top + inside % tall, col = inside / tall;
    const Scalar rank = options_.cluster > 1 ? k_.convert(k_.cluster_rank(), s32) : Scalar(0);
    if (options_.share_a) return {.row = row, .col = col * options_.cluster + rank};
    return {.row = row * options_.cluster + rank, .col = col};
  }

  // ---- A tile.

  void fill(const Place& at, const Scalar& t, const Scalar& stage) {
    const auto copy = [&](bool shared, const Global& from, const Shared& to) {
      k_.copy(from, to,
              {.multicast = shared && options_.cluster > 1 ? Among::cluster : Among::none});
    };
    const Scalar step = at.first + t;
    for (int p = 0; p < parts_; ++p) {
      const Scalar line = at.row * parts_ + p, to = stage * parts_ + p;
      copy(options_.share_a, a_.tile(part_.m, block, line, step), shared_a_[to]);
      k_.copy(scales_a_.tile(part_.m, 1, line, step), shared_scales_a_[to]);
    }
    copy(!options_.share_a, b_.tile(block, part_.n, step, at.col), shared_b_[stage]);
    const int columns = columns_of_scales();
    k_.copy(columns == part_.n ? scales_b_.tile(1, columns, step, at.col)
                               : scales_b_.window(step, at.col * part_.n, 1, columns),
            shared_scales_b_[stage]);
  }

  RowValues scales_of_rows(const WarpTile& of, const Scalar& slot) {
    return map(row_places(of),
               [&](const Scalar& row) { return k_.read(shared_scales_a_[slot], row, 0); });
  }

  ColumnValues scales_of_columns(const WarpTile& of, const Scalar& stage) {
    const ColumnValues places = col_places(of);
    ColumnValues out;
    for (std::size_t i = 0; i < places.size(); i += 2)
      for (const Scalar& scale : k_.read_vector(shared_scales_b_[stage], 0, places[i], 2))
        out.push_back(scale);
    return out;
  }

  // Of each element of a product: the scale of its row times that of its column.
  std::vector<Scalar> factors_of(const RowValues& rows, const ColumnValues& columns) {
    std::vector<Scalar> out;
    for (std::size_t x = 0; x + 1 < columns.size(); x += 2)
      for (const Scalar& row : rows)
        for (const std::size_t j : {x, x + 1}) out.push_back(row * columns[j]);
    return out;
  }

  void promote(Accumulator& sum, const WarpTile& product, const std::vector<Scalar>& factors) {
    detail::promote(k_, sum, product,
                    [&](std::size_t i, std::size_t e) { return factors[4 * i + e]; });
  }

  // The last product of a stage is promoted in the next one, or at the end; before the first stage
  // it is zero, and so are its factors. Reads of scales compete with the tensor cores for shared
  // memory: those of columns come before the first product of a stage, so that it does not wait for
  // them, and factors are multiplied while their product is computed.
  void tile(const Place& at) {
    std::deque<Accumulator> sums;
    for (int p = 0; p < parts_; ++p) sums.push_back(mma_->accumulator());
    auto product = mma_->accumulator();
    std::deque<ScalarVariable> factors;
    for (int i = 0; i < part_.n / 2; ++i) factors.push_back(k_.variable(k_.constant(f32, 0)));
    const auto use = [&](const Scalar&, const Scalar& stage, const std::function<void()>& next) {
      ColumnValues columns;
      for (int p = 0; p < parts_; ++p) {
        promote(p ? sums[static_cast<std::size_t>(p - 1)] : sums.back(), product,
                p ? values_of(factors) : kept(factors));
        if (p == 0) columns = scales_of_columns(product, stage);
        const RowValues rows = scales_of_rows(product, stage * parts_ + p);
        product = mma_->fresh(product, shared_a_[stage * parts_ + p], shared_b_[stage]);
        const std::vector<Scalar> all = factors_of(rows, columns);
        for (std::size_t i = 0; i < all.size(); ++i) factors[i] = all[i];
      }
      next();
    };
    k_.pipeline(
        options_.stages, at.steps, [&](Scalar t, Scalar stage) { fill(at, t, stage); }, {}, use);
    for (int p = 0; p < parts_; ++p) {
      Accumulator& sum = sums[static_cast<std::size_t>(p)];
      if (p == parts_ - 1) promote(sum, product, kept(factors));
      store(at, sum, at.row * parts_ + p);
    }
  }

  static std::vector<Scalar> values_of(const std::deque<ScalarVariable>& variables) {
    return {variables.begin(), variables.end()};
  }

  // With several products in a stage, the promotion comes after the wait for the next stage, where
  // the other warpgroup's products hide it.
  std::vector<Scalar> kept(const std::deque<ScalarVariable>& factors) {
    std::vector<Scalar> out = values_of(factors);
    if (parts_ > 1)
      for (Scalar& x : out) x = detail::kept_here(k_, x);
    return out;
  }

  void store(const Place& at, const WarpTile& sum, const Scalar& row) {
    const Global c = at.c.tile(part_.m, part_.n, row, at.col);
    if (options_.accumulate) k_.add(c, sum);
    else k_.store(c, sum);
  }

  Builder& k_;
  const KGroupedGemm& options_;
  Tile part_;
  int parts_;
  Scalar m_, n_, depth_, steps_, groups_;
  Global a_, scales_a_, b_, scales_b_, c_, depths_;
  std::optional<TiledMma> mma_;
  Ring shared_a_, shared_b_, shared_scales_a_, shared_scales_b_;
};

}  // namespace

unsigned KGroupedGemm::grid_x(int rows, int cols, int groups, int multiprocessors) const {
  const auto up = [](std::int64_t x, std::int64_t y) { return (x + y - 1) / y; };
  const std::int64_t together = std::max(cluster, 1), m = std::max(tile.m, 1),
                     n = std::max(tile.n, 1),
                     all = up(rows, m * (share_a ? 1 : together)) *
                           up(cols, n * (share_a ? together : 1)) * groups,
                     most = detail::clustered_multiprocessors(multiprocessors, cluster);
  return static_cast<unsigned>(std::clamp<std::int64_t>(all * together, together, most));
}

static Kernel described_k_grouped_gemm(const KGroupedGemm& options) {
  const KernelOptions blocks{.block = detail::scaled_part(options.tile).threads(),
                             .producers = 4,
                             .cluster = options.cluster};
  return kernel("k_grouped_gemm", blocks, [=](Builder& k) {
    if (possible(k, options)) Products(k, options).compute();
  });
}

Kernel k_grouped_gemm(const KGroupedGemm& options) {
  return described_k_grouped_gemm(options).keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
