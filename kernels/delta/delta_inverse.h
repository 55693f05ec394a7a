// SPDX-License-Identifier: Apache-2.0
// kernels/delta/delta_inverse.h - the inverse of a unit lower triangular matrix of 64 x 64 in
// shared memory, by a CTA of four warps:
//
//   const DeltaInverse inverse(k);
//   inverse.write(negative);      // -N of (I + N), strictly lower, accumulators of the CTA
//   k.barrier();
//   inverse.invert();             // a barrier at its end
//   const std::vector<Scalar> x = inverse.read(row, col, 8);
//
// The diagonal blocks of 32 x 32 are inverted by substitution in f32, a column by a lane: one warp
// has the first 16 columns of both, another one the last, which have half as many rows. The block
// below is T22 * (-N21) * T11, two products in tf32, of the other warps.
#pragma once

#include <vector>

#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::kernels {

class DeltaInverse {
 public:
  explicit DeltaInverse(Builder& k);

  void write(const WarpTile& negative) const;
  void write(const Scalar& row, const Scalar& col, const Scalar& negative) const;
  void invert() const;
  std::vector<Scalar> read(const Scalar& row, const Scalar& col, int count) const;

 private:
  void substitute(int first) const;
  void join(const Scalar& first) const;

  Builder& k_;
  // Until they are inverted, the diagonal blocks are transposed, and so stays the block below,
  // above the diagonal; below it goes what the products give.
  Shared s_;
};

}  // namespace tartan::TARTAN_ABI::kernels
