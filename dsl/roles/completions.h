// SPDX-License-Identifier: Apache-2.0
// dsl/roles/completions.h - what accesses to a stage cost the two sides of its ring: one row for
// each kind. Not installed.
//
// A stage has two mbarriers. Producers arrive at `full` when their writes are done, consumers at
// `empty` when their reads are. Where a callback has accesses of several kinds, their rows add up.
// Multicast is no kind of its own: with it consumers arrive at `empty` of each CTA that fills their
// stages (settle_releases()).
//
// Of a product by tcgen05 the tensor core arrives, by tcgen05.commit. One thread of each warpgroup
// issues it; the warps arrive besides, so that none falls a pass over the ring behind.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "dsl/state/accesses.h"
#include "tartan/isa/signature.h"

namespace tartan::TARTAN_ABI::detail {

/// Who arrives at an mbarrier for an access.
enum class Arrives : std::uint8_t {
  none,
  issuer,  // the lane that starts it, for all producers or its warpgroup
  thread,  // each thread, for what it accesses itself
  warp,    // one lane of each warp, which has accessed as a whole
};

struct CompletionRow {
  StageAccess access;
  isa::Opcode opcode;          // of the instruction
  isa::Completion completion;  // by which it is done
  isa::Proxy proxy;            // through which it accesses shared memory
  Arrives publish = Arrives::none, release = Arrives::none;
};

constexpr CompletionRow completions[] = {
    {.access = StageAccess::store,
     .opcode = isa::Opcode::st,
     .completion = isa::Completion::Immediate,
     .proxy = isa::Proxy::Generic,
     .publish = Arrives::thread},
    {.access = StageAccess::cp_async,
     .opcode = isa::Opcode::cp_async,
     .completion = isa::Completion::CpAsyncGroup,
     .proxy = isa::Proxy::Generic,
     .publish = Arrives::thread},
    {.access = StageAccess::tma_load,
     .opcode = isa::Opcode::cp_async_bulk_tensor,
     .completion = isa::Completion::Mbarrier,
     .proxy = isa::Proxy::Async,
     .publish = Arrives::issuer},
    {.access = StageAccess::load,
     .opcode = isa::Opcode::ld,
     .completion = isa::Completion::Immediate,
     .proxy = isa::Proxy::Generic,
     .release = Arrives::thread},
    {.access = StageAccess::fragment_load,
     .opcode = isa::Opcode::ldmatrix,
     .completion = isa::Completion::Immediate,
     .proxy = isa::Proxy::Generic,
     .release = Arrives::thread},
    {.access = StageAccess::wgmma_read,
     .opcode = isa::Opcode::wgmma,
     .completion = isa::Completion::WgmmaGroup,
     .proxy = isa::Proxy::Async,
     .release = Arrives::warp},
    {.access = StageAccess::tensor_read,
     .opcode = isa::Opcode::tcgen05_mma,
     .completion = isa::Completion::Tcgen05Commit,
     .proxy = isa::Proxy::Async,
     .release = Arrives::issuer},
};

constexpr bool are_complete() {
  for (int i = 0; i < static_cast<int>(std::size(completions)); ++i)
    if (static_cast<int>(completions[i].access) != i) return false;
  return std::size(completions) == stage_accesses;
}
static_assert(are_complete(), "a row for each kind of access, in order");
static_assert(std::ranges::all_of(completions, [](const CompletionRow& row) {
  // Whoever waits for groups or loads by itself knows when its own accesses are done.
  return (row.publish != Arrives::none) != (row.release != Arrives::none) &&
         (row.completion == isa::Completion::Mbarrier) == (row.publish == Arrives::issuer);
}));

/// What producers do for a stage after its copies have been started.
struct Publish {
  bool by_issuer = false;   // arrives, and expects bytes
  bool by_threads = false;  // each arrives
  bool grouped = false;     // all that threads write is by cp.async
  bool fenced = false;      // readers see their writes only after fence.proxy.async
  /// cp.async arrives by itself; else threads wait for it and arrive.
  bool arrives_by_itself() const { return grouped && !fenced; }
  int arrivals(int threads) const { return (by_threads ? threads : 0) + (by_issuer ? 1 : 0); }
  /// How many stages later a thread's copies to one are published, where it waits for them to fence
  /// them: those of the next stages are in flight meanwhile. Consumers that release late wait for
  /// one stage more than they use.
  int behind(int stages) const {
    return !grouped || !fenced || stages < 3 ? 0 : stages < 6 ? 1 : 2;
  }
};
Publish publish(const Accesses& writes, const Accesses& reads);
/// What completes a stage, in words.
std::string text(const Publish& publish);

/// What consumers do for a stage after they have used it, when products that read it are done.
/// Every thread arrives for what it has loaded; if only products read, one lane of each warp.
/// `converged`: also for loads, after a barrier of the warp, which orders them; then a predicate
/// takes the place of a branch, below which LLVM would move arithmetic that belongs above the next
/// product. A product by tcgen05 does not keep the lanes of a warp together: one that arrives for
/// all waits for those that have not seen the stage yet.
struct Release {
  bool by_threads = false;  // else one lane of each warp
  bool syncs = false;       // the warp before
  bool commits = false;     // beside these, the tensor core for each warpgroup
  int arrivals(int threads) const {
    return (by_threads ? threads : threads / 32) + (commits ? threads / 128 : 0);
  }
};
Release release(const Accesses& reads, bool converged);

}  // namespace tartan::TARTAN_ABI::detail
