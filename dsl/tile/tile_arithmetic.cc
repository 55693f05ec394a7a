// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/tile_arithmetic.h"

#include <algorithm>

#include "dsl/layout/fragments.h"
#include "dsl/layout/placement.h"
#include "dsl/layout/tiles.h"
#include "dsl/state/scalars.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::KernelState;
using detail::LineParts;
using detail::Lines;

KernelState& state_of(const WarpTile& tile) { return *detail::state_of(tile.fragments().front()); }

bool has_body(const WarpTile& tile, bool given, std::string_view what = "map") {
  return state_of(tile).has_body(given, what);
}

bool has_bad(const std::vector<Scalar>& values) {
  return std::ranges::any_of(values, [](const Scalar& each) { return detail::is_bad(each); });
}

std::string text(const WarpTile& tile) {
  return fmt::format("{} x {} of {}", tile.down(), tile.across(),
                     tile.fragment(0, 0).kind().text());
}

// Whether elements of the same number are at the same place of two fragments.
bool same_places(const FragmentKind& x, const FragmentKind& y) {
  if (x.shape == y.shape && x.operand == y.operand && x.type == y.type) return true;
  const int count = x.fragment().elements();
  if (count != y.fragment().elements()) return false;
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < count; ++i)
      if (!(x.coord(lane, i) == y.coord(lane, i))) return false;
  return true;
}

// Whether two tiles have the same elements in each lane; reports if not.
bool match(const WarpTile& x, const WarpTile& y) {
  if (x.down() == y.down() && x.across() == y.across() &&
      same_places(x.fragment(0, 0).kind(), y.fragment(0, 0).kind()))
    return detail::same_places(state_of(x), x.fragment(0, 0).kind(), x.place(), y);
  state_of(x).log.report(
      "fragment-mismatch"_rule,
      fmt::format("tiles of different shapes: {} and {} fragments per warp", text(x), text(y)));
  return false;
}

// The elements of each fragment, changed by `f`(element, y, x, i).
WarpTile transformed(Builder& k, const WarpTile& tile, Here at, auto&& f) {
  std::vector<Fragment> out;
  for (int y = 0; y < tile.down(); ++y)
    for (int x = 0; x < tile.across(); ++x) {
      std::vector<Scalar> elements = k.elements(tile.fragment(y, x), at);
      for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = f(elements[i], y, x, i);
      out.push_back(k.pack(tile.fragment(y, x).kind(), elements, at));
    }
  return WarpTile(std::move(out), tile.across(), tile.place());
}

template <typename Values>
WarpTile map_lines(const WarpTile& tile, const Values& values, Lines lines,
                   const std::function<Scalar(Scalar, Scalar)>& f, Here at) {
  auto k = detail::builder_of(tile, at);
  if (!k || !has_body(tile, f != nullptr)) return {};
  if (values.size() != detail::line_count(tile, lines)) {
    const std::string_view what = lines == Lines::rows ? "row" : "column";
    if (!has_bad(values))
      state_of(tile).log.report(
          "operand-count"_rule,
          fmt::format("wrong number of {0} values: the tile has {1} {0}s per lane, found {2}", what,
                      detail::line_count(tile, lines), values.size()));
    return {};
  }
  const detail::LineSource own = detail::source_of(tile, lines);
  if (!detail::same_lines(state_of(tile), &own, LineParts::source(values).get())) return {};
  const detail::LaneLines lanes = detail::lane_lines(tile.fragment(0, 0).kind(), lines);
  return transformed(*k, tile, at, [&](const Scalar& element, int y, int x, std::size_t i) {
    return f(element, values[detail::line_of(lanes, lines, y, x, i)]);
  });
}

// Begins a call on values of lines, which have no state of their own if they are constants.
KernelState* begun(const std::vector<Scalar>& values, Here at) {
  KernelState* state = detail::Description::current();
  for (const Scalar& each : values)
    if (detail::state_of(each)) state = detail::state_of(each).get();
  if (state) state->at(at);
  return state;
}

template <typename Values>
Values map_values(const Values& x, const std::function<Scalar(Scalar)>& f, Here at) {
  KernelState* const state = begun(x, at);
  if (!f && state) state->has_body(false, "map");
  Values out;
  LineParts::source(out) = LineParts::source(x);
  for (const Scalar& each : x) out.push_back(f ? f(each) : detail::bad_scalar());
  return out;
}

template <typename Values>
Values map_values(const Values& x, const Values& y, const std::function<Scalar(Scalar, Scalar)>& f,
                  Here at) {
  KernelState* const state = begun(x, at);
  if (!f && state) state->has_body(false, "map");
  const bool bad = has_bad(x) || has_bad(y);
  if (x.size() != y.size() && state && !bad)
    state->log.report(
        "operand-count"_rule,
        fmt::format("values of different tiles: found {} and {} per lane", x.size(), y.size()));
  else if (state && !bad)
    detail::same_lines(*state, LineParts::source(x).get(), LineParts::source(y).get());
  Values out;
  LineParts::source(out) = LineParts::source(LineParts::source(x) ? x : y);
  for (std::size_t i = 0; i < x.size(); ++i)
    out.push_back(f && i < y.size() ? f(x[i], y[i]) : detail::bad_scalar());
  return out;
}

}  // namespace

void detail::assign(std::vector<ScalarVariable>& variables, const LineSource* of,
                    const std::vector<Scalar>& values, const LineSource* source) {
  KernelState* const state = Description::current();
  if (values.size() == variables.size()) {
    if (!state || has_bad(values) || same_lines(*state, of, source))
      std::ranges::copy(values, variables.begin());
    return;
  }
  if (state && !variables.empty() && !has_bad(values))
    state->log.report("operand-count"_rule,
                      fmt::format("values of another tile: the variable has {} per lane, found {}",
                                  variables.size(), values.size()));
}

WarpTile map(const WarpTile& tile, const std::function<Scalar(Scalar, ElementPlace)>& f, Here at) {
  auto k = detail::builder_of(tile, at);
  if (!k || !has_body(tile, f != nullptr)) return {};
  return transformed(*k, tile, at, [&](const Scalar& element, int y, int x, std::size_t i) {
    return f(element, detail::element_place(*k, tile, y, x, static_cast<int>(i), at));
  });
}

WarpTile map(const WarpTile& tile, const std::function<Scalar(Scalar)>& f, Here at) {
  auto k = detail::builder_of(tile, at);
  if (!k || !has_body(tile, f != nullptr)) return {};
  return transformed(*k, tile, at,
                     [&](const Scalar& element, int, int, std::size_t) { return f(element); });
}

WarpTile map(const WarpTile& x, const WarpTile& y, const std::function<Scalar(Scalar, Scalar)>& f,
             Here at) {
  auto k = detail::builder_of(x, at);
  if (!k || !detail::builder_of(y, at) || !has_body(x, f != nullptr) || !match(x, y)) return {};
  // A wait for one of the products in flight may change which registers hold the other.
  std::vector<std::vector<Scalar>> others;
  for (const Fragment& each : y.fragments()) others.push_back(k->elements(each, at));
  return transformed(*k, x, at, [&](const Scalar& element, int row, int col, std::size_t i) {
    return f(element, others[static_cast<std::size_t>(row * x.across() + col)][i]);
  });
}

void for_each(const WarpTile& tile, const std::function<void(Scalar, ElementPlace)>& f, Here at) {
  auto k = detail::builder_of(tile, at);
  if (!k || !has_body(tile, f != nullptr, "for_each")) return;
  for (int y = 0; y < tile.down(); ++y)
    for (int x = 0; x < tile.across(); ++x) {
      const std::vector<Scalar> elements = k->elements(tile.fragment(y, x), at);
      for (std::size_t i = 0; i < elements.size(); ++i)
        f(elements[i], detail::element_place(*k, tile, y, x, static_cast<int>(i), at));
    }
}

WarpTile convert(const WarpTile& tile, Type to, Here at) {
  auto k = detail::builder_of(tile, at);
  if (!k) return {};
  std::vector<Fragment> out;
  for (const Fragment& each : tile.fragments()) out.push_back(k->convert(each, to, at));
  return WarpTile(std::move(out), tile.across(), tile.place());
}

WarpTile relu(const WarpTile& tile, Here at) {
  return map(
      tile, [](const Scalar& x) { return relu(x); }, at);
}

WarpTile map_rows(const WarpTile& tile, const RowValues& rows,
                  const std::function<Scalar(Scalar, Scalar)>& f, Here at) {
  return map_lines(tile, rows, Lines::rows, f, at);
}
WarpTile map_cols(const WarpTile& tile, const ColumnValues& cols,
                  const std::function<Scalar(Scalar, Scalar)>& f, Here at) {
  return map_lines(tile, cols, Lines::cols, f, at);
}

RowValues map(const RowValues& x, const std::function<Scalar(Scalar)>& f, Here at) {
  return map_values(x, f, at);
}
ColumnValues map(const ColumnValues& x, const std::function<Scalar(Scalar)>& f, Here at) {
  return map_values(x, f, at);
}
RowValues map(const RowValues& x, const RowValues& y,
              const std::function<Scalar(Scalar, Scalar)>& f, Here at) {
  return map_values(x, y, f, at);
}
ColumnValues map(const ColumnValues& x, const ColumnValues& y,
                 const std::function<Scalar(Scalar, Scalar)>& f, Here at) {
  return map_values(x, y, f, at);
}

namespace {

template <typename Values>
Values places(const WarpTile& tile, Lines lines, Here at) {
  auto k = detail::builder_of(tile, at);
  if (!k) return Values(2, detail::bad_scalar());
  const std::vector<Scalar> places = detail::line_places(*k, tile, lines, at);
  Values out(places.begin(), places.end());
  LineParts::source(out) = detail::shared_source_of(tile, lines);
  return out;
}

}  // namespace

RowValues row_places(const WarpTile& tile, Here at) {
  return places<RowValues>(tile, Lines::rows, at);
}
ColumnValues col_places(const WarpTile& tile, Here at) {
  return places<ColumnValues>(tile, Lines::cols, at);
}

namespace detail {
namespace {

Scalar apply(Arithmetic op, const Scalar& x, const Scalar& y) {
  switch (op) {
    case Arithmetic::add: return x + y;
    case Arithmetic::subtract: return x - y;
    case Arithmetic::multiply: return x * y;
    case Arithmetic::divide: return x / y;
  }
  return bad_scalar();
}

std::function<Scalar(Scalar, Scalar)> applied(Arithmetic op) {
  return [op](const Scalar& x, const Scalar& y) { return apply(op, x, y); };
}

template <typename Values>
Values combined_values(Arithmetic op, const Values& x, const OperandOf<Values>& y) {
  if (const auto* const other = std::get_if<Values>(&y.value))
    return map(x, *other, applied(op), y.at);
  return map(
      x, [&](const Scalar& each) { return apply(op, each, std::get<Scalar>(y.value)); }, y.at);
}

template <typename Values>
Values combined_values(Arithmetic op, const ScalarOperand& x, const Values& y) {
  return map(
      y, [&](const Scalar& each) { return apply(op, x.value, each); }, x.at);
}

}  // namespace

WarpTile combined(Arithmetic op, const WarpTile& x, const OperandOf<WarpTile>& y) {
  if (const auto* const tile = std::get_if<WarpTile>(&y.value))
    return map(x, *tile, applied(op), y.at);
  if (const auto* const rows = std::get_if<RowValues>(&y.value))
    return map_rows(x, *rows, applied(op), y.at);
  if (const auto* const cols = std::get_if<ColumnValues>(&y.value))
    return map_cols(x, *cols, applied(op), y.at);
  return combined_values(op, x, y);
}
RowValues combined(Arithmetic op, const RowValues& x, const OperandOf<RowValues>& y) {
  return combined_values(op, x, y);
}
ColumnValues combined(Arithmetic op, const ColumnValues& x, const OperandOf<ColumnValues>& y) {
  return combined_values(op, x, y);
}
WarpTile combined(Arithmetic op, const ScalarOperand& x, const WarpTile& y) {
  return combined_values(op, x, y);
}
RowValues combined(Arithmetic op, const ScalarOperand& x, const RowValues& y) {
  return combined_values(op, x, y);
}
ColumnValues combined(Arithmetic op, const ScalarOperand& x, const ColumnValues& y) {
  return combined_values(op, x, y);
}

}  // namespace detail

}  // namespace tartan::TARTAN_ABI
