// SPDX-License-Identifier: Apache-2.0
// dsl/layout/shared_memory.h - writes to shared memory, and whether a barrier separates them from
// reads. Not installed.
#pragma once

#include <string>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// Writes of a block's threads to shared memory are visible to each other only after a barrier.
void note_write(KernelState& state, const Tensor& to);
void note_fill(KernelState& state, const Tensor& to);  // by a pipeline's producers
void note_read(KernelState& state, const Tensor& from);
/// A change by an atomic operation: those need no barrier between them.
void note_atomic(KernelState& state, const Tensor& tensor);
/// Of a whole description: warnings of shared memory that is read and never written.
Diags unwritten(const Memories& memories);
/// Whether shared memory was not declared for the other operand each; reports if it was.
bool in_order(KernelState& state, const Tensor& a, const Tensor& b);
/// Reports a read of memory that was written since the last barrier: by threads, or by wgmma.
bool require_barrier(KernelState& state, const Tensor& from, StageAccess how = StageAccess::load);
bool require_barrier_of_operand(KernelState& state, const Tensor& from);
/// Reports, when both roles are described, memory that consumers write and producers fill or read.
void check_roles(KernelState& state);
/// Of all threads of the role.
void block_barrier(KernelState& state);

/// Whether the ring has the stage; reports if not.
bool is_stage(KernelState& state, const std::string& ring, const Scalar& stage, int stages);

}  // namespace tartan::TARTAN_ABI::detail
