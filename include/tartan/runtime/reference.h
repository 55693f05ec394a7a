// SPDX-License-Identifier: Apache-2.0
// tartan/runtime/reference.h - host results to compare a kernel's with: products, softmax and
// attention in double, by the loops of their definitions.
//
//   const auto A = reference::row_major(a, m, k), B = reference::col_major(b, k, n);
//   const std::string wrong = reference::difference(c, reference::product(A, B), n, {1e-3});
//   if (!wrong.empty()) std::cerr << wrong;     // "3 of 4096 elements differ; first (0, 7): ..."
//
// Elements are float, double, integers or those of tartan/runtime/host_types.h. Results are
// row-major.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::reference {

/// A matrix in host memory. The memory must outlive it.
template <typename T>
struct Matrix {
  std::span<const T> data;
  std::size_t rows = 0, cols = 0;
  std::size_t row_stride = 0, col_stride = 0;  // elements

  double operator()(std::size_t row, std::size_t col) const {
    return static_cast<double>(data[row * row_stride + col * col_stride]);
  }
  Matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

/// `ld`: elements from one row (column) to the next; 0: they are contiguous.
template <std::ranges::contiguous_range R>
auto row_major(const R& data, std::size_t rows, std::size_t cols, std::size_t ld = 0) {
  using T = std::ranges::range_value_t<R>;
  const std::size_t apart = ld ? ld : cols;
  assert(rows == 0 || cols == 0 || (rows - 1) * apart + cols <= std::ranges::size(data));
  return Matrix<T>{std::span<const T>(data), rows, cols, apart, 1};
}
template <std::ranges::contiguous_range R>
auto col_major(const R& data, std::size_t rows, std::size_t cols, std::size_t ld = 0) {
  return row_major(data, cols, rows, ld).transposed();
}

/// A * B.
template <typename A, typename B>
std::vector<double> product(const Matrix<A>& a, const Matrix<B>& b) {
  assert(a.cols == b.rows);
  std::vector<double> out(a.rows * b.cols);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < b.cols; ++j)
      for (std::size_t x = 0; x < a.cols; ++x) out[i * b.cols + j] += a(i, x) * b(x, j);
  return out;
}

/// e^x of each element over the sum of its row. A row of -infinity gives zeros.
template <typename T>
std::vector<double> softmax(const Matrix<T>& x) {
  std::vector<double> out(x.rows * x.cols);
  for (std::size_t i = 0; i < x.rows; ++i) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t j = 0; j < x.cols; ++j) top = std::fmax(top, x(i, j));
    if (top == -std::numeric_limits<double>::infinity()) continue;
    for (std::size_t j = 0; j < x.cols; ++j) sum += out[i * x.cols + j] = std::exp(x(i, j) - top);
    for (std::size_t j = 0; j < x.cols; ++j) out[i * x.cols + j] /= sum;
  }
  return out;
}

/// The scale and mask of attention(), and what else changes its weights.
struct AttentionOptions {
  double scale = 1;                   // of the scores; 1 / sqrt(d) as a rule
  bool causal = false;                // query i sees the keys up to i + keys - queries
  std::optional<std::size_t> window;  // with `causal`: only so many of these keys, the last ones
  std::optional<double> cap;          // scores become cap * tanh(scale * score / cap)
  std::optional<double> sink;         // exp(sink) joins the sum of each row's weights
};

/// softmax(scale * Q * K^T) * V for one head: Q of queries x d, K of keys x d, V of keys x dv. A
/// query that sees no key gives zeros.
template <typename Q, typename K, typename V>
std::vector<double> attention(const Matrix<Q>& q, const Matrix<K>& k, const Matrix<V>& v,
                              const AttentionOptions& options = {}) {
  assert(k.rows == v.rows && (options.causal || !options.window));
  std::vector<double> scores = product(q, k.transposed());
  // A sink is a key more, whose weight meets no value.
  const std::size_t columns = k.rows + (options.sink ? 1 : 0);
  std::vector<double> all(q.rows * columns, options.sink.value_or(0));
  for (std::size_t i = 0; i < q.rows; ++i)
    for (std::size_t j = 0; j < k.rows; ++j) {
      const bool seen = (!options.causal || j + q.rows <= i + k.rows) &&
                        (!options.window || i + k.rows - (j + q.rows) < *options.window);
      const double score = scores[i * k.rows + j] * options.scale;
      all[i * columns + j] = !seen         ? -std::numeric_limits<double>::infinity()
                             : options.cap ? *options.cap * std::tanh(score / *options.cap)
                                           : score;
    }
  all = softmax(row_major(all, q.rows, columns));
  for (std::size_t i = 0; i < q.rows; ++i)
    for (std::size_t j = 0; j < k.rows; ++j) scores[i * k.rows + j] = all[i * columns + j];
  return product(row_major(scores, q.rows, k.rows), v);
}

/// How far a result may be from the expected one: absolute + relative * |expected|.
struct Tolerance {
  double relative = 0, absolute = 0;
};

/// How many elements are further away, and the first of them; empty if none is. NaN equals NaN
/// alone, infinity itself. `cols`: of the matrix, for its place.
template <std::ranges::contiguous_range R>
std::string difference(const R& got, const std::vector<double>& expected, std::size_t cols,
                       const Tolerance& tolerance = {}) {
  const auto count = static_cast<std::size_t>(std::ranges::size(got));
  std::ostringstream out;
  if (count != expected.size()) {
    out << "expected " << expected.size() << " elements, got " << count;
    return out.str();
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(got[i]), y = expected[i];
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      (std::isfinite(y) &&
                       std::fabs(x - y) <= tolerance.absolute + tolerance.relative * std::fabs(y));
    if (same || wrong++) continue;
    out << "; the first at (" << i / cols << ", " << i % cols << "): expected " << y << ", got "
        << x;
  }
  if (!wrong) return {};
  return std::to_string(wrong) + " of " + std::to_string(count) + " elements differ" + out.str();
}

}  // namespace tartan::TARTAN_ABI::reference
