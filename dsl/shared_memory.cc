// SPDX-License-Identifier: Apache-2.0
// Shared memory: who wrote a matrix, and whether a barrier stands between them and those who read.
#include <algorithm>

#include "dsl/fragments.h"

namespace tartan::inline TARTAN_ABI::detail {

// 128-byte boundaries: what every access needs; swizzles of up to 1024 bytes repeat from their
// memory's first byte, so that needs no more.
codegen::Pointer KernelState::shared_memory(const std::string& name, std::int64_t bytes,
                                            int align) {
  shared_bytes = (shared_bytes + align - 1) / align * align + bytes;
  return f().shared(name, bytes, align);
}

namespace {

std::string text(const Place& place) {
  return fmt::format("{}:{}", place.file.substr(place.file.rfind('/') + 1), place.line);
}

}  // namespace

void KernelState::check_stage(const std::string& ring, const Scalar& stage, int stages) {
  if (const auto number = stage.constant(); number && (*number < 0 || *number >= stages))
    report("tile-bounds"_rule, fmt::format("stage index out of bounds: {} has no stage {}, only {}",
                                           ring, *number, stages));
  const auto of_pipeline = roles.stage_counts.find(HandleParts::value(stage).id);
  if (of_pipeline != roles.stage_counts.end() && !stage.constant() && of_pipeline->second > stages)
    report("tile-bounds"_rule,
           fmt::format("{} has {} stages, its pipeline {}", ring, stages, of_pipeline->second));
}

void KernelState::note_fill(const Tensor& to) {
  Memory& memory = memories[static_cast<std::size_t>(to.memory)];
  if (memory.written_by_consumers)
    report("unsynchronized-tile"_rule,
           fmt::format("{} is filled by producers and also written by consumers at {}, without "
                       "synchronization; use one matrix for each",
                       to.name, text(*memory.written_by_consumers)));
  if (memory.filled && memory.filled_by != roles.next)
    report("unsynchronized-tile"_rule,
           fmt::format("{} is also filled by another pipeline, at {}, whose consumers are not "
                       "waited for; use one ring for each pipeline",
                       to.name, text(*memory.filled)));
  memory.filled = place, memory.filled_by = roles.next;
}

void KernelState::note_write(const Tensor& to) {
  Memory& memory = memories[static_cast<std::size_t>(to.memory)];
  if (!memory.in_shared) return;
  if (roles.current == Role::producer) {
    fill.plain = true;
    return note_fill(to);
  }
  if (roles.current == Role::consumer) memory.written_by_consumers = place;
  // A pipeline's copies are waited for by the pipeline.
  if (!asynchronous) memory.written = place;
}

bool KernelState::require_barrier(const Tensor& from) {
  Memory& memory = memories[static_cast<std::size_t>(from.memory)];
  fill.read_by_threads |= memory.in_shared;
  if (!memory.written) return true;
  report(
      "unsynchronized-tile"_rule,
      fmt::format(
          "{} was written at {} and is loaded without a barrier; insert a barrier() between them",
          from.name, text(*memory.written)));
  memory.written.reset();  // once is enough
  return false;
}

void KernelState::barrier() {
  land_all(*this);  // behind the barrier others write what products may still be reading
  if (has_copy_engine() && fill.read_by_wgmma &&
      std::any_of(memories.begin(), memories.end(), [](const Memory& m) { return !!m.written; }))
    f().proxy_fence();  // wgmma sees what threads have written behind a fence alone
  if (roles.current == Role::all) f().barrier();
  else f().barrier(consumers_barrier, threads());  // producers are muted
  for (Memory& each : memories) each.written.reset();
}

}  // namespace tartan::inline TARTAN_ABI::detail
