// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/algebra/observer.h"

#include <algorithm>
#include <memory>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// The tags of a lane's part of a register of so many bytes.
Tag* tags_of(Warp& warp, std::uint32_t slot, std::size_t bytes, int lane) {
  return warp.tags + slot + bytes * static_cast<std::size_t>(lane);
}

}  // namespace

void LaunchAlgebra::attach(Cluster& cluster) {
  cluster.add(std::make_unique<ClusterAlgebra>(cluster, algebra_));
}

ClusterAlgebra::ClusterAlgebra(Cluster& cluster, Algebra& algebra)
    : algebra(algebra), cluster_(cluster) {
  const std::size_t bytes = cluster.block(0).context().program.arena.size(),
                    warps = cluster.block(0).warps().size();
  tags_.resize(bytes * warps * cluster.size());
  for (std::uint32_t rank = 0; rank < cluster.size(); ++rank)
    for (Warp& warp : cluster.block(rank).warps())
      warp.tags = tags_.data() + bytes * (warps * rank + warp.index);
}

void ClusterAlgebra::start() {
  std::ranges::fill(tags_, 0);
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank) {
    Block& block = cluster_.block(rank);
    algebra.memory.clear(block.shared(), block.shared_bytes());
    for (const Warp& warp : block.warps()) algebra.memory.clear(warp.local, 32 * warp.local_step);
  }
}

void ClusterAlgebra::fill(Warp&, const std::byte* to, std::uint64_t bytes) {
  algebra.memory.clear(to, bytes);
}

void ClusterAlgebra::move(Warp&, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  algebra.memory.copy(to, from, bytes);
}

void ClusterAlgebra::store(Warp&, int, const StoredBytes& stored) {
  if (stored.reduction) {
    const ReducedElement element = reduced_by(stored.reduction);
    return algebra.reduce(stored.to, stored.from, stored.bytes, element.name, element.type);
  }
  if (!stored.mask) return algebra.memory.copy(stored.to, stored.from, stored.bytes);
  for (std::uint64_t i = 0; i < stored.bytes; ++i)
    if (*stored.mask >> i % 16 & 1) algebra.memory.copy(stored.to + i, stored.from + i, 1);
}

// The first element of a register has what nobody else brings.
void ClusterAlgebra::load_element(Warp& warp, int lane, const std::byte* from,
                                  const ElementPlace& place) {
  const auto bytes = static_cast<std::size_t>(place.register_bits) / 8;
  Tag* const tags = tags_of(warp, place.slot, bytes, lane);
  if (place.shift == 0) std::fill_n(tags, bytes, 0);
  algebra.memory.load(from, tags + place.shift / 8,
                      static_cast<std::size_t>(std::max(place.width, 8)) / 8);
}

void ClusterAlgebra::store_element(Warp& warp, int lane, std::byte* to, const ElementPlace& place) {
  const Tag* const tags =
      tags_of(warp, place.slot, static_cast<std::size_t>(place.register_bits) / 8, lane);
  algebra.memory.store(to, tags + place.shift / 8, static_cast<std::size_t>(place.width) / 8);
}

void ClusterAlgebra::store_register(Warp& warp, int lane, std::uint32_t slot,
                                    const StoredBytes& stored) {
  algebra.memory.store(stored.from, tags_of(warp, slot, stored.bytes, lane), stored.bytes);
  store(warp, lane, stored);
}

void ClusterAlgebra::save(Warp& warp, std::byte* to, std::size_t at, std::size_t bytes) {
  algebra.memory.store(to, warp.tags + at, bytes);
}

void ClusterAlgebra::restore(Warp& warp, std::size_t at, const std::byte* from, std::size_t bytes) {
  algebra.memory.load(from, warp.tags + at, bytes);
}

void ClusterAlgebra::copy_register(Warp& warp, std::uint32_t to, std::uint32_t from, int bits) {
  const std::size_t bytes = static_cast<std::size_t>(bits) / 8;  // predicates have none
  each_lane(warp.mask, [&](int lane) {
    std::copy_n(tags_of(warp, from, bytes, lane), bytes, tags_of(warp, to, bytes, lane));
  });
}

void ClusterAlgebra::load_tensor(Warp& warp, const TensorMove&, isa::TensorCell) {
  algebra.give_up(&warp, "values come from tensor memory");
}

}  // namespace tartan::TARTAN_ABI::emulator
