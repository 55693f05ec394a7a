// SPDX-License-Identifier: Apache-2.0
// kernels/gemm/gemm_stages.h - how many stages of a tile fit into shared memory. Not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/gpus.h"
#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// Bytes of shared memory of a CTA, without what stages C; a bound for what that may add is 2 KB.
std::int64_t shared_bytes(const Gemm& options);
/// Of that, what CTAs of clusters that divide k exchange their sums through.
std::int64_t exchanged_bytes(const Gemm& options);

/// Of the configurations of one product.
class GemmStages {
 public:
  GemmStages(const Gemm& product, const Target& target, const isa::GpuRow& gpu);

  /// Of CTAs of one tile, of so many: as many stages as fit beside what stages C; as many as leave
  /// room for a second CTA; of threads that copy, fewer, since they issue every copy themselves.
  std::vector<int> counts(const Gemm& each, std::int64_t tiles) const;
  /// Of CTAs of several tiles. C has memory of its own beside their stages: off 128-byte lines,
  /// where that leaves few, for as little of it as a warp stores at a time.
  int lasting(const Gemm& each) const;
  /// Of warpgroups in turn: beside two boxes of C for each warp, or one, where that leaves room for
  /// a fifth stage.
  int in_turn(const Gemm& each) const;
  /// Bytes of shared memory of a CTA.
  int shared() const { return shared_; }

 private:
  int beside_c(const Gemm& each) const;

  const Target& target_;
  const isa::GpuRow& gpu_;
  const int shared_;
  const bool off_lines_;  // rows of B begin off 128-byte lines
};

}  // namespace tartan::TARTAN_ABI::kernels::detail
