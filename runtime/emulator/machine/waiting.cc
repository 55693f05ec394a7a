// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "compiler/support/counted.h"
#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/schedules/retry.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t most_places = 8;  // in a message

// Threads that wait for the same thing at the same place.
struct WaitingThreads {
  Block* block;
  Warp* warp;
  std::uint32_t pc;
  std::string what;
  int threads;
  int lane;
  std::uint64_t address;
};

std::string mbarrier_text(Warp& warp, const Group::Poll& poll) {
  std::string text =
      fmt::format("the end of phase parity {1:d} of mbarrier 0x{0:x}", poll.address, poll.parity);
  Block& block = *warp.block;
  const std::uint64_t at = poll.address & shared_offset_mask;
  if (at + 8 > block.shared_bytes()) return text;
  const Mbarrier barrier = Mbarrier::load(block.shared() + at);
  const std::string bytes = barrier.transactions < 0
                                ? fmt::format("{} bytes more than expected", -barrier.transactions)
                                : detail::counted(barrier.transactions, "byte");
  return text + fmt::format(" (current phase parity {:d}; pending: {}, {})", barrier.phase,
                            detail::counted(barrier.pending, "arrival"), bytes);
}

// The instruction at which its lanes are.
std::uint32_t place_of(const Group& group) {
  const bool before =
      group.state == Group::State::ready || group.state == Group::State::gathering ||
      group.state == Group::State::for_columns || group.state == Group::State::for_peer;
  return before ? group.pc : group.pc - 1;
}

// What it waits for; empty: nothing.
std::string awaited(Warp& warp, const Group& group) {
  switch (group.state) {
    case Group::State::ready: return {};
    case Group::State::gathering:
      return fmt::format("lanes 0x{:08x} of its warp",
                         group.required & warp.live & ~warp.gathered(group));
    case Group::State::at_barrier:
      return fmt::format("barrier {}, which {}", group.barrier,
                         warp.block->barrier_text(group.barrier));
    case Group::State::in_warpgroup: return "the other warps of the warpgroup";
    case Group::State::for_registers: return warp.block->registers_text(warp, group.wanted);
    case Group::State::for_columns: return warp.block->columns_text(group.wanted);
    case Group::State::for_peer:
      return fmt::format("a warp of the other CTA of its pair to do so{}",
                         warp.block->peer()->done() ? ", which has exited" : "");
    case Group::State::at_cluster: return "all threads of the cluster to arrive";
  }
  return {};
}

class Waiting {
 public:
  explicit Waiting(Cluster& cluster) : cluster_(cluster) {}

  /// False if some lanes may go on.
  bool collect() {
    for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank)
      for (Warp& warp : cluster_.block(rank).warps())
        for (const Group& group : warp.groups)
          if (!warp.done() && !add(warp, group)) return false;
    return !places_.empty();
  }

  void report() {
    std::string text = cluster_.size() > 1 ? "deadlock, no thread of the cluster can proceed: "
                                           : "deadlock, no thread of the CTA can proceed: ";
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (i == most_places) {
        text += fmt::format("; and {} more places", places_.size() - i);
        break;
      }
      WaitingThreads& place = places_[i];
      const Dim3 at = place.block->place();
      if (i > 0) text += "; ";
      if (cluster_.size() > 1) text += fmt::format("CTA {},{},{}: ", at.x, at.y, at.z);
      text += fmt::format("{} thread{} at {} for {}", place.threads,
                          place.threads == 1 ? " waits" : "s wait", place.block->where(place.pc),
                          place.what);
    }
    const WaitingThreads& first = places_.front();
    first.block->fail(*first.warp, first.pc, "deadlock"_rule, std::move(text), first.lane,
                      first.address);
  }

 private:
  bool add(Warp& warp, const Group& group) {
    WaitingThreads place{.block = warp.block,
                         .warp = &warp,
                         .pc = 0,
                         .threads = std::popcount(group.mask),
                         .lane = std::countr_zero(group.mask),
                         .address = 0};
    if (group.state == Group::State::ready) {
      if (group.poll.pc == 0 || group.poll.steps > longest_round ||
          !idles(warp.block->context(), group.poll.pc, group.poll.length))
        return false;
      place.pc = group.poll.pc - 1;
      place.address = group.poll.address;
      place.what = mbarrier_text(warp, group.poll);
    } else {
      place.pc = place_of(group);
      place.what = awaited(warp, group);
    }
    const auto same = std::ranges::find_if(places_, [&](const WaitingThreads& other) {
      return other.block == place.block && other.pc == place.pc && other.what == place.what;
    });
    if (same == places_.end()) places_.push_back(std::move(place));
    else same->threads += place.threads;
    return true;
  }

  Cluster& cluster_;
  std::vector<WaitingThreads> places_;
};

}  // namespace

bool Block::still_waits(const Group& group) const {
  const Group::Poll& poll = group.poll;
  const std::uint64_t at = poll.address & shared_offset_mask;
  if (poll.pc == 0 || poll.steps > longest_round || at + 8 > shared_bytes_) return false;
  return Mbarrier::load(shared_.data() + shared_shift_ + at).phase == poll.parity;
}

namespace {

// Warps of a block at the same place, for the same reason: "warps 0 to 3, 8".
class Warps {
 public:
  void add(std::uint32_t warp) {
    if (!runs_.empty() && runs_.back().second + 1 >= warp) runs_.back().second = warp;
    else runs_.emplace_back(warp, warp);
  }
  std::string text() const {
    const bool one = runs_.size() == 1 && runs_[0].first == runs_[0].second;
    std::string out = one ? "warp " : "warps ";
    for (const auto& [first, last] : runs_) {
      if (out.back() != ' ') out += ", ";
      out += first == last
                 ? fmt::format("{}", first)
                 : fmt::format("{}{}{}", first, first + 1 == last ? " and " : " to ", last);
    }
    return out;
  }

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs_;
};

}  // namespace

std::string positions(Block& block) {
  std::map<std::string, Warps> warps;  // by what they do
  for (Warp& warp : block.warps())
    for (const Group& group : warp.groups) {
      if (warp.done()) continue;
      const std::string at = block.where(place_of(group)), what = awaited(warp, group);
      warps[what.empty() ? fmt::format("at {}", at) : fmt::format("at {}, for {}", at, what)].add(
          warp.index);
    }
  std::string out;
  std::size_t places = 0;
  for (const auto& [where, those] : warps) {
    if (++places > most_places)
      return out + fmt::format("; and {} more places", warps.size() - most_places);
    out += fmt::format("{}{} {}", out.empty() ? "" : "; ", those.text(), where);
  }
  return out;
}

void report_waiting(Cluster& cluster) {
  Waiting waiting(cluster);
  if (waiting.collect()) waiting.report();
}

}  // namespace tartan::TARTAN_ABI::emulator
