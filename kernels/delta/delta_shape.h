// SPDX-License-Identifier: Apache-2.0
// kernels/delta/delta_shape.h - which options the kernels of the delta rule take, and the part of
// packed sequences that a CTA has.
#pragma once

#include "tartan/kernels/delta_rule.h"

namespace tartan::TARTAN_ABI::kernels {

/// Reports options that do not go together.
bool is_possible(Builder& k, const DeltaRule& options);
bool is_possible(Builder& k, const DeltaRuleDecode& options);

/// The sequence and the head of values that blockIdx selects, and its first chunk among those of
/// all sequences: each has room for a part of a chunk more than its tokens fill.
struct DeltaPlace {
  Scalar heads, key_heads, head, key_head;
  Scalar first, count;  // tokens of the sequence
  Scalar first_chunk;

  DeltaPlace(Builder& k, const Scalar& heads, const Scalar& key_heads, const Global& starts);
  /// Which matrix of transforms, weights and decays a chunk of the sequence has.
  Scalar matrix(const Scalar& chunk) const { return (first_chunk + chunk) * heads + head; }
};

}  // namespace tartan::TARTAN_ABI::kernels
