// SPDX-License-Identifier: Apache-2.0
#include "dsl/layout/shared_memory.h"

#include "compiler/support/counted.h"

#include "dsl/cluster/cluster.h"
#include "dsl/layout/fragments.h"
#include "dsl/roles/warpgroups.h"
#include "dsl/value/indices.h"

namespace tartan::TARTAN_ABI::detail {

bool is_stage(KernelState& state, const std::string& ring, const Scalar& stage, int stages) {
  if (const auto number = stage.constant(); number && (*number < 0 || *number >= stages)) {
    state.log.report(
        "tile-bounds"_rule,
        fmt::format("stage index out of bounds: expected {} for {}, found {}",
                    stages == 1 ? "0" : fmt::format("0 to {}", stages - 1), ring, *number));
    return false;
  }
  const auto of_pipeline = state.roles.stage_counts.find(HandleParts::value(stage).id);
  if (of_pipeline != state.roles.stage_counts.end() && !stage.constant() &&
      of_pipeline->second > stages)
    state.log.report("tile-bounds"_rule, fmt::format("{} has {} stages, its pipeline {}", ring,
                                                     stages, of_pipeline->second));
  return true;
}

namespace {

// Stores may be staged in a ring only if nothing accesses it after them.
void note_access(KernelState& state, const Memory& memory) {
  TmaStaging& staging = state.staging;
  if (staging.ring >= 0 && &memory == &state.memories.all()[static_cast<std::size_t>(staging.ring)])
    staging.ring_in_use = true;
}

}  // namespace

void note_fill(KernelState& state, const Tensor& to) {
  Memory& memory = state.memories.of(to);
  memory.ever_written = true;
  if (memory.filled && memory.filled_by != state.fill->pipeline)
    state.log.report(
        "unsynchronized-tile"_rule,
        fmt::format("{} is also filled by another pipeline, at {}, whose consumers are not "
                    "waited for; use one ring for each pipeline",
                    to.name, text(*memory.filled)));
  memory.filled = memory.written_here = state.log.place(), memory.filled_by = state.fill->pipeline;
  memory.name = to.name;
  const StageChecks::Callback* const in = state.stages.current();
  if (in && in->fills && in->stages > memory.stages && state.flights.depth() == in->depth)
    memory.overfilled = memory.filled, memory.pipeline_stages = in->stages;
}

void note_write(KernelState& state, const Tensor& to) {
  Memory& memory = state.memories.of(to);
  if (!memory.in_shared) return;
  if (is_remote(state, to)) {
    note_remote(state, to);
    Memory& own = state.memories.owner_of(to);
    note_access(state, own);
    own.ever_written = true, own.written_by_others = state.log.place();
    if (state.roles.current == Role::consumer) own.written_by_consumers = state.log.place();
    return;
  }
  memory.ever_written = true, memory.written_here = state.log.place();
  note_access(state, memory);
  if (state.roles.current == Role::producer) {
    state.fill->writes.add(StageAccess::store);
    return note_fill(state, to);
  }
  if (state.roles.current == Role::consumer) memory.written_by_consumers = state.log.place();
  // A pipeline waits for its own copies.
  if (!state.fill) state.memories.note_written(memory, state.log.place());
}

void note_read(KernelState& state, const Tensor& from) {
  Memory& memory = state.memories.of(from);
  if (!memory.in_shared) return;
  if (is_remote(state, from)) note_remote(state, from);
  else require_cluster_barrier(state, from);
  Memory& own = is_remote(state, from) ? state.memories.owner_of(from) : memory;
  note_access(state, own);
  if (!own.read) own.read = state.log.place(), own.name = from.name;
  if (state.roles.current == Role::producer) own.read_by_producers = state.log.place();
  if (state.roles.current == Role::consumer) own.read_by_consumers = state.log.place();
}

void check_roles(KernelState& state) {
  for (const Memory& each : state.memories.all()) {
    if (each.overfilled && each.read_by_consumers)
      state.log.report_at(
          "unsynchronized-tile"_rule, *each.overfilled,
          fmt::format("{} is filled for the next step while consumers read it at {}: its pipeline "
                      "has {}, and it {}; expected a ring of {}",
                      each.name, text(*each.read_by_consumers),
                      counted(each.pipeline_stages, "stage"), each.stages,
                      counted(each.pipeline_stages, "stage")));
    if (!each.written_by_consumers) continue;
    if (each.filled)
      state.log.report_at(
          "unsynchronized-tile"_rule, *each.filled,
          fmt::format("{} is filled by producers and also written by consumers at {}, without "
                      "synchronization; use one matrix for each",
                      each.name, text(*each.written_by_consumers)));
    else if (each.read_by_producers && !state.roles.producers_meet)
      state.log.report_at(
          "wrong-role"_rule, *each.read_by_producers,
          fmt::format(
              "a fill callback reads {}, which consumers write at {}: producers do not wait "
              "for them; write it, with a barrier() after it, before roles()",
              each.name, text(*each.written_by_consumers)));
  }
}

Diags unwritten(const Memories& memories) {
  Diags out;
  for (const Memory& each : memories.all())
    if (each.read && !each.ever_written)
      out.add({Level::Warning, "unwritten-tile"_rule.id, *each.read,
               fmt::format("{} is read, and nothing writes it; copy() a tile to it", each.name)});
  return out;
}

bool in_order(KernelState& state, const Tensor& a, const Tensor& b) {
  if (state.memories.of(a).operand != Operand::b || state.memories.of(b).operand != Operand::a)
    return true;
  state.log.report("wrong-role"_rule,
                   fmt::format("operands swapped: {} was declared by shared_b() and {} by "
                               "shared_a(); expected A, then B",
                               a.name, b.name));
  return false;
}

void note_load(KernelState& state, const Tensor& from, StageAccess how) {
  if (state.memories.of(from).in_shared) state.roles.note_read(how);
  note_read(state, from);
}

bool require_barrier(KernelState& state, const Tensor& from) {
  note_read(state, from);
  Memory& memory = state.memories.of(from);
  if (!memory.written) return true;
  state.log.report(
      "unsynchronized-tile"_rule,
      fmt::format(
          "{} was written at {} and is loaded without a barrier; insert a barrier() between them",
          from.name, text(*memory.written)));
  memory.written.reset();  // report once
  return false;
}

namespace {

// Products see writes of threads only after a fence.
void fence_if(KernelState& state, bool written) {
  if (written && state.config.has_tma() && state.has_async_products()) state.f().proxy_fence();
}

}  // namespace

void fence_writes(KernelState& state) { fence_if(state, state.memories.is_any_unfenced()); }

void note_atomic(KernelState& state, const Tensor& tensor) {
  Memory& memory = state.memories.of(tensor);
  if (is_remote(state, tensor)) return note_write(state, tensor);
  if (!memory.read) memory.read = state.log.place(), memory.name = tensor.name;
  const auto here = memory.written_here;
  note_write(state, tensor);
  memory.written.reset(), memory.written_here = here;
}

void block_barrier(KernelState& state) {
  if (!by_all_threads(state, "barrier()")) return;
  land_all(state);  // after the barrier others may write what MMAs still read
  fence_if(state, state.memories.is_any_written());
  if (state.roles.warpgroup >= 0) warpgroup_barrier(state);
  else if (state.roles.current == Role::all) state.f().barrier();
  else state.f().barrier(consumers_barrier, thread_count(state));
  state.memories.forget_writes();
}

}  // namespace tartan::TARTAN_ABI::detail

namespace tartan::TARTAN_ABI {

Shared Ring::operator[](const RingIndex& index) const {
  const Scalar& stage = index.number;
  Shared out = first_;
  detail::Tensor& tensor = detail::HandleParts::tensor(out);
  if (!tensor.state || tensor.memory < 0) return out;
  detail::note_line(index.at);
  if (!tensor.state->takes_calls(tensor.name) || !tensor.state->is_index(stage, "a stage")) {
    tensor.memory = -1;
    return out;
  }
  if (is_stage(*tensor.state, tensor.name, stage, stages_))
    tensor.state->stages.note_index(tensor.state->log, tensor.memory, tensor.name, stages_, stage,
                                    index.at);
  tensor.base = tensor.base + stage * distance_;
  return out;
}

}  // namespace tartan::TARTAN_ABI
