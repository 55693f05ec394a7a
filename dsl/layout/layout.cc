// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tartan::TARTAN_ABI {
namespace {

std::string text(const Scalar& value) {
  return value.constant() ? std::to_string(*value.constant()) : "?";
}

std::int64_t product(const std::vector<Mode>& modes) {
  std::int64_t out = 1;
  for (const Mode& mode : modes) out *= mode.extent;
  return out;
}

// The offset of an index that traverses `modes` and then continues with `stride`.
Scalar along(const std::vector<Mode>& modes, const Scalar& stride, const Scalar& index) {
  if (modes.empty()) return index * stride;
  Scalar out = 0, left = index;
  for (const Mode& mode : modes) {
    if (left.multiple() % mode.extent) out += left % mode.extent * mode.stride;
    left = left / mode.extent;
  }
  return out + left * stride;
}

// A divisor of the offsets of all multiples of `step`.
std::int64_t multiple(const std::vector<Mode>& modes, const Scalar& stride, std::int64_t step) {
  std::int64_t out = 0;
  for (const Mode& mode : modes) {
    if (step % mode.extent == 0) {
      step /= mode.extent;
      continue;
    }
    out = std::gcd(out, std::gcd(step, mode.extent) * mode.stride);
    step = 1;
  }
  return std::gcd(out, stride.multiple() * step);
}

void add(std::vector<Mode>& modes, const Mode& next) {
  if (next.extent == 1) return;
  if (!modes.empty() && modes.back().extent * modes.back().stride == next.stride)
    modes.back().extent *= next.extent;
  else modes.push_back(next);
}

// The last of the inner modes becomes the outermost if there is no other, or if the outermost
// continues it.
void join(std::vector<Mode>& modes, Scalar& stride, const Scalar& extent) {
  if (modes.empty()) return;
  const Mode last = modes.back();
  if (extent.constant() != product(modes) && stride.constant() != last.extent * last.stride) return;
  stride = last.stride;
  modes.pop_back();
}

// One axis of a nested layout.
void set_axis(const NestedLayout& axis, Scalar& extent, Scalar& stride, std::vector<Mode>& modes) {
  extent = axis.size();
  const std::vector<Mode> flat = axis.flat();
  for (std::size_t i = 0; i + 1 < flat.size(); ++i) add(modes, flat[i]);
  stride = flat.back().stride;
  join(modes, stride, extent);
}

// Cuts an axis to its first `size` indices; false unless they are whole modes and a part that
// divides one.
bool cut(std::vector<Mode>& modes, Scalar& stride, std::int64_t size) {
  std::vector<Mode> out;
  for (const Mode& mode : modes) {
    if (size % mode.extent == 0) {
      out.push_back(mode);
      size /= mode.extent;
      if (size > 1) continue;
      stride = out.back().stride;
      out.pop_back();
    } else {
      if (mode.extent % size) return false;
      stride = mode.stride;
    }
    modes = std::move(out);
    return true;
  }
  return true;  // all of the inner modes and some of the outermost
}

// An axis of a matrix of blocks: the block's modes, then those of `of`, scaled by the block.
void set_blocked(const Scalar& extent, const Scalar& stride, const std::vector<Mode>& inner,
                 const Scalar& of_stride, const std::vector<Mode>& of_modes, std::int64_t apart,
                 const Scalar& total, Scalar& out_stride, std::vector<Mode>& out) {
  out = inner;
  add(out, {*extent.constant() / product(inner), *stride.constant()});
  for (const Mode& mode : of_modes) add(out, {mode.extent, mode.stride * apart});
  out_stride = of_stride * apart;
  join(out, out_stride, total);
}

std::optional<NestedLayout> constant_axis(const std::vector<Mode>& modes, const Scalar& extent,
                                          const Scalar& stride) {
  const auto whole = extent.constant(), step = stride.constant();
  if (!whole || !step) return std::nullopt;
  if (modes.empty()) return NestedLayout(*whole, *step);
  std::vector<NestedLayout> out;
  for (const Mode& mode : modes) out.emplace_back(mode.extent, mode.stride);
  out.emplace_back(*whole / product(modes), *step);
  return NestedLayout::tuple(std::move(out));
}

// "(8,?)": the extents or strides of an axis.
std::string text(const std::vector<Mode>& modes, std::int64_t Mode::*which, const Scalar& last) {
  if (modes.empty()) return text(last);
  std::string out = "(";
  for (const Mode& mode : modes) out += fmt::format("{},", mode.*which);
  return out + text(last) + ")";
}

// How often the inner modes fit; unknown for run-time values, to emit no instruction for it.
Scalar outermost(const std::vector<Mode>& modes, const Scalar& extent) {
  return modes.empty() || !extent.constant() ? extent : Scalar(*extent.constant() / product(modes));
}

// Whether no two elements have the same place; for layouts that fit in shared memory.
bool is_distinct(const NestedLayout& layout) {
  std::vector<Mode> modes = layout.flat();
  std::sort(modes.begin(), modes.end(),
            [](const Mode& x, const Mode& y) { return x.stride < y.stride; });
  std::int64_t end = 1;
  bool apart = true;
  for (const auto& [extent, stride] : modes) {
    apart &= extent == 1 || stride >= end;
    if (extent > 1) end = stride * extent;
  }
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (apart || layout.cosize() > most) return true;
  if (layout.size() > layout.cosize()) return false;
  const NestedLayout plain = layout.swizzled({});
  std::vector<bool> taken(static_cast<std::size_t>(layout.cosize()));
  for (std::int64_t i = 0; i < layout.size(); ++i) {
    const auto at = static_cast<std::size_t>(plain(i));
    if (taken[at]) return false;
    taken[at] = true;
  }
  return true;
}

Layout refused(std::string problem) {
  Layout out;
  out.problem = std::move(problem);
  return out;
}

}  // namespace

Scalar Layout::row_offset(const Scalar& row) const { return along(row_modes, row_stride, row); }
Scalar Layout::col_offset(const Scalar& col) const { return along(col_modes, col_stride, col); }
std::int64_t Layout::row_multiple(std::int64_t step) const {
  return multiple(row_modes, row_stride, step);
}
std::int64_t Layout::col_multiple(std::int64_t step) const {
  return multiple(col_modes, col_stride, step);
}

Major Layout::major() const {
  if (col_modes.empty() ? col_stride.constant() == 1 : col_modes[0].stride == 1) return Major::row;
  if (row_modes.empty() ? row_stride.constant() == 1 : row_modes[0].stride == 1) return Major::col;
  return Major::none;
}

std::int64_t Layout::run() const {
  const std::vector<Mode>& modes = major() == Major::col ? row_modes : col_modes;
  return major() == Major::none || modes.empty() ? 0 : modes[0].extent;
}

Layout Layout::swizzled(Swizzle by) const {
  Layout out = *this;
  out.swizzle = by;
  return out;
}

std::optional<Layout> Layout::tile(const Scalar& rows, const Scalar& cols) const {
  Layout out = *this;
  out.rows = rows, out.cols = cols;
  if (!is_nested()) return out;
  const auto r = rows.constant(), c = cols.constant();
  if (!r || !c || !cut(out.row_modes, out.row_stride, *r) ||
      !cut(out.col_modes, out.col_stride, *c))
    return std::nullopt;
  return out;
}

std::optional<std::int64_t> Layout::extent() const {
  const auto layout = constant();
  if (!layout) return std::nullopt;
  return layout->cosize();
}

std::optional<NestedLayout> Layout::constant() const {
  const auto row = constant_axis(row_modes, rows, row_stride),
             col = constant_axis(col_modes, cols, col_stride);
  if (!row || !col || !problem.empty()) return std::nullopt;
  return NestedLayout::tuple({*row, *col}).swizzled(swizzle);
}

std::string Layout::problem_in_shared() const {
  if (!problem.empty()) return problem;
  const auto layout = constant();
  if (!layout) return fmt::format("shared memory needs a constant layout, found {}", text());
  if (const std::string why = layout->problem(); !why.empty())
    return fmt::format("{}: {}", text(), why);
  if (is_distinct(*layout)) return "";
  return fmt::format("{}: elements overlap in memory", text());
}

std::string Layout::text() const {
  if (!problem.empty()) return problem;
  std::string out;
  if (is_nested()) {
    out = fmt::format("({},{}):({},{})",
                      tartan::text(row_modes, &Mode::extent, outermost(row_modes, rows)),
                      tartan::text(col_modes, &Mode::extent, outermost(col_modes, cols)),
                      tartan::text(row_modes, &Mode::stride, row_stride),
                      tartan::text(col_modes, &Mode::stride, col_stride));
  } else {
    out = fmt::format("{}x{}:({},{})", tartan::text(rows), tartan::text(cols),
                      tartan::text(row_stride), tartan::text(col_stride));
  }
  if (swizzle.bits)
    out += fmt::format(" swizzle<{},{},{}>", swizzle.bits, swizzle.base, swizzle.shift);
  return out;
}

Layout row_major(const Scalar& rows, const Scalar& cols) { return row_major(rows, cols, cols); }
Layout row_major(const Scalar& rows, const Scalar& cols, const Scalar& row_stride) {
  return {rows, cols, row_stride, 1, {}};
}
Layout col_major(const Scalar& rows, const Scalar& cols) { return col_major(rows, cols, rows); }
Layout col_major(const Scalar& rows, const Scalar& cols, const Scalar& col_stride) {
  return {rows, cols, 1, col_stride, {}};
}

Layout nested(const NestedLayout& layout) {
  if (std::string problem = layout.problem(); !problem.empty())
    return refused(fmt::format("{}: {}", layout.text(), problem));
  if (layout.rank() != 2)
    return refused(fmt::format("{}: expected two modes, rows and columns, found {}", layout.text(),
                               layout.rank()));
  Layout out;
  set_axis(layout[0], out.rows, out.row_stride, out.row_modes);
  set_axis(layout[1], out.cols, out.col_stride, out.col_modes);
  out.swizzle = layout.swizzle();
  return out;
}

Layout nested(std::string_view text) {
  const auto layout = NestedLayout::parse(text);
  return layout ? nested(*layout) : refused(layout.diags()[0].message);
}

Layout blocked(const Layout& block, const Layout& of) {
  for (const Layout* each : {&block, &of})
    if (!each->problem.empty()) return *each;
  const auto apart = block.extent();
  if (!apart || *apart < 1)
    return refused(
        fmt::format("blocked: expected a block of constant shape, found {}", block.text()));
  if (block.swizzle.bits || of.swizzle.bits)
    return refused("blocked: a block is swizzled; swizzle the whole matrix instead");
  Layout out;
  out.rows = block.rows * of.rows, out.cols = block.cols * of.cols;
  set_blocked(block.rows, block.row_stride, block.row_modes, of.row_stride, of.row_modes, *apart,
              out.rows, out.row_stride, out.row_modes);
  set_blocked(block.cols, block.col_stride, block.col_modes, of.col_stride, of.col_modes, *apart,
              out.cols, out.col_stride, out.col_modes);
  return out;
}

Layout stored(Major major, const Scalar& rows, const Scalar& cols) {
  return major == Major::col ? col_major(rows, cols) : row_major(rows, cols);
}

}  // namespace tartan::TARTAN_ABI
