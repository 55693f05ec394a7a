// SPDX-License-Identifier: Apache-2.0
// tartan/runtime/profile.h - what each instruction of a kernel did: how often it ran, and what its
// accesses cost. Emulator only, with DeviceOptions::profile; `tartan run --report` prints it.
//
//   auto device = Device::open("emulator", {.profile = true});
//   ...  // load, launch
//   for (const InstructionProfile& each : device->report().instructions)
//     if (each.shared.conflicts()) fmt::print("{}: {} conflicts\n", each.line, ...);
//
// Counts are of the kernel, not of a clock: they say nothing about what overlaps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// Accesses of an instruction to shared memory, by warps: ld, st, atom, red, ldmatrix, stmatrix and
/// cp.async; not wmma.load and wmma.store, whose addresses by lane are the hardware's secret, and
/// not bulk copies and wgmma.
///
/// Shared memory has 32 banks of 4 bytes. A wavefront delivers one word of each bank; lanes that
/// need the same word share it. A request takes as many wavefronts as its most wanted bank has
/// words, phase by phase: all 32 lanes at up to 4 bytes a lane, 16 lanes at 8 bytes, 8 lanes at 16
/// bytes (a matrix of ldmatrix). Two phases of ld are one where all lanes share their address with
/// a neighbour. An H200's profiler counts the same for 174 patterns (tests/data/profile); atomics
/// are counted as stores.
struct SharedAccesses {
  std::uint64_t requests = 0;    // one per warp and execution
  std::uint64_t wavefronts = 0;  // the profiler's l1tex__data_pipe_lsu_wavefronts_mem_shared
  std::uint64_t minimum = 0;     // wavefronts without bank conflicts
  std::uint64_t bytes = 0;       // of active lanes
  /// Of the request with the most conflicts: the first phase that has most wavefronts, how many
  /// words each bank delivers in it.
  std::vector<std::uint8_t> worst_banks = {};
  std::uint32_t worst_wavefronts = 0, worst_minimum = 0;  // of all its phases
  /// What would give that request its minimum: "128-byte swizzle", "rows of 64 bytes padded to 80";
  /// empty where nothing simple does.
  std::vector<std::string> cures = {};

  std::uint64_t conflicts() const { return wavefronts - minimum; }
};

/// Accesses of an instruction to global memory by warps. Memory moves in sectors of 32 bytes.
struct GlobalAccesses {
  std::uint64_t requests = 0;
  std::uint64_t sectors = 0;
  std::uint64_t minimum = 0;  // sectors that the same bytes would fill side by side
  std::uint64_t bytes = 0;    // of active lanes
};

/// What an instruction of the text did in all launches together.
struct InstructionProfile {
  std::string kernel;
  std::string opcode;            // as written: "ld.global.v4.u32"
  int line = 0;                  // of the PTX text
  std::string source;            // "gemm.cc:42", from .loc; empty where unknown
  std::uint64_t executions = 0;  // by warps
  std::uint64_t lanes = 0;       // that executed it, all executions together
  std::uint64_t diverged = 0;    // executions while other lanes of the warp were elsewhere
  std::uint64_t waits = 0;       // mbarrier waits that found the phase incomplete
  std::uint64_t multiply_adds = 0;
  std::uint64_t copied_bytes = 0;  // by bulk copies and TMA
  SharedAccesses shared;
  GlobalAccesses global;

  /// Issue slots and extra wavefronts (4 sectors of global memory make one): what lines are sorted
  /// by. A rule of thumb, no time.
  std::uint64_t cost() const {
    return executions + shared.wavefronts - shared.requests +
           (global.sectors > 4 * global.requests ? global.sectors / 4 - global.requests : 0);
  }
};

}  // namespace tartan::TARTAN_ABI
