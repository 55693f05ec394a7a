// SPDX-License-Identifier: Apache-2.0
// runtime/formula.h - the formulas of `tartan equal --reference`.
//
//   C = A * B                              the sizes of the buffers say how large matrices are
//   C = relu(0.5 * A * B' + 2 * C + bias)  ' transposes: the buffer has the columns side by side
//   O = attention(Q, K, V, dim=64, scale=0.125, causal, window=128)
//   Y = softmax(X, columns=256)
//   Y = layer_norm(X, gamma, beta, columns=256, eps=1e-5)
//   S = sum(X, columns=256)                of each row; max is its largest element
//   Y = alpha * X                          a scalar parameter that has a name
//
// Behind a name may stand the type of its elements, where the kernel takes them apart: A:s8.
// A name alone is a matrix of the result's size, or a row that is added to each row. Numbers stand
// for the f32 next to them. scale2=s is the factor of exponents to base 2, in place of scale.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/equal_launch.h"

namespace tartan::TARTAN_ABI::detail {

struct Formula {
  struct Factor {
    std::string buffer;
    Type type = Type::none;  // as it is written; none: as the kernel reads it
    bool transposed = false;
  };
  struct Term {
    double factor = 1;
    std::vector<Factor> matrices;  // one or two
  };
  std::string output;
  std::string function;     // attention, softmax, layer_norm, sum, max; empty: a sum of terms
  bool relu = false;        // of a sum
  std::vector<Term> terms;  // of a sum
  std::vector<std::string> arguments;
  std::map<std::string, double> parameters;  // a word alone: 1
};

/// Scalars by their names, which stand for numbers.
using FormulaScalars = std::map<std::string, double>;
FormulaScalars scalars_of(const Manifest& manifest);

Result<Formula> parse_formula(const std::string& text, const FormulaScalars& scalars);

/// What the formula asks of buffers that they do not have.
Diags check_formula(const Formula& formula, const std::vector<EqualBuffer>& buffers);

/// The formula's values as if a kernel had computed them; elements are of the types that the
/// kernel's run `beside` found.
EqualRun evaluate_formula(const Formula& formula, const std::vector<EqualBuffer>& buffers,
                          const EqualRun& beside, const Replaced& replaced);

}  // namespace tartan::TARTAN_ABI::detail
