// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/stage_checks.h"

#include <fmt/format.h>

#include <algorithm>

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

StageChecks::Scope::Scope(StageChecks& checks, Callback callback) : checks_(checks) {
  if (!callback.stage.constant())
    checks.given_.push_back(
        {HandleParts::value(callback.stage).id, callback.pipeline, callback.at});
  checks.open_.push_back(std::move(callback));
}

bool StageChecks::is_open(int pipeline) const {
  return std::ranges::any_of(open_,
                             [&](const Callback& each) { return each.pipeline == pipeline; });
}

// Whether it is a stage of a pipeline none of whose callbacks is under description.
bool StageChecks::is_stage_of_others(Log& log, const std::string& ring, const Scalar& index,
                                     const Place& at) const {
  if (index.constant()) return false;
  const auto given = std::ranges::find(given_, HandleParts::value(index).id,
                                       [](const Given& each) { return each.value; });
  if (given == given_.end() || is_open(given->pipeline)) return false;
  log.report_at("pipeline-stage"_rule, at,
                fmt::format("{} is indexed by a stage of the pipeline at {}, whose step is over: "
                            "its stage may be filled again; expected {}",
                            ring, text(given->at),
                            open_.empty() ? "the access inside of that pipeline's callback"
                                          : "the stage that this callback is given"));
  return true;
}

// A ring of as many stages as the pipeline has is most likely its own; another one, which holds
// something else, may be indexed as one likes, and so may any by what is neither t nor constant.
void StageChecks::note_index(Log& log, int memory, const std::string& ring, int stages,
                             const Scalar& index, const Place& at) {
  if (is_stage_of_others(log, ring, index, at) || !current()) return;
  const Callback& in = *current();
  if (in.released && same(index, in.stage) && in.stages == stages)
    return log.report_at(
        "pipeline-stage"_rule, at,
        fmt::format("{} is accessed behind next(), which lets producers fill its stage again: "
                    "expected the access in front of it",
                    ring));
  const std::int64_t beyond = same_value(index, in.stage) ? HandleParts::addend(index) : 0;
  if (beyond < 0 || (beyond > 0 && beyond + in.stages > stages))
    return log.report_at(
        "pipeline-stage"_rule, at,
        fmt::format("{} is indexed by the pipeline's stage {} {}: there is none {}; expected the "
                    "stage that the pipeline passes to the callback",
                    ring, beyond < 0 ? "-" : "+", beyond < 0 ? -beyond : beyond,
                    beyond < 0 ? "before the first one" : "behind the last one"));
  if (in.stages != stages || stages < 2) return;
  if (in.fills) filled_.try_emplace({memory, in.pipeline}, in.at);
  else if (same(index, in.stage)) uses_.push_back({memory, in.pipeline, at, in.at, ring});
  const bool by_t = same_value(index, in.t);
  if (same(index, in.stage) || (!index.constant() && !by_t)) return;
  std::string message = fmt::format(
      "{} is indexed by {}: expected the stage that the pipeline passes to the callback", ring,
      by_t ? "the k-tile's number" : std::to_string(*index.constant()));
  if (in.fills) log.report_at("pipeline-stage"_rule, at, std::move(message));
  else suspects_.push_back({memory, in.pipeline, at, std::move(message)});
}

void StageChecks::note_read(int variable, const Place& at) {
  if (!current() || !current()->fills) return;
  const Variable which{current()->pipeline, variable};
  if (!set_by_fill_.contains(which)) read_by_fill_.emplace(which, at);
}

void StageChecks::note_change(int variable, const Place& at) {
  if (!current()) return;
  const Variable which{current()->pipeline, variable};
  if (current()->fills) set_by_fill_.insert(which);
  else changed_by_use_.emplace(which, at);
}

// A ring that another pipeline fills, and this one does not.
void StageChecks::report_rings(Log& log) const {
  for (const Use& use : uses_) {
    if (filled_.contains({use.memory, use.pipeline})) continue;
    const auto other = filled_.lower_bound({use.memory, 0});
    if (other == filled_.end() || other->first.first != use.memory) continue;
    log.report_at("pipeline-stage"_rule, use.at,
                  fmt::format("{} is indexed by the stage of the pipeline at {}, and filled by the "
                              "one at {}: expected a ring that the same pipeline fills",
                              use.ring, text(use.pipeline_at), text(other->second)));
  }
}

void StageChecks::report(Log& log) const {
  report_rings(log);
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
