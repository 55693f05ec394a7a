// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/interruption.h - a launch that detail::Watch has stopped: where its warps were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/watch.h"

namespace tartan::TARTAN_ABI::emulator {

/// For as long as it lives, a launch runs that `watch`, if there is one, may stop.
class WatchedLaunch {
 public:
  explicit WatchedLaunch(detail::Watch* watch) : watch_(watch) {
    if (watch_) watch_->begin_launch();
  }
  ~WatchedLaunch() {
    if (watch_) watch_->end_launch();
  }
  WatchedLaunch(const WatchedLaunch&) = delete;
  WatchedLaunch& operator=(const WatchedLaunch&) = delete;

 private:
  detail::Watch* watch_;
};

/// Where the blocks were that ran when the launch was stopped.
class Interruption {
 public:
  /// Cluster number `index`, from any host thread of the launch.
  void add(std::uint64_t index, Cluster& cluster);
  /// Completes the message of a finding "interrupted". `blocks` have ended or were stopped.
  void explain(Finding& finding, std::uint64_t blocks, const LaunchContext& context) const;

 private:
  struct Blocks {
    std::uint64_t first = 0;  // number of the first one's cluster
    Dim3 place = {};
    std::uint64_t count = 0;
  };
  std::mutex mutex_;
  std::map<std::string, Blocks> positions_;  // blocks whose warps are at the same places
  std::uint64_t stopped_ = 0;                // blocks
};

}  // namespace tartan::TARTAN_ABI::emulator
