// SPDX-License-Identifier: Apache-2.0
// compiler/ir/shared_parts.h - the bytes of shared memory that an operation accesses in each
// thread. Not installed.
#pragma once

#include "compiler/ir/shared_accesses.h"
#include "compiler/ir/shared_facts.h"
#include "compiler/ir/thread_values.h"

namespace tartan::TARTAN_ABI::ir {

constexpr int warpgroup_threads = 128;

/// Says in `access` what those threads access, and who does so together. `stage`: bytes of a stage
/// of the memory.
void add_parts(Access& access, const Function& function, const Operation& op, const Touch& touch,
               std::int64_t stage, const Threads& threads, ThreadValues& values);

}  // namespace tartan::TARTAN_ABI::ir
