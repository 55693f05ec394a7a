// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/trial.h - what further runs of a launch ask of the emulator, and learn from it,
// to find the level of a finding: `tartan run` (runtime/levels.h).
//
//   Contents      other bits than zeros where nobody has written
//   RacingReads   loads that race with a store: the first run takes them down, and another one
//                 counts what they bring as undefined. What they then decide says whose value is
//                 used
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// What is in memory and in registers before anybody writes there.
class Contents {
 public:
  enum class Kind : std::uint8_t { ones, nans, random };

  Contents(Kind kind, std::uint64_t seed) : kind_(kind), state_(seed) {}
  void fill(std::span<std::byte> to);

 private:
  std::uint64_t draw();

  Kind kind_;
  std::uint64_t state_;
};

/// Where loads that race were, and when.
class RacingReads {
 public:
  /// Memory in pieces of so many bytes: what is read beside what races counts as racing.
  static constexpr std::uint64_t piece = 16;
  static constexpr std::uint32_t any_warp = ~std::uint32_t{0};
  /// Of a launch: a warp's piece of memory; `memory` is 0 for global memory.
  struct Place {
    std::uint64_t grid = 0;
    std::uint32_t warp = any_warp, memory = 0;
    std::uint64_t address = 0;
  };

  /// The load at `pc` races; so does whatever else the warp has read there in those times.
  void add(const Place& place, std::uint32_t from, std::uint32_t to, std::uint32_t pc);
  /// Which racing load a read of the piece by the op at `pc` stands for; none: it does not race, or
  /// the value of each is known to be used.
  std::optional<std::uint32_t> find(const Place& place, std::uint32_t time, std::uint32_t pc) const;
  /// What a load brings was undefined in this run.
  void follow(std::uint64_t grid, std::uint32_t pc) { followed_.emplace(grid, pc); }
  /// The value that a load brings is used.
  void use(std::uint64_t grid, std::uint32_t pc) { used_.emplace(grid, pc); }
  /// Nobody knows of any of them that it is not.
  void give_up() { given_up_ = true; }
  bool is_used(std::uint64_t grid, std::uint32_t pc) const {
    return given_up_ || used_.contains({grid, pc});
  }
  /// This run has followed what the load brings, and nobody has used it.
  bool is_dead(std::uint64_t grid, std::uint32_t pc) const {
    return followed_.contains({grid, pc}) && !is_used(grid, pc);
  }
  std::size_t used() const { return used_.size(); }
  bool given_up() const { return given_up_; }
  bool empty() const { return reads_.empty(); }

 private:
  static constexpr std::size_t most = 1 << 20;
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  struct Reads {
    std::uint32_t from = 0, to = 0;
    std::vector<std::uint32_t> pcs;
  };
  static Key key(const Place& place);

  std::map<Key, Reads> reads_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> followed_, used_;  // launch and pc
  bool given_up_ = false;
};

class Trial {
 public:
  std::optional<Contents> contents;  // none: zeros
  bool notes = false;                // racing reads are taken down
  bool poisons = false;              // they bring undefined values, and nothing else does
  RacingReads reads;
};

}  // namespace tartan::TARTAN_ABI::detail
