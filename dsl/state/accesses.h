// SPDX-License-Identifier: Apache-2.0
// dsl/state/accesses.h - what a fill or use callback does with the stages of its ring. Not
// installed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// How a stage is accessed. What an access costs the two sides of a ring is a row of
/// dsl/roles/completions.h.
enum class StageAccess : std::uint8_t {
  store,          // threads store what they loaded or computed
  cp_async,       // threads copy from global memory
  tma_load,       // one lane starts copies by TMA
  load,           // threads load, one by one
  fragment_load,  // a warp loads a fragment, by ldmatrix if possible
  wgmma_read,     // a warpgroup's product reads operands
  tensor_read,    // a product by tcgen05 does
};
constexpr int stage_accesses = static_cast<int>(StageAccess::tensor_read) + 1;

/// Whose stages the CTAs of a cluster fill by multicast: only their own, those of the CTAs in their
/// row and in their column of the cluster, or all.
enum class Sharing : std::uint8_t { none, cross, all };

/// The accesses of a callback to one stage.
class Accesses {
 public:
  void add(StageAccess how) { kinds_ |= bit(how); }
  /// TMA loads so many bytes of the stage, for whom.
  void add_tma_load(int bytes, Sharing sharing = Sharing::none) {
    add(StageAccess::tma_load);
    tma_bytes_ += bytes, sharing_ = std::max(sharing_, sharing);
  }
  /// The kinds of another callback, too.
  void add_kinds(const Accesses& other) { kinds_ |= other.kinds_; }

  bool has(StageAccess how) const { return kinds_ & bit(how); }
  int tma_bytes() const { return tma_bytes_; }
  Sharing sharing() const { return sharing_; }

 private:
  static constexpr unsigned bit(StageAccess how) { return 1U << static_cast<unsigned>(how); }

  unsigned kinds_ = 0;
  int tma_bytes_ = 0;
  Sharing sharing_ = Sharing::none;
};

}  // namespace tartan::TARTAN_ABI::detail
