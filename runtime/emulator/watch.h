// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/watch.h - launches as another thread sees them: which line runs, and a request
// to stop, which a signal handler may make.
//
// Launches look at it where they look at the time limit: after a slice of a warp.
#pragma once

#include <atomic>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

class Watch {
 public:
  // All that a signal handler calls is lock-free.
  static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

  /// The running launch ends with the finding "interrupted", and later ones do at once.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Whether a launch of the emulator runs: nothing else heeds stop().
  bool running() const { return launches_.load(std::memory_order_relaxed) > 0; }

  /// The PTX line at which a warp was when somebody last asked; 0: not known yet.
  int line() const { return line_.load(std::memory_order_relaxed); }
  void ask_line() { asked_.store(true, std::memory_order_relaxed); }

  // For the emulator.
  bool wants_line() const { return asked_.load(std::memory_order_relaxed); }
  void set_line(int line) {
    line_.store(line, std::memory_order_relaxed);
    asked_.store(false, std::memory_order_relaxed);
  }
  void begin_launch() { launches_.fetch_add(1, std::memory_order_relaxed); }
  void end_launch() { launches_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<bool> stopped_ = false, asked_ = false;
  std::atomic<int> line_ = 0, launches_ = 0;
};

}  // namespace tartan::TARTAN_ABI::detail
