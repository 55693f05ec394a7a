// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>

#include "compiler/support/messages.h"

namespace tartan::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(2);
constexpr auto interval = std::chrono::milliseconds(200);
constexpr char wipe[] = "\r\033[K";

constexpr int interrupted = 130;  // the shells' exit code for SIGINT

// Does only what a signal handler may do.
void stop(int) {
  if (isatty(STDERR_FILENO)) {
    [[maybe_unused]] const auto size = write(STDERR_FILENO, wipe, sizeof wipe - 1);
  }
  _exit(interrupted);
}

std::string bar(std::uint64_t done, std::uint64_t all) {
  constexpr std::size_t width = 30;
  const auto full = static_cast<std::size_t>(width * static_cast<double>(done) /
                                             static_cast<double>(all == 0 ? 1 : all));
  return std::string(full, '#') + std::string(width - full, '.');
}

}  // namespace

Progress::Progress(std::string unit) : unit_(std::move(unit)) {
  if (!isatty(STDERR_FILENO)) return;
  try {
    shown_ = std::jthread([this](std::stop_token stop) { show(stop); });
  } catch (const std::system_error&) {
    // The host has no more threads: works without a progress line.
  }
}

Progress::~Progress() = default;

void Progress::show(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  const auto begin = Clock::now();
  const auto asked_to_stop = [&] { return stop.stop_requested(); };
  if (wake.wait_for(lock, stop, patience, asked_to_stop)) return;
  do {
    const std::uint64_t done = done_, all = all_;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    detail::complain(all == 0 ? fmt::format("{}{} s", wipe, seconds)
                              : fmt::format("{}[{}] {} of {} {}, {} s", wipe, bar(done, all), done,
                                            all, unit_, seconds));
  } while (!wake.wait_for(lock, stop, interval, asked_to_stop));
  detail::complain(wipe);
}

void exit_on_interrupt() { std::signal(SIGINT, stop); }

}  // namespace tartan::tools
