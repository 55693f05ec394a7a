// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/trace_sites.h - what kernels with timestamps write: which instructions, and the form
// of a record. trace.cc writes the code, runtime/trace.cc reads the records.
//
// A record has 16 bytes: four words. The first of a thread says when it began, the last one when it
// ended; in between each record is of a site, an instruction of the text.
//
//   first    %clock   %globaltimer, low word   high word      address of the first shared variable
//   site     %clock   site | flags             lanes          its barrier
//   last     %clock   exited                   %globaltimer   records that did not fit
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/isa/timed.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::ptx {

/// An instruction that a timeline shows, in a kernel.
struct TraceSite {
  const Instruction* instruction = nullptr;
  isa::Timed kind = isa::Timed::No;
  isa::GroupKind group = isa::GroupKind::copies;  // of Commits and Waits
  /// cp.async and mma that follow each other in one basic block share two records, at the first and
  /// at the last of them.
  bool first = true, last = true;
};

/// By number, in the order of the text.
std::vector<TraceSite> trace_sites(const Module& module);

/// Whether the site is an interval: it has a record before the instruction and one after.
bool has_end(const Module& module, const TraceSite& site);
/// Whether the lanes wait at the barrier where they arrive: bar.sync and the like.
bool waits_there(const Module& module, const Instruction& instruction);
/// The operand that names the barrier or the address of the mbarrier; null: none.
const Operand* barrier_of(const Module& module, const Instruction& instruction);

namespace trace_record {
inline constexpr std::uint32_t end = 1u << 31, odd = 1u << 30;  // flags: after; phase parity 1
inline constexpr std::uint32_t exited = odd - 1, site = odd - 1;
}  // namespace trace_record

}  // namespace tartan::TARTAN_ABI::ptx
