// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/profile/profile.h - counts what a launch's instructions do. Decoded with
// Decoder::set_profiled(), an instruction's ops count on their way; profile() makes that readable.
#pragma once

#include <vector>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/machine/program.h"
#include "runtime/emulator/profile/banks.h"
#include "tartan/runtime/profile.h"

namespace tartan::TARTAN_ABI::emulator {

class Decoder;
class RequestRecorder;

/// The counts of one launch, by op.
class LaunchProfile final : public LaunchObserver {
 public:
  static constexpr Seat seat = 3;

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

/// Has the current instruction, whose ops are those from `first` on, count what it does.
void profile(Decoder& decoder, std::size_t first);

/// Adds to those of the same instruction.
void add(std::vector<InstructionProfile>& all, const std::vector<InstructionProfile>& more);

}  // namespace tartan::TARTAN_ABI::emulator
