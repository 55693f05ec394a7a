// SPDX-License-Identifier: Apache-2.0
// runtime/formula_numbers.h - a formula's results as numbers, by the loops of their definitions in
// double precision: what `tartan run --reference` expects.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/formula.h"

namespace tartan::TARTAN_ABI::detail {

/// A buffer's elements. A shape of one extent says nothing of rows and columns.
struct FormulaMatrix {
  std::vector<double> values;
  std::vector<std::uint64_t> shape;
};

/// The buffer of a name, its elements taken as `type` if that is not none.
using FormulaBuffers = std::function<Result<FormulaMatrix>(const std::string& name, Type type)>;

/// The elements of the formula's output, whose shape is `output`. Sizes follow from the numbers of
/// elements, as in `tartan equal`; where shapes are known, they agree with them.
Result<std::vector<double>> formula_numbers(const Formula& formula,
                                            const std::vector<std::uint64_t>& output,
                                            const FormulaBuffers& buffers);

}  // namespace tartan::TARTAN_ABI::detail
