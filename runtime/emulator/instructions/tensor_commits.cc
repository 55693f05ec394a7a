// SPDX-License-Identifier: Apache-2.0
// tcgen05.commit (PTX ISA 9.0, 9.7.16.12): the mbarriers that hear of the end of products and
// copies. It arrives when it is issued or, under a schedule, later.
#include "runtime/emulator/instructions/tensor_commits.h"

#include <bit>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/mbarriers.h"
#include "runtime/emulator/instructions/tensor_operands.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

void arrive(Cluster& cluster, Warp& warp, int lane, std::byte* at) {
  Mbarrier barrier = Mbarrier::load(at);
  if (barrier.pending == 0)
    return warp.fail("trap"_rule, "too many arrivals: the mbarrier expects no more in this phase",
                     lane);
  --barrier.pending;
  cluster.tell(&Events::count_mbarrier, warp, lane, at, MbarrierAction::arrive, 1u);
  if (barrier.store(at)) cluster.tell(&Events::ended_phase, cluster, at);
}

bool commit_to(Warp& warp, int lane, std::byte* at) {
  Cluster& cluster = warp.block->cluster();
  if (!ask(warp, &Events::use_mbarrier, 1u << lane, at, MbarrierUse{.by_tensor_core = true}))
    return false;
  tell(warp, &ValueEvents::fill, at, 8);
  tell(warp, &Events::commit_tensor, lane, at);
  // A later commit tracks what an earlier one of the thread does: they arrive in their order.
  const std::uint32_t thread = 32 * warp.index + static_cast<std::uint32_t>(lane);
  warp.block->tensor().commits(thread).push_back(at);
  cluster.issue(warp, 1u << lane, AsyncKind::completion, [=, &cluster, &warp] {
    auto& commits = warp.block->tensor().commits(thread);
    std::byte* const first = commits.front();
    commits.pop_front();
    arrive(cluster, warp, lane, first);
  });
  return !warp.leave;
}

// op.flags: to the blocks of a lane's mask, op.b.
void commit(Warp& warp, const Op& op) {
  if (!are_in_place(warp, op, false)) return;
  std::uint64_t at[32];
  addresses(warp, op, at);
  const std::uint32_t whole = warp.mask;
  const auto go = [&](int lane, Window window, std::uint64_t address) {
    std::uint64_t places[32] = {};
    places[lane] = address;
    Access access;
    warp.mask = 1u << lane;
    const bool good = resolve(warp, window, places, 8, access);
    warp.mask = whole;
    return good && commit_to(warp, lane, access.at[lane]);
  };
  for (std::uint32_t m = whole; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (!op.flags) {
      if (!go(lane, op.window, at[lane])) return;
      continue;
    }
    const std::uint32_t blocks = lanes<std::uint32_t>(warp, op.b)[lane];
    if (!check_multicast(warp, lane, blocks)) return;
    for (std::uint32_t left = blocks; left; left &= left - 1)
      if (!go(lane, Window::cluster,
              in_block(at[lane], static_cast<std::uint32_t>(std::countr_zero(left)))))
        return;
  }
}

}  // namespace

void decode_commit(Decoder& d) {
  if (!is_of_pair(d)) return;
  d.spelling.ignore("mbarrier::arrive::one");
  d.spelling.type();
  const Type mask = multicast_mask(d);
  const bool multicast = mask != Type::none;
  if (!d.expect_operands(multicast ? 2 : 1, multicast ? 2 : 1)) return;
  const Window window = mbarrier_window(d, false);
  const std::uint32_t blocks = multicast ? d.source(1, mask) : 0;
  Op& op = d.emit(commit);
  op.b = blocks;
  op.flags = multicast;
  d.address(op, d.operand(0), window);
}

}  // namespace tartan::TARTAN_ABI::emulator
