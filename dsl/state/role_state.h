// SPDX-License-Identifier: Apache-2.0
// dsl/state/role_state.h - the state of a description with producer and consumer warps. See
// Builder::roles(). Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <source_location>
#include <utility>
#include <vector>

#include "compiler/ir/function_builder.h"
#include "dsl/state/accesses.h"
#include "tartan/dsl/kernel.h"
#include "tartan/dsl/pipeline.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

/// Which of the block's warps run the code under description.
enum class Role : std::uint8_t { all, consumer, producer };

constexpr int consumers_barrier = 1;  // the number of the consumers' own barrier
// Warpgroups have the last numbers, so that users' named barriers keep the others.
constexpr int last_barrier = 15;

/// A pipeline between producers and consumers: a pair of mbarriers for each stage. Consumers wait
/// for `full`, producers for `empty`; phases alternate with each pass over the ring.
struct RolePipeline {
  int stages = 0;
  std::source_location at = {};  // where it is described
  ir::Pointer full = {}, empty = {};
  ir::Pointer peer = {};  // of the first CTA of a pair: the other one's stage has arrived
  int peer_arrivals = 0;
  int full_arrivals = 0, empty_arrivals = 0;
  bool ping_pong = false;            // of several warpgroups
  Accesses writes = {}, reads = {};  // of its fill and use callbacks
  // The marks where consumers release, and which stages.
  std::vector<std::pair<int, ir::Value>> releases = {};
};

/// What warpgroups do in turn, where: an mbarrier for each, whose phase ends when its turn comes.
/// Of PipelineOptions::turns: after them a u32 for each, its position in the ring at the next turn.
struct Turns {
  ir::Pointer barriers;
  Place place;
  bool ping_pong = false;
};

class Cursor;

/// A ring of stages that warpgroups have in common, see PipelineOptions::turns.
struct CommonRing {
  std::size_t pipeline = 0;
  std::shared_ptr<Cursor> producer = {};  // of its stages, from the first body on that it fills
};

constexpr int warpgroup_threads = 128, warps_of_warpgroup = warpgroup_threads / 32;

struct RoleState {
  /// Reads by those who use a stage now, if anybody does.
  void note_read(StageAccess how) const {
    if (reads) reads->add(how);
  }

  Role current = Role::all;
  int warpgroup = -1;                         // whose body is described; -1: of all
  int warpgroups = 0;                         // that have bodies of their own; 0: none has
  std::vector<Turns> turns;                   // by the order in the body
  std::size_t first_turn = 0, next_turn = 0;  // of this warpgroups(); that its body reaches
  std::vector<CommonRing> rings;              // of this warpgroups()
  std::size_t next_ring = 0;                  // that its body reaches
  int last_named = 0;                         // the largest number of the user's named barriers
  int first_barrier = 0;                      // of warpgroups outside of warpgroups(); 0: none
  bool divided = false;                       // into roles
  bool consumers_wait = false;                // by griddepcontrol_wait()
  bool in_stage = false;                      // inside a fill or use callback
  bool producers_meet = false;                // others at a named barrier, or by ptx()
  std::map<int, int> stage_counts;            // of the pipelines whose stages these values are
  int prologue = -1;                          // see mark_prologue()
  int begin = -1;                             // the mark where the role's code begins
  int producers_begin = -1;                   // that of producers
  std::vector<RolePipeline> pipelines;
  std::vector<ir::Value> counts;  // of pipelines: numbers of k-tiles
  Accesses* reads = nullptr;      // where consumers use stages of a pipeline: what they have read
  // Of producers: wait until all stages are released. They hold the state, so whoever runs them
  // takes them out of it.
  std::vector<std::function<void()>> drains;
};

/// A fill callback: where its copies complete, and what they are. Its copies to shared memory use
/// cp.async or TMA if possible.
struct Fill {
  std::size_t pipeline = 0;  // of producers
  ir::Pointer full = {};     // the stage's mbarrier, at which TMA counts its bytes
  ir::Value issuer = {};     // whether this thread starts TMA loads; none: nobody can
  bool* divided = nullptr;   // set at its griddepcontrol_wait(), which may divide it
  std::size_t depth = 0;     // of loops and conditions around it
  Accesses writes = {};
  std::set<int> copied = {};  // memories to which threads copy asynchronously
};

}  // namespace tartan::TARTAN_ABI::detail
