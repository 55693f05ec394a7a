// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/partition.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "compiler/isa/special_registers.h"

namespace tartan::TARTAN_ABI::ir {
namespace {

constexpr std::uint32_t none = Operation::none;

// An operation that gives the address of memory that has been declared.
bool is_memory(OperationKind kind) {
  return kind == OperationKind::shared || kind == OperationKind::pointer_param ||
         kind == OperationKind::add_pointer_param;
}

// Where an operation of the part stands.
struct Position {
  std::uint32_t operation;
  std::uint32_t around;           // the position of the operation whose region has it, or none
  bool own = false;               // in a region of the second role
  bool passed = true;             // by the second role: in no region of the first alone
  std::uint32_t division = none;  // the position of the `by_role` around it, or none
  bool kept = false;
};

// The operations of a slice.
class Needed {
 public:
  /// Those that the second role needs.
  Needed(const Function& function, std::uint32_t from) : Needed(function, false) {
    collect(from, none, false, true, none);
    collect_writes();
    follow_all();
    check_changes();
  }
  /// Those that a half needs.
  Needed(const Function& function, std::uint32_t from, Half half) : Needed(function, true) {
    collect(from, none, half == Half::both, true, none);
    bool behind = false;
    for (Position& each : positions_) {
      behind |= function_.operations[each.operation].kind == OperationKind::split;
      each.own |= half != Half::both && behind == (half == Half::behind);
    }
    follow_all();
  }

  const std::vector<Need>& missing() const { return missing_; }
  bool has(std::uint32_t operation) const {
    const std::uint32_t position = position_of_[operation];
    return position != none && positions_[position].kept;
  }

 private:
  // A `set` of a variable.
  struct Change {
    int variable;
    std::uint32_t position;
  };

  Needed(const Function& function, bool same_threads)
      : function_(function),
        same_threads_(same_threads),
        position_of_(function.operations.size(), none),
        made_by_(static_cast<std::size_t>(function.values), none) {}

  void follow_all() {
    std::ranges::stable_sort(changes_, {}, &Change::variable);
    for (std::uint32_t i = 0; i < positions_.size(); ++i)
      if (positions_[i].own && is_root(operation(i))) keep(i);
    while (!open_.empty()) {
      const std::uint32_t next = open_.back();
      open_.pop_back();
      follow(next);
    }
  }

  const Operation& operation(std::uint32_t position) const {
    return function_.operations[positions_[position].operation];
  }

  void collect(std::uint32_t region, std::uint32_t around, bool own, bool passed,
               std::uint32_t division) {
    for (const Operand& each : function_.regions[region].arguments)
      made_by_[index(each.id)] = around;
    for (const std::uint32_t each : function_.regions[region].operations) {
      const auto here = static_cast<std::uint32_t>(positions_.size());
      positions_.push_back({.operation = each,
                            .around = around,
                            .own = own,
                            .passed = passed,
                            .division = division});
      position_of_[each] = here;
      const Operation& op = function_.operations[each];
      for (const Operand& result : Function::part(function_.results, op.results))
        made_by_[index(result.id)] = here;
      if (op.kind == OperationKind::set) changes_.push_back({operands(op)[0].id, here});
      const bool by_role = op.kind == OperationKind::by_role;
      for (std::uint32_t i = 0; i < op.regions.count; ++i)
        collect(op.regions.first + i, here, own || (by_role && i == 1),
                passed && !(by_role && i == 0), by_role ? here : division);
    }
  }

  std::span<const Operand> operands(const Operation& op) const {
    return Function::part(function_.operands, op.operands);
  }

  static bool is_root(const Operation& op) {
    const Effect effect = row_of(op.kind).effect;
    return effect == Effect::acts || (effect == Effect::exchange && op.results.count == 0);
  }

  bool is_of_thread(const Operation& op) const {
    if (op.kind == OperationKind::elect) return true;
    if (op.kind != OperationKind::special) return false;
    const auto which =
        static_cast<isa::SpecialRegister>(Function::part(function_.numbers, op.numbers)[0]);
    return which == isa::SpecialRegister::tid_x || which == isa::SpecialRegister::laneid;
  }

  // The operands by which an operation of consumers may write memory: an address, or numbers that
  // may be addresses.
  std::span<const Operand> written_by(const Operation& op) const {
    const std::int8_t writes = row_of(op.kind).writes;
    if (writes == no_operand || (op.form != none && op.results.count > 0)) return {};
    return writes == any_operand ? operands(op)
                                 : operands(op).subspan(static_cast<std::size_t>(writes), 1);
  }

  // Where the first role writes which memory.
  void collect_writes() {
    makers_.resize(made_by_.size(), nullptr);
    written_.resize(made_by_.size(), none);
    for (const Operation& op : function_.operations)
      for (const Operand& result : Function::part(function_.results, op.results))
        makers_[index(result.id)] = &op;
    std::vector<bool> seen(made_by_.size());
    for (const Position& each : positions_) {
      const Operation& op = function_.operations[each.operation];
      if (each.own) continue;
      for (const Operand& operand : written_by(op)) note_write(operand.id, op.place, seen);
    }
  }

  // What makes a value, if that has no effect; or none.
  const Operation* maker(int id) const {
    const Operation* made = id < 0 ? nullptr : makers_[index(id)];
    if (!made) return nullptr;
    return row_of(made->kind).effect == Effect::none || is_memory(made->kind) ? made : nullptr;
  }

  // An address is computed from that of declared memory.
  void note_write(int id, std::uint32_t place, std::vector<bool>& seen) {
    const Operation* made = maker(id);
    if (!made || seen[index(id)]) return;
    seen[index(id)] = true;
    if (is_memory(made->kind)) written_[index(id)] = place;
    for (const Operand& each : operands(*made)) note_write(each.id, place, seen);
  }

  // Where the first role writes what `address` points to.
  std::optional<std::uint32_t> write_to(int address) const {
    const Operation* made = maker(address);
    if (made && written_[index(address)] != none) return written_[index(address)];
    return made && made->operands.count > 0 ? write_to(operands(*made)[0].id) : std::nullopt;
  }

  void check_load(const Operation& op) {
    for (const Operand& each : operands(op)) {
      if (each.space == StateSpace::none) continue;
      if (const auto place = write_to(each.id)) miss(Need::Of::memory, op, *place);
    }
  }

  void keep(std::uint32_t position) {
    if (position == none || std::exchange(positions_[position].kept, true)) return;
    open_.push_back(position);
  }

  void need(int id) {
    if (id >= 0) keep(made_by_[index(id)]);
  }

  void miss(Need::Of what, const Operation& op, std::uint32_t written = 0) {
    if (told_.emplace(what, op.place).second)
      missing_.push_back({what, function_.places[op.place], function_.places[written]});
  }

  void follow(std::uint32_t position) {
    const Position here = positions_[position];
    const Operation& op = operation(position);
    if (!here.passed)
      return miss(op.kind == OperationKind::set ? Need::Of::variable : Need::Of::result, op);
    if (!here.own && row_of(op.kind).effect == Effect::acts) return miss(Need::Of::result, op);
    if (!here.own && !same_threads_ && is_of_thread(op)) return miss(Need::Of::thread, op);
    if (!here.own && row_of(op.kind).effect == Effect::reads) check_load(op);
    keep(here.around);
    if (op.kind == OperationKind::if_of_role) return;  // it runs its region all the same
    for (const Operand& each : operands(op)) need(each.id);
    for (std::uint32_t i = 0; i < op.regions.count; ++i)
      need(function_.regions[op.regions.first + i].result.id);
    if (op.kind != OperationKind::get && op.kind != OperationKind::for_range) return;
    const auto all = std::ranges::equal_range(changes_, operands(op)[0].id, {}, &Change::variable);
    for (const Change& each : all)
      if (!is_set_by_both(each, all)) keep(each.position);
  }

  // Variables that the first role reads and the second one has changed, before or in an earlier
  // iteration. What the first one has set in between is its own; positions are in the order of the
  // description.
  void check_changes() {
    for (std::uint32_t at = 0; at < positions_.size(); ++at) {
      if (positions_[at].own || operation(at).kind != OperationKind::get) continue;
      const auto all =
          std::ranges::equal_range(changes_, operands(operation(at))[0].id, {}, &Change::variable);
      for (const Change& each : all)
        if (positions_[each.position].own && reaches(each.position, at) &&
            !is_set_between(all, each.position, at)) {
          miss(Need::Of::change, operation(at), operation(each.position).place);
          break;
        }
    }
  }

  bool reaches(std::uint32_t set, std::uint32_t get) const {
    const Position &from = positions_[set], &to = positions_[get];
    return set < get || (!to.passed && from.division == to.division) ||
           common_loop(set, get) != none;
  }

  // Whether the first role has a value of its own: both set it at the same place, or it does so
  // between the two.
  template <class Changes>
  bool is_set_between(const Changes& all, std::uint32_t set, std::uint32_t get) const {
    const std::uint32_t loop = common_loop(set, get);
    return std::ranges::any_of(all, [&](const Change& each) {
      const Position& by = positions_[each.position];
      if (by.own) return false;
      if (!by.passed && by.division == positions_[set].division) return true;
      const bool in_loop = loop != none && common_loop(each.position, get) == loop;
      return each.position < get ? each.position > set || !by.passed || in_loop
                                 : each.position > set && in_loop;
    });
  }

  // The innermost loop around both.
  std::uint32_t common_loop(std::uint32_t x, std::uint32_t y) const {
    for (std::uint32_t i = positions_[x].around; i != none; i = positions_[i].around) {
      const OperationKind kind = operation(i).kind;
      if (kind != OperationKind::for_range && kind != OperationKind::while_loop) continue;
      for (std::uint32_t j = positions_[y].around; j != none; j = positions_[j].around)
        if (i == j) return i;
    }
    return none;
  }

  // Whether it is the first role's part of a `by_role` in which the second one sets it, too.
  template <class Changes>
  bool is_set_by_both(const Change& change, const Changes& all) const {
    const Position& of = positions_[change.position];
    return !of.passed && std::ranges::any_of(all, [&](const Change& other) {
      const Position& by = positions_[other.position];
      return by.own && by.division == of.division;
    });
  }

  static std::size_t index(int id) { return static_cast<std::size_t>(id); }

  const Function& function_;
  bool same_threads_ = false;  // execute the slice and the rest
  std::vector<Position> positions_;
  std::vector<std::uint32_t> position_of_;  // by operation, or none
  std::vector<std::uint32_t> made_by_;      // positions, by the values' ids, or none
  std::vector<Change> changes_;             // by variable
  std::vector<const Operation*> makers_;    // by the values' ids
  std::vector<std::uint32_t> written_;      // places, by the ids of declared memory, or none
  std::vector<std::uint32_t> open_;
  std::set<std::pair<Need::Of, std::uint32_t>> told_;  // with places
  std::vector<Need> missing_;
};

// Copies operations with new results.
class Copier {
 public:
  Copier(Function& function, const Needed& needed, std::span<const Renamed> names = {})
      : function_(function), needed_(needed), names_(static_cast<std::size_t>(function.values)) {
    std::iota(names_.begin(), names_.end(), 0);
    for (const Renamed& each : names) names_[static_cast<std::size_t>(each.from)] = each.to;
  }

  void copy(std::uint32_t from, std::uint32_t to) {
    const std::vector<std::uint32_t> operations = function_.regions[from].operations;
    for (const std::uint32_t each : operations)
      if (needed_.has(each)) copy_operation(each, to);
  }

 private:
  void copy_operation(std::uint32_t which, std::uint32_t to) {
    Operation op = function_.operations[which];
    const Slice regions = op.regions;
    switch (op.kind) {
      case OperationKind::by_role: return copy(regions.first + 1, to);
      case OperationKind::if_of_role:
      case OperationKind::mark: return copy(regions.first, to);
      default: break;
    }
    op.operands = copied(function_.operands, op.operands, [&](Operand x) { return renamed(x); });
    op.results = copied(function_.results, op.results, [&](Operand x) { return anew(x); });
    op.regions.first = static_cast<std::uint32_t>(function_.regions.size());
    function_.regions.resize(function_.regions.size() + regions.count);
    function_.regions[to].operations.push_back(
        static_cast<std::uint32_t>(function_.operations.size()));
    function_.operations.push_back(op);
    for (std::uint32_t i = 0; i < regions.count; ++i) {
      const std::uint32_t from = regions.first + i, copy_of = op.regions.first + i;
      std::vector<Operand> arguments = function_.regions[from].arguments;
      for (Operand& each : arguments) each = anew(each);
      function_.regions[copy_of].arguments = std::move(arguments);
      copy(from, copy_of);
      function_.regions[copy_of].end = function_.regions[from].end;
      function_.regions[copy_of].result = renamed(function_.regions[from].result);
    }
  }

  template <typename Make>
  static Slice copied(std::vector<Operand>& list, Slice slice, const Make& make) {
    const auto first = static_cast<std::uint32_t>(list.size());
    for (std::uint32_t i = 0; i < slice.count; ++i)
      list.push_back(make(Operand(list[slice.first + i])));
    return {first, slice.count};
  }

  Operand renamed(Operand operand) const {
    if (operand.id >= 0) operand.id = names_[static_cast<std::size_t>(operand.id)];
    return operand;
  }
  Operand anew(Operand result) {
    result.id = names_[static_cast<std::size_t>(result.id)] = function_.values++;
    return result;
  }

  Function& function_;
  const Needed& needed_;
  std::vector<int> names_;  // of values: those of their copies
};

// What is left to the first role.
void leave(Function& function, std::uint32_t region) {
  for (const std::uint32_t each : function.regions[region].operations) {
    Operation& op = function.operations[each];
    if (op.kind == OperationKind::by_role) op.kind = OperationKind::mark, op.regions.count = 1;
    if (op.kind == OperationKind::if_of_role) op.kind = OperationKind::if_then;
    for (std::uint32_t i = 0; i < op.regions.count; ++i) leave(function, op.regions.first + i);
  }
}

}  // namespace

std::vector<Need> partition(Function& function, std::uint32_t from, std::uint32_t to) {
  const Needed needed(function, from);
  Copier(function, needed).copy(from, to);
  leave(function, from);
  return needed.missing();
}

std::vector<Need> copy_half(Function& function, std::uint32_t from, std::uint32_t to, Half half,
                            std::span<const Renamed> names) {
  const Needed needed(function, from, half);
  Copier(function, needed, names).copy(from, to);
  return needed.missing();
}

}  // namespace tartan::TARTAN_ABI::ir
