// SPDX-License-Identifier: Apache-2.0
#include "runtime/formula_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "tartan/runtime/reference.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using Shape = std::vector<std::uint64_t>;

std::string text_of(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

std::size_t count_of(const Shape& shape) {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>()));
}

class NumberEvaluation {
 public:
  NumberEvaluation(const Formula& formula, const Shape& output, const FormulaBuffers& buffers)
      : formula_(formula), output_(output), buffers_(buffers), results_(count_of(output)) {}

  Result<std::vector<double>> operator()() {
    if (formula_.function.empty()) sums();
    else if (formula_.function == "softmax") softmax();
    else if (formula_.function == "layer_norm") layer_norm();
    else if (formula_.function == "attention") attention();
    else reduce();
    if (!diags_.ok()) return diags_;
    return std::move(results_);
  }

 private:
  void refuse(std::string why) { diags_.report("usage"_rule, {}, "formula: " + std::move(why)); }

  FormulaMatrix matrix(const std::string& name, Type type = Type::none) {
    auto out = buffers_(name, type);
    if (out) return std::move(*out);
    diags_.append(out.diags());
    return {};
  }

  // ---- Sums of products.

  struct Sizes {
    std::size_t m = 0, n = 0, k = 0;
  };

  // |A| = m k, |B| = k n, |C| = m n.
  Sizes sizes_of(std::size_t a, std::size_t b) {
    const auto root = [](double square) {
      return static_cast<std::size_t>(std::llround(std::sqrt(square)));
    };
    const double x = static_cast<double>(a), y = static_cast<double>(b),
                 z = static_cast<double>(results_.size());
    const Sizes out{root(x * z / y), root(y * z / x), root(x * y / z)};
    if (out.m * out.k == a && out.k * out.n == b && out.m * out.n == results_.size()) return out;
    refuse(fmt::format("no sizes m, n, k fit buffers of {}, {} and {} elements", a, b,
                       results_.size()));
    return {};
  }

  // Whether a buffer's shape is that of its place in a product.
  void check_shape(const std::string& name, const Shape& shape, std::size_t rows,
                   std::size_t columns, bool transposed) {
    if (shape.size() < 2 || !diags_.ok()) return;
    if (transposed) std::swap(rows, columns);
    if (shape.back() == columns) return;
    refuse(fmt::format("{}{} is {}: expected {}x{}{}", name, transposed ? "'" : "", text_of(shape),
                       rows, columns,
                       shape.back() == rows && name != formula_.output
                           ? transposed ? "; without ' it is not transposed" : "; ' transposes it"
                           : ""));
  }

  void sums() {
    std::size_t columns = output_.size() > 1 ? static_cast<std::size_t>(output_.back()) : 0;
    for (const Formula::Term& term : formula_.terms)
      if (term.matrices.size() == 2) product(term, columns);
    for (const Formula::Term& term : formula_.terms)
      if (term.matrices.size() == 1) single(term, columns);
    if (formula_.relu)
      for (double& each : results_) each = each < 0 ? 0 : each;
  }

  void product(const Formula::Term& term, std::size_t& columns) {
    const Formula::Factor &left = term.matrices[0], &right = term.matrices[1];
    const FormulaMatrix a = matrix(left.buffer, left.type), b = matrix(right.buffer, right.type);
    if (!diags_.ok()) return;
    const Sizes sizes = sizes_of(a.values.size(), b.values.size());
    check_shape(left.buffer, a.shape, sizes.m, sizes.k, left.transposed);
    check_shape(right.buffer, b.shape, sizes.k, sizes.n, right.transposed);
    check_shape(formula_.output, output_, sizes.m, sizes.n, false);
    if (!diags_.ok()) return;
    columns = sizes.n;
    const std::size_t a_row = left.transposed ? 1 : sizes.k, a_k = left.transposed ? sizes.m : 1;
    const std::size_t b_k = right.transposed ? 1 : sizes.n, b_col = right.transposed ? sizes.k : 1;
    std::vector<double> row(sizes.n);
    for (std::size_t m = 0; m < sizes.m; ++m) {
      std::ranges::fill(row, 0.0);
      for (std::size_t k = 0; k < sizes.k; ++k) {
        const double x = a.values[m * a_row + k * a_k];
        for (std::size_t n = 0; n < sizes.n; ++n) row[n] += x * b.values[k * b_k + n * b_col];
      }
      for (std::size_t n = 0; n < sizes.n; ++n) results_[m * sizes.n + n] += term.factor * row[n];
    }
  }

  // A matrix, or a row for each row.
  void single(const Formula::Term& term, std::size_t columns) {
    const Formula::Factor& factor = term.matrices[0];
    const FormulaMatrix added = matrix(factor.buffer, factor.type);
    if (!diags_.ok()) return;
    const std::size_t size = added.values.size();
    if (size != results_.size() && size != columns)
      return refuse(fmt::format("{} has {} elements: expected {}{}", factor.buffer, size,
                                results_.size(),
                                columns ? fmt::format(", or {} for a row", columns) : ""));
    const std::size_t across = factor.transposed && columns ? columns : 0;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const std::size_t at =
          across ? i % across * (results_.size() / across) + i / across : i % size;
      results_[i] += term.factor * added.values[at];
    }
  }

  // ---- Functions.

  bool has(const std::string& name) const { return formula_.parameters.contains(name); }
  double parameter(const std::string& name, double otherwise) const {
    const auto found = formula_.parameters.find(name);
    return found == formula_.parameters.end() ? otherwise : found->second;
  }
  std::size_t count(const std::string& name, std::size_t otherwise) const {
    return static_cast<std::size_t>(std::max(parameter(name, static_cast<double>(otherwise)), 1.0));
  }
  static std::size_t last_of(const FormulaMatrix& matrix) {
    return matrix.shape.empty() ? 1 : static_cast<std::size_t>(matrix.shape.back());
  }

  // Rows of `columns` elements, `stride` from one to the next.
  void softmax() {
    const FormulaMatrix x = matrix(formula_.arguments[0]);
    if (!diags_.ok()) return;
    const std::size_t columns = count("columns", last_of(x)), stride = count("stride", columns);
    if (x.values.size() != results_.size() || results_.size() % stride || columns > stride)
      return refuse("softmax requires whole rows, and as many results");
    const auto all = reference::softmax(
        reference::row_major(x.values, results_.size() / stride, columns, stride));
    for (std::size_t i = 0; i < all.size(); ++i)
      results_[i / columns * stride + i % columns] = all[i];
    keep_gaps(columns, stride);
  }

  // What lies between rows keeps what the output starts with.
  void keep_gaps(std::size_t columns, std::size_t stride) {
    if (columns == stride) return;
    const FormulaMatrix start = matrix(formula_.output);
    for (std::size_t i = 0; i < results_.size() && diags_.ok(); ++i)
      if (i % stride >= columns) results_[i] = start.values[i];
  }

  void layer_norm() {
    const std::size_t given = formula_.arguments.size();
    const FormulaMatrix x = matrix(formula_.arguments[0]);
    const FormulaMatrix gamma = given > 1 ? matrix(formula_.arguments[1]) : FormulaMatrix{};
    const FormulaMatrix beta = given > 2 ? matrix(formula_.arguments[2]) : FormulaMatrix{};
    if (!diags_.ok()) return;
    const std::size_t columns = count("columns", last_of(x)), stride = count("stride", columns);
    if (x.values.size() != results_.size() || results_.size() % stride || columns > stride ||
        (given > 1 && gamma.values.size() < columns) || (given > 2 && beta.values.size() < columns))
      return refuse("layer_norm requires whole rows, as many results, and a row of factors");
    const double eps = parameter("eps", 1e-5), share = 1 / static_cast<double>(columns);
    for (std::size_t first = 0; first < results_.size(); first += stride) {
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < columns; ++i) mean += x.values[first + i] * share;
      for (std::size_t i = 0; i < columns; ++i)
        variance += (x.values[first + i] - mean) * (x.values[first + i] - mean) * share;
      for (std::size_t i = 0; i < columns; ++i)
        results_[first + i] = (x.values[first + i] - mean) / std::sqrt(variance + eps) *
                                  (given > 1 ? gamma.values[i] : 1) +
                              (given > 2 ? beta.values[i] : 0);
    }
    keep_gaps(columns, stride);
  }

  void attention() {
    const FormulaMatrix q = matrix(formula_.arguments[0]), k = matrix(formula_.arguments[1]),
                        v = matrix(formula_.arguments[2]);
    if (!diags_.ok()) return;
    const std::size_t dim = count("dim", last_of(q));
    const std::size_t outer =  // heads in front of rows, where the shape has them
        q.shape.size() > 2 ? q.values.size() / dim / static_cast<std::size_t>(q.shape.end()[-2])
                           : 1;
    const std::size_t heads = count("heads", outer);
    if (q.values.size() % (dim * heads) || k.values.size() % (dim * heads) ||
        k.values.size() != v.values.size() || q.values.size() != results_.size())
      return refuse("attention requires rows of dim elements in Q, K, V and the result");
    const std::size_t queries = q.values.size() / dim / heads;
    const std::size_t keys = k.values.size() / dim / heads;
    constexpr double ln2 = 0.693147180559945309417;
    reference::AttentionOptions options{
        .scale = has("scale2") ? parameter("scale2", 1) * ln2 : parameter("scale", 1),
        .causal = has("causal")};
    if (has("window")) options.window = count("window", 1);
    const auto head_of = [&](const FormulaMatrix& of, std::size_t head, std::size_t rows) {
      const std::span<const double> all(of.values);
      return reference::row_major(all.subspan(head * rows * dim, rows * dim), rows, dim);
    };
    for (std::size_t head = 0; head < heads; ++head) {
      const auto one = reference::attention(head_of(q, head, queries), head_of(k, head, keys),
                                            head_of(v, head, keys), options);
      std::ranges::copy(one, results_.begin() + static_cast<std::ptrdiff_t>(head * queries * dim));
    }
  }

  // One result for each row.
  void reduce() {
    const FormulaMatrix x = matrix(formula_.arguments[0]);
    if (!diags_.ok()) return;
    const std::size_t columns = count("columns", x.values.size() / results_.size());
    if (x.values.size() != columns * results_.size())
      return refuse(
          fmt::format("{} requires whole rows, and a result for each of them: found {} "
                      "elements in rows of {}, and {} results",
                      formula_.function, x.values.size(), columns, results_.size()));
    for (std::size_t row = 0; row < results_.size(); ++row) {
      const auto begin = x.values.begin() + static_cast<std::ptrdiff_t>(row * columns);
      const auto end = begin + static_cast<std::ptrdiff_t>(columns);
      results_[row] = formula_.function == "sum" ? std::accumulate(begin, end, 0.0)
                                                 : *std::max_element(begin, end);
    }
  }

  const Formula& formula_;
  const Shape& output_;
  const FormulaBuffers& buffers_;
  std::vector<double> results_;
  Diags diags_;
};

}  // namespace

Result<std::vector<double>> formula_numbers(const Formula& formula, const Shape& output,
                                            const FormulaBuffers& buffers) {
  return NumberEvaluation(formula, output, buffers)();
}

}  // namespace tartan::TARTAN_ABI::detail
