// SPDX-License-Identifier: Apache-2.0
// dsl/shared_memory.h - who wrote a matrix, and whether a barrier stands between them and those who
// read. Not installed.
#pragma once

#include <string>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

/// What the threads of a block write to shared memory is there for each other behind a barrier
/// only.
void note_write(KernelState& state, const Tensor& to);
void note_fill(KernelState& state, const Tensor& to);  // by a pipeline's producers
/// Reports a read of what was written without a barrier since.
bool require_barrier(KernelState& state, const Tensor& from);
/// Of all threads of the role.
void block_barrier(KernelState& state);

/// Whether a ring has the stage; reports if not.
void check_stage(KernelState& state, const std::string& ring, const Scalar& stage, int stages);

}  // namespace tartan::inline TARTAN_ABI::detail
