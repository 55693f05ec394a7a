// SPDX-License-Identifier: Apache-2.0
// tests/kernels/activations.h - activations in double, which kernels are compared with.
#pragma once

#include <algorithm>
#include <cmath>

#include "tartan/kernels/gemm.h"

namespace tartan::testing_gemm {

inline double activated(kernels::Activation activation, double x) {
  using kernels::Activation;
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return std::max(x, 0.0);
    case Activation::gelu:
      return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
  }
  return x;
}

}  // namespace tartan::testing_gemm
