// SPDX-License-Identifier: Apache-2.0
#include "dsl/layout.h"

#include <fmt/format.h>

namespace tartan {
namespace {

std::string text(const Scalar& value) {
  return value.constant() ? std::to_string(*value.constant()) : "?";
}

}  // namespace

Major Layout::major() const {
  if (col_stride.constant() == 1) return Major::row;
  if (row_stride.constant() == 1) return Major::col;
  return Major::none;
}

Layout Layout::swizzled(Swizzle by) const {
  Layout out = *this;
  out.swizzle = by;
  return out;
}

std::optional<std::int64_t> Layout::extent() const {
  const auto r = rows.constant(), c = cols.constant(), rs = row_stride.constant(),
             cs = col_stride.constant();
  if (!r || !c || !rs || !cs) return std::nullopt;
  return (*r - 1) * *rs + (*c - 1) * *cs + 1;
}

std::string Layout::text() const {
  std::string out = fmt::format("{}x{}:({},{})", tartan::text(rows), tartan::text(cols),
                                tartan::text(row_stride), tartan::text(col_stride));
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

Layout stored(Major major, const Scalar& rows, const Scalar& cols) {
  return major == Major::col ? col_major(rows, cols) : row_major(rows, cols);
}

}  // namespace tartan
