// SPDX-License-Identifier: Apache-2.0
// dsl/units/tcgen05/tensor_movements.h - where the value of an accumulator has to be loaded from
// tensor memory, or stored there. Not installed.
//
// A value is in tensor memory, in registers, or in both. A product needs it in the one and leaves it
// there alone; a read needs it in the others, and an assignment leaves it there alone. Loads and
// stores take a whole warpgroup, while a condition may hold in some of its warps: one that has no
// product finds the value in registers already. A loop with products begins and ends each iteration
// with the value in tensor memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "compiler/ir/function_builder.h"
#include "dsl/state/tensor_sums.h"

namespace tartan::TARTAN_ABI::detail {

struct TensorMovement {
  TensorSum* sum;
  bool loads;                  // else stores
  TensorSum::Part part;
  std::uint32_t region = 0;    // where: before the `index`th operation of a region
  std::size_t index = 0;
  const TensorSum::Event* by;  // what needs it
};

/// Of accumulators that have products, in a region and those in it.
std::vector<TensorMovement> tensor_movements(
    const codegen::FunctionBuilder& f, std::uint32_t region,
    const std::vector<std::shared_ptr<TensorSum>>& sums);

}  // namespace tartan::TARTAN_ABI::detail
