// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/scaled_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "kernels/common/keys.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/scaled/scaled_products.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int block = detail::scale_block;  // along k, and of columns

// The tiles of C that a CTA computes.
class Products {
 public:
  Products(Builder& k, const ScaledGemm& options)
      : k_(k),
        options_(options),
        part_(detail::scaled_part(options.tile, options.parts_n)),
        parts_m_(options.tile.m / part_.m),
        m_(detail::size(k, "m", options.m, options.grouping == Grouping::masked ? 4 : 1)),
        n_(detail::size(k, "n", options.n, 8)),
        depth_(detail::size(k, "k", options.k, 16)),
        steps_(ceil_div(depth_, block)) {
    if (options.grouping == Grouping::masked) groups_ = k.param("groups", s32);
    const auto lines = m_.multiple() % 4 == 0 ? m_ : ceil_div(m_, 4) * 4;
    a_ = k.global("A", Type::e4m3, row_major(m_, depth_));
    scales_a_ = k.global("SA", f32, col_major(lines, steps_));
    b_ = k.global("B", Type::e4m3, row_major(n_, depth_)).transposed();
    scales_b_ = k.global("SB", f32, row_major(ceil_div(n_, block), steps_));
    c_ = k.global("C", options.c, row_major(m_, n_));
    if (options.grouping == Grouping::contiguous)
      list_ = k.global("group_of_row", s32, row_major(1, m_));
    if (options.grouping == Grouping::masked)
      list_ = k.global("rows_of_group", s32, row_major(1, groups_));
    mma_.emplace(k.tiled_mma(k.best_mma(Type::e4m3, Type::e4m3, f32), part_));
    const int each = options.stages * options.blocks_k;
    shared_a_ = k.shared("sA", Type::e4m3, mma_->shared_a(each * parts_m_, Major::row));
    shared_b_ = k.shared("sB", Type::e4m3, mma_->shared_b(each * options.parts_n, Major::col));
    shared_scales_ = k.shared("sSA", f32, RingLayout{col_major(part_.m, 1), each * parts_m_});
  }

  void compute() {
    detail::follow_previous_launch(k_);
    k_.roles([&] {
      if (options_.grouping == Grouping::none) return dense();
      if (options_.grouping == Grouping::contiguous) return contiguous();
      masked();
    });
  }

 private:
  // A CTA's tile, of one group.
  struct Place {
    Scalar row, col;
    Global a, scales_a, b, scales_b, c;
    std::function<Scalar(const Scalar& row)> row_of = {};  // of C; -1: none. All rows: none
    std::optional<Scalar> whole = {};                      // all rows of the tile exist
    std::optional<Scalar> begin = {}, stages = {};         // of k; all: none
  };

  Place place(const Scalar& row, const Scalar& col) const {
    return {row, col, a_, scales_a_, b_, scales_b_, c_};
  }

  // CTAs of a cluster compute tiles side by side if they share A: rows and columns change places.
  void each_tile(const std::function<void(const Scalar& row, const Scalar& col)>& body) {
    if (!detail::shares_a(options_))
      return k_.each_tile(
          m_, n_, options_.tile, [&](Scalar row, Scalar col) { body(row, col); }, options_.group);
    Tile turned = options_.tile;
    std::swap(turned.m, turned.n);
    k_.each_tile(
        n_, m_, turned, [&](Scalar col, Scalar row) { body(row, col); }, options_.group);
  }

  void dense() {
    if (options_.cluster_splits > 1) return part_by_rank();
    each_tile([&](const Scalar& row, const Scalar& col) { tile(place(row, col)); });
  }

  // The CTAs of a cluster have a tile together: each multiplies its k-tiles and gets the sum of a
  // block of the tile's columns.
  void part_by_rank() {
    const int splits = options_.cluster_splits;
    const auto [row, col] = k_.cluster_tile(m_, n_, options_.tile, options_.group);
    const Scalar rank = k_.cluster_rank();
    const auto share = StreamShare::of(k_.convert(stages(), u32), splits, rank);
    Place at = place(row, col);
    at.begin = k_.convert(share.begin, s32), at.stages = k_.convert(share.end - share.begin, s32);
    const std::deque<Accumulator> sums = sums_of(at);
    const WarpTile sum = sums.front();
    // Of columns that do not divide, or few, only the first CTAs have a part.
    const int parts = scatter_parts(splits, sum.across());
    const WarpTile total = reduce_scatter(sum, parts);
    const auto store = [&] {
      detail::release_row(k_, m_, options_.tile.m);
      k_.store(at.c.tile(options_.tile.m, options_.tile.n, at.row, at.col)
                   .tile(options_.tile.m, options_.tile.n / parts, 0, rank),
               in_type_of_c(total));
    };
    if (parts < splits) k_.when(rank < parts, store);
    else store();
  }

  void contiguous() {
    each_tile([&](const Scalar& row, const Scalar& col) {
      const Scalar first = k_.convert(row, s32) * options_.tile.m;
      const Scalar group = k_.read(list_, 0, first);
      k_.when(group >= 0, [&] {
        Place at = place(row, col);
        at.b = b_.matrix(group), at.scales_b = scales_b_.matrix(group);
        const Scalar last = minimum(first + options_.tile.m, m_) - 1;
        at.whole = k_.read(list_, 0, last) >= 0;
        at.row_of = [=, this](const Scalar& line) {
          const Scalar index = k_.convert(line, s32);
          return select(k_.read_if(index < m_, list_, 0, index) >= 0, index, -1);
        };
        tile(at);
      });
    });
  }

  void masked() {
    const int together = options_.cluster;
    const auto number = [&](const Scalar& x) { return k_.convert(x, s32); };
    const Scalar stride = number(k_.blocks_x()) / together,
                 across = ceil_div(n_, std::int64_t{together} * options_.tile.n),
                 rank = together > 1 ? number(k_.cluster_rank()) : Scalar(0);
    auto next = k_.variable(number(k_.block_x()) / together);
    k_.loop(0, groups_, 1, [&](const Scalar& group) {
      const Scalar rows = minimum(maximum(k_.read(list_, 0, group), 0), m_);
      const Scalar down = ceil_div(rows, options_.tile.m), count = down * across;
      k_.loop(next, count, stride, [&](const Scalar& i) {
        Place at = place(i % down, i / down * together + rank);
        at.a = a_.matrix(group), at.scales_a = scales_a_.matrix(group);
        at.b = b_.matrix(group), at.scales_b = scales_b_.matrix(group);
        at.c = c_.matrix(group);
        at.whole = (at.row + 1) * options_.tile.m <= rows;
        at.row_of = [=, this](const Scalar& line) {
          const Scalar index = k_.convert(line, s32);
          return select(index < rows, index, -1);
        };
        tile(at);
      });
      const Scalar left = maximum(count - next, 0);
      next = next + ceil_div(left, stride) * stride - count;
    });
  }

  // ---- A tile.

  struct Part {
    WarpTile product;
    std::vector<RowValues> scales;  // of its first block of columns, and the next
    Scalar former;                  // columns in the first one
    Accumulator* sum;
  };

  int parts() const { return parts_m_ * options_.parts_n; }
  Scalar stages() const { return ceil_div(steps_, options_.blocks_k); }
  static Scalar stage_of_k(const Place& at, const Scalar& t) {
    return at.begin ? t + *at.begin : t;
  }
  // The first stage needs no promotion of a product before it, and sums no zeros. The loop of two
  // parts one after the other became 2 % slower beside it, but not that of groups.
  bool peeled() const {
    return !options_.overlap && options_.cluster_splits == 1 &&
           (parts() == 1 || options_.grouping == Grouping::contiguous);
  }
  // Blocks of columns that a part may be in.
  std::size_t blocks() const { return block % part_.n ? 2 : 1; }
  // Which columns of scales a part begins in, and how many columns are in the first block.
  Scalar left_of(const Place& at, int part) const {
    return k_.convert(at.col * options_.parts_n + part % options_.parts_n, s32) * part_.n;
  }

  Scalar former(const Place& at, int part) const {
    const Scalar left = left_of(at, part);
    return (left / block + 1) * block - left;
  }

  void fill(const Place& at, const Scalar& t, const Scalar& stage) {
    for (int b = 0; b < options_.blocks_k; ++b) {
      const Scalar step = stage_of_k(at, t) * options_.blocks_k + b,
                   slot = stage * options_.blocks_k + b;
      // The longer copy first, which memory answers last: 1 to 2 % with 128 rows.
      const bool b_first = options_.cluster == 1 && options_.tile.n >= options_.tile.m;
      if (b_first) fill_b(at, step, slot);
      fill_a(at, step, slot);
      if (!b_first) fill_b(at, step, slot);
    }
  }

  // Whether B passes by once, so that it should not take A's place in L2: of up to 128 rows,
  // CTAs that read the same columns do so at the same time.
  bool streams_b() const {
    return options_.grouping == Grouping::none && options_.cluster == 1 && options_.m > 0 &&
           options_.m <= block;
  }
  CopyOptions how(bool shared, Evict evict) const {
    return {.multicast = shared ? Among::cluster : Among::none,
            .evict = streams_b() ? evict : Evict::normal};
  }

  void fill_a(const Place& at, const Scalar& step, const Scalar& slot) {
    for (int i = 0; i < parts_m_; ++i) {
      const Scalar line = at.row * parts_m_ + i, to = slot * parts_m_ + i;
      k_.copy(at.a.tile(part_.m, block, line, step), shared_a_[to],
              how(detail::shares_a(options_), Evict::last));
      k_.copy(at.scales_a.tile(part_.m, 1, line, step), shared_scales_[to]);
    }
  }

  void fill_b(const Place& at, const Scalar& step, const Scalar& slot) {
    for (int j = 0; j < options_.parts_n; ++j)
      k_.copy(at.b.tile(block, part_.n, step, at.col * options_.parts_n + j),
              shared_b_[slot * options_.parts_n + j],
              how(options_.cluster > 1 && !detail::shares_a(options_), Evict::first));
  }

  // SB's scales of a stage, of each k-tile, part, and block of columns that the part is in. Global
  // memory answers later than a short product ends, so that they are read
  //   with one product of a stage and few k-tiles: at the beginning of the tile, each k-tile's by
  //   a lane; the first stage's also by all lanes, whose product would wait for a shuffle
  //   with several in flight, or k not known: during a product of the stage before
  //   with parts one after the other: in the stage. The first part hides the time as well; reading
  //   ahead was 1 % slower, shuffles 6 to 11 %.
  class ColumnScales {
   public:
    ColumnScales(const Products& of, const Place& at)
        : of_(of), at_(at), ahead_(of.parts() == 1 || of.options_.overlap) {
      const auto steps = of_.steps_.constant();
      if (!ahead_ || of_.options_.overlap || !steps || *steps > most_words * 32) {
        for (int i = 0; ahead_ && i < count(); ++i) next_.push_back(of_.k_.variable(read_if(0, i)));
        return;
      }
      ahead_ = false, words_ = static_cast<int>((*steps + 31) / 32);
      for (int i = 0; i < count(); ++i) first_.push_back(read_if(0, i));
      const Scalar lane = of_.k_.convert(of_.k_.lane(), s32);
      for (int i = 0; i < columns(); ++i)
        for (int word = 0; word < words_; ++word)
          words_of_.push_back(read_step_if(lane + 32 * word, i));
    }

    Scalar of(const Scalar& t, int b, int part, std::size_t next) const {
      const int column =
          part % of_.options_.parts_n * static_cast<int>(of_.blocks()) + static_cast<int>(next);
      const int i = b * columns() + column;
      if (words_) return t.constant() ? first_[static_cast<std::size_t>(i)] : of_lane(t, b, column);
      if (!ahead_) return b ? read_if(t, i) : of_.k_.read(at_.scales_b, line_of(i), step_of(t, i));
      const Scalar value = next_[static_cast<std::size_t>(i)];
      return b ? select(step_of(t, i) < of_.steps_, value, 0) : value;
    }

    // Once the products of stage t have begun.
    void read_next(const Scalar& t) {
      for (int i = 0; ahead_ && i < count(); ++i)
        next_[static_cast<std::size_t>(i)] =
            of_.k_.read(at_.scales_b, line_of(i), existing(step_of(t + 1, i)));
    }

   private:
    static constexpr int most_words = 4;  // registers for each column

    int columns() const { return of_.options_.parts_n * static_cast<int>(of_.blocks()); }
    int count() const { return of_.options_.blocks_k * columns(); }
    int block_k_of(int i) const { return i / columns(); }
    Scalar step_of(const Scalar& t, int i) const {
      return stage_of_k(at_, t) * of_.options_.blocks_k + block_k_of(i);
    }

    Scalar of_lane(const Scalar& t, int b, int column) const {
      const Scalar step = of_.k_.convert(step_of(t, b * columns()), u32);
      const auto first = static_cast<std::size_t>(column * words_);
      Scalar value = words_of_[first];
      for (int word = 1; word < words_; ++word)
        value = select(step >= 32 * word, words_of_[first + static_cast<std::size_t>(word)], value);
      return shuffle(value, step % 32);
    }

    // 0 where there is no such step.
    Scalar read_if(const Scalar& t, int i) const { return read_step_if(step_of(t, i), i); }
    Scalar read_step_if(const Scalar& step, int i) const {
      return of_.k_.read_if(step < of_.steps_, at_.scales_b, line_of(i), existing(step));
    }

    Scalar existing(const Scalar& step) const { return minimum(step, of_.steps_ - 1); }

    Scalar line_of(int i) const {
      const int blocks = static_cast<int>(of_.blocks());
      const Scalar first = of_.left_of(at_, i / blocks % of_.options_.parts_n) / block;
      return minimum(first + i % blocks, ceil_div(of_.n_, block) - 1);
    }

    const Products& of_;
    const Place& at_;
    bool ahead_;
    std::deque<ScalarVariable> next_;
    int words_ = 0;                         // of a column, if lanes have the scales
    std::vector<Scalar> first_, words_of_;  // of the first stage; of each column and 32 k-tiles
  };

  // Scales of a product: SA's, times SB's of each block of columns that it is in.
  std::vector<RowValues> scales_of(const WarpTile& registers, const ColumnScales& columns,
                                   const Scalar& t, const Scalar& stage, int b, int part) {
    const Scalar slot = stage * options_.blocks_k + b;
    RowValues rows;
    for (const Scalar& row : row_places(registers))
      rows.push_back(k_.read(shared_scales_[slot * parts_m_ + part / options_.parts_n], row, 0));
    std::vector<RowValues> out;
    for (std::size_t next = 0; next < blocks(); ++next) {
      const Scalar of_columns = columns.of(t, b, part, next);
      out.push_back(map(rows, [&](const Scalar& x) { return x * of_columns; }));
    }
    return out;
  }

  Part multiply(const Place& at, const WarpTile& registers, Accumulator& sum, const Scalar& stage,
                int b, int part) {
    const Scalar slot = stage * options_.blocks_k + b;
    Part out;
    out.sum = &sum, out.former = former(at, part);
    out.product = mma_->fresh(registers, shared_a_[slot * parts_m_ + part / options_.parts_n],
                              shared_b_[slot * options_.parts_n + part % options_.parts_n]);
    return out;
  }

  void promote(const Part& part) {
    const auto across = static_cast<std::size_t>(part.product.across());
    detail::promote(k_, *part.sum, part.product, [&](std::size_t i, std::size_t e) {
      const std::size_t line = 2 * (i / across) + e / 2;
      const Scalar& first = part.scales[0][line];
      return blocks() == 2 ? select(part.former > 8 * static_cast<int>(i % across), first,
                                    part.scales[1][line])
                           : first;
    });
  }

  // The last product of a stage, to be promoted in the next one, where addresses are computed
  // beside; zero before the first. With several products in a stage, the promotion comes after the
  // wait for the stage: nothing moves across an instruction of the user's own. Otherwise LLVM has
  // it before the wait, which three warpgroups hide better.
  class Last {
   public:
    Last(Products& of, const Place& at, const Accumulator& product, Accumulator& sum)
        : of_(of), product_(product), sum_(sum), former_(of.former(at, of.parts() - 1)) {
      rows_ = row_places(product).size();
      for (std::size_t i = 0; i < of.blocks() * rows_; ++i)
        scales_.push_back(of.k_.variable(of.k_.constant(f32, 0)));
    }

    void keep(const Part& part) {
      for (std::size_t i = 0; i < scales_.size(); ++i)
        scales_[i] = part.scales[i / rows_][i % rows_];
    }

    Part part() const {
      Part out{.product = product_, .scales = {}, .former = former_, .sum = &sum_};
      out.scales.resize(of_.blocks());
      for (std::size_t i = 0; i < scales_.size(); ++i)
        out.scales[i / rows_].push_back(of_.parts() > 1 ? detail::kept_here(of_.k_, scales_[i])
                                                        : Scalar(scales_[i]));
      return out;
    }

   private:
    Products& of_;
    const Accumulator& product_;
    Accumulator& sum_;
    Scalar former_;
    std::size_t rows_ = 0;
    std::deque<ScalarVariable> scales_;
  };

  void tile(const Place& at) {
    const std::deque<Accumulator> sums = sums_of(at);
    detail::release_row(k_, m_, options_.tile.m);
    if (!at.whole) return store(at, sums, true);
    k_.when(
        *at.whole, [&] { store(at, sums, true); }, [&] { store(at, sums, false); });
  }

  // The sums of each part of a tile.
  std::deque<Accumulator> sums_of(const Place& at) {
    std::deque<Accumulator> sums, registers;
    for (int p = 0; p < parts(); ++p) sums.push_back(mma_->accumulator());
    const std::size_t flying = options_.overlap ? 2 : 1;
    for (std::size_t i = 0; i < flying; ++i) registers.push_back(mma_->accumulator());
    std::optional<Last> last;
    if (flying == 1) last.emplace(*this, at, registers.back(), sums.back());
    ColumnScales columns(*this, at);
    const auto use = [&](const Scalar& t, const Scalar& stage, const std::function<void()>& next) {
      const int products = parts() * options_.blocks_k;
      const bool first = peeled() && t.constant();
      const auto scales = [&](int i) {
        return scales_of(registers.front(), columns, t, stage, i / parts(), i % parts());
      };
      // With one product in flight all scales of the stage are read while the one before is
      // promoted: what is between two products delays the second one. In the first stage nothing
      // is promoted, and a product would wait for scales.
      std::vector<std::vector<RowValues>> early;
      for (int i = 0; last && !first && i < products; ++i) early.push_back(scales(i));
      std::deque<Part> in_flight;
      if (last && !first) in_flight.push_back(last->part());
      for (int i = 0; i < products; ++i) {
        if (in_flight.size() == flying) {
          promote(in_flight.front());
          in_flight.pop_front();
        }
        Accumulator& own = registers[static_cast<std::size_t>(i) % flying];
        std::vector<RowValues> with;
        if (!first) with = last ? std::move(early[static_cast<std::size_t>(i)]) : scales(i);
        in_flight.push_back(multiply(at, own, sums[static_cast<std::size_t>(i % parts())], stage,
                                     i / parts(), i % parts()));
        in_flight.back().scales = first ? scales(i) : std::move(with);
        own = in_flight.back().product;
        in_flight.back().product = own;
        if (i + 1 == (last && !first ? 1 : products)) columns.read_next(t);
      }
      for (; in_flight.size() > 1; in_flight.pop_front()) promote(in_flight.front());
      if (last) last->keep(in_flight.front());
      next();
      if (!last) promote(in_flight.front());
    };
    const Scalar stages = at.stages ? *at.stages : this->stages();
    const auto fill_stage = [&](const Scalar& t, const Scalar& stage) { fill(at, t, stage); };
    k_.pipeline({.stages = options_.stages, .peel_first = peeled()}, stages, fill_stage, {}, use);
    if (last) promote(last->part());
    return sums;
  }

  WarpTile in_type_of_c(const WarpTile& sum) const {
    return options_.c == f32 ? sum : convert(sum, options_.c);
  }

  void store(const Place& at, const std::deque<Accumulator>& sums, bool whole) {
    if (whole)
      return k_.store(
          at.c.tile(options_.tile.m, options_.tile.n, at.row, at.col),
          in_type_of_c(detail::joined_parts(sums, options_.tile, part_.m, options_.parts_n)));
    for (int p = 0; p < parts(); ++p) {
      const Scalar top = k_.convert(at.row * parts_m_ + p / options_.parts_n, s32) * part_.m;
      const WarpTile sum = sums[static_cast<std::size_t>(p)];
      k_.store_rows(at.c.window(0, left_of(at, p), m_, part_.n), in_type_of_c(sum),
                    [&](const Scalar& row) { return at.row_of(top + k_.convert(row, s32)); });
    }
  }

  Builder& k_;
  const ScaledGemm& options_;
  Tile part_;
  int parts_m_;
  Scalar m_, n_, depth_, steps_, groups_ = 1;
  Global a_, scales_a_, b_, scales_b_, c_, list_;
  std::optional<TiledMma> mma_;
  Ring shared_a_, shared_b_, shared_scales_;
};

}  // namespace

Kernel scaled_gemm(const ScaledGemm& options) {
  const KernelOptions blocks{.block = detail::scaled_part(options.tile, options.parts_n).threads(),
                             .producers = 4,
                             .cluster = std::max(options.cluster, options.cluster_splits)};
  return kernel("scaled_gemm", blocks,
                [=](Builder& k) {
                  if (detail::is_scaled_gemm(k, options)) Products(k, options).compute();
                })
      .keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
