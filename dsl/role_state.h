// SPDX-License-Identifier: Apache-2.0
// dsl/role_state.h - where a description is between producer and consumer warps. See
// Builder::roles(). Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "compiler/codegen/function_builder.h"

namespace tartan::inline TARTAN_ABI::detail {

/// Which of the block's warps run the code that is being described.
enum class Role : std::uint8_t { all, consumer, producer };

constexpr int consumers_barrier = 1;  // the number of the barrier that producers take no part in

/// A pipeline between producers and consumers: a pair of mbarriers for each stage. Consumers wait
/// for `full`, producers for `empty`; phases alternate each time round the ring.
struct RolePipeline {
  int stages = 0;
  codegen::Pointer full, empty;
  int full_arrivals = 0, empty_arrivals = 0;
  bool threads_read = false;       // what is filled, beside products
  bool shared_by_cluster = false;  // blocks fill each other's stages
  int release = -1;                // where blocks may do so: the mark where consumers release
  codegen::Value released;         // this stage
};

struct RoleState {
  Role current = Role::all;
  bool divided = false;             // into roles
  bool in_stage = false;            // what fills or uses a stage is described
  std::size_t fill_depth = 0;       // of loops and conditions, where the filling begins
  std::map<int, int> stage_counts;  // of the pipelines whose stages these values are
  int begin = -1;                   // the mark where the role's code begins
  std::vector<RolePipeline> pipelines;
  std::size_t next = 0;  // the pipeline that this role meets next
};

/// How the stage that is being filled is filled: by the threads' copies, asynchronous or not, or by
/// TMA, which counts its bytes down at the mbarrier and is started by one thread.
struct StageFill {
  bool asynchronous = false;  // copies to shared memory go by cp.async where they can
  bool by_threads = false, plain = false;
  int tma_bytes = 0;
  bool multicasts = false;       // the copy that is being described
  bool by_cluster = false;       // whether such a copy fills the stage
  bool read_by_wgmma = false;    // what is filled
  bool read_by_threads = false;  // and by threads themselves
  codegen::Pointer barrier;
  codegen::Value starts_tma;  // a predicate; none outside of producers
};

}  // namespace tartan::inline TARTAN_ABI::detail
