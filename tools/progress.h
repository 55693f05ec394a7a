// SPDX-License-Identifier: Apache-2.0
// tools/progress.h - a progress line on the terminal for work of over two seconds, and interruption
// by Ctrl-C.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "runtime/emulator/watch.h"

namespace tartan::tools {

/// During its lifetime, shows the progress on standard error from the third second on, if that is a
/// terminal. The destructor removes the line.
class Progress {
 public:
  /// With `watch`: "CTA 37 of 1024, line 44".
  explicit Progress(std::string unit, std::shared_ptr<detail::Watch> watch = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// May be called from any thread.
  void set(std::uint64_t done, std::uint64_t all) {
    all_.store(all, std::memory_order_relaxed);
    if (done == 0) done_ = 0;  // the next launch
    std::uint64_t before = done_.load(std::memory_order_relaxed);
    while (before < done && !done_.compare_exchange_weak(before, done)) {
    }
  }

 private:
  void show(std::stop_token stop);
  std::string place() const;

  std::string unit_;
  std::shared_ptr<detail::Watch> watch_;  // of what the work launches
  std::atomic<std::uint64_t> done_ = 0, all_ = 0;
  std::jthread shown_;  // the last member: it ends before the others
};

/// From now on Ctrl-C ends the process at once, with exit code 130 and the progress line removed.
/// For commands that write their output at the end, so that no output is half-written.
void exit_on_interrupt();

/// The same, but a launch of the emulator is stopped first, and says where it was: the command then
/// exits with `exit_interrupted`. A second Ctrl-C ends the process at once.
void stop_on_interrupt(const std::shared_ptr<detail::Watch>& watch);
inline constexpr int exit_interrupted = 130;  // the shells' exit code for SIGINT

}  // namespace tartan::tools
