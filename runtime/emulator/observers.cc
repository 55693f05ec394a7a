// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/observers.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/trial.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr Seat taken[] = {ClusterRaces::seat, ClusterAlgebra::seat, ClusterTimeline::seat,
                          LaunchProfile::seat, ClusterDefinedness::seat};
constexpr bool one_each() {
  for (Seat seat = 0; seat < seats; ++seat)
    if (std::ranges::count(taken, seat) != 1) return false;
  return true;
}
static_assert(one_each(), "each observer has a seat of its own");

}  // namespace

void observe(Decoder& d, const DeviceOptions& options, bool algebra) {
  const bool checked = options.checks != Checks::none, examined = options.checks == Checks::all,
             filled = options.trial && options.trial->contents;
  if (checked || d.program().ordered) d.attach(std::make_unique<RaceWatches>(checked));
  if (algebra) d.attach(std::make_unique<Lifts>());
  if (options.timeline) d.attach(std::make_unique<TimedOps>());
  if (options.profile) d.attach(std::make_unique<ProfiledOps>());
  if (!examined && !filled) return;
  d.set_recorded();
  d.attach(std::make_unique<Flows>(examined));
}

Observers::Observers(LaunchContext& context, const DeviceOptions& options, Algebra* algebra,
                     Predecessor* predecessor)
    : options_(options) {
  const detail::Exploration* const exploration = options.exploration.get();
  const auto join = [&](LaunchObserver& observer) { context.observers.push_back(&observer); };
  if (options.checks != Checks::none)
    join(races_.emplace(context, true, predecessor,
                        exploration ? exploration->equal_stores : nullptr));
  else if (context.program.ordered) join(unchecked_races_.emplace(context));
  if (options.checks == Checks::all) join(definedness_.emplace(context));
  if (algebra) join(algebra_.emplace(*algebra, context.memory));
  if (options.profile)
    join(profile_.emplace(context, exploration ? exploration->requests : nullptr));
  if (options.timeline) join(timeline_.emplace(context, *options.timeline));
  if (exploration && exploration->proves) join(determinacy_.emplace(context, *races_));
}

void Observers::finish(Report& report) {
  if (timeline_) timeline_->finish();
  if (determinacy_)
    std::ranges::move(determinacy_->obstacles(),
                      std::back_inserter(options_.exploration->obstacles));
  if (profile_) report.instructions = profile_->instructions();
}

std::vector<Finding> Observers::findings() const {
  std::vector<Finding> out;
  if (races_) out = races_->reports.findings();
  if (definedness_) std::ranges::move(definedness_->reports.findings(), std::back_inserter(out));
  return out;
}

}  // namespace tartan::TARTAN_ABI::emulator
