// SPDX-License-Identifier: Apache-2.0
// compiler/ir/shared_facts.h - which shared memory a description's addresses are in, and where
// accesses to it may lack a barrier. Not installed.
#pragma once

#include <vector>

#include "compiler/ir/shared_order.h"

namespace tartan::TARTAN_ABI::ir {

/// What an operation does to shared memory that is looked at.
struct Touch {
  int memory = -1;              // its number; -1: it touches none
  const Operand* address = {};  // by which
  bool reads = false, writes = false;
  bool atomic = false;   // both, and those do not disturb each other
  bool flying = false;   // it reads until it is waited for
  bool ordered = false;  // whoever reads what it writes waits for it: cp.async
};

class SharedFacts {
 public:
  SharedFacts(const Function& function, const OrderOptions& options,
              const std::vector<const Operation*>& makers);

  /// The number of the memory that an address is in, or -1.
  int memory_of(int id) const { return id < 0 ? -1 : roots_[static_cast<std::size_t>(id)]; }
  std::vector<Touch> touches(const Operation& op) const;
  /// Whether the condition is the one that divides the block into consumers and producers.
  bool divides_roles(const Operation& op) const;
  /// Whether a value differs between threads because their indices do.
  bool is_of_thread(int id) const { return id >= 0 && of_thread_[static_cast<std::size_t>(id)]; }

  /// By memory: whether accesses may lack a barrier, as far as barriers alone tell.
  const std::vector<bool>& suspects() const { return suspects_; }
  /// Whether some barrier is under a condition of the thread's index.
  bool has_divided_barriers() const { return divided_barriers_; }
  /// Whether an operation decides what suspects' accesses or divided barriers find: it is one, or
  /// a condition or a loop around one, or it gives or sets what their addresses and conditions are
  /// computed from.
  bool matters(std::uint32_t operation) const { return matters_[operation]; }
  /// Whether some text makes threads wait for others.
  bool has_waiting_texts() const { return waiting_texts_; }
  bool waits(const Operation& op) const;
  /// Whether the user's text makes the lanes of a warp wait for each other.
  bool syncs_warp(const Operation& op) const;

 private:
  class Scan;
  class Slice;
  void find_roots();
  void find_thread_values();
  void find_texts();

  std::span<const Operand> operands(const Operation& op) const {
    return Function::part(function_.operands, op.operands);
  }

  const Function& function_;
  const OrderOptions& options_;
  const std::vector<const Operation*>& makers_;
  std::vector<int> roots_;
  std::vector<bool> of_thread_;
  std::vector<bool> opaque_, suspects_;  // by memory
  std::vector<bool> matters_;            // by operation
  bool divided_barriers_ = false, waiting_texts_ = false;
};

}  // namespace tartan::TARTAN_ABI::ir
