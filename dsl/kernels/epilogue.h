// SPDX-License-Identifier: Apache-2.0
// dsl/kernels/epilogue.h - how sums become elements of C. Not installed.
#pragma once

#include <optional>

#include "dsl/kernels/gemm.h"

namespace tartan::kernels::detail {

class Finisher {
 public:
  /// Declares C and the epilogue's parameters. `sum`: the accumulators' type.
  Finisher(Builder& k, const Epilogue& options, Type sum, Type c, const Scalar& m, const Scalar& n);

  /// C and the residual of product `i` of a batch, `stride` elements apart.
  void select_matrix(const Scalar& i, const Scalar& stride);

  /// Finishes and stores a block's tile, the one at (row, col) of C divided into such tiles.
  void store(const WarpTile& sums, const Tile& tile, const Scalar& row, const Scalar& col);
  /// Finishes and stores one element.
  void store(const Scalar& sum, const Scalar& row, const Scalar& col);

 private:
  Scalar finished(const Scalar& sum, const Scalar& row, const Scalar& col);
  Scalar activated(const Scalar& x);
  Scalar converted(const Scalar& x);
  Scalar row_value(const Global& from, const Scalar& row, const Scalar& col);

  Builder& k_;
  Epilogue options_;
  Type sum_, c_, in_;  // in_: what is computed in
  Scalar m_, n_;
  Scalar alpha_, beta_;
  Global out_, row_scales_, column_scales_, bias_, residual_;
};

/// Matrix number `i` of several, `stride` elements apart.
Global matrix_of(Builder& k, const Global& first, const Scalar& i, const Scalar& stride);

}  // namespace tartan::kernels::detail
