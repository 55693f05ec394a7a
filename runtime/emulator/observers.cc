// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/observers.h"

#include <algorithm>
#include <iterator>

#include "runtime/emulator/schedules/exploration.h"

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

Observers::Observers(LaunchContext& context, const DeviceOptions& options, Algebra* algebra,
                     Predecessor* predecessor)
    : options_(options) {
  const Program& program = context.program;
  const detail::Exploration* const exploration = options.exploration.get();
  const auto join = [&](LaunchObserver& observer) { context.observers.push_back(&observer); };
  if (program.watched)
    join(races_.emplace(context, true, predecessor,
                        exploration ? exploration->equal_stores : nullptr));
  else if (program.ordered) join(unchecked_races_.emplace(context));
  if (program.examined) join(definedness_.emplace(context));
  if (algebra) join(algebra_.emplace(*algebra, context.memory));
  if (program.counted)
    join(profile_.emplace(context, exploration ? exploration->requests : nullptr));
  if (program.timed) join(timeline_.emplace(context, *options.timeline));
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
