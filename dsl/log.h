// SPDX-License-Identifier: Apache-2.0
// dsl/log.h - what is noted while a kernel is described: the place of the call in progress,
// mistakes, choices. Not installed.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "tartan/dsl/kernel.h"
#include "tartan/isa/instruction.h"
#include "tartan/isa/target.h"
#include "tartan/support/diagnostic.h"

namespace tartan::inline TARTAN_ABI::detail {

class Log {
 public:
  Log(const Target& target, Place place) : target_(target), place_(std::move(place)) {}

  /// A call of Builder or of a handle begins.
  void at(const std::source_location& here) { place_ = here, location_ = here; }
  /// What follows belongs to a call that began before: its callback is described.
  void resume(Place place) { place_ = std::move(place); }
  const Place& place() const { return place_; }
  const std::source_location& location() const { return location_; }

  /// Once for each place: loops and fragments say the same many times.
  void report(const Rule& rule, std::string message);
  /// Says from where on there is an instruction that the target lacks, and what is near.
  void refuse_target(const isa::Instruction& row);
  Diags& diags() { return diags_; }

  void choose(std::string what, std::string taken, std::string reason,
              std::vector<std::string> refused = {});
  const std::vector<Choice>& choices() const { return choices_; }

  /// Something refused would be there with a later PTX version.
  void would_take(const Since& since);
  /// The description asked for the target.
  void note_target_read() { target_read_ = true; }
  /// The PTX version that may accept what was refused: the target's own where none may.
  Version next_version() const;

 private:
  Target target_;
  Place place_;
  std::source_location location_;
  Diags diags_;
  std::vector<Choice> choices_;
  Version wanted_;  // the first with all that was refused for its version, if any
  bool target_read_ = false;
};

}  // namespace tartan::inline TARTAN_ABI::detail
