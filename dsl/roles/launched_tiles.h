// SPDX-License-Identifier: Apache-2.0
// dsl/roles/launched_tiles.h - the tiles of clusters of the grid that have not started, which the
// CTAs that run take over (clusterlaunchcontrol, PTX ISA 9.0, 9.7.13.17). Not installed.
#pragma once

#include <memory>
#include <optional>
#include <source_location>

#include "dsl/roles/role_ring.h"

namespace tartan::TARTAN_ABI::detail {

/// A ring of answers. A producer of a cluster's first CTA asks for the next tile while the present
/// one is computed; the answer reaches all CTAs of the cluster, and all threads of both roles read
/// it. The clusters that are taken never start.
class LaunchedTiles {
 public:
  /// `first`: the number of the tile, or of the cluster's tiles, that is computed first.
  LaunchedTiles(Builder& k, KernelState& state, const Scalar& first,
                const std::source_location& at);

  Scalar number() const { return *number_; }
  Scalar goes_on() const { return Scalar(*goes_on_) != 0; }
  /// Asks for another one.
  void ask();
  /// Waits for the answer: goes_on() says whether there was one, number() which.
  void take();

 private:
  int cluster() const { return state_.config.options.cluster; }
  ir::Value address_of_answer(const Scalar& stage) const;
  void request(Cursor& cursor);
  void read(Cursor& cursor);
  /// Before it exits, who asks waits until the CTAs of its cluster have read all answers.
  void drain();

  Builder& k_;
  KernelState& state_;
  std::source_location at_;
  ir::Pointer answers_, full_, empty_;
  std::optional<ScalarVariable> number_, goes_on_;
  std::optional<Cursor> consumer_, producer_;
  std::shared_ptr<Cursor> asked_;
};

}  // namespace tartan::TARTAN_ABI::detail
