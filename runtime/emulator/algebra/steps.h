// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/steps.h - the steps that instructions have in common, by what they do to
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/emulator/algebra/lift.h"
#include "runtime/emulator/algebra/observer.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {

/// The tags of byte `byte` of a lane's part of a register; registers of 128 bits have their low
/// words first.
inline std::size_t place_in(const LiftedRegister& reg, int lane, std::size_t byte) {
  const auto at = static_cast<std::size_t>(lane);
  if (reg.bytes <= 4) return reg.slot + 4 * at + byte;
  return reg.slot + 256 * (byte / 8) + 8 * at + byte % 8;
}
/// Bytes that it has in the arena.
inline std::size_t room_of(const LiftedRegister& reg) { return reg.bytes <= 4 ? 4 : reg.bytes; }

/// A lane's part of a register.
struct LaneBytes {
  Tag tags[16] = {};
  std::uint8_t bits[16] = {};

  LaneBytes() = default;
  LaneBytes(const Warp& warp, const LiftedRegister& reg, int lane) {
    const std::size_t room = room_of(reg), word = room < 8 ? room : 8;
    for (std::size_t i = 0; i < room; i += word) {
      const std::size_t at = place_in(reg, lane, i);
      std::memcpy(tags + i, warp.tags + at, word * sizeof(Tag));
      std::memcpy(bits + i, warp.arena + at, word);
    }
  }
  std::uint64_t word() const {
    std::uint64_t out = 0;
    std::memcpy(&out, bits, sizeof out);
    return out;
  }
  void write(Warp& warp, const LiftedRegister& reg, int lane) const {
    const std::size_t room = room_of(reg), word = room < 8 ? room : 8;
    for (std::size_t i = 0; i < room; i += word)
      std::memcpy(warp.tags + place_in(reg, lane, i), tags + i, word * sizeof(Tag));
  }
};

/// Whether any lane's part of the register has a tag.
inline bool tagged(const Warp& warp, const LiftedRegister& reg) {
  const Tag* tags = warp.tags + reg.slot;
  Tag any = 0;
  for (std::size_t i = 0; i < 32 * room_of(reg); ++i) any |= tags[i];
  return any;
}
bool tagged(const Warp& warp, const std::vector<LiftedRegister>& regs);

/// Whether any of the first `count` bytes rests on inputs.
inline bool depends(const Values& values, const LaneBytes& bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Tag tag = bytes.tags[i];
    if (is_input(tag) || (is_valued(tag) && !values[ref_of(tag)].constant)) return true;
  }
  return false;
}

/// The results are what their bits say.
bool forget(Warp& warp, const Op& op, const Lift& lift);
/// Computes with bits: inputs are taken as they are, values make the results undecided.
bool compute_bits(Warp& warp, const Op& op, const Lift& lift);
/// The same, with those of all lanes that take part.
bool collect_bits(Warp& warp, const Op& op, const Lift& lift);

// moves.cc
bool move_words(Warp& warp, const Op& op, const Lift& lift);
bool resize_word(Warp& warp, const Op& op, const Lift& lift);
bool select(Warp& warp, const Op& op, const Lift& lift);
bool select_by_sign(Warp& warp, const Op& op, const Lift& lift);
bool compare_words(Warp& warp, const Op& op, const Lift& lift);
bool shuffle_lanes(Warp& warp, const Op& op, const Lift& lift);
bool permute_bytes(Warp& warp, const Op& op, const Lift& lift);
bool shift_bytes(Warp& warp, const Op& op, const Lift& lift);
// logic.cc
bool combine_bits(Warp& warp, const Op& op, const Lift& lift);
// arithmetic.cc
bool compute_values(Warp& warp, const Op& op, const Lift& lift);
bool convert_values(Warp& warp, const Op& op, const Lift& lift);
bool compute_integers(Warp& warp, const Op& op, const Lift& lift);
// memory.cc
bool load_words(Warp& warp, const Op& op, const Lift& lift);
bool store_words(Warp& warp, const Op& op, const Lift& lift);
bool update_memory(Warp& warp, const Op& op, const Lift& lift);
bool load_rows(Warp& warp, const Op& op, const Lift& lift);
bool store_rows(Warp& warp, const Op& op, const Lift& lift);
bool transpose_matrix(Warp& warp, const Op& op, const Lift& lift);

}  // namespace tartan::TARTAN_ABI::emulator
