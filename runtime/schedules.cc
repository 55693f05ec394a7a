// SPDX-License-Identifier: Apache-2.0
#include "runtime/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "compiler/support/counted.h"
#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/schedules/explorer.h"

namespace tartan::inline TARTAN_ABI {
namespace {

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
                               name, at - was.begin(), schedule)};
  }
  return std::nullopt;
}

constexpr std::string_view every_schedule =
    "race-free and deadlock-free in every schedule, for these inputs and this grid";

Outcome not_decided(Outcome usual, const std::vector<detail::Obstacle>& obstacles,
                    std::uint64_t explored) {
  usual.undecided = true;
  usual.schedules = fmt::format("not decided: {} explored, without a finding",
                                detail::counted(std::max<std::uint64_t>(explored, 1), "schedule"));
  for (const detail::Obstacle& each : obstacles)
    usual.findings.push_back({.id = std::string("undecided"_rule.id), .message = each.text});
  return usual;
}

// The same schedule again, as long as there are more places at which threads store the same value
// in no order: all their stores are compared then.
template <typename Again>
Outcome run_until_compared(const Manifest& manifest, const DeviceOptions& options, Again&& again) {
  emulator::EqualStores& stores = options.exploration->equal_stores;
  Outcome out;
  do {
    stores.begin();
    options.exploration->obstacles.clear();
    out = run(manifest, "emulator", options);
  } while (stores.grew() && out.exit_code() == 0 && again());
  return out;
}

// Warnings of a schedule that the usual order has not.
void add_warnings(Outcome& usual, const Outcome& now, const std::string& schedule) {
  for (Finding each : now.findings) {
    const bool known = std::ranges::any_of(usual.findings, [&](const Finding& other) {
      return other.id == each.id && other.line == each.line;
    });
    if (known) continue;
    each.message += fmt::format("; --schedule {} repeats it", schedule);
    usual.findings.push_back(std::move(each));
  }
}

// Runs the schedules that differ in what threads see of each other, up to a finding.
Outcome explore(const Manifest& manifest, const DeviceOptions& options, Outcome usual,
                std::uint64_t most) {
  emulator::Explorer explorer;
  detail::Exploration& exploration = *options.exploration;
  exploration.schedule = &explorer;
  const std::vector<detail::Obstacle> obstacles = exploration.obstacles;
  std::uint64_t explored = 0;
  bool depends = false;
  while (std::ranges::all_of(exploration.obstacles, &detail::Obstacle::explorable)) {
    if (!explorer.again()) {
      usual.schedules = fmt::format(
          "{}: {} explored, which are all that differ in what threads see of each other; lanes of "
          "a warp that come to such a place together took it together",
          every_schedule, detail::counted(explored, "schedule"));
      return usual;
    }
    if (explored == most) break;
    std::optional<emulator::Explorer> repeated;
    Outcome now = run_until_compared(manifest, options, [&] {
      repeated.emplace(explorer.taken());
      exploration.schedule = &*repeated;
      return true;
    });
    exploration.schedule = &explorer;
    explored += !explorer.is_redundant();
    if (now.exit_code() != 0) {
      now.schedules = fmt::format("number {} of those explored; --schedule {} repeats it", explored,
                                  explorer.name());
      return now;
    }
    add_warnings(usual, now, explorer.name());
    const auto found = depends ? std::nullopt : difference(usual, now, explorer.name());
    if (found) usual.findings.push_back(*found);
    depends |= found.has_value();
  }
  return not_decided(std::move(usual), obstacles, explored);
}

}  // namespace

Outcome run_seeds(const Manifest& manifest, const DeviceOptions& options, std::uint64_t count) {
  Outcome usual = run(manifest, "emulator", options);
  if (usual.exit_code() != 0) {
    usual.schedules = "the usual order alone was run";
    return usual;
  }
  bool depends = false;
  DeviceOptions seeded = options;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    seeded.schedule = fmt::format("{}", seed);
    Outcome now = run(manifest, "emulator", seeded);
    if (now.exit_code() != 0) {
      now.schedules =
          fmt::format("schedule {} of 0 to {}; --schedule {} repeats it", seed, count - 1, seed);
      return now;
    }
    const auto found = depends ? std::nullopt : difference(usual, now, seeded.schedule);
    if (found) usual.findings.push_back(*found);
    depends |= found.has_value();
  }
  usual.schedules =
      fmt::format("the usual order and {} seeds: no finding{}", count,
                  depends ? "; the results depend on the order" : ", and the same results");
  return usual;
}

Outcome decide_schedules(const Manifest& manifest, const DeviceOptions& options,
                         std::uint64_t most) {
  const auto exploration = std::make_shared<detail::Exploration>();
  exploration->proves = true;
  DeviceOptions proving = options;
  proving.checks = Checks::all;
  proving.exploration = exploration;
  Outcome usual = run_until_compared(manifest, proving, [] { return true; });
  if (usual.exit_code() != 0) {
    usual.schedules = "the usual order shows a defect; others were not explored";
    return usual;
  }
  if (!exploration->obstacles.empty()) return explore(manifest, proving, std::move(usual), most);
  usual.schedules = fmt::format(
      "{}: one run decides, since every wait blocks and happens-before fixes the phase of each "
      "arrival and wait",
      every_schedule);
  return usual;
}

}  // namespace tartan::inline TARTAN_ABI
