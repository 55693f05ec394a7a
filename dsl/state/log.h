// SPDX-License-Identifier: Apache-2.0
// dsl/state/log.h - records made while a kernel is described: the place of the current call,
// errors, choices. Not installed.
#pragma once

#include <algorithm>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/dsl/kernel.h"
#include "tartan/isa/instruction.h"
#include "tartan/isa/target.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

/// A place that a message names: file:line.
std::string text(const Place& place);

class Log {
 public:
  Log(const Target& target, Place place) : target_(target), place_(std::move(place)) {}

  /// A call of Builder or of a handle begins.
  void at(const std::source_location& here) { place_ = here, location_ = here; }
  /// Continues the call at `place`, whose callback is now described.
  void resume(Place place) { place_ = std::move(place); }
  const Place& place() const { return place_; }
  const std::source_location& location() const { return location_; }

  /// Reports once per place: loops and fragments repeat the same error.
  void report(const Rule& rule, std::string message) {
    report_at(rule, place_, std::move(message));
  }
  void report_at(const Rule& rule, const Place& at, std::string message);
  /// Reports since when the instruction exists, and the nearest one that the target has.
  void refuse_target(const isa::Instruction& row);
  Diags& diags() { return diags_; }
  /// Something legal that is probably not what is meant, or slow: once per place.
  void warn(const Rule& rule, std::string message);
  const Diags& warnings() const { return warnings_; }
  /// A call takes something that no call made. Calls that were refused make such, and were
  /// reported; report_empty() reports the first of a description that has no other mistakes.
  void note_empty(std::string_view what);
  void report_empty();

  void choose(std::string what, std::string taken, std::string reason,
              std::vector<std::string> refused = {});
  /// Forgets choices that a later one replaces.
  void withdraw(std::string_view what);
  const std::vector<Choice>& choices() const { return choices_; }

  /// Records that a later PTX version has what was refused.
  void would_take(const Since& since);
  /// Records that the description asked for what a later PTX version has.
  void asks(const Since& since);
  /// The PTX version that has all that was asked for; the target's own if it does.
  Version asked_version() const { return std::max(asked_, target_.ptx); }
  /// Records that the description asked for the target.
  void note_target_read() { target_read_ = true; }
  /// The PTX version that may accept what was refused; the target's own if none may.
  Version next_version() const;

 private:
  Target target_;
  Place place_;
  std::source_location location_;
  Diags diags_, warnings_;
  std::string empty_;  // what was, and where
  Place empty_at_;
  std::vector<Choice> choices_;
  Version wanted_;  // the first that has all that was refused for its version, if any
  Version asked_;   // the same of what the description only asked for
  bool target_read_ = false;
};

}  // namespace tartan::TARTAN_ABI::detail
