// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/watches.h - what the race detector knows of a program's ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/emulator/machine/program.h"

namespace tartan::TARTAN_ABI::emulator {

/// An access, or a fence.
struct Watch {
  Handler inner = nullptr;  // what the op does
  std::uint8_t bytes = 0;   // of a lane's access
  std::uint8_t rows = 32;   // the first lanes, that give addresses
  bool writes = false;
  bool strong = false, acquires = false, releases = false, sequential = false;
  bool noncoherent = false, is_volatile = false;
  std::uint8_t scope = 2;          // Scope
  std::uint8_t element_bytes = 0;  // of a store whose registers are in the op's list; 0: of another
  bool wide = false;               // those are of 64 bits
  std::uint8_t atom_bytes = 0;     // of an element of a strong access; 0: of several sizes
  enum class Atomic : std::uint8_t { no, gives, reduces, compares } atomic = Atomic::no;
  std::uint64_t operation = 0;  // of a reduction
};

/// Handlers around those of the instructions whose row has an access.
class RaceWatches final : public Observation {
 public:
  static constexpr Seat seat = 0;

  /// `whole`: all memory.
  explicit RaceWatches(bool whole) : whole_(whole) {}
  void decoded(Decoder& decoder, std::size_t first) override;
  void finish(Program& program, const ptx::Module&) override {
    watches_.resize(program.ops.size());
  }

  const Watch& operator[](std::size_t op) const { return watches_[op]; }
  auto begin() const { return watches_.begin(); }
  auto end() const { return watches_.end(); }

 private:
  bool whole_;
  std::vector<Watch> watches_;
};

}  // namespace tartan::TARTAN_ABI::emulator
