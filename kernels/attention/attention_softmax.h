// SPDX-License-Identifier: Apache-2.0
// kernels/attention/attention_softmax.h - caps of attention's scores, and sinks of its weights.
#pragma once

#include "tartan/kernels/attention.h"

namespace tartan::TARTAN_ABI::kernels {

/// tanh(scale * score / cap), for scores that are multiplied by the cap later.
class Capped {
 public:
  Capped(Builder& k, Softcap how, const Scalar& scale);
  const Scalar& cap() const { return cap_; }
  Scalar operator()(const Scalar& score) const;

 private:
  Softcap how_;
  Scalar cap_, inner_;
};

/// The softmax of rows with a sink: a weight of exp(sink) without a value.
struct Sunk {
  RowValues part, sum, lse;  // of the keys' weights to their own sum; of all weights; its logarithm

  /// `top` and `own` sum of the scores times `scale`, and a sink, in units of log2.
  Sunk(Builder& k, const RowValues& top, const RowValues& own, const Scalar& scale,
       const Scalar& sink);
};

}  // namespace tartan::TARTAN_ABI::kernels
