// SPDX-License-Identifier: Apache-2.0
// Tiles and matrices of a tensor: views of the same memory.

#include "dsl/layout/addressing.h"
#include "dsl/state/scalars.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::detail {

namespace {

// That an index stays within the tiles of its matrix is the kernel's promise: those that divide it
// are not compared with its edge, others would be zeros. Leaves what a launch can check to it;
// reports what is broken already.
bool is_promised(KernelState& state, const Tensor& tensor, std::int64_t size, const Scalar& index,
                 const Scalar& whole, std::string_view axis) {
  const auto range = state.launch.range(HandleParts::value(index).id);
  const auto tiles = tile_count(state.launch, whole, size);
  if (!range || !tiles || wraps(index) || state.conditions > 0) return true;
  LaunchBound bound;
  bound.of = range->of, bound.number = range->number;
  bound.tiles = {*tiles};
  bound.offset = addend(index) - range->addend, bound.factor = range->factor;
  bound.what = fmt::format("{} of tiles of {}", axis, tensor.name);
  bound.place = state.log.place();
  const bool known =
      range->of == LaunchBound::Of::number && range->number.params.empty() && tiles->params.empty();
  if (!known) return state.launch.add_bound(std::move(bound)), true;
  const std::int64_t last = (range->number.value - 1) * range->factor + bound.offset;
  if (range->number.value < 1 || last < tiles->value) return true;
  state.log.report("tile-bounds"_rule,
                   fmt::format("tile {} along the {} is out of bounds: {} has {} tiles of {}, and "
                               "the loop or pipeline reaches it",
                               last, axis, tensor.name, tiles->value, size));
  return false;
}

// One axis of tile(): reports errors, or records the edge if tiles of `size` need not divide
// `whole`.
bool cut(KernelState& state, const Tensor& tensor, const Scalar& size, const Scalar& index,
         const Scalar& whole, std::string_view axis, bool may_hang_over,
         std::optional<Edge>& edge) {
  const auto s = size.constant(), i = index.constant(), w = whole.constant();
  if (!s || *s <= 0) {
    state.log.report("tile-divide"_rule,
                     fmt::format("number of {} of a tile: expected a positive constant", axis));
    return false;
  }
  const bool beyond =
      may_hang_over && !i && !edge && state.launch.may_be_beyond(HandleParts::value(index).id);
  const bool divides = whole.multiple() % *s == 0 && !beyond;
  if (w && !divides && (!may_hang_over || edge)) {
    state.log.report("tile-divide"_rule,
                     fmt::format("tiles of {} {} do not divide the {} of {} ({})", *s, axis, *w,
                                 tensor.name, tensor.layout.text()));
    return false;
  }
  if (w && i && (*i < 0 || *i >= (*w + *s - 1) / *s)) {
    state.log.report("tile-bounds"_rule,
                     fmt::format("tile {} along the {} is out of bounds: {} has {} tiles of {}", *i,
                                 axis, tensor.name, (*w + *s - 1) / *s, *s));
    return false;
  }
  if (edge) {
    edge->origin = edge->origin + index * size;
    return true;
  }
  if (!divides) edge = Edge{index * size, whole};
  return i || beyond || is_promised(state, tensor, *s, index, whole, axis);
}

}  // namespace

Tensor Tensor::tile(const Scalar& rows, const Scalar& cols, const Scalar& row, const Scalar& col,
                    const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  if (!state->owns(*this, name)) return out;
  if (!(state->is_index(row, "the tile's row") & state->is_index(col, "the tile's column"))) {
    out.memory = -1;
    return out;
  }
  out.layout.rows = rows;
  out.layout.cols = cols;
  const bool in_shared = state->memories.of(*this).in_shared;
  const bool good = cut(*state, *this, rows, row, layout.rows, "rows", !in_shared, out.row_edge) &
                    cut(*state, *this, cols, col, layout.cols, "columns", !in_shared, out.col_edge);
  const auto first = good ? layout.tile(rows, cols) : std::nullopt;
  if (good && !first)
    state->log.report("tile-divide"_rule,
                      fmt::format("tiles of {}x{} elements do not divide the blocks of {} ({})",
                                  *rows.constant(), *cols.constant(), name, layout.text()));
  if (!first) {
    out.memory = -1;
    return out;
  }
  out.layout = *first;
  const bool new_edge = (out.row_edge && !row_edge) || (out.col_edge && !col_edge);
  out.ragged_inside |= divided && new_edge;
  out.divided = true;
  if (in_shared) {
    out.offset = offset + layout.offset(row * rows, col * cols);
    return out;
  }
  out.row_at = row_at + row * rows;
  out.col_at = col_at + col * cols;
  const auto wide = [&](const Scalar& x) { return widened(*state, x); };
  if (layout.is_nested()) {
    Layout far = layout;
    far.row_stride = wide(layout.row_stride);
    far.col_stride = wide(layout.col_stride);
    out.base = base + far.row_offset(wide(row * rows)) + far.col_offset(wide(col * cols));
  } else {
    out.base = base + wide(row * rows) * wide(layout.row_stride) +
               wide(col * cols) * wide(layout.col_stride);
  }
  return out;
}

namespace {

// A 32-bit number as `type`, its bits unchanged: u32 indices below zero become negative.
Scalar as(KernelState& state, const Scalar& x, Type type) {
  const std::int64_t most = std::int64_t{1} << 32;
  if (const auto constant = x.constant())
    return state.scalar(state.f().constant(type, static_cast<std::int32_t>(*constant)),
                        x.multiple());
  const ir::Value value = state.value(x);
  return state.scalar(
      bits(x.type()) == 32 ? state.f().bitcast(value, type) : state.f().convert(value, type),
      std::gcd(x.multiple(), most));
}

// An origin that may be negative, to be widened with its sign.
Scalar with_sign(KernelState& state, const Scalar& x) {
  return x.constant() || bits(x.type()) == 64 ? x : as(state, x, s32);
}

// One axis of a window. `whole`: the size of what it is cut from, and the edge of that, if any.
std::optional<Edge> window_edge(KernelState& state, const Scalar& origin, const Scalar& size,
                                const Scalar& whole, const std::optional<Edge>& edge) {
  const auto o = origin.constant(), s = size.constant(), w = whole.constant();
  if (!edge && o && s && w && *o >= 0 && *o + *s <= *w) return std::nullopt;
  const Scalar begin =
      edge ? as(state, edge->origin + as(state, origin, u32), s32) : as(state, origin, s32);
  Scalar end = as(state, whole, s32);
  std::int64_t multiple = whole.multiple();
  const auto limited = [&](const Scalar& limit, std::int64_t divisor) {
    end = minimum(end, limit);
    multiple = std::gcd(multiple, divisor);
  };
  if (edge) {
    end = as(state, edge->limit, s32), multiple = edge->limit.multiple();
    limited(as(state, edge->origin + as(state, whole, u32), s32),
            std::gcd(edge->origin.multiple(), whole.multiple()));
  }
  if (!s) limited(begin + as(state, size, s32), std::gcd(begin.multiple(), size.multiple()));
  const ir::Value limit = state.value(maximum(end, state.scalar(zero_value(state.f(), s32))));
  return Edge{as(state, begin, u32), state.scalar(state.f().bitcast(limit, u32), multiple)};
}

bool is_window(KernelState& state, const Tensor& tensor, const Scalar& size,
               std::string_view axis) {
  if (size.constant().value_or(1) > 0) return true;
  state.log.report("tile-bounds"_rule,
                   fmt::format("window of {}: expected at least one {}, found {}", tensor.name,
                               axis, *size.constant()));
  return false;
}

}  // namespace

Tensor Tensor::window(const Scalar& row, const Scalar& col, const Scalar& rows, const Scalar& cols,
                      const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  out.memory = -1;
  if (!state->owns(*this, name)) return out;
  bool good = is_window(*state, *this, rows, "row") & is_window(*state, *this, cols, "column");
  for (const auto& [number, what] : {std::pair{&row, "the window's first row"},
                                     {&col, "the window's first column"},
                                     {&rows, "the window's rows"},
                                     {&cols, "the window's columns"}})
    good &= state->is_index(*number, what);
  if (layout.is_nested()) {
    good = false;
    state->log.report("layout-mismatch"_rule,
                      fmt::format("window of {}: expected rows and columns that are not nested, "
                                  "found {}; take a tile()",
                                  name, layout.text()));
  }
  if (!good) return out;
  out.memory = memory;
  out.row_edge = window_edge(*state, row, rows, layout.rows, row_edge);
  out.col_edge = window_edge(*state, col, cols, layout.cols, col_edge);
  const Scalar down = with_sign(*state, row), right = with_sign(*state, col);
  const auto wide = [&](const Scalar& x) { return widened(*state, x); };
  out.base = base + wide(down) * wide(layout.row_stride) + wide(right) * wide(layout.col_stride);
  out.row_at = row_at + (row.constant() ? row : as(*state, row, u32));
  out.col_at = col_at + (col.constant() ? col : as(*state, col, u32));
  out.layout.rows = rows, out.layout.cols = cols;
  // TMA knows the matrix's edges only.
  out.ragged_inside |= divided || !rows.constant() || !cols.constant();
  out.divided = true;
  return out;
}

Tensor Tensor::matrix(const Scalar& index, const Scalar* stride,
                      const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  if (!state->owns(*this, name)) return out;
  for (const Scalar* each : {&index, stride})
    if (each && !state->is_index(*each, "the matrix's place")) {
      out.memory = -1;
      return out;
    }
  const auto wide = [&](const Scalar& x) { return widened(*state, x); };
  const bool is_col_major = layout.major() == Major::col;
  const Scalar apart = stride               ? wide(*stride)
                       : layout.is_nested() ? wide(whole_rows) * wide(whole_cols)
                       : is_col_major       ? wide(whole_cols) * wide(layout.col_stride)
                                            : wide(whole_rows) * wide(layout.row_stride);
  out.base = base + wide(index) * apart;
  out.matrix_at = index;
  if (stride) out.matrix_stride = *stride;
  ++out.batches;
  state->launch.forget_extent(name);
  return out;
}

Tensor Tensor::row(const Scalar& i, const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  out.memory = -1;
  if (layout.is_nested() || layout.col_stride.constant() != 1) {
    state->log.report("layout-mismatch"_rule,
                      fmt::format("row of {}: expected a row-major matrix, found {}; a column is a "
                                  "row of transposed()",
                                  name, layout.text()));
    return out;
  }
  out = tile(1, 1, i, 0, at);
  if (out.memory < 0) return out;
  out.layout = row_major(1, layout.cols);
  out.row_edge.reset(), out.col_edge.reset();
  return out;
}

Tensor Tensor::in_elements_of(Type to, const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  out.memory = -1;
  const int each = bits(type), wide = bits(to);
  if (to == Type::pred || wide > 64 || each < 8 || wide < each || wide % each != 0) {
    state->log.report("scalar-type"_rule,
                      fmt::format("{} of {} as {}: expected elements of 8 to 64 bits, as ones of "
                                  "their size or a multiple",
                                  name, tartan::name(type), tartan::name(to)));
    return out;
  }
  if (layout.rows.constant() != 1 || layout.is_nested() || layout.col_stride.constant() != 1) {
    state->log.report("layout-mismatch"_rule,
                      fmt::format("{} as {}: expected one row of contiguous elements, found {}; "
                                  "take a row()",
                                  name, tartan::name(to), layout.text()));
    return out;
  }
  const int together = wide / each, most_before = base.multiple() % together ? together - 1 : 0;
  out.memory = memory;
  out.type = to;
  out.base = base / together;
  out.layout = row_major(1, (layout.cols + (most_before + together - 1)) / together);
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
