// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/log.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::TARTAN_ABI::detail {

std::string text(const Place& place) {
  return fmt::format("{}:{}", place.file.substr(place.file.rfind('/') + 1), place.line);
}

void Log::report_at(const Rule& rule, const Place& at, std::string message) {
  for (const Diag& each : diags_)
    if (each.place == at && each.message == message) return;
  diags_.report(rule, at, std::move(message));
}

void Log::warn(const Rule& rule, std::string message) {
  for (const Diag& each : warnings_)
    if (each.place == place_ && each.message == message) return;
  warnings_.add({Level::Warning, rule.id, place_, std::move(message)});
}

void Log::refuse_target(const isa::Instruction& row) {
  would_take(row.since);
  const auto nearest = isa::nearest(row.form, target_);
  report("no-instruction"_rule,
         fmt::format("{} requires {}, the target is {}{}", isa::spell(row.form),
                     isa::text(row.since), target_.text(),
                     nearest ? "; the nearest supported form is " + isa::spell(*nearest) : ""));
}

void Log::choose(std::string what, std::string taken, std::string reason,
                 std::vector<std::string> refused) {
  // An unrolled loop makes the same choice many times.
  for (const Choice& choice : choices_)
    if (choice.place == place_ && choice.what == what && choice.taken == taken) return;
  choices_.push_back(
      {place_, std::move(what), std::move(taken), std::move(reason), std::move(refused)});
}

void Log::note_empty(std::string_view what) {
  if (empty_.empty()) empty_ = what, empty_at_ = place_;
}

void Log::report_empty() {
  if (empty_.empty() || !diags_.ok()) return;
  report_at("foreign-value"_rule, empty_at_,
            fmt::format("{} is empty: expected what an earlier call made, found nothing", empty_));
}

void Log::withdraw(std::string_view what) {
  std::erase_if(choices_, [&](const Choice& each) { return each.what == what; });
}

void Log::would_take(const Since& since) {
  if (since.has(target_.arch) && since.ptx > target_.ptx) wanted_ = std::max(wanted_, since.ptx);
}

void Log::asks(const Since& since) {
  if (since.has(target_.arch)) asked_ = std::max(asked_, since.ptx);
}

Version Log::next_version() const {
  const Version out = std::max({wanted_, asked_, target_.ptx});
  // A description that reads the target's version may depend on it: try the next version only.
  return out == target_.ptx && target_read_ && out < newest_version ? out.next() : out;
}

}  // namespace tartan::TARTAN_ABI::detail
