// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>

#include "compiler/support/messages.h"

namespace tartan::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::milliseconds(2000);
constexpr auto interval = std::chrono::milliseconds(200);
constexpr char wipe[] = "\r\033[K";

// Signal handlers do only what they may.
void leave(int) {
  if (isatty(STDERR_FILENO)) {
    [[maybe_unused]] const auto size = write(STDERR_FILENO, wipe, sizeof wipe - 1);
  }
  _exit(exit_interrupted);
}

std::shared_ptr<detail::Watch> watched;            // keeps it until the process ends
std::atomic<detail::Watch*> interrupts = nullptr;  // the same, for the handler

void stop_launch(int signal) {
  detail::Watch* const watch = interrupts.load();
  if (!watch || !watch->running()) leave(signal);
  watch->stop();  // and the default handler is in place
}

void handle(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

std::string bar(std::uint64_t done, std::uint64_t all) {
  constexpr std::size_t width = 30;
  const auto full = static_cast<std::size_t>(width * static_cast<double>(done) /
                                             static_cast<double>(all == 0 ? 1 : all));
  return std::string(full, '#') + std::string(width - full, '.');
}

}  // namespace

Progress::Progress(std::string unit, std::shared_ptr<detail::Watch> watch)
    : unit_(std::move(unit)), watch_(std::move(watch)) {
  if (!isatty(STDERR_FILENO)) return;
  try {
    shown_ = std::jthread([this](std::stop_token stop) { show(stop); });
  } catch (const std::system_error&) {
    // The host has no more threads: works without a progress line.
  }
}

Progress::~Progress() = default;

// "128 of 1024 blocks", or "CTA 129 of 1024, line 44".
std::string Progress::place() const {
  const std::uint64_t done = done_, all = all_;
  if (!watch_) return fmt::format("{} of {} {}", done, all, unit_);
  const int line = watch_->line();
  return fmt::format("{} {} of {}{}", unit_, std::min(done + 1, all), all,
                     line ? fmt::format(", line {}", line) : "");
}

void Progress::show(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  const auto begin = Clock::now();
  const auto stops_within = [&](std::chrono::milliseconds time) {
    return wake.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
  };
  if (stops_within(patience - interval)) return;
  for (bool shown = false;; shown = true) {
    if (watch_) watch_->ask_line();  // who runs answers until the next look
    if (stops_within(interval)) {
      if (shown) detail::complain(wipe);
      return;
    }
    const std::uint64_t done = done_, all = all_;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    detail::complain(all == 0
                         ? fmt::format("{}{} s", wipe, seconds)
                         : fmt::format("{}[{}] {}, {} s", wipe, bar(done, all), place(), seconds));
  }
}

void exit_on_interrupt() { handle(leave, 0); }

void stop_on_interrupt(const std::shared_ptr<detail::Watch>& watch) {
  watched = watch;
  interrupts = watch.get();
  handle(stop_launch, SA_RESETHAND | SA_RESTART);
}

}  // namespace tartan::tools
