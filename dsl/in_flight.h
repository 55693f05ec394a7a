// SPDX-License-Identifier: Apache-2.0
// dsl/in_flight.h - wgmma runs beside the threads: accumulators that nobody has waited for. Not
// installed.
//
// A product's result is waited for where it is first looked at. Until then it may be added to by
// further products and be assigned to variables. What is known of that at a place of the
// description holds in the scope (the body of a loop or condition) where it was found out, and in
// those inside; beyond, the next look waits for everything.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compiler/codegen/function_builder.h"

namespace tartan::inline TARTAN_ABI::detail {

struct VariableRecord;

/// The commit behind which registers are in flight.
struct Departure {
  int group = 0;  // its number, from 1 on; 0: not known
  int scope = 0;  // where it was
  /// A's registers, which must stay as they are until the end.
  std::shared_ptr<const std::vector<codegen::Value>> kept = {};
};

/// The accumulators of a product, from its commit on, or of variables that may hold such.
struct Flight {
  std::vector<codegen::Variable> registers;
  Departure departure = {};
  std::vector<int> landings = {};     // scopes in which it was waited for
  int copied = -1, copied_scope = 0;  // the mark in front of the place where it was copied, if any
  // Of variables: they themselves, as they were assigned for the `version`th time, and where they
  // were read.
  struct Source {
    std::shared_ptr<VariableRecord> variable;
    int version;
  };
  std::vector<Source> sources = {};
  int read_scope = 0;
};

/// What is known of a fragment's variable.
struct VariableRecord {
  std::vector<codegen::Variable> registers;
  int scope = 0;      // where it was declared
  int version = 0;    // how many assignments there were
  int observed = -1;  // when its value was last looked at
  std::optional<Departure> flying = {};
  std::weak_ptr<Flight> flight = {};  // of those who read it so
};

/// What was in flight in front of the body of a loop or condition.
struct BeforeBody {
  int mark = -1;  // none: nothing was
  int scope = 0, commits = 0;
  bool loops = false;
  struct Variable {
    std::shared_ptr<VariableRecord> record;
    int version;
    std::optional<Departure> flying;
  };
  std::vector<Variable> variables;
};

/// The order of commits and waits in a description.
struct FlightLog {
  std::vector<int> scopes{0};  // those that are open, the innermost last
  int scope_count = 0;
  int clock = 0;
  std::vector<int> commits;  // the scope of each
  struct Landing {
    int group, scope;
  };
  std::vector<Landing> landings;  // up to which group all are done, and where that is known
  std::vector<std::shared_ptr<VariableRecord>> variables;
  std::vector<BeforeBody> bodies;  // that are open, the innermost last

  bool is_open(int scope) const;
  /// How many groups were surely committed behind this one, of the first `commits`.
  int newer(int group, std::size_t commits) const;
  int newer(int group) const { return newer(group, commits.size()); }
  bool all_landed() const;
};

}  // namespace tartan::inline TARTAN_ABI::detail
