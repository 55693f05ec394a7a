// SPDX-License-Identifier: Apache-2.0
#include "dsl/kernels/epilogue.h"

#include <fmt/format.h>

#include "dsl/math.h"

namespace tartan::kernels::detail {
namespace {

bool is_byte(Type type) { return type == s8 || type == u8; }

}  // namespace

Global matrix_of(Builder& k, const Global& first, const Scalar& i, const Scalar& stride) {
  Global out = first;
  out.base = out.base + k.convert(i, s64) * stride;
  return out;
}

Finisher::Finisher(Builder& k, const Epilogue& options, Type sum, Type c, const Scalar& m,
                   const Scalar& n)
    : k_(k), options_(options), sum_(sum), c_(c), in_(sum == f64 ? f64 : f32), m_(m), n_(n) {
  k.require(TypeSet{f32, f16, bf16, f64, s32, s8, u8}.has(c),
            fmt::format("C has elements of f32, f16, bf16, f64, s32, s8 or u8, not {}", name(c)));
  k.require(c != s32 || (sum == s32 && options.empty()),
            "a C of s32 takes s32 sums as they are, without an epilogue; c = f32, f16 or s8 takes "
            "one");
  k.require((c == f64) == (sum == f64), "f64 sums make a C of f64, and others do not");
  k.require(in_ == f32 || options.activation == Activation::none ||
                options.activation == Activation::relu,
            "products of f64 have no gelu and silu: their approximations are those of f32");
  out_ = k.global("C", c, row_major(m, n));
  if (options.alpha) alpha_ = k.param("alpha", in_);
  if (options.beta) beta_ = k.param("beta", in_);
  if (options.row_scales) row_scales_ = k.global("row_scales", in_, row_major(1, m));
  if (options.column_scales) column_scales_ = k.global("column_scales", in_, row_major(1, n));
  if (options.bias) bias_ = k.global("bias", in_, row_major(1, n));
  if (options.residual) residual_ = k.global("residual", c, row_major(m, n));
}

void Finisher::select_matrix(const Scalar& i, const Scalar& stride) {
  out_ = matrix_of(k_, out_, i, stride);
  if (options_.residual) residual_ = matrix_of(k_, residual_, i, stride);
}

Scalar Finisher::activated(const Scalar& x) {
  const auto number = [&](double value) { return k_.constant(in_, value); };
  switch (options_.activation) {
    case Activation::none: return x;
    case Activation::relu: return maximum(x, 0);
    case Activation::gelu: {
      const Scalar inner = x * fma(x * x, number(0.044715 * 0.7978845608028654),
                                   number(0.7978845608028654));
      const Scalar half = x * number(0.5);
      return fma(half, tanh(inner), half);
    }
    case Activation::silu:
      return x * reciprocal(exp2(x * number(-1.4426950408889634)) + number(1));
  }
  return x;
}

// (row, col) may lie beyond the edge: what is not stored may be anything, but is not to be read
// outside the matrix.
Scalar Finisher::row_value(const Global& from, const Scalar& row, const Scalar& col) {
  const Scalar value = k_.read(from, minimum(row, from.layout().rows - 1),
                               minimum(col, from.layout().cols - 1));
  return k_.convert(value, in_);
}

Scalar Finisher::finished(const Scalar& sum, const Scalar& row, const Scalar& col) {
  Scalar x = k_.convert(sum, in_);
  if (options_.alpha) x = x * alpha_;
  if (options_.row_scales) x = x * row_value(row_scales_, 0, row);
  if (options_.column_scales) x = x * row_value(column_scales_, 0, col);
  if (options_.beta) x = fma(beta_, row_value(out_, row, col), x);
  if (options_.bias) x = x + row_value(bias_, 0, col);
  x = activated(x);
  if (options_.residual) x = x + row_value(residual_, row, col);
  return x;
}

// Behind 1.5 * 2^23 an f32 has no fraction: adding that rounds to nearest even.
Scalar Finisher::converted(const Scalar& x) {
  if (!is_byte(c_)) return k_.convert(x, c_);
  const Scalar low = c_ == s8 ? -128 : 0, high = c_ == s8 ? 127 : 255;
  const Scalar far = k_.constant(f32, 12582912);
  const Scalar whole = minimum(maximum(x, low), high) + far - far;
  return k_.convert(k_.convert(whole, s32), c_);
}

void Finisher::store(const Scalar& sum, const Scalar& row, const Scalar& col) {
  k_.write(out_, row, col, c_ == s32 ? sum : converted(finished(sum, row, col)));
}

void Finisher::store(const WarpTile& sums, const Tile& tile, const Scalar& row, const Scalar& col) {
  const Global part = out_.tile(tile.m, tile.n, row, col);
  if (sums.fragments().empty()) return;
  if (options_.empty() && (c_ == sum_ || (sum_ == f32 && c_ == f16)))
    return k_.store(part, convert(sums, c_));
  // All elements first, so that what they share is read once.
  const Scalar top = k_.convert(row, s32) * tile.m, left = k_.convert(col, s32) * tile.n;
  struct Element {
    Scalar row, col, value;
  };
  std::vector<Element> out;
  map(sums, [&](const Scalar& x, const ElementPlace& at) {
    const Scalar r = k_.convert(at.row, s32), c = k_.convert(at.col, s32);
    out.push_back({at.row, at.col, converted(finished(x, top + r, left + c))});
    return x;
  });
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto write = [&](const Element& each) { k_.write(part, each.row, each.col, each.value); };
    const auto inside = [&](const std::optional<tartan::detail::Edge>& edge, const Scalar& at) {
      return edge ? edge->origin + at < edge->limit : Scalar(1);
    };
    // Neighbours in a row that exist together are written together.
    const bool pair = !part.col_edge || part.col_edge->limit.multiple() % 2 == 0;
    k_.when(inside(part.row_edge, out[i].row), [&] {
      k_.when(inside(part.col_edge, out[i].col), [&] {
        write(out[i]);
        if (pair) write(out[i + 1]);
      });
    });
    if (pair) ++i;
  }
}

}  // namespace tartan::kernels::detail
