// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/definedness/reports.h - uses of undefined values as findings: where the value
// came from and where it decides something; the first of each pair of lines in full, the others
// counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/abi.h"
#include "tartan/runtime/device.h"
#include "tartan/support/rules.h"

namespace tartan::TARTAN_ABI::emulator {

struct LaunchContext;

/// What nobody wrote, and who read it first. `lane`: a register of a lane that the member mask of
/// shfl.sync does not name. `race`: what a load brings that races with a store.
/// `tensor`: a cell of tensor memory.
struct UndefinedOrigin {
  enum class Place : std::uint8_t { register_, shared, local, global, lane, race, tensor, shifted };

  Place place = Place::register_;
  std::uint32_t slot = 0;     // of a register
  std::uint64_t address = 0;  // of memory; the lane
  std::uint32_t pc = 0;       // that read it
};

/// Where an undefined value decides something.
struct UndefinedUse {
  std::uint32_t origin = 0;  // UndefinedReports::origin()
  std::uint32_t pc = 0;
  std::string_view what;  // "the address", static
  Dim3 block;
  std::uint32_t warp = 0, lane = 0;
};

class UndefinedReports {
 public:
  /// Pairs of lines beyond that many are not told apart.
  static constexpr std::size_t most = 256;

  explicit UndefinedReports(const LaunchContext& context) : context_(context) {}
  /// The number, from 1 on, of an origin: of one place, register and instruction there is one.
  std::uint32_t origin(const UndefinedOrigin& origin);
  const UndefinedOrigin& of(std::uint32_t origin) const { return origins_[origin - 1]; }
  void add(const UndefinedUse& use);
  /// In the order in which they were found.
  std::vector<Finding> findings() const;

 private:
  struct Entry {
    UndefinedUse use;
    std::uint64_t count = 1;
  };
  const Rule& rule(const Entry& entry) const;
  std::string text(const Entry& entry) const;

  const LaunchContext& context_;
  std::vector<UndefinedOrigin> origins_;
  std::vector<Entry> entries_;
  std::uint64_t dropped_ = 0;
};

}  // namespace tartan::TARTAN_ABI::emulator
