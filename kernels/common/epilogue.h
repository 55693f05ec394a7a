// SPDX-License-Identifier: Apache-2.0
// kernels/common/epilogue.h - how accumulators become elements of C. Not installed.
#pragma once

#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// In the type of x: f32, or with none and relu f64.
Scalar activated(Builder& k, Activation activation, const Scalar& x);

class Finisher {
 public:
  /// Declares C, m x n, and the epilogue's parameters. `sum`: the accumulators' type.
  /// `transposed`: tiles are those of the transpose of C.
  Finisher(Builder& k, const Epilogue& options, Type sum, Type c, const Scalar& m, const Scalar& n,
           bool transposed = false);

  /// C and the residual of product `i` of a batch, `stride` elements apart.
  void select_matrix(const Scalar& i, const Scalar& stride);

  /// Finishes and stores a block's tile, the one at (row, col) of C divided into such tiles.
  void store(const WarpTile& sums, const Tile& tile, const Scalar& row, const Scalar& col) {
    store(sums, tile, row, col, {1, 0});
  }
  /// The same for one of `count` blocks of a tile's columns.
  struct Part {
    int count;
    Scalar number;
  };
  void store(const WarpTile& sums, const Tile& tile, const Scalar& row, const Scalar& col,
             const Part& of_tile);
  /// Finishes and stores one element.
  void store(const Scalar& sum, const Scalar& row, const Scalar& col);

 private:
  // The values that are read for an element, beside its accumulator.
  struct Others {
    Scalar row_scale = 1, column_scale = 1, bias = 0, old = 0, residual = 0;
  };
  void read_of_row(Others& to, const Scalar& row);
  void read_of_column(Others& to, const Scalar& col);
  Scalar finished(const Scalar& sum, const Others& with);
  struct Finished {
    Scalar row, col, value;
  };
  void store_elements(const Global& part, std::vector<Finished>& out);
  Scalar rounded(const Scalar& x);
  Fragment converted(const FragmentKind& kind, std::span<const Scalar> elements);
  Fragment saturated(const FragmentKind& kind, std::span<const Scalar> elements);
  Scalar converted(const Scalar& x);
  std::pair<Scalar, Scalar> converted(const Scalar& x, const Scalar& y);
  Scalar vector_value(const Global& from, const Scalar& i);
  Scalar residual_value(const Global& part, const Scalar& row, const Scalar& col);
  Scalar old_value(const Global& part, const Scalar& row, const Scalar& col);

  Builder& k_;
  Epilogue options_;
  Type sum_, c_, in_;  // in_: the type of the epilogue's arithmetic
  bool transposed_;
  Scalar alpha_, beta_;
  Global out_, row_scales_, column_scales_, bias_, residual_;
};

}  // namespace tartan::TARTAN_ABI::kernels::detail
