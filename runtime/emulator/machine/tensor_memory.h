// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/tensor_memory.h - the tensor memory of a block: its cells, and who has
// which of its columns (PTX ISA 9.0, 9.7.16.1 and 9.7.16.7).
//
// An address is lane << 16 | column. Columns are given out in ranges that begin at a multiple of
// 32, the lowest that is free. Each block has all 512 columns: blocks do not wait for those of
// others that a multiprocessor would run at the same time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tartan/isa/tensor_memory.h"

namespace tartan::TARTAN_ABI::emulator {

struct Warp;

/// Cells at neighbouring lanes and columns.
struct TensorArea {
  int lane = 0, lanes = 0, column = 0, columns = 0;
};

/// "lane 32, column 4".
std::string cell_text(int lane, int column);

class TensorMemory {
 public:
  static constexpr int lanes = isa::tensor_lanes, columns = isa::tensor_columns;
  static constexpr std::uint32_t granule = 32;  // columns
  static constexpr std::uint64_t bytes = std::uint64_t{4} * lanes * columns;

  struct Allocation {
    std::uint32_t first = 0, count = 0;
    std::uint32_t pc = 0;  // of the instruction
  };

  TensorMemory() : cells_(std::size_t{lanes} * columns) {}
  /// The block begins.
  void start();

  std::uint32_t& cell(int lane, int column) { return cells_[index(lane, column)]; }
  static constexpr std::size_t index(int lane, int column) {
    return static_cast<std::size_t>(lane * columns + column);
  }
  std::uint32_t* cells() { return cells_.data(); }

  /// Why such an allocation is illegal now; empty: it is not.
  std::string refusal(std::uint32_t count) const;
  /// The first column; nothing where no range of columns is free.
  std::optional<std::uint32_t> allocate(std::uint32_t count, std::uint32_t pc);
  /// Why it is illegal to give them back; empty: it is not.
  std::string misfit(std::uint32_t address, std::uint32_t count) const;
  /// The same, and empty: it is done.
  std::string deallocate(std::uint32_t address, std::uint32_t count);
  /// The instruction of the last deallocation.
  std::optional<std::uint32_t> deallocated() const { return deallocated_; }
  void note_deallocation(std::uint32_t pc) { deallocated_ = pc; }
  void relinquish(std::uint32_t pc) { relinquished_ = pc; }
  std::optional<std::uint32_t> relinquished() const { return relinquished_; }
  const std::vector<Allocation>& allocations() const { return allocations_; }
  /// What is wrong with an access to those cells: beyond the end, or not allocated. Empty: nothing.
  std::string fault(const TensorArea& area) const;

  /// What a warp of a pair of CTAs asks for; one of the other CTA has to ask for the same.
  struct PairRequest {
    Warp* warp = nullptr;
    std::uint32_t pc = 0, lanes = 0;
    bool allocates = false, done = false;
    std::uint32_t address = 0, count = 0;
  };
  /// In the order in which the warps came.
  std::deque<PairRequest>& pair_requests() { return pair_requests_; }

  /// The mbarriers at which a thread's commits are still to arrive, in their order.
  std::deque<std::byte*>& commits(std::uint32_t thread) { return commits_[thread]; }

 private:
  bool taken(std::uint32_t granule_index) const { return owner_[granule_index] != 0; }

  std::vector<std::uint32_t> cells_;
  std::array<std::uint8_t, columns / granule> owner_{};  // 1 + index of the allocation; 0: free
  std::vector<Allocation> allocations_;
  std::uint32_t last_count_ = 0;  // of the last allocation; 0: there was none
  std::optional<std::uint32_t> relinquished_, deallocated_;
  std::deque<PairRequest> pair_requests_;
  std::map<std::uint32_t, std::deque<std::byte*>> commits_;
};

}  // namespace tartan::TARTAN_ABI::emulator
