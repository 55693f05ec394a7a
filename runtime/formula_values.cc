// SPDX-License-Identifier: Apache-2.0
// What a formula's elements are over the reals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/formula.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using emulator::Algebra;
using emulator::Function;
using emulator::Ref;
using emulator::Tag;
using emulator::Values;

class Evaluation {
 public:
  Evaluation(const Formula& formula, const std::vector<EqualBuffer>& buffers,
             const EqualRun& beside, EqualRun& out)
      : formula_(formula), buffers_(buffers), beside_(beside), out_(out), algebra_(*out.algebra) {}

  void operator()() {
    for (const EqualBuffer& each : buffers_) {
      algebra_.add_input(each.key, 0, each.bytes, each.exact);
      out_.bits.push_back(each.contents);
      out_.tags.emplace_back(each.bytes);
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      for (std::size_t at = 0; at < buffers_[i].bytes && !buffers_[i].exact; ++at)
        out_.tags[i][at] =
            emulator::input_tag(algebra_.inputs()[i].first + static_cast<std::uint32_t>(at));
    const std::size_t output = index_of(formula_.output);
    find_output(output);
    if (!out_.refused.ok()) return;
    if (formula_.function.empty()) sums();
    else if (formula_.function == "softmax") softmax();
    else if (formula_.function == "layer_norm") layer_norm();
    else if (formula_.function == "sum" || formula_.function == "max") reduce();
    else attention();
    if (!out_.refused.ok()) return;
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (results_[i])
        algebra_.write(&out_.tags[output][i * output_bytes_], results_[i], output_type_);
  }

 private:
  Values& values() { return algebra_.values; }
  std::size_t index_of(const std::string& name) const {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i].name == name) return i;
    return 0;
  }
  void refuse(std::string why) {
    if (out_.refused.ok()) out_.refused.report("usage"_rule, {}, "formula: " + std::move(why));
  }
  static std::size_t bytes_of(Type type) { return static_cast<std::size_t>(bits(type)) / 8; }

  // What the kernel left there.
  void find_output(std::size_t output) {
    for (const Tag tag : beside_.tags[output]) {
      if (!emulator::is_valued(tag)) continue;
      output_type_ = beside_.algebra->values[emulator::ref_of(tag)].type;
      output_bytes_ = emulator::size_of_element(tag);
      break;
    }
    if (output_type_ == Type::none) {
      refuse(fmt::format("the kernel wrote no floating-point elements into {}", formula_.output));
      return;
    }
    const bool whole = formula_.function.empty();  // else what lies between rows stays
    results_.assign(buffers_[output].bytes / output_bytes_, whole ? values().zero() : 0);
  }

  // The elements of a buffer, of the type that the kernel reads.
  std::vector<Ref> elements(const std::string& name, Type type = Type::none) {
    const std::size_t i = index_of(name);
    const std::uint32_t first = beside_.algebra->inputs()[i].first;
    for (std::uint32_t at = 0; at < buffers_[i].bytes && type == Type::none; ++at)
      type = beside_.algebra->type(first + at);
    if (type == Type::none && buffers_[i].exact) type = output_type_;
    std::vector<Ref> out;
    if (type == Type::none)
      return refuse(fmt::format("the kernel reads no elements of {}", name)), out;
    const std::size_t size = bytes_of(type);
    for (std::size_t at = 0; at + size <= buffers_[i].bytes; at += size)
      out.push_back(algebra_.read(nullptr, &out_.tags[i][at], &out_.bits[i][at], type));
    return out;
  }

  // ---- Sums of products.

  struct Sizes {
    std::size_t m = 0, n = 0, k = 0;
  };

  // |A| = m k, |B| = k n, |C| = m n.
  std::optional<Sizes> sizes_of(std::size_t a, std::size_t b, std::size_t c) {
    const auto root = [](double square) {
      return static_cast<std::size_t>(std::llround(std::sqrt(square)));
    };
    const double x = static_cast<double>(a), y = static_cast<double>(b), z = static_cast<double>(c);
    const Sizes out{root(x * z / y), root(y * z / x), root(x * y / z)};
    if (out.m * out.k == a && out.k * out.n == b && out.m * out.n == c) return out;
    refuse(fmt::format("no sizes m, n, k fit buffers of {}, {} and {} elements", a, b, c));
    return std::nullopt;
  }

  Ref scaled(Ref x, double factor) {
    return factor == 1 ? x : values().product(values().constant(factor), x);
  }

  void sums() {
    std::size_t columns = 0;
    for (const Formula::Term& term : formula_.terms)
      if (term.matrices.size() == 2) product(term, columns);
    for (const Formula::Term& term : formula_.terms)
      if (term.matrices.size() == 1 && out_.refused.ok()) single(term, columns);
    if (formula_.relu)
      for (Ref& each : results_) each = values().extremum(each, values().zero(), true);
  }

  void product(const Formula::Term& term, std::size_t& columns) {
    const std::vector<Ref> a = elements(term.matrices[0].buffer, term.matrices[0].type),
                           b = elements(term.matrices[1].buffer, term.matrices[1].type);
    if (!out_.refused.ok()) return;
    const auto sizes = sizes_of(a.size(), b.size(), results_.size());
    if (!sizes) return;
    columns = sizes->n;
    const bool ta = term.matrices[0].transposed, tb = term.matrices[1].transposed;
    for (std::size_t m = 0; m < sizes->m; ++m)
      for (std::size_t n = 0; n < sizes->n; ++n) {
        emulator::Number sum;
        bool plain = true;
        for (std::size_t k = 0; k < sizes->k; ++k) {
          const Ref x = a[ta ? k * sizes->m + m : m * sizes->k + k],
                    y = b[tb ? n * sizes->k + k : k * sizes->n + n];
          plain &= values().plain(x) && values().plain(y);
          sum = sum + values()[x].number * values()[y].number;
        }
        const Ref dot = plain ? values().add(sum, false, true)
                              : algebra_.undecided(nullptr, "infinities in a product");
        Ref& to = results_[m * sizes->n + n];
        to = values().sum(to, scaled(dot, term.factor));
      }
  }

  // A matrix, or a row for each row.
  void single(const Formula::Term& term, std::size_t columns) {
    const std::vector<Ref> added = elements(term.matrices[0].buffer, term.matrices[0].type);
    if (!out_.refused.ok()) return;
    if (added.size() != results_.size() && added.size() != columns)
      return refuse(fmt::format("{} has {} elements: expected {}, or {} for a row",
                                term.matrices[0].buffer, added.size(), results_.size(), columns));
    for (std::size_t i = 0; i < results_.size(); ++i) {
      std::size_t at = i % added.size();
      if (term.matrices[0].transposed && columns)
        at = i % columns * (results_.size() / columns) + i / columns;
      results_[i] = values().sum(results_[i], scaled(added[at], term.factor));
    }
  }

  // ---- Functions.

  double parameter(const std::string& name, double otherwise) const {
    const auto found = formula_.parameters.find(name);
    return found == formula_.parameters.end() ? otherwise : found->second;
  }
  std::size_t count(const std::string& name) const {
    return static_cast<std::size_t>(std::max(parameter(name, 1), 1.0));
  }
  std::size_t row_stride() const {
    return formula_.parameters.contains("stride") ? count("stride") : count("columns");
  }
  Ref log2_e() { return values().constant(static_cast<double>(1.44269504088896341f)); }

  // 2^x over their sum.
  void weigh(std::vector<Ref>& row) {
    Ref sum = values().zero();
    for (Ref& each : row) {
      each = values().apply(Function::exp2, each);
      sum = values().sum(sum, each);
    }
    const Ref inverse = values().apply(Function::reciprocal, sum);
    for (Ref& each : row) each = values().product(each, inverse);
  }

  void softmax() {
    const std::vector<Ref> x = elements(formula_.arguments[0]);
    const std::size_t columns = count("columns"), stride = row_stride();
    if (x.size() < results_.size() || results_.size() % stride || columns > stride)
      return refuse("softmax requires whole rows, and as many results");
    for (std::size_t first = 0; first < results_.size(); first += stride) {
      std::vector<Ref> row;
      for (std::size_t i = 0; i < columns; ++i)
        row.push_back(values().product(x[first + i], log2_e()));
      weigh(row);
      std::copy(row.begin(), row.end(), results_.begin() + static_cast<std::ptrdiff_t>(first));
    }
  }

  // One result for each row.
  void reduce() {
    const std::vector<Ref> x = elements(formula_.arguments[0]);
    if (!out_.refused.ok()) return;
    const std::size_t columns = formula_.parameters.contains("columns")
                                    ? count("columns")
                                    : x.size() / std::max<std::size_t>(results_.size(), 1);
    if (columns == 0 || x.size() != columns * results_.size())
      return refuse(
          fmt::format("{} requires whole rows, and a result for each of them", formula_.function));
    for (std::size_t row = 0; row < results_.size(); ++row) {
      Ref& to = results_[row] = x[row * columns];
      for (std::size_t i = 1; i < columns; ++i)
        to = formula_.function == "sum" ? values().sum(to, x[row * columns + i])
                                        : values().extremum(to, x[row * columns + i], true);
    }
  }

  void layer_norm() {
    const std::size_t given = formula_.arguments.size();
    const std::vector<Ref> x = elements(formula_.arguments[0]);
    std::vector<Ref> gamma, beta;
    if (given > 1) gamma = elements(formula_.arguments[1]);
    if (given > 2) beta = elements(formula_.arguments[2]);
    const std::size_t columns = count("columns"), stride = row_stride();
    if (!out_.refused.ok()) return;
    if (x.size() < results_.size() || results_.size() % stride || columns > stride ||
        (given > 1 && gamma.size() < columns) || (given > 2 && beta.size() < columns))
      return refuse("layer_norm requires whole rows, as many results, and a row of factors");
    const Ref share =
        values().apply(Function::reciprocal, values().constant(static_cast<double>(columns)));
    const Ref eps = values().constant(parameter("eps", static_cast<double>(1e-5f)));
    for (std::size_t first = 0; first < results_.size(); first += stride) {
      Ref sum = values().zero(), squares = values().zero();
      for (std::size_t i = 0; i < columns; ++i) sum = values().sum(sum, x[first + i]);
      const Ref mean = values().apply(Function::negate, values().product(sum, share));
      std::vector<Ref> centred;
      for (std::size_t i = 0; i < columns; ++i) {
        centred.push_back(values().sum(x[first + i], mean));
        squares = values().fused(centred[i], centred[i], squares);
      }
      const Ref deviation = values().apply(Function::rsqrt, values().fused(squares, share, eps));
      for (std::size_t i = 0; i < columns; ++i) {
        Ref out = values().product(centred[i], deviation);
        if (given > 1) out = values().product(out, gamma[i]);
        results_[first + i] = given > 2 ? values().sum(out, beta[i]) : out;
      }
    }
  }

  void attention() {
    const std::vector<Ref> q = elements(formula_.arguments[0]), k = elements(formula_.arguments[1]),
                           v = elements(formula_.arguments[2]);
    const std::size_t dim = count("dim"), heads = count("heads");
    if (!out_.refused.ok()) return;
    if (q.size() % (dim * heads) || k.size() % (dim * heads) || k.size() != v.size() ||
        q.size() != results_.size())
      return refuse("attention requires rows of dim elements in Q, K, V and the result");
    const std::size_t queries = q.size() / dim / heads, keys = k.size() / dim / heads;
    Ref scale = values().product(values().constant(parameter("scale", 1)), log2_e());
    if (formula_.parameters.contains("scale2")) scale = values().constant(parameter("scale2", 1));
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t row = 0; row < queries; ++row) {
        std::size_t last = keys;  // the last query sees all of them
        if (formula_.parameters.contains("causal"))
          last = row + 1 + keys > queries ? std::min(row + 1 + keys - queries, keys) : 0;
        std::size_t first = 0;
        if (formula_.parameters.contains("window")) first = last - std::min(last, count("window"));
        std::vector<Ref> weights;
        const Ref* query = &q[(head * queries + row) * dim];
        for (std::size_t key = first; key < last; ++key) {
          Ref dot = values().zero();
          for (std::size_t i = 0; i < dim; ++i)
            dot = values().fused(query[i], k[(head * keys + key) * dim + i], dot);
          weights.push_back(values().product(dot, scale));
        }
        weigh(weights);
        for (std::size_t i = 0; i < dim; ++i) {
          Ref sum = values().zero();
          for (std::size_t key = first; key < last; ++key)
            sum = values().fused(weights[key - first], v[(head * keys + key) * dim + i], sum);
          results_[(head * queries + row) * dim + i] = sum;
        }
      }
  }

  const Formula& formula_;
  const std::vector<EqualBuffer>& buffers_;
  const EqualRun& beside_;
  EqualRun& out_;
  Algebra& algebra_;
  Type output_type_ = Type::none;
  std::size_t output_bytes_ = 1;
  std::vector<Ref> results_;
};

}  // namespace

EqualRun evaluate_formula(const Formula& formula, const std::vector<EqualBuffer>& buffers,
                          const EqualRun& beside, const Replaced& replaced) {
  EqualRun out{.algebra = std::make_unique<Algebra>()};
  out.algebra->replaced = replaced;
  Evaluation(formula, buffers, beside, out)();
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
