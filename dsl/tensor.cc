// SPDX-License-Identifier: Apache-2.0
// Tiles and matrices of a tensor: views of the same memory.

#include "dsl/addressing.h"

namespace tartan::inline TARTAN_ABI::detail {

namespace {

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
  const bool divides = whole.multiple() % *s == 0;
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
  if (edge) edge->origin = edge->origin + index * size;
  else if (!divides) edge = Edge{index * size, whole};
  return true;
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

}  // namespace tartan::inline TARTAN_ABI::detail
