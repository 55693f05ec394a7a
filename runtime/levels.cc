// SPDX-License-Identifier: Apache-2.0
#include "runtime/levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/trial.h"
#include "runtime/emulator/watch.h"

namespace tartan::TARTAN_ABI {
namespace {

using Clock = std::chrono::steady_clock;
using detail::Contents;
using detail::Trial;

// Further runs of one that ended.
class SecondLook {
 public:
  SecondLook(const Manifest& manifest, const DeviceOptions& options, Outcome& outcome)
      : manifest_(manifest), options_(options), outcome_(outcome), began_(Clock::now()) {
    options_.threads = 1;
    options_.profile = false;
    options_.timeline = nullptr;
    options_.progress = nullptr;
    options_.print = [](std::string_view) {};  // it was printed already
    if (options_.exploration && options_.exploration->schedule)
      options_.schedule = options_.exploration->schedule->name();
    const auto asked = options_.exploration;
    options_.exploration = std::make_shared<detail::Exploration>();
    if (asked) options_.exploration->deadline = asked->deadline;
    options_.exploration->checked = true;
    compares_ = asked && asked->equal_stores;
    proves_ = asked && asked->proves;
    // Other values may make a loop go on: what takes several times as long is another outcome.
    options_.max_steps =
        std::min(options_.max_steps, 4 * outcome.report.warp_instructions + 100'000);
  }

  void operator()() {
    if (!compares_ && has("same-value-race"_rule, Level::Warning)) look_at_equal_stores();
    if (!proves_ && has("memory-race"_rule) && !outcome_.trial->reads.empty()) look_at_races();
    if (has("uninitialized-read"_rule)) look_at_values();
  }

 private:
  bool has(const Rule& rule, Level level = Level::Error) const {
    return std::ranges::any_of(outcome_.findings, [&](const Finding& each) {
      return each.id == rule.id && outcome_.level(each) == level;
    });
  }

  bool interrupted() const { return options_.watch && options_.watch->stopped(); }

  // False: there is no time left.
  bool set_timeout(double timeout) {
    if (interrupted()) return false;
    if (timeout <= 0) return true;
    options_.timeout = timeout - std::chrono::duration<double>(Clock::now() - began_).count();
    return options_.timeout > 0;
  }

  // Behind a store of the same value may be one of another, which a run that compares all of them
  // finds: the first one learns where.
  void look_at_equal_stores() {
    emulator::EqualStores stores;
    options_.exploration->equal_stores = &stores;
    Outcome again;
    do {
      stores.begin();
      again = launch_once(manifest_, "emulator", options_);
    } while (again.ended && stores.grew());
    options_.exploration->equal_stores = nullptr;
    if (!again.ended) {
      for (Finding& each : outcome_.findings)
        if (each.id == "same-value-race"_rule.id)
          each.message += "; there was no time to compare all stores to that place";
      return;
    }
    for (const Finding& each : again.findings) {
      const bool known = std::ranges::any_of(outcome_.findings, [&](const Finding& other) {
        return other.id == each.id && other.line == each.line && other.message == each.message;
      });
      if (!known && each.id == "memory-race"_rule.id) outcome_.findings.push_back(each);
    }
  }

  // Those whose value is used show it run by run: in the last one nobody uses those that are left.
  void look_at_races() {
    constexpr int most_runs = 16;
    const double timeout = options_.timeout;
    detail::RacingReads reads = outcome_.trial->reads;
    for (int i = 0; i < most_runs && set_timeout(timeout); ++i) {
      const std::size_t used = reads.used();
      options_.trial = std::make_shared<Trial>();
      options_.trial->poisons = true;
      options_.trial->reads = std::move(reads);
      options_.checks = Checks::all;
      const Outcome again = launch_once(manifest_, "emulator", options_);
      reads = std::move(options_.trial->reads);
      if (!again.ended || reads.given_up()) break;
      if (reads.used() > used) continue;
      take_levels(again);
      break;
    }
    options_.timeout = timeout;
  }

  // The same races, in the same order.
  void take_levels(const Outcome& again) {
    for (Finding& mine : outcome_.findings) {
      if (mine.id != "memory-race"_rule.id) continue;
      const auto same = std::ranges::find_if(again.findings, [&](const Finding& other) {
        return other.id == mine.id && other.line == mine.line && other.block == mine.block &&
               other.lane == mine.lane && other.message.starts_with(mine.message);
      });
      if (same != again.findings.end() && same->level == Level::Warning) mine = *same;
    }
  }

  void look_at_values() {
    struct Filling {
      Contents::Kind kind;
      std::uint64_t seed;
      std::string_view text;
    };
    constexpr Filling fillings[] = {{Contents::Kind::ones, 0, "ones"},
                                    {Contents::Kind::nans, 0, "NaNs"},
                                    {Contents::Kind::random, 1, "random bits"},
                                    {Contents::Kind::random, 2, "other random bits"}};
    const double timeout = options_.timeout;
    // Races of asynchronous operations end a launch without checks.
    options_.checks = Checks::memory;
    constexpr std::string_view no_time =
        "there was no time to see whether the results depend on it";
    for (const Filling& each : fillings) {
      if (!set_timeout(timeout)) return say(Level::Error, no_time);
      options_.trial = std::make_shared<Trial>();
      options_.trial->contents.emplace(each.kind, each.seed);
      const std::string other = difference(launch_once(manifest_, "emulator", options_));
      if (interrupted()) return say(Level::Error, no_time);
      if (!other.empty())
        return say(Level::Error, fmt::format("with {} in its place {}", each.text, other));
    }
    say(Level::Warning,
        "the results are the same with zeros, ones, NaNs and random bits in its place: to be safe "
        "with other inputs, write it first");
  }

  // How a run with other contents ends otherwise; empty: it does not.
  std::string difference(const Outcome& again) const {
    if (!again.ended) {
      const auto last = std::ranges::find_if(again.findings, &Finding::stopped);
      return last == again.findings.end() ? "the launch does not end"
                                          : fmt::format("the launch ends with {}", last->id);
    }
    for (std::size_t i = 0; i < outcome_.results.size(); ++i) {
      auto [name, expected] = outcome_.results[i];
      const auto before = again.unwritten_contents.find(name);
      const auto unwritten = outcome_.unwritten.find(name);
      if (before != again.unwritten_contents.end() && unwritten != outcome_.unwritten.end())
        for (const auto& [first, bytes] : unwritten->second)
          std::copy_n(before->second.begin() + static_cast<std::ptrdiff_t>(first), bytes,
                      expected.begin() + static_cast<std::ptrdiff_t>(first));
      const auto& is = again.results[i].second;
      const auto at = std::ranges::mismatch(expected, is).in1 - expected.begin();
      if (static_cast<std::size_t>(at) < expected.size())
        return fmt::format("buffer {} ends differently, from byte {} on", name, at);
    }
    return {};
  }

  void say(Level level, std::string_view what) {
    for (Finding& each : outcome_.findings) {
      if (each.id != "uninitialized-read"_rule.id || each.level != Level::Error) continue;
      each.level = level;
      each.message += fmt::format("; {}", what);
    }
  }

  const Manifest& manifest_;
  DeviceOptions options_;
  Outcome& outcome_;
  Clock::time_point began_;
  bool compares_ = false;  // stores of equal values were compared already
  bool proves_ = false;    // the question is whether there are races at all
};

}  // namespace

void settle_levels(const Manifest& manifest, const DeviceOptions& options, Outcome& outcome) {
  SecondLook(manifest, options, outcome)();
}

}  // namespace tartan::TARTAN_ABI
