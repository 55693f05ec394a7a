// SPDX-License-Identifier: Apache-2.0
// kernels/mixed/mixed_numbers.h - weights of 4 or 8 bits become numbers of 16, in registers. Not
// installed.
#pragma once

#include <array>
#include <vector>

#include "tartan/dsl/builder.h"
#include "tartan/kernels/mixed_gemm.h"

namespace tartan::TARTAN_ABI::kernels {

constexpr int mixed_chunk = 64;  // along k, of which a warp multiplies one at a time

/// Whether there is such a kernel; reports what is wrong.
bool is_possible(Builder& k, const MixedGemm& with);

/// Rows of X that one TMA copy brings into a stage, with all of its k: no more than X has, since
/// the products of others are not stored. 0: a copy for each chunk of k, of all rows of a tile.
int mixed_box_rows(const MixedGemm& with, const Target& target);

/// What belongs to a lane's two columns of a block, g and g + 8, in a group of k.
struct MixedColumns {
  std::array<Scalar, 2> scales;   // f32
  std::array<Scalar, 2> factors;  // the same as pairs of `type`; with scaled weights only
  std::array<Scalar, 2> base;     // subtrahends of its weights, negative: see MixedNumbers
};

/// A weight's bits are or-ed into a number whose lowest mantissa bits they are: 1024 + w in f16,
/// 128 + w in bf16, 2^23 + w in f32. The rest, and the zero point, is subtracted, which is exact.
class MixedNumbers {
 public:
  MixedNumbers(Builder& k, const MixedGemm& options);

  /// 64-bit words of a lane in 64 rows of a block.
  int words() const { return nibbles_ ? 2 : 4; }
  /// Of a word of S and one of Z; without zero points the latter is not used.
  MixedColumns columns(const Scalar& scales, const Scalar& zeros) const;
  /// Four fragments of operand A, along k, from a lane's 32-bit words.
  std::vector<Fragment> fragments(const std::vector<Scalar>& words,
                                  const MixedColumns& columns) const;

 private:
  std::vector<Scalar> four(const Scalar& word, const MixedColumns& columns) const;
  std::vector<Scalar> two(const Scalar& word, const MixedColumns& columns) const;
  Scalar scaled(const Scalar& pair, const MixedColumns& columns, int column) const;
  Scalar pair(const Scalar& bits) const { return k_.bitcast(bits, pair_); }

  Builder& k_;
  const MixedGemm& options_;
  bool half_, nibbles_;
  Type pair_;
};

}  // namespace tartan::TARTAN_ABI::kernels
