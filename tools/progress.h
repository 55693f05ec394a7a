// SPDX-License-Identifier: Apache-2.0
// tools/progress.h - a line on the terminal for what takes over two seconds, and an end when asked
// for one.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace tartan::tools {

/// While it lives: how much is done, on standard error, from the third second on; nothing where
/// that is no terminal. The line is gone when the object is.
class Progress {
 public:
  explicit Progress(std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// From any thread.
  void set(std::uint64_t done, std::uint64_t all) {
    all_.store(all, std::memory_order_relaxed);
    std::uint64_t before = done_.load(std::memory_order_relaxed);
    while (before < done && !done_.compare_exchange_weak(before, done)) {
    }
  }

 private:
  void show(std::stop_token stop);

  std::string unit_;
  std::atomic<std::uint64_t> done_ = 0, all_ = 0;
  std::jthread shown_;  // the last member: it ends before the others
};

/// From now on Ctrl-C ends the process at once, with exit code 130 and the progress line wiped.
/// For commands that write their output when all is known, so that none is left half-written.
void exit_on_interrupt();

}  // namespace tartan::tools
