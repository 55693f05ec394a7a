// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/gate.h - activation(gate) * up: what a gated MLP (SwiGLU, GeGLU) computes
// between its products.
//
//   const auto compiled = compile(kernels::gate({.type = bf16}), Arch{90, 'a'});
#pragma once

#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels {

/// What gate() computes, in f32: out[i] = activation(gate[i]) * up[i].
struct Gate {
  Activation activation = Activation::silu;
  Type type = f16;  // of all three: f16, bf16 or f32
};

/// Parameters: count (u32; even for f16 and bf16), gate, up, out: vectors of `count` elements.
/// Those of 16 bits are declared as `count / 2` u32, and are 4-byte aligned. A block of 256 threads
/// computes `gate_elements()` of them; a grid that covers more writes nothing beyond `count`.
Kernel gate(const Gate& options = {});
/// Elements that a block computes.
constexpr int gate_elements(Type type) { return 256 * 4 * (bits(type) == 16 ? 2 : 1); }

}  // namespace tartan::TARTAN_ABI::kernels
