// SPDX-License-Identifier: Apache-2.0
// compiler/isa/timed.h - what an opcode's row says of asynchronous groups and of timelines: the
// emulator's (runtime/emulator/timeline) and that of a kernel with timestamps
// (compiler/ptx/trace.cc). The rows are those of opcode.cc.
#pragma once

#include <cstdint>

#include "tartan/isa/opcode.h"

namespace tartan::TARTAN_ABI::isa {

enum class Timed : std::uint8_t {
  No,
  CopyAsync,
  Bulk,
  Multiplies,  // mma, wmma
  Wgmma,
  Commits,  // a group
  Waits,    // for groups
  Arrives,
  WaitsAtMbarrier,
  WaitsForCluster,
  WaitsForRegisters,
};

/// What an instruction has to do with groups of asynchronous ones.
enum class GroupStep : std::uint8_t { None, Issues, Commits, Waits };
/// Whose groups they are: those of cp.async, of bulk copies, or of wgmma.
enum class GroupKind : std::uint8_t { copies, bulk, products };

struct AsyncGroup {
  GroupStep step = GroupStep::None;
  GroupKind kind = GroupKind::copies;
};

AsyncGroup group_of(Opcode opcode);
/// Commits and Waits are those of groups.
Timed timed_as(Opcode opcode);

}  // namespace tartan::TARTAN_ABI::isa
