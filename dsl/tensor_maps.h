// SPDX-License-Identifier: Apache-2.0
// dsl/tensor_maps.h - the tensor maps of a kernel under description, and where warps stage what TMA
// stores for them. Not installed.
#pragma once

#include <vector>

#include "compiler/codegen/function_builder.h"
#include "tartan/dsl/kernel.h"

namespace tartan::inline TARTAN_ABI::detail {

struct TensorMapUse {
  int memory = -1;
  codegen::Pointer map;
};

struct TensorMaps {
  std::vector<CompiledMap> compiled;
  std::vector<TensorMapUse> uses;  // of each of them
};

/// Shared memory in which warps lay out what TMA stores: so many boxes for each warp.
struct TmaStaging {
  int memory = -1;    // of KernelState::memories
  int batch = 0;      // boxes that are stored together
  int slots = 0;      // batches that have room
  bool used = false;  // something was stored so
};

}  // namespace tartan::inline TARTAN_ABI::detail
