// SPDX-License-Identifier: Apache-2.0
// Shared memory that copies take: who may overwrite it, and when.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/races/order.h"

namespace tartan::inline TARTAN_ABI::emulator {

void Order::keep_source(Source source, Shared& shared, std::uint64_t first) {
  const auto free = std::ranges::find(shared.sources, 0u, &Source::chunks);
  const auto index = static_cast<std::uint32_t>(free - shared.sources.begin()) + 1;
  if (free == shared.sources.end()) shared.sources.emplace_back();
  for (std::uint64_t at = first; at < first + source.chunks; ++at) {
    // Of several that take it, the last one counts.
    if (const std::uint32_t before = shared.source[at]) --shared.sources[before - 1].chunks;
    shared.source[at] = index;
  }
  shared.sources[index - 1] = source;
}

void Order::take_until(Warp& warp, int lane, const std::byte* from, std::uint64_t bytes,
                       const std::byte* mbarrier) {
  const auto place = place_of(from);
  const auto found = mbarriers_.find(mbarrier);
  if (!place || found == mbarriers_.end()) return;
  const std::uint64_t first = place->offset / chunk,
                      last = (place->offset + bytes + chunk - 1) / chunk;
  keep_source({.chunks = last - first,
               .warp = entry(warp),
               .lane = lane,
               .pc = warp.pc - 1,
               .entry = found->second.entry,
               .phase = found->second.phases},
              shared_[place->rank], first);
}

bool Order::free_source(Warp& warp, int lane, Shared& shared, std::uint64_t at) {
  const std::uint32_t index = shared.source[at];
  if (!index) return true;
  Source& source = shared.sources[index - 1];
  const Clock& mine = clock(warp);
  if (source.entry ? mine[*source.entry] > source.phase
                   : source.waited && mine[source.warp] >= source.waited) {
    shared.source[at] = 0;
    --source.chunks;
    return true;
  }
  warp.fail("asynchronous-race"_rule,
            fmt::format(
                "race: the store overwrites shared memory at 0x{:x}, which the copy of line {} {}",
                at * chunk, warp.block->line(source.pc),
                source.entry ? "may still be reading: this thread has not waited for the mbarrier "
                               "phase in which it completes"
                : source.waited
                    ? "reads: its thread has waited for it, but that is not ordered before this "
                      "store; insert a barrier after cp.async.bulk.wait_group"
                    : "may still be reading: its thread has not executed cp.async.bulk.wait_group"),
            lane, at * chunk);
  return false;
}

void Order::commit_copies(const Warp& warp) {
  for (std::uint32_t m = warp.mask; m; m &= m - 1)
    ++copies_[thread(entry(warp), std::countr_zero(m))];
}

void Order::wait_for_copies(const Warp& warp, std::uint32_t pending) {
  const std::size_t mine = entry(warp);
  for (Source& source : shared_[warp.block->rank()].sources)
    if (source.chunks && !source.entry && source.warp == mine && !source.waited &&
        warp.mask >> source.lane & 1 && source.group + pending < copies_[thread(mine, source.lane)])
      source.waited = clocks_[mine][mine];
}

}  // namespace tartan::inline TARTAN_ABI::emulator
