// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/observers.h - what happens in a launch, as its observers hear it.
//
// The machine and the handlers of instructions tell it to whoever listens, and know none of them:
// tell(warp, &ValueEvents::fill, to, bytes) is a look at an empty list in a launch without
// observers. What stops the launch is asked for: ask().
//
//   ValueEvents      where values go, in memory and in registers
//   LaunchObserver   of a launch: brings the observers of its clusters
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/emulator/machine/program.h"

namespace tartan::TARTAN_ABI::emulator {

class Cluster;
struct Warp;

/// Observers have different ones (runtime/emulator/observers.cc), by which Cluster::find() finds
/// them.
using Seat = std::size_t;
inline constexpr Seat seats = 5;

/// Combines `bytes` bytes of elements at `from` into those at `to`, in order.
using Reduction = void (*)(std::byte* to, const std::byte* from, std::uint32_t bytes);

/// What an asynchronous copy of a lane brings to memory, or combines with what is there.
struct StoredBytes {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;
  Reduction reduction = nullptr;
  std::optional<std::uint32_t> mask = {};  // of every 16 bytes those whose bit is set
};

/// Bits of a lane's register.
struct ElementPlace {
  std::uint32_t slot = 0;
  int shift = 0, width = 32, register_bits = 32;
};

/// An instruction at which lanes wait for others.
struct GatheredPlace {
  std::uint32_t pc = 0, lanes = 0;
};

/// Memory is in host addresses. Told before it happens, but for start().
class ValueEvents {
 public:
  virtual ~ValueEvents() = default;
  /// The cluster begins: nobody has written its memory.
  virtual void start() {}
  /// `op` is about to run, for warp.mask: of those that are examined, or where Warp::undefined.
  virtual void run(Warp&, const Op&) {}
  /// All lanes of a collective are there, at one place of the text or at several.
  virtual void gathered(Warp&, std::uint32_t /*pc*/) {}
  virtual void gathered_apart(Warp&, std::span<const GatheredPlace>) {}

  /// Values that no register and no memory had.
  virtual void fill(Warp&, const std::byte* /*to*/, std::uint64_t /*bytes*/) {}
  virtual void move(Warp&, std::byte* /*to*/, const std::byte* /*from*/, std::uint64_t /*bytes*/) {}
  virtual void store(Warp&, int /*lane*/, const StoredBytes&) {}
  virtual void load_element(Warp&, int /*lane*/, const std::byte* /*from*/, const ElementPlace&) {}
  virtual void store_element(Warp&, int /*lane*/, std::byte* /*to*/, const ElementPlace&) {}
  /// A register of st.async and red.async, whose bits are at `stored.from` by now.
  virtual void store_register(Warp&, int /*lane*/, std::uint32_t /*slot*/, const StoredBytes&) {}
  /// Bytes of a register, `at` in the arena, to and from the stack.
  virtual void save(Warp&, std::byte* /*to*/, std::size_t /*at*/, std::size_t /*bytes*/) {}
  virtual void restore(Warp&, std::size_t /*at*/, const std::byte* /*from*/, std::size_t) {}
  virtual void copy_register(Warp&, std::uint32_t /*to*/, std::uint32_t /*from*/, int /*bits*/) {}
  /// Lane i of shfl.sync reads lane from[i] & 31 of op.a.
  virtual void shuffle(Warp&, const Op&, const std::uint32_t (&)[32]) {}

  /// A product of a warp. False: after a finding that stops it.
  virtual bool multiply(Warp&, const MatrixOperation&, const ScalePlaces&) { return true; }
  /// One of a warpgroup is issued, and later multiplies.
  virtual bool issue_product(Warp&, std::span<Warp>, const WarpgroupOperation&) { return true; }
  virtual void multiply_warpgroup(Warp&, std::span<Warp>, const WarpgroupOperation&,
                                  const WgmmaOperands&) {}
};

/// Of a launch, for as long as that runs.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  /// Whether several host threads may run the launch.
  virtual bool concurrent() const { return false; }
  /// A cluster is made, which may then be several of the grid, one after another: it takes its
  /// observers (Cluster::add).
  virtual void attach(Cluster&) {}
};

}  // namespace tartan::TARTAN_ABI::emulator
