// SPDX-License-Identifier: Apache-2.0
// dsl/state/in_flight.h - wgmma is asynchronous: tracks accumulators that have not been waited for.
// Not installed.
//
// A product's result is waited for at its first use. Until then further products may add to it, and
// it may be assigned to variables. What is known of it holds in the scope (the body of a loop or
// condition) where it was found out, and in nested scopes; after that scope, the next use waits for
// everything.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/function_builder.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

struct VariableRecord;

/// The commit after which registers are in flight.
struct Departure {
  int group = 0;  // its number, from 1 on; 0: not known
  int scope = 0;  // where it was
  /// A's registers, which must not change until the product is done.
  std::shared_ptr<const std::vector<ir::Value>> kept = {};
};

/// The accumulators of a product, from its commit on, or of variables that may hold such.
struct Flight {
  std::vector<ir::Variable> registers;
  Departure departure = {};
  std::vector<int> landings = {};     // scopes in which it was waited for
  int copied = -1, copied_scope = 0;  // the mark before the copy, if any
  int read = -1, commits = 0;         // of variables: the mark behind the read; commits before it
  // Variables: as they were assigned for the `version`th time, and where they were read.
  struct Source {
    std::shared_ptr<VariableRecord> variable;
    int version;
  };
  std::vector<Source> sources = {};
  int scope = 0;      // where the product was described, or the variables read
  Place made = {};    // the same, in the source
  bool told = false;  // that it is used out of its scope
};

/// The state of a fragment's variable.
struct VariableRecord {
  std::vector<ir::Variable> registers;
  int scope = 0;      // where it was declared
  int version = 0;    // number of assignments
  int observed = -1;  // when its value was last looked at
  std::optional<Departure> flying = {};
  std::weak_ptr<Flight> flight = {};  // shared by those that read it so
};

/// What was in flight before the body of a loop or condition.
struct BeforeBody {
  int mark = -1;  // -1: nothing was
  int scope = 0, commits = 0;
  bool loops = false;
  struct Variable {
    std::shared_ptr<VariableRecord> record;
    int version;
    std::optional<Departure> flying;
  };
  std::vector<Variable> variables;
};

/// The products in flight, in the order of commits and waits in a description.
class Flights {
 public:
  /// Registers of a product that was just committed.
  std::shared_ptr<Flight> depart(ir::FunctionBuilder& f, const std::vector<ir::Value>& registers,
                                 std::vector<ir::Value> kept);
  /// Readers of these variables, of which at least one is in flight.
  std::shared_ptr<Flight> of(ir::FunctionBuilder& f,
                             const std::vector<std::shared_ptr<VariableRecord>>& variables);
  /// Copies registers of a product without a wait; the wait comes before the copy if it proves
  /// necessary.
  std::vector<ir::Value> copy(ir::FunctionBuilder& f, Flight& flight, std::size_t first,
                              std::size_t count);

  /// Commits so far, and how many of those since then are sure to run here.
  int commits() const { return static_cast<int>(commits_.size()); }
  int commits_since(int before) const { return newer(before, commits_.size()); }
  /// Whether one of these reads registers, which must not change until it is done.
  bool keeps_registers_since(int before) const { return last_kept_ > before; }
  bool has_landed(const Flight& flight) const;
  /// Whether the body in which it was made has ended: its values are of no use any more.
  bool is_out_of_scope(const Flight& flight) const { return !is_open(flight.scope); }
  void land(ir::FunctionBuilder& f, Flight& flight);
  bool all_landed() const;
  void land_all(ir::FunctionBuilder& f);

  std::shared_ptr<VariableRecord> declare(std::vector<ir::Variable> registers);
  void observe(VariableRecord& variable) const { variable.observed = clock_; }
  /// Whether a variable has not been assigned since its declaration.
  bool is_untouched(const VariableRecord& variable) const {
    return variable.version == 0 && variable.scope == scopes_.back();
  }

  /// Called around the body of a loop or condition: before it, and in it.
  BeforeBody before_body(ir::FunctionBuilder& f, bool loops) const;
  void in_body(ir::FunctionBuilder& f, BeforeBody before, const std::function<void()>& body);
  /// The variables, which another role does not have: while these are set aside, it is described.
  using Variables = std::vector<std::shared_ptr<VariableRecord>>;
  Variables set_aside() { return std::exchange(variables_, {}); }
  void bring_back(Variables variables) { variables_ = std::move(variables); }

  /// The innermost open scope, and whether one still is.
  int scope() const { return scopes_.back(); }
  bool is_open(int scope) const;
  /// The number of loops and conditions under description.
  std::size_t depth() const { return bodies_.size(); }

 private:
  struct Landing {
    int group, scope;
  };

  bool land_before_body(ir::FunctionBuilder& f, Flight& flight);
  static bool is_overtaken(const Flight& flight);
  void land_where_read(ir::FunctionBuilder& f, Flight& flight);
  /// A lower bound on the groups committed after this one, of the first `commits`.
  int newer(int group, std::size_t commits) const;

  std::vector<int> scopes_{0};  // open scopes, the innermost last
  int scope_count_ = 0;
  int clock_ = 0;
  std::vector<int> commits_;       // the scope of each
  int last_kept_ = 0;              // the last commit whose products read registers
  std::vector<Landing> landings_;  // up to which group all are done, and where that is known
  Variables variables_;
  std::vector<BeforeBody> bodies_;  // open bodies, the innermost last
};

}  // namespace tartan::TARTAN_ABI::detail
