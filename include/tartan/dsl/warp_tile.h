// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/warp_tile.h - a warp's part of a block's tile: fragments side by side.
// tartan/dsl/tile_arithmetic.h has what is computed with them.
//
//   auto sum = mma.accumulator();                             // changes in loops
//   const WarpTile scores = mma(sum, sA[stage], sB[stage]);   // does not
#pragma once

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "tartan/dsl/fragment.h"

namespace tartan::TARTAN_ABI {

namespace detail {
class TileProduct;
struct TensorSum;
}  // namespace detail

/// Where a warp's part of a tile begins, and the size of the whole tile; 0: part of no tile. Rows
/// of fragments need not be adjacent: see WarpTile::row().
struct WarpPlace {
  Scalar row = 0, col = 0;
  int rows = 0, cols = 0;
  int partial = 1;            // Tile::warps_k of partial sums, which only TiledMma::sum() takes
  int row_step = 0;           // from a row of fragments to the next; 0: they are adjacent
  bool by_warpgroup = false;  // a row of fragments of a warpgroup's four warps is 64 adjacent rows
  std::shared_ptr<const std::string> product = nullptr;  // the tiled MMA, for messages
  /// Rows from `row` to row `i` of fragments of `height` rows each.
  int down(int i, int height) const { return i * (row_step ? row_step : height); }
};

/// A warp's fragments of one operand of a tile, row by row.
class [[nodiscard]] WarpTile {
 public:
  /// Of one kind, `across` of them in each row of fragments.
  WarpTile() = default;
  WarpTile(std::vector<Fragment> fragments, int across, WarpPlace place)
      : fragments_(std::move(fragments)),
        across_(across),
        place_(std::make_shared<const WarpPlace>(std::move(place))) {}

  int across() const { return across_; }
  int down() const { return across_ ? static_cast<int>(fragments_.size()) / across_ : 0; }
  /// The fragment in row i, column j of fragments.
  const Fragment& fragment(int i, int j) const;
  const std::vector<Fragment>& fragments() const { return fragments_; }
  /// Where row i of fragments, and column j, begin in the block's tile. A place in a fragment is
  /// Builder::place(); map() and for_each() give the sum of both.
  Scalar row(int i) const;
  Scalar col(int j) const;
  const WarpPlace& place() const { return *place_; }

 private:
  friend class TiledMma;
  friend class detail::TileProduct;
  std::vector<Fragment> fragments_;
  int across_ = 0;
  std::shared_ptr<const WarpPlace> place_ = std::make_shared<const WarpPlace>();
  std::shared_ptr<const detail::Tensor> memory_;  // of an A that warpgroups read where it is
};

/// A WarpTile that changes in a run-time loop; starts as zeros. See TiledMma::accumulator(). Like a
/// ScalarVariable, it cannot be copied: load() is its value now.
class Accumulator {
 public:
  Accumulator(std::vector<FragmentVariable> fragments, int across, WarpPlace place,
              std::shared_ptr<detail::TensorSum> tensor = nullptr)
      : fragments_(std::move(fragments)),
        across_(across),
        place_(std::move(place)),
        tensor_(std::move(tensor)) {}
  Accumulator(const Accumulator&) = delete;  // sum.load(): its value; auto& same = sum
  Accumulator(Accumulator&&) noexcept = default;
  Accumulator& operator=(const WarpTile& tile);
  /// Its value, as of every other tile.
  Accumulator& operator=(const Accumulator& other) { return *this = static_cast<WarpTile>(other); }
  /// Its value now, in registers: what a later product or assignment changes is not in it. Waits
  /// for a product by wgmma that is still computing it.
  ///   const WarpTile before = sum.load();
  ///   mma.add(sum, sA[stage], sB[stage]);
  ///   const WarpTile difference = sum.load() - before;
  WarpTile load(Here at = Here::current()) const;
  /// The same part by part, from the left: `body` gets all rows of so many columns as a thread has
  /// registers for beside what it computes with them. One part, except in tensor memory, where a
  /// thread may have more elements than registers.
  ///   sum.each_part([&](const WarpTile& part) { k.store(c, map(part, f)); });
  void each_part(const std::function<void(const WarpTile& part)>& body,
                 Here at = Here::current()) const;
  /// sum = f(sum), part by part, where f computes each element of what it returns from the same one
  /// of what it gets.
  ///   sum.update([&](const WarpTile& part) { return map_rows(part, shrink, times); });
  void update(const std::function<WarpTile(const WarpTile& part)>& f, Here at = Here::current());
  /// Its value where a tile is expected: `row_sum(sum)`. The first use waits for the product, or
  /// this read does if `sum` has changed by then: `const WarpTile old = sum` before another product
  /// of `sum` is sum.load().
  operator WarpTile() const;

  int across() const { return across_; }
  int down() const { return across_ ? static_cast<int>(fragments_.size()) / across_ : 0; }
  /// As those of a WarpTile.
  Scalar row(int i) const;
  Scalar col(int j) const;
  const WarpPlace& place() const { return place_; }

 private:
  friend class detail::TileProduct;
  /// The columns of fragments from `first` on, in which there are `count`.
  WarpTile part(int first, int count) const;
  void assign(const WarpTile& part, int first);

  std::vector<FragmentVariable> fragments_;
  int across_;
  WarpPlace place_;
  std::shared_ptr<detail::TensorSum> tensor_;  // where it may be in tensor memory
};

namespace detail {
struct LineParts;
struct LineSource;  // the tile whose rows, or columns, values belong to
}  // namespace detail

/// One value for each row in which a lane has elements, in the order of its elements: fragment by
/// fragment from above, and in each the rows of elements 0, 1, ... (of m16n8: row lane() / 4 before
/// lane() / 4 + 8). row_places() gives the row of each. Values of rows and of columns are different
/// types, because a tile may have as many of both.
///
/// Values that reductions, row_places(), row_variable() and arithmetic on them give know their
/// tile: with one that has other rows in a lane they are refused.
class [[nodiscard]] RowValues : public std::vector<Scalar> {
 public:
  using std::vector<Scalar>::vector;

 private:
  friend struct detail::LineParts;
  std::shared_ptr<const detail::LineSource> source_;  // none: unknown
};
/// One value for each column in which a lane has elements, fragment by fragment from the left.
class [[nodiscard]] ColumnValues : public std::vector<Scalar> {
 public:
  using std::vector<Scalar>::vector;

 private:
  friend struct detail::LineParts;
  std::shared_ptr<const detail::LineSource> source_;
};

namespace detail {
struct LineParts {
  static auto& source(auto& values) { return values.source_; }
};
/// Assigns value by value; reports another number of values, and those of another tile.
void assign(std::vector<ScalarVariable>& variables, const LineSource* of,
            const std::vector<Scalar>& values, const LineSource* source);
}  // namespace detail

/// RowValues or ColumnValues that change in a run-time loop. See TiledMma::row_variable(). Like a
/// ScalarVariable, it cannot be copied: `RowValues old = most` is its values now.
template <typename Values>
class LineVariable {
 public:
  explicit LineVariable(std::vector<ScalarVariable> values,
                        std::shared_ptr<const detail::LineSource> source = nullptr)
      : values_(std::move(values)), source_(std::move(source)) {}
  LineVariable(const LineVariable&) = delete;  // RowValues old = v: its values; auto& same = v
  LineVariable(LineVariable&&) = default;
  LineVariable& operator=(const Values& values) {
    detail::assign(values_, source_.get(), values, detail::LineParts::source(values).get());
    return *this;
  }
  LineVariable& operator=(const LineVariable& other) { return *this = static_cast<Values>(other); }
  operator Values() const {
    Values out(values_.begin(), values_.end());
    detail::LineParts::source(out) = source_;
    return out;
  }

 private:
  std::vector<ScalarVariable> values_;
  std::shared_ptr<const detail::LineSource> source_;
};
using RowVariable = LineVariable<RowValues>;
using ColumnVariable = LineVariable<ColumnValues>;

/// How a store converts the fragments of a tile, called for row i, column j of fragments. The store
/// processes a few fragments at a time, so that what finished() reads fits in registers beside the
/// accumulators.
///   k.store(C, sum, {.kind = kind, .finished = [&](int i, int j) { return scaled(i, j); }});
struct Finish {
  FragmentKind kind;  // of what is stored: the tile's shape, and the type of the matrix
  /// Loads what the fragment needs, some fragments ahead of finished(); optional.
  std::function<void(int i, int j)> read;
  int registers = 0;  // taken by one fragment's reads
  std::function<Fragment(int i, int j)> finished;
};

}  // namespace tartan::TARTAN_ABI
