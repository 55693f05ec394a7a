// SPDX-License-Identifier: Apache-2.0
#include "runtime/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "compiler/support/counted.h"
#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/schedules/explorer.h"
#include "runtime/emulator/watch.h"

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::string_view every_schedule =
    "deadlock-free in every schedule under sequential consistency, for these inputs and this grid";
constexpr std::uint64_t seeds_of_undecided = 20;
constexpr double of_exploring = 0.75;  // of the time: the rest is for these seeds

// Where two schedules left something else; none: nowhere.
std::optional<Finding> difference(const Outcome& one, const Outcome& other,
                                  const std::string& schedule) {
  for (std::size_t i = 0; i < one.results.size() && i < other.results.size(); ++i) {
    const auto& [name, was] = one.results[i];
    const auto& is = other.results[i].second;
    const auto [at, changed] = std::ranges::mismatch(was, is);
    if (at == was.end()) continue;
    return Finding{
        .id = std::string("schedule-dependent"_rule.id),
        .message = fmt::format("the result depends on the schedule: buffer {} differs from the "
                               "usual order's at byte {}; --schedule {} repeats it",
                               name, at - was.begin(), schedule),
        .level = Level::Warning};
  }
  return std::nullopt;
}

// Warnings of races that do no harm are races all the same.
std::string verdict(const Outcome& outcome) {
  const bool races = std::ranges::any_of(outcome.findings, [](const Finding& each) {
    return each.id == "memory-race"_rule.id || each.id == "same-value-race"_rule.id ||
           each.id == "weak-cas-read"_rule.id || each.id == "converged-exchange"_rule.id;
  });
  return fmt::format("{} and {}", races ? "no race but those of the warnings" : "race-free",
                     every_schedule);
}

// Of what stopped a launch from outside.
bool is_limit(const Finding& finding) {
  return finding.id == "time-limit"_rule.id || finding.id == "interrupted"_rule.id;
}

// A manifest in the usual order, then under one schedule after the other up to a finding, all of it
// within one time limit.
class Runs {
 public:
  Runs(const Manifest& manifest, const DeviceOptions& options, const RuleLevels& levels)
      : manifest_(manifest),
        options_(options),
        levels_(levels),
        deadline_(detail::deadline_after(options.timeout, begin_)),
        exploring_until_(detail::deadline_after(options.timeout * of_exploring, begin_)) {}

  Outcome some(std::uint64_t count) {
    usual_ = launch(options_);
    if (ends_it()) return say("the usual order alone was run");
    run_seeds(count);
    if (found_) return found(fmt::format("schedule {} of 0 to {}", seeds_, count - 1));
    if (seeds_ < count)
      return not_decided(
          fmt::format("the usual order and {} of {} ended within the time limit, "
                      "without a finding{}",
                      seeds_, detail::counted(count, "seed"), differences()));
    return say(fmt::format("the usual order and {} seeds: no finding{}", count,
                           depends_ ? differences() : ", and the same results"));
  }

  Outcome all(std::uint64_t most) {
    options_.checks = Checks::all;
    const auto asked = within(deadline_);
    asked->proves = true;
    usual_ = launch(options_, asked);
    if (ends_it()) return say("the usual order shows a defect; others were not explored");
    obstacles_ = asked->obstacles;
    if (obstacles_.empty())
      return say(fmt::format(
          "{}: one run decides, since every wait blocks and happens-before fixes the phase of each "
          "arrival and wait",
          verdict(usual_)));
    emulator::Explorer explorer;
    const bool complete = explore(asked, explorer, most);
    if (found_) return found(fmt::format("number {} of those explored", explored_));
    if (complete)
      return say(
          fmt::format("{}: {} explored, which are all that differ in what threads see of "
                      "each other; lanes of a warp that come to such a place together took "
                      "it together",
                      verdict(usual_), detail::counted(explored_, "schedule")));
    return try_seeds();
  }

 private:
  // Whether other schedules are of no interest. Of results that are not those expected they may
  // show why.
  bool ends_it() const { return usual_.exit_code() > 1; }
  using Deadline = std::optional<detail::Clock::time_point>;
  bool is_over(const Deadline& deadline) const {
    return (options_.watch && options_.watch->stopped()) ||
           (deadline && detail::Clock::now() >= *deadline);
  }
  bool time_is_up() const { return is_over(deadline_); }
  std::string_view differences() const {
    return depends_ ? "; the results depend on the order" : "";
  }

  static std::shared_ptr<detail::Exploration> within(const Deadline& deadline) {
    auto made = std::make_shared<detail::Exploration>();
    made->deadline = deadline;
    return made;
  }

  // Again, as long as there are more places at which threads store the same value in no order: all
  // their stores are compared then.
  Outcome launch(DeviceOptions options, std::shared_ptr<detail::Exploration> asked = {},
                 const emulator::Explorer* explorer = nullptr) {
    options.exploration = asked ? asked : within(deadline_);
    options.exploration->equal_stores = &equal_stores_;
    emulator::Schedule* const schedule = options.exploration->schedule;
    std::optional<emulator::Explorer> repeated;
    Outcome out;
    do {
      if (printed_) options.print = [](std::string_view) {};
      printed_ = true;
      equal_stores_.begin();
      options.exploration->obstacles.clear();
      out = run(manifest_, "emulator", options, levels_);
      if (explorer) options.exploration->schedule = &repeated.emplace(explorer->taken());
    } while (equal_stores_.grew() && out.exit_code() <= 1);
    options.exploration->schedule = schedule;
    return out;
  }

  // Warnings of a schedule that those before it have not.
  void add_warnings(const Outcome& now, const std::string& schedule) {
    for (Finding each : now.findings) {
      const bool known = std::ranges::any_of(usual_.findings, [&](const Finding& other) {
        return other.id == each.id && other.line == each.line;
      });
      if (known) continue;
      each.message += fmt::format("; --schedule {} repeats it", schedule);
      usual_.findings.push_back(std::move(each));
    }
  }

  // Whether this is all that was looked for. What the time limit has stopped says nothing, if it
  // has no other finding.
  bool judge(Outcome now, const std::string& schedule) {
    const bool stopped = std::ranges::any_of(now.findings, is_limit);
    std::erase_if(now.findings, is_limit);
    const int code = now.exit_code();
    name_ = schedule;
    if (code > 1 || (code == 1 && !stopped && usual_.exit_code() == 0)) {
      found_ = std::move(now);
      return true;
    }
    if (stopped) return true;
    add_warnings(now, schedule);
    const auto differs = depends_ ? std::nullopt : difference(usual_, now, schedule);
    if (differs) usual_.findings.push_back(*differs);
    depends_ |= differs.has_value();
    return false;
  }

  void run_seeds(std::uint64_t count) {
    for (; seeds_ < count && !time_is_up(); ++seeds_) {
      DeviceOptions seeded = options_;
      seeded.schedule = fmt::format("{}", seeds_);
      if (judge(launch(seeded), seeded.schedule)) return;
    }
  }

  // Runs the schedules that differ in what threads see of each other, up to a finding. Whether
  // there are no more of them.
  bool explore(const std::shared_ptr<detail::Exploration>& asked, emulator::Explorer& explorer,
               std::uint64_t most) {
    asked->schedule = &explorer;
    asked->deadline = exploring_until_;
    explorer.set_deadline(exploring_until_);
    while (std::ranges::all_of(asked->obstacles, &detail::Obstacle::explorable) &&
           !is_over(exploring_until_)) {
      const bool more = explorer.again();
      if (is_over(exploring_until_)) return false;
      if (!more) return true;
      if (explored_ == most) return false;
      Outcome now = launch(options_, asked, &explorer);
      explored_ += !is_over(exploring_until_) && !explorer.is_redundant();
      if (judge(std::move(now), explorer.name())) return false;
    }
    return false;
  }

  // What nobody could decide, seeds may show.
  Outcome try_seeds() {
    std::string text =
        fmt::format("{} explored{}, without a finding",
                    detail::counted(std::max<std::uint64_t>(explored_, 1), "schedule"),
                    is_over(exploring_until_) ? " within the time limit" : "");
    for (const detail::Obstacle& each : obstacles_)
      usual_.findings.push_back(
          {.id = std::string("undecided"_rule.id), .message = each.text, .level = Level::Warning});
    run_seeds(seeds_of_undecided);
    if (found_) return found(fmt::format("{}, but seed {} has one", text, seeds_));
    if (seeds_ > 0)
      text += fmt::format("; {} {} none either{}", detail::counted(seeds_, "seed"),
                          seeds_ == 1 ? "shows" : "show", time_is_up() ? " in the time left" : "");
    return not_decided(text);
  }

  Outcome say(std::string text) {
    usual_.schedules = std::move(text);
    return std::move(usual_);
  }

  Outcome not_decided(const std::string& text) {
    usual_.undecided = true;
    return say("not decided: " + text);
  }

  Outcome found(const std::string& which) {
    found_->schedules = fmt::format("{}; --schedule {} repeats it", which, name_);
    if (usual_.exit_code() == 1)
      found_->schedules += "; the usual order's results are not those expected either";
    return *std::move(found_);
  }

  const Manifest& manifest_;
  DeviceOptions options_;
  const RuleLevels& levels_;
  const detail::Clock::time_point begin_ = detail::Clock::now();
  const Deadline deadline_, exploring_until_;
  emulator::EqualStores equal_stores_;
  Outcome usual_;
  std::optional<Outcome> found_;
  std::vector<detail::Obstacle> obstacles_;
  std::uint64_t seeds_ = 0, explored_ = 0;  // that were run to their end
  std::string name_;                        // of the last schedule
  bool depends_ = false;
  bool printed_ = false;  // what the kernels print, once
};

}  // namespace

Outcome run_seeds(const Manifest& manifest, const DeviceOptions& options, std::uint64_t count,
                  const RuleLevels& levels) {
  return Runs(manifest, options, levels).some(count);
}

Outcome decide_schedules(const Manifest& manifest, const DeviceOptions& options, std::uint64_t most,
                         const RuleLevels& levels) {
  return Runs(manifest, options, levels).all(most);
}

}  // namespace tartan::TARTAN_ABI
