// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/shared_facts.h"

#include <algorithm>
#include <utility>

#include "compiler/isa/special_registers.h"

namespace tartan::TARTAN_ABI::ir {
namespace {

// Of the first instruction of a text.
isa::Opcode opcode_of(std::string_view text) {
  return isa::find_opcode(text.substr(0, text.find_first_of(" \t")));
}

// Whether a text is an atomic operation, and nothing else.
bool is_atomic(std::string_view text) {
  const isa::Opcode opcode = opcode_of(text);
  return (opcode == isa::Opcode::atom || opcode == isa::Opcode::red) &&
         text.find(';') + 1 == text.size();
}

}  // namespace

// Walks over the operations with barriers and whole memories alone: loops twice, and barriers under
// conditions of the thread's index count for nothing.
class SharedFacts::Scan {
 public:
  explicit Scan(SharedFacts& facts) : facts_(facts), open_(facts.suspects_.size()) {}

  void walk(std::uint32_t region) {
    for (const std::uint32_t each : facts_.function_.regions[region].operations)
      visit(facts_.function_.operations[each]);
  }

 private:
  // Accesses of a memory since the last barrier.
  struct Open {
    bool reads = false, flying = false, writes = false, atomic = false;
    bool operator==(const Open&) const = default;
    void operator|=(const Open& other) {
      reads |= other.reads, flying |= other.flying;
      writes |= other.writes, atomic |= other.atomic;
    }
  };

  void visit(const Operation& op) {
    switch (op.kind) {
      using enum OperationKind;
      case barrier:
      case cluster_barrier:
      case cluster_mbarrier_wait: return meet(op);
      case barrier_of_some: return meet(op, numbers(op)[1] == facts_.options_.consumers);
      case statement:
        if (facts_.waits(op)) return meet(op);
        break;
      case warpgroup_wait:
        if (numbers(op)[0] == 0 && divided_ == 0)
          for (Open& each : open_) each.reads |= std::exchange(each.flying, false);
        return;
      case if_then:
      case if_else: return walk_conditions(op);
      case for_range:
      case while_loop: return walk_loop(op);
      default:
        for (std::uint32_t i = 0; i < op.regions.count; ++i) walk(op.regions.first + i);
        break;
    }
    for (const Touch& each : facts_.touches(op)) note(each);
  }

  void meet(const Operation& op, bool by_all = true) {
    facts_.divided_barriers_ |=
        divided_ > 0 || (!by_all && op.kind == OperationKind::barrier_of_some);
    if (divided_ > 0 || !by_all) return;
    for (Open& each : open_) each = {.flying = each.flying};
  }

  // A barrier counts wherever all threads find the same; what it has ended in one of two bodies it
  // has not in the other.
  void walk_conditions(const Operation& op) {
    const bool divides =
        !facts_.divides_roles(op) && facts_.is_of_thread(facts_.operands(op)[0].id);
    divided_ += divides;
    const std::vector<Open> before = open_;
    walk(op.regions.first);
    std::vector<Open> other = before;  // behind the other body, or without the only one
    if (op.kind == OperationKind::if_else) {
      other = divides ? open_ : std::exchange(open_, before);
      walk(op.regions.first + 1);
    }
    for (std::size_t i = 0; i < open_.size(); ++i) open_[i] |= other[i];
    divided_ -= divides;
  }

  void walk_loop(const Operation& op) {
    const bool counted = op.kind == OperationKind::for_range;
    const Region& first = facts_.function_.regions[op.regions.first];
    const bool divides = counted ? facts_.is_of_thread(first.arguments[0].id) ||
                                       facts_.is_of_thread(facts_.operands(op)[1].id)
                                 : facts_.is_of_thread(first.result.id);
    divided_ += divides;
    std::vector<Open> before;
    for (int time = 0; time < 2 && before != open_; ++time) {
      before = open_;
      for (std::uint32_t i = 0; i < op.regions.count; ++i) walk(op.regions.first + i);
    }
    divided_ -= divides;
  }

  void note(const Touch& touch) {
    Open& open = open_[static_cast<std::size_t>(touch.memory)];
    const bool reads = touch.reads && !touch.atomic, writes = touch.writes && !touch.atomic;
    const bool meets = (open.reads || open.flying) && touch.writes;
    if (meets || (open.writes && touch.reads) || (open.atomic && (reads || writes)))
      facts_.suspects_[static_cast<std::size_t>(touch.memory)] = true;
    open.reads |= reads && !touch.flying, open.flying |= touch.flying;
    open.writes |= writes && !touch.ordered, open.atomic |= touch.atomic;
  }

  std::span<const std::int64_t> numbers(const Operation& op) const {
    return Function::part(facts_.function_.numbers, op.numbers);
  }

  SharedFacts& facts_;
  std::vector<Open> open_;
  int divided_ = 0;  // conditions and loops around that differ between threads
};

// What the walk over threads needs.
class SharedFacts::Slice {
 public:
  explicit Slice(SharedFacts& facts)
      : facts_(facts), function_(facts.function_), needed_(facts.roots_.size()) {}

  // Until nothing is added: what sets a variable that is needed is needed, too.
  void mark() {
    do {
      grew_ = false;
      walk(Function::body);
    } while (grew_);
  }

 private:
  bool walk(std::uint32_t region) {
    bool any = false;
    for (const std::uint32_t each : function_.regions[region].operations) {
      const Operation& op = function_.operations[each];
      bool matters = is_wanted(op);
      for (std::uint32_t i = 0; i < op.regions.count; ++i) matters |= walk(op.regions.first + i);
      if (!matters) continue;
      any = true;
      if (!facts_.matters_[each]) facts_.matters_[each] = grew_ = true;
      want_around(op);
    }
    return any;
  }

  bool is_wanted(const Operation& op) {
    switch (op.kind) {
      using enum OperationKind;
      case set: return needs(facts_.operands(op)[0].id) && need(facts_.operands(op)[1].id);
      case get: return needs(function_.results[op.results.first].id);
      case barrier:
      case barrier_of_some:
      case cluster_barrier:
      case cluster_mbarrier_wait:
      case warp_sync:
      case mbarrier_wait:
      case warpgroup_product:
      case warpgroup_wait:
      case bulk_commit:
      case bulk_wait_read: break;
      case statement:
        if (facts_.waits(op) || facts_.syncs_warp(op)) return true;
        [[fallthrough]];
      default: {
        bool any = false;
        for (const Touch& each : facts_.touches(op))
          if (facts_.suspects_[static_cast<std::size_t>(each.memory)])
            any |= need(each.address->id);
        if (any && op.kind == load_if) need(facts_.operands(op)[0].id);
        if (any && op.kind == matrix && op.operands.count > 0)
          need(facts_.operands(op).back().id);  // the stride of wmma
        return any;
      }
    }
    for (const Touch& each : facts_.touches(op)) need(each.address->id);
    return true;
  }

  void want_around(const Operation& op) {
    if (op.regions.count == 0) return;
    for (const Operand& each : facts_.operands(op)) need(each.id);
    for (std::uint32_t i = 0; i < op.regions.count; ++i)
      need(function_.regions[op.regions.first + i].result.id);
  }

  bool needs(int id) const { return id >= 0 && needed_[static_cast<std::size_t>(id)]; }

  // It, and what it is computed from.
  bool need(int id) {
    std::vector<int> open{id};
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      if (next < 0 || needs(next)) continue;
      needed_[static_cast<std::size_t>(next)] = grew_ = true;
      const Operation* const maker = facts_.makers_[static_cast<std::size_t>(next)];
      if (!maker || !is_computed(*maker)) continue;
      for (const Operand& each : facts_.operands(*maker)) open.push_back(each.id);
    }
    return true;
  }

  bool is_computed(const Operation& op) const {
    const Type type = function_.results[op.results.first].type;
    return type == Type::none || !info(type).floating;
  }

  SharedFacts& facts_;
  const Function& function_;
  std::vector<bool> needed_;  // by id
  bool grew_ = false;
};

SharedFacts::SharedFacts(const Function& function, const OrderOptions& options,
                         const std::vector<const Operation*>& makers)
    : function_(function),
      options_(options),
      makers_(makers),
      opaque_(options.memories.size()),
      suspects_(options.memories.size()) {
  find_roots();
  find_texts();
  find_thread_values();
  Scan(*this).walk(Function::body);
  matters_.assign(function.operations.size(), false);
  if (has_divided_barriers() || std::ranges::find(suspects_, true) != suspects_.end())
    Slice(*this).mark();
}

void SharedFacts::find_roots() {
  roots_.assign(static_cast<std::size_t>(function_.values), -1);
  for (std::size_t i = 0; i < options_.memories.size(); ++i)
    roots_[static_cast<std::size_t>(options_.memories[i].base)] = static_cast<int>(i);
  for (const Operation& op : function_.operations) {
    if (row_of(op.kind).effect != Effect::none || op.kind == OperationKind::shared_of_block)
      continue;
    int root = -1;
    for (const Operand& each : operands(op)) root = std::max(root, memory_of(each.id));
    if (root < 0) continue;
    for (const Operand& each : Function::part(function_.results, op.results))
      roots_[static_cast<std::size_t>(each.id)] = root;
  }
}

bool SharedFacts::waits(const Operation& op) const {
  return op.kind == OperationKind::statement &&
         options_.waits(Function::part(function_.texts, op.texts)[0]);
}

bool SharedFacts::syncs_warp(const Operation& op) const {
  return op.kind == OperationKind::statement &&
         opcode_of(Function::part(function_.texts, op.texts)[0]) == isa::Opcode::bar_warp;
}

void SharedFacts::find_texts() {
  for (const Operation& op : function_.operations) {
    if (op.kind != OperationKind::statement) continue;
    const std::string_view text = Function::part(function_.texts, op.texts)[0];
    const isa::Opcode opcode = opcode_of(text);
    waiting_texts_ |=
        options_.waits(text) ||
        (opcode != isa::Opcode::none && isa::row(opcode).convergence == isa::Convergence::Cta);
    if (is_atomic(text)) continue;
    for (const Operand& each : operands(op))
      if (const int memory = memory_of(each.id); memory >= 0)
        opaque_[static_cast<std::size_t>(memory)] = true;
  }
}

// Variables may be read before the operation that sets them.
void SharedFacts::find_thread_values() {
  of_thread_.assign(roots_.size(), false);
  bool grew = true;
  const auto add = [&](int id, bool is) {
    if (!is || id < 0 || of_thread_[static_cast<std::size_t>(id)]) return;
    of_thread_[static_cast<std::size_t>(id)] = grew = true;
  };
  while (grew) {
    grew = false;
    for (const Operation& op : function_.operations) {
      const auto taken = operands(op);
      if (op.kind == OperationKind::set) add(taken[0].id, is_of_thread(taken[1].id));
      if (op.kind == OperationKind::for_range)
        add(function_.regions[op.regions.first].arguments[0].id,
            is_of_thread(taken[0].id) || is_of_thread(taken[2].id));
      bool of_thread = false;
      if (op.kind == OperationKind::special) {
        const auto which =
            static_cast<isa::SpecialRegister>(Function::part(function_.numbers, op.numbers)[0]);
        of_thread = which == isa::SpecialRegister::tid_x || which == isa::SpecialRegister::laneid;
      } else if (op.kind == OperationKind::elect) {
        of_thread = true;
      } else if (const Effect effect = row_of(op.kind).effect; effect == Effect::none ||
                                                               effect == Effect::exchange ||
                                                               op.kind == OperationKind::get) {
        of_thread =
            std::ranges::any_of(taken, [&](const Operand& each) { return is_of_thread(each.id); });
      }
      for (const Operand& each : Function::part(function_.results, op.results))
        add(each.id, of_thread);
    }
  }
}

std::vector<Touch> SharedFacts::touches(const Operation& op) const {
  const OperationRow& row = row_of(op.kind);
  if (row.reads == no_operand && row.writes == no_operand) return {};
  std::vector<Touch> out;
  const auto add = [&](const Operand& address, bool reads, bool writes) {
    const int memory = memory_of(address.id);
    if (memory < 0 || opaque_[static_cast<std::size_t>(memory)]) return;
    out.push_back({.memory = memory,
                   .address = &address,
                   .reads = reads,
                   .writes = writes,
                   .atomic = reads && writes,
                   .flying = reads && (op.kind == OperationKind::warpgroup_product ||
                                       op.kind == OperationKind::tensor_store),
                   .ordered = writes && op.kind == OperationKind::copy_async});
  };
  const auto taken = operands(op);
  if (op.kind == OperationKind::statement) {
    for (const Operand& each : taken) add(each, true, true);
  } else if (op.form != Operation::none) {
    const bool writes = op.results.count == 0;
    for (const Operand& each : taken) add(each, !writes, writes);
  } else {
    if (row.reads >= 0) add(taken[static_cast<std::size_t>(row.reads)], true, false);
    if (row.writes >= 0 && op.kind != OperationKind::tensor_load &&
        op.kind != OperationKind::pixels_load)  // mbarriers order these
      add(taken[static_cast<std::size_t>(row.writes)], false, true);
  }
  return out;
}

bool SharedFacts::divides_roles(const Operation& op) const {
  if (op.kind != OperationKind::if_else || !options_.consumers) return false;
  const Operation* const condition = makers_[static_cast<std::size_t>(operands(op)[0].id)];
  if (!condition || condition->kind != OperationKind::compare) return false;
  const auto maker = [&](std::size_t i) {
    return makers_[static_cast<std::size_t>(operands(*condition)[i].id)];
  };
  const auto number = [&](const Operation* of) {
    return Function::part(function_.numbers, of->numbers)[0];
  };
  const Operation *const index = maker(0), *const count = maker(1);
  return index && count && index->kind == OperationKind::special &&
         static_cast<isa::SpecialRegister>(number(index)) == isa::SpecialRegister::tid_x &&
         count->kind == OperationKind::constant && number(count) == options_.consumers;
}

}  // namespace tartan::TARTAN_ABI::ir
