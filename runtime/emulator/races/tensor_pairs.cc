// SPDX-License-Identifier: Apache-2.0
// Tensor memory of a pair of CTAs (.cta_group::2): what two warps do as one, and whether the other
// CTA has begun.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/races/detector.h"

namespace tartan::TARTAN_ABI::emulator {

void ClusterRaces::joined(Warp& warp, Warp& peer) {
  joined_.push_back({Epoch{clocks_.number(warp), clocks_.time(warp), 0},
                     Epoch{clocks_.number(peer), clocks_.time(peer), 0}});
}

const Epoch* ClusterRaces::joined_with(const Past& past) const {
  for (auto each = joined_.rbegin(); each != joined_.rend(); ++each)
    for (std::size_t i = 0; i < each->size(); ++i)
      if ((*each)[i].warp == past.warp && (*each)[i].time == past.time) return &(*each)[1 - i];
  return nullptr;
}

void ClusterRaces::note_begun(const Warp& warp, std::uint32_t lanes) {
  if (!lanes || warp.program->cta_group != 2) return;
  std::vector<Epoch>& all = begun_[warp.block->rank()];
  const Epoch now{clocks_.number(warp), clocks_.time(warp),
                  static_cast<std::uint32_t>(std::countr_zero(lanes))};
  const bool known = std::ranges::any_of(
      all, [&](const Epoch& each) { return each.warp == now.warp && each.lane == now.lane; });
  if (!known) all.push_back(now);
}

bool ClusterRaces::allocates_for_pair(Warp& warp, Block& peer) {
  if (!launch_.whole) return true;
  const auto knows = [&](const Epoch& epoch) { return clocks_.some_know(warp, epoch); };
  if (std::ranges::any_of(begun_[warp.block->rank()], knows)) return true;
  for (const Warp& other : peer.warps())
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      if (knows({clocks_.number(other), 1, lane})) return true;
  warp.fail("tensor-memory"_rule,
            "tcgen05.alloc of a pair of CTAs, whose other CTA need not have begun: expected "
            "barrier.cluster.arrive and barrier.cluster.wait before it",
            0);
  return false;
}

}  // namespace tartan::TARTAN_ABI::emulator
