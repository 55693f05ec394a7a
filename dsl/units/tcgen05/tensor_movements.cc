// SPDX-License-Identifier: Apache-2.0
#include "dsl/units/tcgen05/tensor_movements.h"

#include <map>
#include <optional>
#include <utility>

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Function;
using ir::Operation;
using ir::OperationKind;
using What = TensorSum::What;
using Movement = TensorMovement::What;

// The walk for one accumulator.
class Residence {
 public:
  Residence(const ir::FunctionBuilder& f, TensorSum& sum, const std::function<bool(int)>& of_warps,
            std::vector<TensorMovement>& out)
      : f_(f), function_(f.function()), sum_(sum), of_warps_(of_warps), out_(out) {
    for (const TensorSum::Event& each : sum.events) events_[each.region] = &each;
  }

  void walk(std::uint32_t region) {
    const auto& operations = function_.regions[region].operations;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Operation& op = function_.operations[operations[i]];
      if (!holds(op).first) continue;
      if (op.kind == OperationKind::mark) pass(op.regions.first);
      else if (op.kind == OperationKind::by_role) walk(op.regions.first);
      else pass(op, region, i);
    }
  }

 private:
  struct Held {
    const TensorSum::Event* first = nullptr;  // what happens in a region or operation
    bool declares = false, multiplies = false, assigns = false;
    void operator|=(const Held& other) {
      if (!first) first = other.first;
      declares |= other.declares, multiplies |= other.multiplies, assigns |= other.assigns;
    }
  };

  const Held& held(std::uint32_t region) {
    const auto known = held_.find(region);
    if (known != held_.end()) return known->second;
    Held out;
    if (const auto event = events_.find(region); event != events_.end()) {
      const What what = event->second->what;
      out = {event->second, what == What::declared, what == What::added || what == What::multiplied,
             what == What::assigned || what == What::assigned_part};
    }
    for (const std::uint32_t each : function_.regions[region].operations)
      out |= holds(function_.operations[each]);
    return held_[region] = out;
  }
  Held holds(const Operation& op) {
    Held out;
    const std::uint32_t count = op.kind == OperationKind::by_role ? 1 : op.regions.count;
    for (std::uint32_t i = 0; i < count; ++i) out |= held(op.regions.first + i);
    return out;
  }

  // A mark: what happens there, then its code.
  void pass(std::uint32_t region) {
    if (const auto found = events_.find(region); found != events_.end()) {
      const TensorSum::Event& event = *found->second;
      switch (event.what) {
        case What::declared: here_ = {true, true}; break;
        case What::read: load(region, 0, &event); break;
        case What::read_part:
          if (!here_.in_registers) move(Movement::load, event.part, region, 0, &event);
          break;
        // Both hold the other parts, or the one that does not gets none.
        case What::assigned_part:
          if (here_.in_tensor_memory) move(Movement::store, event.part, region, 0, &event);
          break;
        case What::assigned: here_ = {.in_tensor_memory = false, .in_registers = true}; break;
        case What::added: store(region, 0, &event); [[fallthrough]];
        case What::multiplied: here_ = {.in_tensor_memory = true, .in_registers = false}; break;
      }
    }
    walk(region);
  }

  // A condition or a loop, the `index`th operation of `outer`.
  void pass(const Operation& op, std::uint32_t outer, std::size_t index) {
    const Held inside = holds(op);
    const bool loops = op.kind == OperationKind::for_range || op.kind == OperationKind::while_loop;
    if (inside.declares) {
      for (std::uint32_t i = 0; i < op.regions.count; ++i) walk(op.regions.first + i);
      return;
    }
    if (!inside.multiplies) {
      if (here_.in_registers && !inside.assigns) return;
      const bool by_all = !loops && !inside.assigns && is_uniform(op);  // who load in it
      if (!by_all && !loops && here_.in_tensor_memory && of_warps_(condition_of(op)))
        return pass_apart(op, outer, index, inside);
      if (!by_all) load(outer, index, inside.first), here_.in_tensor_memory &= !inside.assigns;
    } else {
      store(outer, index, inside.first);
      if (loops) here_.in_registers = false;
    }
    pass_regions(op, loops, inside);
  }

  // Each warp for itself; afterwards the value is in tensor memory, as it was.
  void pass_apart(const Operation& op, std::uint32_t outer, std::size_t index, const Held& inside) {
    const bool outermost = std::exchange(together_, false);
    if (outermost) {
      move(Movement::await, whole(), outer, index, inside.first);
      out_.back().assigns = inside.assigns;
    }
    pass_regions(op, false, {.first = inside.first, .multiplies = true});
    if (!outermost) return;
    together_ = true;
    move(Movement::meet, whole(), outer, index + 1, inside.first);
  }

  void pass_regions(const Operation& op, bool loops, const Held& inside) {
    const Where before = here_;
    Where after = before;
    for (std::uint32_t i = 0; i < op.regions.count; ++i) {
      const std::uint32_t region = op.regions.first + i;
      if (!loops) here_ = before;  // the condition of a loop runs before its body
      walk(region);
      if (inside.multiplies)
        store(region, function_.regions[region].operations.size(), inside.first);
      after.in_tensor_memory &= here_.in_tensor_memory;
      after.in_registers &= here_.in_registers;
    }
    here_ = after;
  }

  void load(std::uint32_t region, std::size_t index, const TensorSum::Event* by) {
    if (here_.in_registers) return;
    move(Movement::load, whole(), region, index, by);
    here_.in_registers = true;
  }
  void store(std::uint32_t region, std::size_t index, const TensorSum::Event* by) {
    if (here_.in_tensor_memory) return;
    move(Movement::store, whole(), region, index, by);
    here_.in_tensor_memory = true;
  }

  void move(Movement what, TensorSum::Part part, std::uint32_t region, std::size_t index,
            const TensorSum::Event* by) {
    out_.push_back({&sum_, what, together_, false, part, region, index, by});
  }
  TensorSum::Part whole() const { return {0, sum_.columns / 8}; }

  bool is_uniform(const Operation& op) const {
    if (sum_.ctas == 2) return false;  // the other CTA may take another branch
    const ir::Operand& condition = Function::part(function_.operands, op.operands)[0];
    return f_.is_uniform({condition.id, condition.type});
  }
  int condition_of(const Operation& op) const {
    return Function::part(function_.operands, op.operands)[0].id;
  }

  struct Where {
    bool in_tensor_memory = true, in_registers = true;
  };

  const ir::FunctionBuilder& f_;
  const Function& function_;
  TensorSum& sum_;
  const std::function<bool(int)>& of_warps_;
  std::vector<TensorMovement>& out_;
  std::map<std::uint32_t, const TensorSum::Event*> events_;  // by the region of the mark
  std::map<std::uint32_t, Held> held_;
  Where here_;
  bool together_ = true;
};

}  // namespace

std::vector<TensorMovement> tensor_movements(const ir::FunctionBuilder& f, std::uint32_t region,
                                             const std::vector<std::shared_ptr<TensorSum>>& sums,
                                             const std::function<bool(int)>& of_warps) {
  std::vector<TensorMovement> out;
  for (const auto& each : sums)
    if (each->column) Residence(f, *each, of_warps, out).walk(region);
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
