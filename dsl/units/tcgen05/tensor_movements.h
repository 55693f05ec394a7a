// SPDX-License-Identifier: Apache-2.0
// dsl/units/tcgen05/tensor_movements.h - where the value of an accumulator has to be loaded from
// tensor memory, or stored there. Not installed.
//
// A value is in tensor memory, in registers, or in both. A product needs it in the one and leaves
// it there alone; a read needs it in the others, and an assignment leaves it there alone. A loop
// with products begins and ends each iteration with the value in tensor memory.
//
// A warp loads and stores for itself, but its warpgroup waits together for products, and meets
// before the next one. A condition may hold in some of its warps: around one without products, all
// of them wait and meet; in it, each loads and stores what it needs. Where it may hold in some
// lanes of a warp, the value is in registers before it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "compiler/ir/function_builder.h"
#include "dsl/state/tensor_sums.h"

namespace tartan::TARTAN_ABI::detail {

struct TensorMovement {
  enum class What : std::uint8_t { load, store, await, meet };
  TensorSum* sum;
  What what;
  bool together;         // a load or store: all warps, which wait before it and meet behind it
  bool assigns = false;  // what is waited before: some warps may assign
  TensorSum::Part part;
  std::uint32_t region = 0;  // where: before the `index`th operation of a region
  std::size_t index = 0;
  const TensorSum::Event* by;  // what needs it
};

/// Of accumulators that have products, in a region and those in it. `of_warps`: whether a condition
/// surely is the same in all lanes of each warp.
std::vector<TensorMovement> tensor_movements(const ir::FunctionBuilder& f, std::uint32_t region,
                                             const std::vector<std::shared_ptr<TensorSum>>& sums,
                                             const std::function<bool(int condition)>& of_warps);

}  // namespace tartan::TARTAN_ABI::detail
