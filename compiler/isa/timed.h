// SPDX-License-Identifier: Apache-2.0
// compiler/isa/timed.h - the instructions that timelines show, and what they do there: the
// emulator's (runtime/emulator/timeline) and that of a kernel with timestamps
// (compiler/ptx/trace.cc).
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

/// Whose groups an instruction commits, or waits for.
enum class TimedGroup : std::uint8_t { copies, bulk, products };

struct TimedRow {
  Timed kind = Timed::No;
  TimedGroup group = TimedGroup::copies;  // of Commits and Waits
};

constexpr TimedRow timed_as(Opcode opcode) {
  switch (opcode) {
    case Opcode::cp_async: return {Timed::CopyAsync};
    case Opcode::cp_async_bulk:
    case Opcode::cp_async_bulk_tensor:
    case Opcode::cp_reduce_async_bulk:
    case Opcode::cp_reduce_async_bulk_tensor:
    case Opcode::st_async:
    case Opcode::red_async: return {Timed::Bulk};
    case Opcode::mma:
    case Opcode::wmma_mma: return {Timed::Multiplies};
    case Opcode::wgmma: return {Timed::Wgmma};
    case Opcode::cp_async_commit_group: return {Timed::Commits, TimedGroup::copies};
    case Opcode::cp_async_bulk_commit_group: return {Timed::Commits, TimedGroup::bulk};
    case Opcode::wgmma_commit_group: return {Timed::Commits, TimedGroup::products};
    case Opcode::cp_async_wait_all:
    case Opcode::cp_async_wait_group: return {Timed::Waits, TimedGroup::copies};
    case Opcode::cp_async_bulk_wait_group: return {Timed::Waits, TimedGroup::bulk};
    case Opcode::wgmma_wait_group: return {Timed::Waits, TimedGroup::products};
    case Opcode::bar:
    case Opcode::barrier:
    case Opcode::barrier_cluster_arrive:
    case Opcode::cp_async_mbarrier_arrive:
    case Opcode::mbarrier_init:
    case Opcode::mbarrier_inval:
    case Opcode::mbarrier_expect_tx:
    case Opcode::mbarrier_complete_tx:
    case Opcode::mbarrier_arrive:
    case Opcode::mbarrier_arrive_drop: return {Timed::Arrives};
    case Opcode::mbarrier_test_wait:
    case Opcode::mbarrier_try_wait: return {Timed::WaitsAtMbarrier};
    case Opcode::barrier_cluster_wait: return {Timed::WaitsForCluster};
    case Opcode::setmaxnreg: return {Timed::WaitsForRegisters};
    default: return {};
  }
}

}  // namespace tartan::TARTAN_ABI::isa
