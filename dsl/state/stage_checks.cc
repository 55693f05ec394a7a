// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/stage_checks.h"

#include <fmt/format.h>

#include "dsl/state/handles.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

bool same_value(const Scalar& x, const Scalar& y) {
  return !x.constant() && !y.constant() && HandleParts::value(x).id == HandleParts::value(y).id;
}

bool same(const Scalar& x, const Scalar& y) {
  return (x.constant() && x.constant() == y.constant()) ||
         (same_value(x, y) && HandleParts::addend(x) == HandleParts::addend(y));
}

}  // namespace

StageChecks::Scope::Scope(StageChecks& checks, Callback callback)
    : checks_(checks), before_(std::exchange(checks.current_, std::move(callback))) {}

// A ring of as many stages as the pipeline has is most likely its own; another one, which holds
// something else, may be indexed as one likes, and so may any by what is neither t nor constant.
void StageChecks::note_index(Log& log, int memory, const std::string& ring, int stages,
                             const Scalar& index, const Place& at) {
  if (!current_ || current_->stages != stages || stages < 2) return;
  const Callback& in = *current_;
  if (in.fills) filled_.insert({memory, in.pipeline});
  const bool by_t = same_value(index, in.t);
  if (same(index, in.stage) || (!index.constant() && !by_t)) return;
  std::string message = fmt::format(
      "{} is indexed by {}: expected the stage that the pipeline passes to the callback", ring,
      by_t ? "the k-tile's number" : std::to_string(*index.constant()));
  if (in.fills) log.report_at("pipeline-stage"_rule, at, std::move(message));
  else suspects_.push_back({memory, in.pipeline, at, std::move(message)});
}

void StageChecks::note_read(int variable, const Place& at) {
  if (current_ && current_->fills)
    read_by_fill_.emplace(Variable{current_->pipeline, variable}, at);
}

void StageChecks::note_change(int variable, const Place& at) {
  if (current_ && !current_->fills)
    changed_by_use_.emplace(Variable{current_->pipeline, variable}, at);
}

void StageChecks::report(Log& log) const {
  for (const Suspect& each : suspects_)
    if (filled_.contains({each.memory, each.pipeline}))
      log.report_at("pipeline-stage"_rule, each.at, each.message);
  for (const auto& [variable, at] : read_by_fill_)
    if (const auto changed = changed_by_use_.find(variable); changed != changed_by_use_.end())
      log.report_at(
          "pipeline-stage"_rule, at,
          fmt::format("the fill callback reads a variable that the use callback changes "
                      "at {}: fill runs ahead of use; compute the value from the k-tile's "
                      "number instead",
                      text(changed->second)));
}

}  // namespace tartan::TARTAN_ABI::detail
