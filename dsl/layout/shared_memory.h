// SPDX-License-Identifier: Apache-2.0
// dsl/layout/shared_memory.h - who accesses shared memory. Whether barriers separate writes from
// reads, dsl/compile/order_checks.h tells of the whole description. Not installed.
#pragma once

#include <string>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

void note_write(KernelState& state, const Tensor& to);
void note_fill(KernelState& state, const Tensor& to);  // by a pipeline's producers
void note_read(KernelState& state, const Tensor& from);
/// A change by an atomic operation: those need no barrier between them.
void note_atomic(KernelState& state, const Tensor& tensor);
/// Of a whole description: warnings of shared memory that is read and never written.
Diags unwritten(const Memories& memories);
/// Whether shared memory was not declared for the other operand each; reports if it was.
bool in_order(KernelState& state, const Tensor& a, const Tensor& b);
/// A read by threads, after which consumers release the memory as `how` says if it is a stage.
void note_load(KernelState& state, const Tensor& from, StageAccess how = StageAccess::load);
/// A read by tcgen05, whose descriptors nobody follows later: reports one of what was written since
/// the last barrier.
bool require_barrier(KernelState& state, const Tensor& from);
/// In front of a named barrier: products of wgmma and tcgen05 see what threads have written before
/// it, if no fence of the kernel's own has come since.
void fence_writes(KernelState& state);
/// Reports, when both roles are described, memory that consumers write and producers fill or read.
void check_roles(KernelState& state);
/// Of all threads of the role.
void block_barrier(KernelState& state);

/// Whether the ring has the stage; reports if not.
bool is_stage(KernelState& state, const std::string& ring, const Scalar& stage, int stages);

}  // namespace tartan::TARTAN_ABI::detail
