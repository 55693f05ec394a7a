// SPDX-License-Identifier: Apache-2.0
// tartan/ir/value.h - handles of values that a kernel under description computes.
#pragma once

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::ir {

/// A scalar, or one 32-bit fragment register. Types: pred, u16, u32, s32, u64, s64, f16, bf16, f32,
/// f64, b32 (fragment registers). The type determines signedness: division, right shift, comparison
/// and conversion follow it.
struct Value {
  int id = -1;
  Type type = Type::none;
  bool valid() const { return id >= 0; }
};

/// A mutable scalar of the function (an LLVM alloca that mem2reg turns into registers):
/// accumulators, loop-carried values.
struct Variable {
  int id = -1;
  Type type = Type::none;
};

}  // namespace tartan::TARTAN_ABI::ir
