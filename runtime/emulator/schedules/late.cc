// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/late.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/emulator/machine/block.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::uint32_t place_in_warpgroup(const Warp& warp) { return warp.index % warps_of_warpgroup; }

bool same_warpgroup(const Warp& one, const Warp& other) {
  return one.block == other.block &&
         one.index / warps_of_warpgroup == other.index / warps_of_warpgroup;
}

}  // namespace

void Late::start() {
  operations_.clear();
  closed_.clear();
  issued_ = 0;
}

// Lanes that count their groups alike have one operation.
void Late::issue(Warp& warp, std::uint32_t lanes, AsyncKind kind, Step done, Step reads) {
  Operation made{.number = issued_++,
                 .warp = &warp,
                 .pc = warp.pc,
                 .lanes = lanes,
                 .kind = kind,
                 .reads = std::move(reads),
                 .done = std::move(done)};
  const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
  if (kind == AsyncKind::product) {
    for (const Warp& each : warp.block->warpgroup(warp))
      made.groups[place_in_warpgroup(each)] = closed(each, kind)[0];
  } else {
    made.groups[0] = closed(warp, kind)[lane];
  }
  operations_.push_back(std::move(made));
  warp.slice = 0;  // it may be next
}

void Late::commit(const Warp& warp, std::uint32_t lanes, AsyncKind kind) {
  Groups& groups = closed(warp, kind);
  for (std::uint32_t m = lanes; m; m &= m - 1) ++groups[std::countr_zero(m)];
}

bool Late::concerns(const Operation& operation, const Warp& warp, std::uint32_t lanes,
                    AsyncKind kind) const {
  if (operation.kind != kind) return false;
  if (kind == AsyncKind::product) return same_warpgroup(*operation.warp, warp);
  return operation.warp == &warp && operation.lanes & lanes;
}

void Late::wait(const Warp& warp, std::uint32_t lanes, AsyncKind kind,
                std::optional<std::uint32_t> pending, bool reads) {
  const Groups& groups = closed(warp, kind);
  finish_all(
      [&](const Operation& each) {
        if (!concerns(each, warp, lanes, kind)) return false;
        if (!pending) return true;
        const bool product = kind == AsyncKind::product;
        const std::uint32_t common = each.lanes & lanes;
        const std::uint32_t now = groups[product ? 0 : std::countr_zero(common)];
        return each.groups[product ? place_in_warpgroup(warp) : 0] + *pending < now;
      },
      reads);
}

template <typename Which>
void Late::finish_all(Which&& which, bool reads) {
  for (std::size_t i = 0; i < operations_.size();) {
    Operation& each = operations_[i];
    if (!which(each)) {
      ++i;
    } else if (reads) {
      if (const Step step = std::exchange(each.reads, {})) perform(each, step);
      ++i;
    } else {
      finish(i);
    }
  }
}

bool Late::can_advance(std::size_t at) const {
  const Operation& mine = operations_[at];
  if (mine.kind != AsyncKind::product) return true;
  return std::none_of(operations_.begin(), operations_.begin() + static_cast<std::ptrdiff_t>(at),
                      [&](const Operation& each) {
                        return concerns(each, *mine.warp, mine.lanes, AsyncKind::product);
                      });
}

void Late::advance(std::size_t at) {
  if (const Step step = std::exchange(operations_[at].reads, {}))
    return perform(operations_[at], step);
  finish(at);
}

// An arrival of cp.async.mbarrier.arrive comes behind the copies of its lanes that were there.
void Late::finish(std::size_t at) {
  const Operation mine = std::move(operations_[at]);
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(at));
  if (mine.kind == AsyncKind::arrival)
    finish_all(
        [&](const Operation& each) {
          return each.number < mine.number &&
                 concerns(each, *mine.warp, mine.lanes, AsyncKind::copy);
        },
        false);
  if (mine.reads) perform(mine, mine.reads);
  perform(mine, mine.done);
}

// As if the warp were at the instruction again: what is found names it.
void Late::perform(const Operation& operation, const Step& step) {
  Warp& warp = *operation.warp;
  const std::uint32_t pc = std::exchange(warp.pc, operation.pc),
                      mask = std::exchange(warp.mask, operation.lanes);
  const bool leave = warp.leave;
  step();
  warp.pc = pc;
  warp.mask = mask;
  warp.leave = leave || warp.block->stopped();
}

}  // namespace tartan::TARTAN_ABI::emulator
