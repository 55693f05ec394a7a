// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/warp_tile.h - a warp's part of a block's tile: fragments side by side, with
// elementwise and row-wise arithmetic.
//
//   WarpTile s = mma(scores, q, sK[stage]);                   // accumulators
//   s = map(s, [&](Scalar x, ElementPlace at) { return select(at.col > at.row, low, x); });
//   RowValues most = row_maximum(s);                          // over the columns of the warp
//   WarpTile p = map_rows(s, most, [](Scalar x, Scalar m) { return exp2(x - m); });
//   o = mma(o, operand_a(convert(p, f16)), sV[stage]);
#pragma once

#include <functional>
#include <vector>

#include "tartan/dsl/fragment.h"

namespace tartan::inline TARTAN_ABI {

/// Where a warp's part of a tile begins, and the size of the whole tile; 0: part of no tile.
struct WarpPlace {
  Scalar row = 0, col = 0;
  int rows = 0, cols = 0;
};

/// A warp's fragments of one operand of a tile, row by row.
class WarpTile {
 public:
  /// Of one kind, `across` of them in each row of fragments.
  WarpTile() = default;
  WarpTile(std::vector<Fragment> fragments, int across, WarpPlace place)
      : fragments_(std::move(fragments)), across_(across), place_(std::move(place)) {}

  int across() const { return across_; }
  int down() const { return across_ ? static_cast<int>(fragments_.size()) / across_ : 0; }
  /// The fragment in row i, column j of fragments.
  const Fragment& fragment(int i, int j) const;
  const std::vector<Fragment>& fragments() const { return fragments_; }
  /// Where the warp's part begins in the block's tile.
  const Scalar& row() const { return place_.row; }
  const Scalar& col() const { return place_.col; }
  const WarpPlace& place() const { return place_; }

 private:
  friend class TiledMma;
  std::vector<Fragment> fragments_;
  int across_ = 0;
  WarpPlace place_;
  std::shared_ptr<const detail::Tensor> memory_;  // of an A that warpgroups read where it is
};

/// A WarpTile that changes in a run-time loop; starts as zeros. See TiledMma::accumulator().
class Accumulator {
 public:
  Accumulator(std::vector<FragmentVariable> fragments, int across, WarpPlace place)
      : fragments_(std::move(fragments)), across_(across), place_(std::move(place)) {}
  Accumulator(const Accumulator&) = default;
  Accumulator& operator=(const WarpTile& tile);
  /// Its value, as of every other tile.
  Accumulator& operator=(const Accumulator& other) { return *this = static_cast<WarpTile>(other); }
  operator WarpTile() const;

 private:
  std::vector<FragmentVariable> fragments_;
  int across_;
  WarpPlace place_;
};

/// One value for each row in which a lane has elements, in the order of its elements.
using RowValues = std::vector<Scalar>;

/// RowValues that change in a run-time loop. See TiledMma::row_variable().
class RowVariable {
 public:
  explicit RowVariable(std::vector<ScalarVariable> values) : values_(std::move(values)) {}
  RowVariable(const RowVariable&) = default;
  RowVariable& operator=(const RowValues& values);
  RowVariable& operator=(const RowVariable& other) { return *this = static_cast<RowValues>(other); }
  operator RowValues() const { return RowValues(values_.begin(), values_.end()); }

 private:
  std::vector<ScalarVariable> values_;
};

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

using Here = std::source_location;

/// f(x, place) of each element; `place` is the row and column in the block's tile.
WarpTile map(const WarpTile& tile, const std::function<Scalar(Scalar, ElementPlace)>& f,
             Here at = Here::current());
/// f(x, value of the element's row).
WarpTile map_rows(const WarpTile& tile, const RowValues& rows,
                  const std::function<Scalar(Scalar, Scalar)>& f, Here at = Here::current());
/// Rounds accumulators of f32 to f16 or bf16.
WarpTile convert(const WarpTile& tile, Type to, Here at = Here::current());

/// Over the columns that the warp holds: all of the block's tile if Tile::warps_n is 1. Every lane
/// gets its rows' results.
RowValues row_maximum(const WarpTile& tile, Here at = Here::current());
RowValues row_sum(const WarpTile& tile, Here at = Here::current());
/// The row of the block's tile that each value belongs to.
std::vector<Scalar> row_places(const WarpTile& tile, Here at = Here::current());
/// f of two rows' values, pair by pair.
RowValues map(const RowValues& x, const RowValues& y,
              const std::function<Scalar(Scalar, Scalar)>& f);

/// Accumulators of 16-bit elements as operand A of a product with mma.sync's m16n8k16 or m16n8k8:
/// their registers are the same; for m16n8k16 two fragments become one.
WarpTile operand_a(const WarpTile& tile, MmaShape shape = m16n8k16, Here at = Here::current());

/// Accumulators of 16-bit elements as operand B, with their rows along k. movmatrix (sm_75 and
/// later) transposes each register. For m16n8k16 one fragment becomes one, for m16n8k8 two.
WarpTile operand_b(const WarpTile& tile, MmaShape shape = m16n8k16, Here at = Here::current());
/// Same for the transposed accumulators, with their columns along k: the registers stay the same.
/// For m16n8k16 two adjacent fragments become two.
///   p = mma_qk(...);                                   // 16 rows x 32 columns
///   o = mma_pt(o, sV[stage], operand_b_transposed(convert(p, f16)));     // V^T * P^T
WarpTile operand_b_transposed(const WarpTile& tile, MmaShape shape = m16n8k16,
                              Here at = Here::current());

WarpTile relu(const WarpTile& tile, Here at = Here::current());  // NaN stays NaN
/// Elementwise, of two tiles of one kind and shape.
WarpTile add(const WarpTile& x, const WarpTile& y, Here at = Here::current());

}  // namespace tartan::inline TARTAN_ABI
