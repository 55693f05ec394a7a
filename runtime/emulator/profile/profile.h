// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/profile/profile.h - counts what a launch's instructions do: their ops count on
// their way.
#pragma once

#include <vector>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/machine/program.h"
#include "runtime/emulator/profile/banks.h"
#include "tartan/runtime/profile.h"

namespace tartan::TARTAN_ABI::emulator {

class RequestRecorder;

/// What an op does, and how its accesses are counted.
struct ProfiledOp {
  enum class Kind : std::uint8_t { Plain, Access, Rows, Copy };
  Handler inner = nullptr;
  bool first = false;  // of its instruction
  Kind kind = Kind::Plain;
  std::uint8_t bytes = 0;                   // of a lane's access
  std::uint32_t lanes = ~std::uint32_t{0};  // that give addresses
  bool load = false;                        // ld
};

class ProfiledOps final : public Observation {
 public:
  static constexpr Seat seat = 3;

  void decoded(Decoder& decoder, std::size_t first) override;
  void finish(Program& program, const ptx::Module&) override { ops_.resize(program.ops.size()); }
  const ProfiledOp& operator[](std::size_t op) const { return ops_[op]; }

 private:
  std::vector<ProfiledOp> ops_;
};

/// The counts of one launch, by op.
class LaunchProfile final : public LaunchObserver {
 public:
  static constexpr Seat seat = ProfiledOps::seat;

  /// `recorder`: who hears of requests; null: nobody.
  LaunchProfile(const LaunchContext& context, RequestRecorder* recorder);

  void attach(Cluster& cluster) override { cluster.listen(*this); }
  /// Runs the op, and counts it.
  void run(Warp& warp, const Op& op);
  std::vector<InstructionProfile> instructions() const;

 private:
  struct Counts {
    std::uint64_t executions = 0, lanes = 0, diverged = 0, waits = 0, multiply_adds = 0, copied = 0;
    SharedAccesses shared;
    GlobalAccesses global;
    SharedRequest worst;
    Wavefronts worst_wavefronts;
  };
  void count_access(Counts& counts, Window window, const std::uint64_t* at, std::uint32_t lanes,
                    const ProfiledOp& what);

  const LaunchContext& context_;
  RequestRecorder* const recorder_;
  std::vector<Counts> counts_;
};

/// Adds to those of the same instruction.
void add(std::vector<InstructionProfile>& all, const std::vector<InstructionProfile>& more);

}  // namespace tartan::TARTAN_ABI::emulator
