// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/machine/cluster.h"

namespace tartan::TARTAN_ABI::emulator {

std::string cell_text(int lane, int column) {
  return fmt::format("lane {}, column {}", lane, column);
}

void TensorMemory::start() {
  std::ranges::fill(cells_, 0u);
  owner_.fill(0);
  allocations_.clear();
  last_count_ = 0;
  relinquished_.reset();
  pair_requests_.clear();
  deallocated_.reset();
  commits_.clear();
}

std::string TensorMemory::refusal(std::uint32_t count) const {
  if (!std::has_single_bit(count) || count < granule || count > columns)
    return fmt::format("{} columns: expected a power of two from 32 to 512", count);
  if (last_count_ && count > last_count_)
    return fmt::format(
        "{} columns after an allocation of {}: the sizes of a CTA's allocations must not grow",
        count, last_count_);
  return {};
}

std::optional<std::uint32_t> TensorMemory::allocate(std::uint32_t count, std::uint32_t pc) {
  const std::uint32_t wanted = count / granule;
  for (std::uint32_t first = 0, free = 0; first + free < owner_.size();) {
    if (taken(first + free)) {
      first += free + 1;
      free = 0;
      continue;
    }
    if (++free < wanted) continue;
    allocations_.push_back({first * granule, count, pc});
    std::fill_n(owner_.begin() + first, wanted, std::uint8_t{1});
    last_count_ = count;
    return first * granule;
  }
  return std::nullopt;
}

std::string TensorMemory::misfit(std::uint32_t address, std::uint32_t count) const {
  const auto found = std::ranges::find(allocations_, address, &Allocation::first);
  if (found == allocations_.end()) {
    const bool inside = std::ranges::any_of(
        allocations_, [&](const Allocation& each) { return address - each.first < each.count; });
    return fmt::format("address 0x{:x} {}", address,
                       inside ? "is inside an allocation: expected the address that tcgen05.alloc "
                                "gave"
                              : "is not allocated: it was deallocated before, or no tcgen05.alloc "
                                "gave it");
  }
  if (found->count != count)
    return fmt::format("{} columns at address 0x{:x}, which has {}", count, address, found->count);
  return {};
}

std::string TensorMemory::deallocate(std::uint32_t address, std::uint32_t count) {
  if (std::string why = misfit(address, count); !why.empty()) return why;
  std::fill_n(owner_.begin() + address / granule, count / granule, std::uint8_t{0});
  allocations_.erase(std::ranges::find(allocations_, address, &Allocation::first));
  return {};
}

std::string TensorMemory::fault(const TensorArea& area) const {
  if (area.lane < 0 || area.lane > lanes - area.lanes || area.column < 0 ||
      area.column > columns - area.columns)
    return fmt::format(
        "{} lanes from {} on, {} columns from {} on: tensor memory has 128 lanes of "
        "512 columns",
        area.lanes, area.lane, area.columns, area.column);
  for (int column = area.column; column < area.column + area.columns; ++column) {
    if (taken(static_cast<std::uint32_t>(column) / granule)) continue;
    return fmt::format(
        "column {} is not allocated: the access has columns {} to {}, {}", column, area.column,
        area.column + area.columns - 1,
        allocations_.empty() ? "and nothing is allocated" : "outside of the CTA's allocations");
  }
  return {};
}

// ---- Allocations that wait for columns.

void Block::hand_out_columns() {
  for (Warp& warp : warps_)
    for (Group& group : warp.groups)
      if (group.state == Group::State::for_columns) group.state = Group::State::ready;
}

Block* Block::peer() {
  return (rank_ ^ 1) < cluster_.size() ? &cluster_.block(rank_ ^ 1) : nullptr;
}

std::string Block::columns_text(std::uint32_t wanted) const {
  std::uint32_t taken = 0;
  for (const TensorMemory::Allocation& each : tensor_->allocations()) taken += each.count;
  return fmt::format("{} columns of tensor memory, of which {} are allocated", wanted, taken);
}

void Block::check_allocations(Warp& warp) {
  if (!tensor_ || cluster_.stopped() || tensor_->allocations().empty() || !done()) return;
  const TensorMemory::Allocation& left = tensor_->allocations().front();
  fail(warp, left.pc, "tensor-memory"_rule,
       fmt::format("{} columns at address 0x{:x} are still allocated when the CTA ends: expected "
                   "tcgen05.dealloc on every path",
                   left.count, left.first),
       0, left.first);
}

void Warp::wait_for_columns(std::uint32_t wanted) {
  groups.push_back({.pc = pc - 1,
                    .mask = mask,
                    .state = Group::State::for_columns,
                    .wanted = wanted,
                    .last_run = steps});
  group &= ~mask;
  leave = true;
}

void Warp::wait_for_peer() {
  groups.push_back(
      {.pc = pc - 1, .mask = mask, .state = Group::State::for_peer, .last_run = steps});
  group &= ~mask;
  leave = true;
}

}  // namespace tartan::TARTAN_ABI::emulator
