// SPDX-License-Identifier: Apache-2.0
// dsl/roles/role_ring.h - a ring of stages between producers and consumers: where a role is in it,
// and how consumers release a stage. Not installed.
#pragma once

#include <optional>
#include <source_location>
#include <utility>

#include "dsl/roles/roles.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::detail {

constexpr std::int64_t mbarrier_bytes = 8;

/// The position of a role in a ring: the stage, and the parity of the phase that it waits for.
class Cursor {
 public:
  Cursor(Builder& k, KernelState& state, int stages, const std::source_location& at);
  Cursor(Builder& k, KernelState& state, const Stages& stages)
      : Cursor(k, state, stages.stages, stages.at) {}

  Scalar stage() const { return *stage_; }
  ir::Pointer of(ir::Pointer first) const;
  /// The same of so many stages before this one.
  ir::Pointer before(ir::Pointer first, int by) const;
  ir::Value parity() const;
  ir::Value other_parity() const;
  void advance();
  /// Where it is, as a number, and from there.
  Scalar position() const;
  void go_to(const Scalar& position);

 private:
  KernelState& state_;
  int stages_;
  std::optional<ScalarVariable> stage_, parity_;
};

/// Collects what consumers read of a pipeline's stages, while it lives.
class Reading {
 public:
  explicit Reading(RoleState& roles)
      : roles_(roles), around_(std::exchange(roles.reads, &reads_)) {}
  ~Reading() { roles_.reads = around_; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  Accesses reads_;
  RoleState& roles_;
  Accesses* around_;
};

/// The producers' side of a pipeline by its number. `ring`: what warpgroups have in common; only
/// the first of them begins it.
void produce(Builder& k, KernelState& state, const Stages& stages, std::size_t number,
             CommonRing* ring);

/// Declares the mbarriers of a pipeline, the last one from then on.
void add_pipeline(KernelState& state, const Stages& stages);

/// Consumers wait until a stage has arrived.
void await_stage(KernelState& state, const RolePipeline& pipeline, const Cursor& cursor);

/// Consumers release a stage here. What that takes follows from all that they read of the
/// pipeline's stages and whose stages it is filled with: settle_releases() describes it.
void leave_stage(KernelState& state, std::size_t pipeline, const Scalar& stage);

/// Both sides of the pipeline have been described. With multicast, consumers arrive at the barriers
/// of all CTAs that fill this one's stages.
void settle_releases(Builder& k, KernelState& state, RolePipeline& pipeline);

/// Whether a pipeline has stages enough for LateRelease, see model::most_prompt_stages.
bool releases_late(const Stages& stages);

/// Releases a stage when the products of the next one have been issued and its own are done, so
/// that tensor cores never wait for this warpgroup. Where a stage's products are not in flight at
/// its end, or read registers, which the next stage may overwrite, it is released there.
class LateRelease {
 public:
  /// `first`: the stage that the next products read, of a pipeline.
  LateRelease(Builder& k, KernelState& state, const Stages& stages, std::size_t pipeline,
              const Scalar& first);
  /// K-tile `t` has been described, before whose products there were `commits`.
  void release(const Scalar& t, int commits);
  /// Behind the last k-tile: waits for its products.
  void finish();

 private:
  void leave();

  Builder& k_;
  KernelState& state_;
  const Stages& stages_;
  std::size_t pipeline_;
  ScalarVariable stage_;
  bool behind_ = false;  // by one stage
};

}  // namespace tartan::TARTAN_ABI::detail
