// SPDX-License-Identifier: Apache-2.0
// Accesses to tensor memory, and those of the tensor core to shared memory (PTX ISA 9.0, 9.7.16.6).
//
// A load or store is an act of its own up to the wait of its warp, one of the tensor core up to the
// phase of the mbarrier that tcgen05.commit names: those who have not heard of its end are not
// ordered behind it. The tensor core keeps its own work in order where the manual says so: products
// with the same accumulator, a copy or a shift before a product, a shift behind one, and a copy of
// 4x256b behind a shift. Of two threads that holds behind
// tcgen05.fence alone (tensor_fences.cc). Where a barrier orders what is over, without them, only a
// note says so: Triton and the CuTe DSL write neither.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/races/async_judge.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::operator""_q;

constexpr std::uint64_t lane_bytes = 4 * TensorMemory::columns;

Actor actor_of(TensorAgent agent) {
  switch (agent) {
    case TensorAgent::thread: return Actor::thread;
    case TensorAgent::load: return Actor::tensor_load;
    case TensorAgent::store: return Actor::tensor_store;
    case TensorAgent::core: return Actor::tensor_core;
  }
  return Actor::thread;
}

enum class CoreWork { product, copy, shift };

CoreWork work_of(const isa::Spelling* spelling) {
  if (spelling && spelling->opcode == isa::Opcode::tcgen05_cp) return CoreWork::copy;
  if (spelling && spelling->opcode == isa::Opcode::tcgen05_shift) return CoreWork::shift;
  return CoreWork::product;
}

}  // namespace

/// As AsyncJudge, of accesses to tensor memory.
class ClusterRaces::TensorJudge {
 public:
  TensorJudge(ClusterRaces& races, Warp& warp, std::uint32_t lane, const TensorTouch& touch,
              const Epoch& who)
      : races_(races), warp_(warp), lane_(lane), touch_(touch), who_(who) {}

  bool after_write(const Past& past) { return ordered(past, true); }
  bool after_read(const Past& past) { return ordered(past, false); }
  bool knows(const Past& past) const {
    const Epoch epoch{past.warp, past.time, past.deed.lane()};
    if (knows(epoch)) return true;
    if (actor(past) == Actor::tensor_core) return false;
    if (some_lane_knows(epoch)) return true;
    const Epoch* const other = actor(past) == Actor::thread ? races_.joined_with(past) : nullptr;
    return other && some_lane_knows(*other);
  }
  bool all_ordered(const Past&) const { return false; }
  bool settled(const Past&, bool) const { return false; }
  bool both_strong(const Past&) const { return false; }
  bool reach(const Past&, const Past&) const { return false; }
  Extent extent() const { return {}; }
  bool continues() const { return false; }
  bool observes() const { return false; }
  std::uint32_t own() const { return ~0u; }
  bool strangers(std::uint32_t, std::uint32_t) const { return false; }
  void unordered(const Past& past, std::uint64_t cell, bool wrote) {
    Race race = races_.race_with(
        past, wrote, {.shared = true, .rank = touch_.rank.value_or(warp_.block->rank())}, cell);
    race.tensor = true;
    race.unfenced = is_pipelined(past, wrote) && knows_issue(past);
    if (overwrites_factor(past, wrote)) race.kind = Race::Kind::reordered;
    race.second = races_.side(who_.warp, warp_, lane_);
    race.second.writes = touch_.writes;
    races_.report(warp_, race);
  }

 private:
  Actor actor(const Past& past) const { return races_.clocks_.numbers().actor(past.warp); }
  bool knows(const Epoch& epoch) const {
    return touch_.agent == TensorAgent::core ? races_.clocks_.knows(warp_, lane_, epoch)
                                             : races_.clocks_.some_know(warp_, epoch);
  }
  // All lanes of its warp did it.
  bool some_lane_knows(const Epoch& epoch) const {
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      if (knows({epoch.warp, epoch.time, lane})) return true;
    return false;
  }

  bool ordered(const Past& past, bool wrote) {
    if (past.warp == last_.warp && past.time == last_.time && past.deed == last_.deed &&
        wrote == last_wrote_)
      return after_last_;
    last_ = past;
    last_wrote_ = wrote;
    if (in_pipe(past, wrote)) return after_last_ = true;
    after_last_ = knows(past);
    if (after_last_ && races_.launch_.whole) look_for_fences(past, wrote);
    return after_last_;
  }

  bool of_this_warp(const Past& past) const {
    return races_.clocks_.numbers().as(Actor::thread, past.warp) == races_.clocks_.number(warp_);
  }
  // A barrier orders the two: the manual asks for a fence on both of its sides.
  void look_for_fences(const Past& past, bool wrote) {
    const Actor first = actor(past);
    if (touch_.agent == TensorAgent::thread || first == Actor::thread || of_this_warp(past)) return;
    const std::uint32_t lanes = touch_.agent == TensorAgent::core ? 1u << lane_ : ~0u;
    const auto any_lane = [&](auto&& holds) {
      if (first == Actor::tensor_core) return holds(past.deed.lane());
      for (std::uint32_t lane = 0; lane < 32; ++lane)
        if (holds(lane)) return true;
      return false;
    };
    const std::uint32_t fenced = races_.clocks_.numbers().as(
        first == Actor::tensor_load ? Actor::fenced_load : Actor::fenced_store, past.warp);
    const bool before = first == Actor::tensor_core || any_lane([&](std::uint32_t lane) {
                          return races_.clocks_.some_know(warp_, {fenced, past.time, lane});
                        });
    const bool after = any_lane([&](std::uint32_t lane) {
      return races_.clocks_.fenced_after(warp_, lanes, {past.warp, past.time, lane});
    });
    if (before && after) return;
    Race race = races_.race_with(
        past, wrote, {.shared = true, .rank = touch_.rank.value_or(warp_.block->rank())}, 0);
    race.kind = Race::Kind::tensor_unfenced;
    race.tensor = true;
    race.fences = {.before = !before, .after = !after};
    race.second = races_.side(who_.warp, warp_, lane_);
    race.second.writes = touch_.writes;
    races_.launch_.reports.add(race);
  }

  const isa::Spelling* spelling_at(std::uint32_t pc) const {
    return spelling(warp_.block->context(), pc);
  }
  // What the tensor core does in the order of issue (PTX ISA 9.0, 9.7.16.6.2).
  bool is_pipelined(const Past& past, bool wrote) const {
    if (touch_.agent != TensorAgent::core || actor(past) != Actor::tensor_core) return false;
    const CoreWork first = work_of(spelling_at(past.deed.pc()));
    const isa::Spelling* const now = spelling_at(warp_.pc - 1);
    switch (work_of(now)) {
      case CoreWork::product: return first != CoreWork::product || (wrote && touch_.accumulator);
      case CoreWork::shift: return first == CoreWork::product;
      case CoreWork::copy: return first == CoreWork::shift && now->has("4x256b"_q);
    }
    return false;
  }
  // D over A, or over scales, of an earlier product of the thread.
  bool overwrites_factor(const Past& past, bool wrote) const {
    return touch_.agent == TensorAgent::core && touch_.accumulator && !wrote &&
           past.warp == who_.warp && past.deed.lane() == lane_ &&
           work_of(spelling_at(past.deed.pc())) == CoreWork::product;
  }
  // Whether a barrier orders the threads that issued the two.
  bool knows_issue(const Past& past) const {
    return races_.clocks_.knows(
        warp_, lane_,
        {races_.clocks_.numbers().as(Actor::thread, past.warp), past.time, past.deed.lane()});
  }
  // Whether the tensor core keeps the two in the order of their issue, and that is known.
  bool in_pipe(const Past& past, bool wrote) const {
    if (!is_pipelined(past, wrote)) return false;
    if (past.warp == who_.warp && past.deed.lane() == lane_) return true;
    return races_.clocks_.fenced_after(
        warp_, 1u << lane_,
        {races_.clocks_.numbers().as(Actor::fenced_core, past.warp), past.time, past.deed.lane()});
  }

  ClusterRaces& races_;
  Warp& warp_;
  std::uint32_t lane_;
  const TensorTouch& touch_;
  Epoch who_;
  Past last_;  // that was asked for
  bool last_wrote_ = false, after_last_ = false;
};

bool ClusterRaces::access_tensor(Warp& warp, int lane, const TensorTouch& touch) {
  const auto issuer = static_cast<std::uint32_t>(lane);
  if (touch.agent == TensorAgent::core) clocks_.issue_to_core(warp, warp.pc);
  Epoch who{clocks_.number(warp, actor_of(touch.agent)), clocks_.time(warp), issuer};
  if (touch.agent == TensorAgent::load || touch.agent == TensorAgent::store)
    who = clocks_.group_epoch(warp, issuer, actor_of(touch.agent));
  if (touch.agent == TensorAgent::core) note_issue(warp, issuer);
  const Past now{who.warp, who.time, Deed(warp.pc - 1, issuer, 0)};
  TensorJudge judge(*this, warp, issuer, touch, who);
  Shadow& shadow = tensor_[touch.rank.value_or(warp.block->rank())];
  const auto bytes = 4 * static_cast<std::uint64_t>(touch.area.columns);
  for (int i = 0; i < touch.area.lanes && !cluster_.stopped(); ++i) {
    const std::uint64_t at = static_cast<std::uint64_t>(touch.area.lane + i) * lane_bytes +
                             4 * static_cast<std::uint64_t>(touch.area.column);
    if (touch.writes) shadow.write(at, bytes, now, judge);
    else shadow.read(at, bytes, now, 1u << issuer, judge);
  }
  return !cluster_.stopped();
}

// Chunks come by pages, as the shadow has them, of each CTA.
bool ClusterRaces::read_tile(Warp& warp, int lane, const TensorTile& tile) {
  const std::uint32_t own = warp.block->rank();
  const auto issuer = static_cast<std::uint32_t>(lane);
  clocks_.issue_to_core(warp, warp.pc);
  const AsyncAccess access{
      .who = {clocks_.number(warp, Actor::tensor_core), clocks_.time(warp), issuer},
      .operand = tile.name};
  const Past now{access.who.warp, access.who.time, Deed(warp.pc - 1, issuer, 0)};
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank) {
    const std::uint64_t end = cluster_.block(rank).shared_bytes();
    chunks_.assign((end + Shadow::page_bytes - 1) / Shadow::page_bytes, 0);
    const TileChunk* any = nullptr;
    for (const TileChunk& each : tile.chunks) {
      if (each.rank.value_or(own) != rank || each.address + Shadow::chunk_bytes > end) continue;
      any = &each;
      chunks_[each.address / Shadow::page_bytes] |=
          std::uint64_t{1} << each.address % Shadow::page_bytes / Shadow::chunk_bytes;
    }
    if (!any) continue;
    if (!has_swizzle_of_boxes(warp, lane, tile, rank)) return false;
    AsyncJudge judge(*this, warp, issuer, access, {.shared = true, .rank = rank});
    for (std::uint64_t page = 0; page < chunks_.size() && !cluster_.stopped(); ++page)
      if (chunks_[page]) shared_[rank].read_chunks(page, chunks_[page], now, judge);
    note_outliving(warp, {true, rank, any->address}, access.who, false);
  }
  return !cluster_.stopped();
}

// Columns that another warp has given back are free once it has: it came before.
void ClusterRaces::takes_columns(Warp& warp, bool allocates) {
  if (!allocates) return;
  clocks_.acquire(warp, warp.mask, freed_columns_[warp.block->rank()]);
  if (Block* const peer = warp.program->cta_group == 2 ? warp.block->peer() : nullptr)
    clocks_.acquire(warp, warp.mask, freed_columns_[peer->rank()]);
}

void ClusterRaces::gives_columns(Warp& warp) {
  clocks_.release(warp, warp.mask, freed_columns_[warp.block->rank()]);
}

void ClusterRaces::wait_for_tensor(Warp& warp, TensorAgent agent) {
  clocks_.wait(warp, warp.mask, actor_of(agent), std::nullopt);
}

void ClusterRaces::commit_tensor(Warp& warp, int lane, std::byte* mbarrier) {
  const auto issuer = static_cast<std::uint32_t>(lane);
  const Epoch who{clocks_.number(warp, Actor::tensor_core), last_issue(warp, issuer), issuer};
  clocks_.release_core(warp, issuer, pending(warp, mbarrier, Arriver::tensor_core));
  const auto address = address_of(mbarrier);
  const std::uint32_t own = warp.block->rank();
  if (!address || rank_at(*address, own) != own) return;  // another CTA's: use_mbarrier() noted it
  note_outliving(warp, {.shared = true, .rank = own, .address = *address & shared_offset_mask}, who,
                 false, completing_on(mbarrier));
}

}  // namespace tartan::TARTAN_ABI::emulator
