// SPDX-License-Identifier: Apache-2.0
// dsl/units/warp_mma/stored_fragments.h - the fragments of a tile, one by one as they are stored.
// Not installed.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "dsl/state/state.h"
#include "tartan/dsl/warp_tile.h"

namespace tartan::TARTAN_ABI::detail {

/// A tile's fragments in the order of their stores, unchanged or finished. Reads for finished() run
/// ahead by as many fragments as fit in registers beside the accumulators that are still to be
/// stored.
class StoredFragments {
 public:
  using Order = std::vector<std::pair<int, int>>;  // rows and columns of fragments

  StoredFragments(KernelState& state, const WarpTile& tile, const Finish* finish)
      : state_(state), tile_(tile), finish_(finish) {}

  FragmentKind kind() const { return finish_ ? finish_->kind : tile_.fragment(0, 0).kind(); }
  void store_by(Order order) { order_ = std::move(order); }
  Fragment next();

 private:
  Fragment checked(Fragment fragment);
  void read_ahead();
  bool has_room() const;

  KernelState& state_;
  const WarpTile& tile_;
  const Finish* finish_;
  Order order_;
  std::size_t read_ = 0, stored_ = 0;  // of `order_`
};

}  // namespace tartan::TARTAN_ABI::detail
