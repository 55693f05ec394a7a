// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/tile_arithmetic.h - arithmetic on a warp's part of a tile: element by element, with a
// value for each row or column, and reductions along rows and columns.
//
//   mma.multiply(scores, sQ, sK[stage]);
//   WarpTile s = scores * 0.125;                              // accumulators, scaled
//   s = map(s, [&](Scalar x, ElementPlace at) { return select(at.col > at.row, low, x); });
//   RowValues most = row_maximum(s);                          // of whole rows of the block's tile
//   WarpTile p = map(s - most, tartan::exp2);                 // <cmath> has an exp2, too
//   mma.add(o, operand_a(convert(p, f16)), sV[stage]);
//
// `+ - * /` take two tiles of one shape, a tile and RowValues or ColumnValues (each value with all
// elements of its row or column), or either with a scalar; the scalar may also come first. `+=` and
// the like change accumulators and variables. Operands have one type; convert() them.
#pragma once

#include <concepts>
#include <functional>
#include <source_location>
#include <type_traits>
#include <variant>

#include "tartan/dsl/warp_tile.h"

namespace tartan::TARTAN_ABI {

// ---- Element by element.

/// + and * as functions, for map(), map_rows() and map_cols(): `map_rows(o, shrink, times)`.
inline Scalar plus(const ScalarOperand& x, const ScalarOperand& y) { return x + y; }
inline Scalar times(const ScalarOperand& x, const ScalarOperand& y) { return x * y; }

/// f(x, place) of each element; `place` is the row and column in the block's tile.
WarpTile map(const WarpTile& tile, const std::function<Scalar(Scalar, ElementPlace)>& f,
             Here at = Here::current());
/// f(x) of each element.
WarpTile map(const WarpTile& tile, const std::function<Scalar(Scalar)>& f,
             Here at = Here::current());
/// f of two tiles' elements at the same place, of the type of x's: `map(gate, up, silu_times)`. The
/// tiles have the same fragments per warp; their element types may differ.
WarpTile map(const WarpTile& x, const WarpTile& y, const std::function<Scalar(Scalar, Scalar)>& f,
             Here at = Here::current());
/// Calls f(x, place) for each element of this lane: to write it somewhere, say.
///   for_each(sum, [&](Scalar x, ElementPlace at) { k.write(C, at.col, at.row, x); });
void for_each(const WarpTile& tile, const std::function<void(Scalar, ElementPlace)>& f,
              Here at = Here::current());
/// Rounds accumulators of f32 to f16 or bf16.
WarpTile convert(const WarpTile& tile, Type to, Here at = Here::current());
WarpTile relu(const WarpTile& tile, Here at = Here::current());  // NaN stays NaN

// ---- A value for each row or column.

/// f(x, value of the element's row, or column).
WarpTile map_rows(const WarpTile& tile, const RowValues& rows,
                  const std::function<Scalar(Scalar, Scalar)>& f, Here at = Here::current());
WarpTile map_cols(const WarpTile& tile, const ColumnValues& cols,
                  const std::function<Scalar(Scalar, Scalar)>& f, Here at = Here::current());
/// f of each value, or of two, pair by pair.
RowValues map(const RowValues& x, const std::function<Scalar(Scalar)>& f,
              Here at = Here::current());
ColumnValues map(const ColumnValues& x, const std::function<Scalar(Scalar)>& f,
                 Here at = Here::current());
RowValues map(const RowValues& x, const RowValues& y,
              const std::function<Scalar(Scalar, Scalar)>& f, Here at = Here::current());
ColumnValues map(const ColumnValues& x, const ColumnValues& y,
                 const std::function<Scalar(Scalar, Scalar)>& f, Here at = Here::current());
/// The row (or column) of the block's tile that each value belongs to, u32: to read a bias, say.
///   sum += map(col_places(sum), [&](Scalar col) { return k.read(bias, 0, left + col); });
RowValues row_places(const WarpTile& tile, Here at = Here::current());
ColumnValues col_places(const WarpTile& tile, Here at = Here::current());

// ---- Reductions, of elements of f16, bf16, f32, f64 and s32. Every lane gets its rows' (columns')
// results.

/// Over all columns of the block's tile. If Tile::warps_n is above 1, the warps exchange their
/// parts through shared memory, with barriers: all threads of the block (with roles(): all
/// consumers) must call it. A sum adds the warps' parts in the order of their columns, so that its
/// bits do not depend on timing.
RowValues row_maximum(const WarpTile& tile, Here at = Here::current());
RowValues row_sum(const WarpTile& tile, Here at = Here::current());
/// Over all rows of the block's tile; the same with Tile::warps_m.
ColumnValues col_maximum(const WarpTile& tile, Here at = Here::current());
ColumnValues col_sum(const WarpTile& tile, Here at = Here::current());

// ---- Across the CTAs of a cluster, through distributed shared memory. All threads of all CTAs
// ---- (with roles(): all consumers) must call these; each has a Builder::cluster_barrier() before
// ---- it reads, and one after. CTAs are added in the order of their ranks: all get the same bits,
// ---- whatever the timing. In a cluster of one, values stay as they are.

/// The same thread's value in every CTA, combined: rows (columns) whose elements are divided among
/// the CTAs.
///   const RowValues sum = cluster_sum(row_sum(x));   // of rows of 4 * tile.n elements
RowValues cluster_sum(const RowValues& values, Here at = Here::current());
ColumnValues cluster_sum(const ColumnValues& values, Here at = Here::current());
RowValues cluster_maximum(const RowValues& values, Here at = Here::current());
ColumnValues cluster_maximum(const ColumnValues& values, Here at = Here::current());
/// The sum of the accumulators of all CTAs, divided among them: this CTA gets column block
/// cluster_rank() of cluster_size(), a tile of tile.m x tile.n / cluster_size(). Each warp has the
/// same number of columns of it: tile.n is a multiple of warps_n * cluster_size() fragments.
WarpTile reduce_scatter(const WarpTile& tile, Here at = Here::current());
/// The same, divided among the first `ctas` of them, since tile.n is a multiple of warps_n * ctas
/// fragments only. The others get a copy of the last block:
///   const Global half = c.tile({0, k.cluster_rank()}, {m, n / 2});
///   k.when(k.cluster_rank() < 2, [&] { k.store(half, sum); });
WarpTile reduce_scatter(const WarpTile& tile, int ctas, Here at = Here::current());
/// As many of a cluster's `ctas` CTAs as can get equal parts of a tile that is `across` fragments
/// wide in each warp (WarpTile::across()): 6 of 8 CTAs for 12 fragments, 1 for 0.
///   const int parts = scatter_parts(k.cluster_size(), sum.across());
///   const WarpTile part = reduce_scatter(sum, parts);
int scatter_parts(int ctas, int across);

// ---- As operands of the next MMA.

/// Accumulators of 16-bit elements as operand A of a product with mma.sync's m16n8k16 or m16n8k8:
/// their registers are the same; for m16n8k16 two fragments become one.
WarpTile operand_a(const WarpTile& tile, MmaShape shape = m16n8k16, Here at = Here::current());

/// Accumulators of 16-bit elements as operand B, with their rows along k. movmatrix (sm_75 and
/// later) transposes each register. For m16n8k16 one fragment becomes one, for m16n8k8 two.
WarpTile operand_b(const WarpTile& tile, MmaShape shape = m16n8k16, Here at = Here::current());
/// Same for the transposed accumulators, with their columns along k: the registers stay the same.
/// For m16n8k16 two adjacent fragments become two.
///   WarpTile p = ...;                                  // 16 rows x 32 columns
///   mma_pt.add(o, sV[stage], operand_b_transposed(convert(p, f16)));     // V^T * P^T
WarpTile operand_b_transposed(const WarpTile& tile, MmaShape shape = m16n8k16,
                              Here at = Here::current());

// ---- Operators.

namespace detail {

inline WarpTile values(const WarpTile& x) { return x; }
inline WarpTile values(const Accumulator& x) { return x; }
inline RowValues values(const RowValues& x) { return x; }
inline RowValues values(const RowVariable& x) { return x; }
inline ColumnValues values(const ColumnValues& x) { return x; }
inline ColumnValues values(const ColumnVariable& x) { return x; }

}  // namespace detail

/// A tile, RowValues, ColumnValues, or a variable of them.
template <typename T>
concept Elementwise = std::same_as<T, WarpTile> || std::same_as<T, Accumulator> ||
    std::same_as<T, RowValues> || std::same_as<T, RowVariable> || std::same_as<T, ColumnValues> ||
    std::same_as<T, ColumnVariable>;
/// What a T holds: WarpTile, RowValues or ColumnValues.
template <Elementwise T>
using ValuesOf = std::remove_cvref_t<decltype(detail::values(std::declval<const T&>()))>;

/// The right operand of arithmetic with a V, and the line of the operator.
template <typename V>
struct OperandOf {
  template <Elementwise T>
  requires(std::same_as<ValuesOf<T>, V> || std::same_as<V, WarpTile>)
      OperandOf(const T& x, Here from = Here::current())
      : value(detail::values(x)), at(from) {}
  template <std::convertible_to<Scalar> T>
  OperandOf(const T& x, Here from = Here::current()) : value(Scalar(x)), at(from) {}

  std::variant<Scalar, RowValues, ColumnValues, WarpTile> value;
  Here at;
};

namespace detail {

/// The operation of an operator.
enum class Arithmetic : std::uint8_t { add, subtract, multiply, divide };

WarpTile combined(Arithmetic op, const WarpTile& x, const OperandOf<WarpTile>& y);
RowValues combined(Arithmetic op, const RowValues& x, const OperandOf<RowValues>& y);
ColumnValues combined(Arithmetic op, const ColumnValues& x, const OperandOf<ColumnValues>& y);
WarpTile combined(Arithmetic op, const ScalarOperand& x, const WarpTile& y);
RowValues combined(Arithmetic op, const ScalarOperand& x, const RowValues& y);
ColumnValues combined(Arithmetic op, const ScalarOperand& x, const ColumnValues& y);

}  // namespace detail

template <Elementwise X>
ValuesOf<X> operator+(const X& x, const OperandOf<ValuesOf<X>>& y) {
  return detail::combined(detail::Arithmetic::add, detail::values(x), y);
}
template <Elementwise X>
ValuesOf<X> operator-(const X& x, const OperandOf<ValuesOf<X>>& y) {
  return detail::combined(detail::Arithmetic::subtract, detail::values(x), y);
}
template <Elementwise X>
ValuesOf<X> operator*(const X& x, const OperandOf<ValuesOf<X>>& y) {
  return detail::combined(detail::Arithmetic::multiply, detail::values(x), y);
}
template <Elementwise X>
ValuesOf<X> operator/(const X& x, const OperandOf<ValuesOf<X>>& y) {
  return detail::combined(detail::Arithmetic::divide, detail::values(x), y);
}
template <Elementwise Y>
ValuesOf<Y> operator+(const ScalarOperand& x, const Y& y) {
  return detail::combined(detail::Arithmetic::add, x, detail::values(y));
}
template <Elementwise Y>
ValuesOf<Y> operator-(const ScalarOperand& x, const Y& y) {
  return detail::combined(detail::Arithmetic::subtract, x, detail::values(y));
}
template <Elementwise Y>
ValuesOf<Y> operator*(const ScalarOperand& x, const Y& y) {
  return detail::combined(detail::Arithmetic::multiply, x, detail::values(y));
}
template <Elementwise Y>
ValuesOf<Y> operator/(const ScalarOperand& x, const Y& y) {
  return detail::combined(detail::Arithmetic::divide, x, detail::values(y));
}
template <Elementwise X>
X& operator+=(X& x, const OperandOf<ValuesOf<X>>& y) {
  return x = x + y;
}
template <Elementwise X>
X& operator-=(X& x, const OperandOf<ValuesOf<X>>& y) {
  return x = x - y;
}
template <Elementwise X>
X& operator*=(X& x, const OperandOf<ValuesOf<X>>& y) {
  return x = x * y;
}
template <Elementwise X>
X& operator/=(X& x, const OperandOf<ValuesOf<X>>& y) {
  return x = x / y;
}

}  // namespace tartan::TARTAN_ABI
