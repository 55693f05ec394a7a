// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/reports.h - races as findings: both accesses with their lines, threads and
// the name of the memory; the first of each pair of instructions, the others counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tartan/abi.h"
#include "tartan/runtime/device.h"
#include "tartan/support/rules.h"

namespace tartan::inline TARTAN_ABI::emulator {

struct LaunchContext;

/// One of two accesses.
struct RaceSide {
  std::uint32_t warp = 0;  // ThreadClocks::number()
  std::uint32_t lane = 0, pc = 0;
  bool writes = false;
};

struct Race {
  RaceSide first, second;  // as they happened to come
  bool shared = true;
  std::uint32_t rank = 0;     // of the block whose shared memory it is
  std::uint64_t address = 0;  // in it, or in global memory
  bool same_value = false;    // both write it
  bool copy_waited = false;   // first is a cp.async that its thread has waited for
};

class RaceReports {
 public:
  explicit RaceReports(const LaunchContext& context) : context_(context) {}
  void add(const Race& race);
  /// In the order in which they were found.
  std::vector<Finding> findings() const;

 private:
  struct Entry {
    const Rule* rule;
    Race race;
    std::uint64_t count = 1;
  };
  struct Thread {
    Dim3 block;
    std::uint32_t rank = 0, warp = 0, cluster = 0;
  };
  Thread thread(const RaceSide& side) const;
  std::string text(const Entry& entry) const;
  std::string side_text(const RaceSide& side, bool with_block) const;
  std::string memory_text(const Race& race) const;
  std::string advice(const Race& race) const;

  const LaunchContext& context_;
  std::vector<Entry> entries_;
};

}  // namespace tartan::inline TARTAN_ABI::emulator
