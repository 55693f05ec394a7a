// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/converged.h - lanes of a warp that exchange values because they move
// together, without bar.warp.sync: hardware before sm_70 kept them together, later hardware need
// not.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/warp.h"
#include "runtime/emulator/races/past.h"

namespace tartan::TARTAN_ABI::emulator {

/// Whether lanes of a warp executed an access together. Whoever of them goes on to another one
/// comes behind it, whether they part later or not.
class Convergence {
 public:
  explicit Convergence(const Program& program) : numbers_(program.ops.size()) {}
  /// So many warps begin.
  void start(std::size_t warps);
  /// The running lanes of that warp are about to access shared memory.
  void note(std::size_t index, const Warp& warp, std::uint32_t time);
  /// `past`, an access by a lane of that warp, was done by a group to which all lanes belonged that
  /// execute now. False also where an older access by the same op cannot be told from it.
  bool together(std::size_t index, const Warp& warp, const Past& past) const;

 private:
  struct Access {
    std::uint32_t lanes = 0;            // of the group, the last times
    std::uint32_t syncs = 0;            // Warp::partial_syncs then
    std::uint32_t first = 0, last = 0;  // those times
  };

  std::vector<std::uint32_t> numbers_;  // of ops that access it, from 1 on
  std::uint32_t count_ = 0;
  std::size_t warps_ = 0;
  std::vector<Access> accesses_;  // by op's number and warp
};

/// The last volatile accesses to words of shared memory. No two of them race, so that nothing else
/// knows of them.
class VolatileWords {
 public:
  struct Word {
    Past written, read;  // time 0: it was not
  };
  void start() { words_.clear(); }
  Word& at(std::uint32_t rank, std::uint64_t address) {
    return words_[std::uint64_t{rank} << 32 | address / word_bytes];
  }
  static constexpr std::uint64_t word_bytes = 4;

 private:
  std::unordered_map<std::uint64_t, Word> words_;
};

}  // namespace tartan::TARTAN_ABI::emulator
