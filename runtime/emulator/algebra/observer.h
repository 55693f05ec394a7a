// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/observer.h - the algebra of a launch hears where values go: tags go with
// them.
#pragma once

#include <vector>

#include "runtime/emulator/algebra/algebra.h"
#include "runtime/emulator/algebra/lift.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/observers.h"

namespace tartan::TARTAN_ABI::emulator {

class LaunchAlgebra final : public LaunchObserver {
 public:
  LaunchAlgebra(Algebra& algebra, const GlobalMemory& memory) : algebra_(algebra) {
    algebra.begin(memory);
  }
  void attach(Cluster& cluster) override;

 private:
  Algebra& algebra_;
};

class ClusterAlgebra final : public ValueEvents {
 public:
  static constexpr Seat seat = Lifts::seat;

  ClusterAlgebra(Cluster& cluster, Algebra& algebra);

  void start() override;
  void fill(Warp& warp, const std::byte* to, std::uint64_t bytes) override;
  void move(Warp& warp, std::byte* to, const std::byte* from, std::uint64_t bytes) override;
  void store(Warp& warp, int lane, const StoredBytes& stored) override;
  void load_element(Warp& warp, int lane, const std::byte* from,
                    const ElementPlace& place) override;
  void store_element(Warp& warp, int lane, std::byte* to, const ElementPlace& place) override;
  void store_register(Warp& warp, int lane, std::uint32_t slot, const StoredBytes& stored) override;
  void save(Warp& warp, std::byte* to, std::size_t at, std::size_t bytes) override;
  void restore(Warp& warp, std::size_t at, const std::byte* from, std::size_t bytes) override;
  void copy_register(Warp& warp, std::uint32_t to, std::uint32_t from, int bits) override;
  void load_tensor(Warp& warp, const TensorMove&, isa::TensorCell) override;
  bool multiply(Warp& warp, const MatrixOperation& m, const ScalePlaces& places) override;
  void multiply_warpgroup(Warp& warp, std::span<Warp> warps, const WarpgroupOperation& w,
                          const WgmmaOperands& operands) override;

  Algebra& algebra;

 private:
  Cluster& cluster_;
  std::vector<Tag> tags_;  // of the warps' arenas
};

/// That of the launch that the warp is of.
inline Algebra& algebra_of(const Warp& warp) {
  return warp.block->cluster().find<ClusterAlgebra>()->algebra;
}

}  // namespace tartan::TARTAN_ABI::emulator
