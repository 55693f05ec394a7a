// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/waiting.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Enough for every group of a warp to have had its turn.
constexpr int idle_turns_of_a_deadlock = 256;

}  // namespace

Cluster::Cluster(LaunchContext& context) : context_(context) {
  const std::uint64_t count = context.cluster.count();
  for (std::uint32_t rank = 0; rank < count; ++rank)
    blocks_.push_back(std::make_unique<Block>(context, *this, rank));
  if (context.schedule) late_ = std::make_unique<Late>();
  for (LaunchObserver* each : context.observers) each->attach(*this);
}

Dim3 Cluster::first_block(const LaunchContext& context, std::uint64_t index) {
  const Dim3 grid = context.launch.grid, size = context.cluster;
  const std::uint64_t across = grid.x / size.x, down = grid.y / size.y;
  return {static_cast<std::uint32_t>(index % across) * size.x,
          static_cast<std::uint32_t>(index / across % down) * size.y,
          static_cast<std::uint32_t>(index / across / down) * size.z};
}

void Cluster::start(std::uint64_t index) {
  const Dim3 size = context_.cluster, first = first_block(context_, index);
  finding_.reset();
  idle_turns_ = 0;
  patience_ = idle_turns_of_a_deadlock;
  for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank)
    blocks_[rank]->start({first.x + rank % size.x, first.y + rank / size.x % size.y,
                          first.z + rank / size.x / size.y});
  if (late_) late_->start();
  copies_ = 0;
  for (LaunchObserver* each : context_.observers) each->begin(*this, index);
  tell(&Events::start, *this, static_cast<std::uint32_t>(index));
  tell(&ValueEvents::start);
}

bool Cluster::run(int turns) {
  for (; turns > 0; --turns) {
    bool done = true, ran = false, progressed = false;
    for (const auto& block : blocks_) {
      const Block::Turn turn = block->run_turn();
      if (stopped()) return true;
      done &= turn == Block::Turn::done;
      ran |= turn == Block::Turn::progressed || turn == Block::Turn::polled;
      progressed |= turn == Block::Turn::progressed;
    }
    if (done) return finish(), true;
    idle_turns_ = progressed ? 0 : idle_turns_ + 1;
    if (!ran || idle_turns_ >= patience_) {
      report_deadlock();
      if (stopped()) return true;
      patience_ = std::min(2 * patience_, 1 << 20);
      idle_turns_ = 0;
    }
  }
  return false;
}

bool Cluster::done() const {
  return std::ranges::all_of(blocks_, [](const auto& block) { return block->done(); }) &&
         (!late_ || late_->empty());
}

void Cluster::finish() { tell(&Events::finish, *this); }

void Cluster::count(Report& report) const {
  for (const auto& block : blocks_) block->count(report);
}

void Cluster::stop(Finding finding) {
  if (finding_) return;
  finding_ = std::move(finding);
  tell(&Events::stopped, *finding_);
}

// ---- The cluster's barrier.

void Cluster::arrive(Warp& warp, bool relaxed) {
  if (const std::uint32_t twice = warp.mask & warp.at_cluster)
    return warp.fail("cluster-barrier"_rule,
                     "barrier.cluster.arrive twice without barrier.cluster.wait in between",
                     std::countr_zero(twice));
  warp.at_cluster |= warp.mask;
  warp.in_cluster_phase |= warp.mask;
  tell(&Events::arrived_at_cluster, warp, relaxed);
  release_if_complete();
}

void Cluster::wait(Warp& warp) {
  if (const std::uint32_t never = warp.mask & ~warp.at_cluster)
    return warp.fail("cluster-barrier"_rule,
                     "barrier.cluster.wait without a preceding barrier.cluster.arrive",
                     std::countr_zero(never));
  warp.at_cluster &= ~warp.mask;
  leave(warp, warp.mask & ~warp.in_cluster_phase);
  warp.mask &= warp.in_cluster_phase;
  if (!warp.mask) return;
  warp.wait_for_cluster();
  tell(&Events::waits_for_cluster, warp);
}

// Lanes learn that the phase is over.
void Cluster::leave(Warp& warp, std::uint32_t lanes) {
  if (lanes) tell(&Events::leave_cluster, warp, lanes);
}

void Cluster::release_if_complete() {
  for (const auto& block : blocks_)
    for (const Warp& warp : block->warps())
      if (warp.live & ~warp.in_cluster_phase) return;
  tell(&Events::released_cluster, *this);
  for (const auto& block : blocks_)
    for (Warp& warp : block->warps()) {
      warp.in_cluster_phase = 0;
      for (Group& group : warp.groups)
        if (group.state == Group::State::at_cluster) {
          group.state = Group::State::ready;
          leave(warp, group.mask);
        }
    }
}

void Cluster::recheck() {
  const bool anyone = std::ranges::any_of(blocks_, [](const auto& block) {
    return std::ranges::any_of(block->warps(),
                               [](const Warp& warp) { return warp.in_cluster_phase != 0; });
  });
  if (anyone) release_if_complete();
}

// ---- Asynchronous operations.

void Cluster::commit(Warp& warp, AsyncKind kind) {
  tell(&Events::commit, warp, kind);
  if (late_) late_->commit(warp, warp.mask, kind);
}

void Cluster::wait(Warp& warp, AsyncKind kind, std::optional<std::uint32_t> pending, bool reads) {
  tell(&Events::wait, warp, kind, pending, reads);
  if (late_) late_->wait(warp, warp.mask, kind, pending, reads);
}

// ---- When nobody can go on.

void Cluster::report_deadlock() {
  const bool within_blocks =
      std::ranges::all_of(blocks_, [](const auto& block) { return block->waits_for_itself(); });
  if (!within_blocks) return report_waiting(*this);
  for (const auto& block : blocks_) block->report_deadlock();
}

}  // namespace tartan::TARTAN_ABI::emulator
