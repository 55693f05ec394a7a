// SPDX-License-Identifier: Apache-2.0
#include "runtime/formula.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "runtime/element.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

struct NamedFunction {
  std::string_view name;
  std::size_t least, most;  // buffers
  std::string_view needs;   // where nobody knows the buffers' shapes
  std::string_view takes;
};
constexpr NamedFunction functions[] = {
    {"attention", 3, 3, "dim", " dim scale scale2 causal window heads "},
    {"softmax", 1, 1, "columns", " columns stride "},
    {"layer_norm", 1, 3, "columns", " columns stride eps "},
    {"sum", 1, 1, "", " columns "},
    {"max", 1, 1, "", " columns "},
};

class Parser {
 public:
  Parser(std::string_view text, const FormulaScalars& scalars) : text_(text), scalars_(scalars) {}

  Result<Formula> operator()() {
    Formula out;
    out.output = name();
    expect('=');
    const std::size_t begin = at_;
    const std::string first = name();
    if (first == "relu" && take('(')) {
      out.relu = true;
      sum(out);
      expect(')');
    } else if (!first.empty() && take('(')) {
      out.function = first;
      arguments(out);
    } else {
      at_ = begin;
      sum(out);
    }
    blank();
    if (error_.empty() && at_ < text_.size()) fail("the formula's end");
    if (error_.empty()) check_function(out);
    if (!error_.empty()) return {"usage"_rule, error_};
    return out;
  }

 private:
  void blank() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    blank();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }
  void fail(std::string_view what) {
    if (error_.empty())
      error_ = fmt::format("formula: expected {}, found \"{}\"", what, text_.substr(at_, 16));
  }
  std::string name() {
    blank();
    const std::size_t begin = at_;
    const auto fits = [&](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) || c == '_' ||
             (at_ > begin && std::isdigit(static_cast<unsigned char>(c)));
    };
    while (at_ < text_.size() && fits(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::optional<double> number() {
    blank();
    double out = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return static_cast<float>(out);
  }

  std::optional<double> number_or_scalar() {
    if (const auto value = number()) return value;
    const std::size_t begin = at_;
    const auto scalar = scalars_.find(name());
    if (scalar != scalars_.end()) return scalar->second;
    at_ = begin;
    return std::nullopt;
  }

  void sum(Formula& out) {
    bool negative = take('-');
    do {
      Formula::Term& term = out.terms.emplace_back();
      if (negative) term.factor = -1;
      do factor(term);
      while (error_.empty() && take('*'));
      if (term.matrices.empty() || term.matrices.size() > 2) fail("one matrix or two");
      negative = false;
    } while (error_.empty() && (take('+') || (negative = take('-'))));
  }
  void factor(Formula::Term& term) {
    if (const auto value = number()) return void(term.factor *= *value);
    const std::string buffer = name();
    if (buffer.empty()) return fail("a buffer or a number");
    if (const auto scalar = scalars_.find(buffer); scalar != scalars_.end())
      return void(term.factor *= scalar->second);
    Formula::Factor& matrix = term.matrices.emplace_back();
    matrix.buffer = buffer;
    if (take(':')) {
      const auto type = parse_type(name());
      if (!type) return fail("a type");
      matrix.type = *type;
    }
    matrix.transposed = take('\'');
  }
  void arguments(Formula& out) {
    do {
      const std::string word = name();
      if (word.empty()) return fail("a buffer or a parameter");
      if (take('=')) {
        const auto value = number_or_scalar();
        if (!value) return fail("a number");
        out.parameters[word] = *value;
      } else if (word == "causal") {
        out.parameters[word] = 1;
      } else {
        out.arguments.push_back(word);
      }
    } while (take(','));
    expect(')');
  }
  void check_function(const Formula& formula) {
    if (formula.function.empty()) return;
    for (const NamedFunction& row : functions) {
      if (row.name != formula.function) continue;
      if (formula.arguments.size() < row.least || formula.arguments.size() > row.most)
        error_ = fmt::format("formula: {} takes {} to {} buffers, found {}", row.name, row.least,
                             row.most, formula.arguments.size());
      for (const auto& [word, value] : formula.parameters)
        if (row.takes.find(fmt::format(" {} ", word)) == row.takes.npos)
          error_ =
              fmt::format("formula: {} has no parameter {}; it takes{}", row.name, word, row.takes);
      const auto window = formula.parameters.find("window");
      if (window == formula.parameters.end()) return;
      if (!formula.parameters.contains("causal")) error_ = "formula: window= requires causal";
      if (window->second < 1 || window->second != std::floor(window->second))
        error_ = fmt::format("formula: window={}: expected a whole number of keys, 1 or more",
                             window->second);
      return;
    }
    error_ = fmt::format(
        "formula: unknown function {}; expected attention, softmax, layer_norm, sum "
        "or max",
        formula.function);
  }

  std::string_view text_;
  const FormulaScalars& scalars_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace

FormulaScalars scalars_of(const Manifest& manifest) {
  FormulaScalars out;
  const auto add = [&](const std::vector<ManifestParam>& params) {
    for (const ManifestParam& each : params)
      if (!each.name.empty() && each.type != Type::none && element_size(each.type) > 0)
        out.try_emplace(each.name,
                        element_value(each.type, load_element(each.scalar, 0, each.scalar.size())));
  };
  add(manifest.params);
  for (const ManifestLaunch& each : manifest.then) add(each.params);
  return out;
}

Result<Formula> parse_formula(const std::string& text, const FormulaScalars& scalars) {
  return Parser(text, scalars)();
}

Diags check_formula(const Formula& formula, const std::vector<EqualBuffer>& buffers) {
  Diags out;
  const auto need = [&](const std::string& name) {
    for (const EqualBuffer& each : buffers)
      if (each.name == name) return;
    std::string known;
    for (const EqualBuffer& each : buffers) known += (known.empty() ? "" : ", ") + each.name;
    out.report("usage"_rule, {},
               fmt::format("formula: the manifest has no buffer {}; it has {}", name, known));
  };
  need(formula.output);
  for (const std::string& each : formula.arguments) need(each);
  for (const Formula::Term& term : formula.terms)
    for (const Formula::Factor& factor : term.matrices) need(factor.buffer);
  for (const NamedFunction& each : functions)
    if (each.name == formula.function && !each.needs.empty() &&
        !formula.parameters.contains(std::string(each.needs)))
      out.report("usage"_rule, {}, fmt::format("formula: {} requires {}=", each.name, each.needs));
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
