// SPDX-License-Identifier: Apache-2.0
// Registers of wgmma: touched between two fences, or while a product that uses them is in flight.
// On the way through the text that takes no branch, so that no label that it falls through to ends
// it: what a loop's next round does with the products of the last one is not seen. A guarded fence
// or wait may not happen and counts for nothing; a call may do both.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

using isa::Role;

class WarpgroupChecker {
 public:
  WarpgroupChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    if (!has_products()) return;
    for (const ptx::Statement& statement : view_.function.statements) {
      switch (statement.kind) {
        case ptx::StatementKind::Instruction:
          instruction(context_.module.instructions[statement.index]);
          break;
        case ptx::StatementKind::Registers:
          if (blocks_.empty()) break;
          blocks_.back().push_back(statement.index);
          hide(context_.module.registers[statement.index]);
          break;
        case ptx::StatementKind::BlockBegin: blocks_.emplace_back(); break;
        case ptx::StatementKind::BlockEnd: leave_block(); break;
        default: break;
      }
    }
  }

 private:
  // A product that has not been waited for.
  struct Flight {
    const ptx::Instruction* by;
    std::int64_t group;
    bool accumulator;  // else a register of A: it may still be read
  };

  bool has_products() const {
    for (const ptx::Statement& statement : view_.function.statements)
      if (statement.kind == ptx::StatementKind::Instruction &&
          context_.module.instructions[statement.index].opcode.starts_with("wgmma.mma_async"))
        return true;
    return false;
  }

  // A block's registers are others than those of the same names outside.
  void leave_block() {
    if (blocks_.empty()) return;
    for (const std::uint32_t index : blocks_.back()) hide(context_.module.registers[index]);
    blocks_.pop_back();
  }

  void hide(const ptx::Registers& registers) {
    const auto erase = [&](std::string_view name) {
      touched_.erase(name);
      flights_.erase(name);
    };
    if (!registers.numbered) return erase(registers.name);
    constexpr std::uint32_t most = 1024;  // of what inline assembly declares
    for (std::uint32_t i = 0; i < std::min(registers.count, most); ++i)
      erase(fmt::format("{}{}", registers.name, i));
  }

  void forget() {
    touched_.clear();
    flights_.clear();
  }

  void instruction(const ptx::Instruction& instruction) {
    const std::string_view opcode = instruction.opcode;
    if (opcode.starts_with("wgmma.fence")) {
      fenced_ = true;
      if (instruction.guard.empty()) touched_.clear();
      return;
    }
    if (opcode.starts_with("call")) {
      fenced_ = true;
      return forget();
    }
    if (opcode.starts_with("wgmma.commit_group")) return void(++groups_);
    if (opcode.starts_with("wgmma.wait_group")) return wait(instruction);
    if (opcode.starts_with("wgmma.mma_async")) return product(instruction);
    ordinary(instruction);
    if (ends_way(instruction)) forget();
  }

  void wait(const ptx::Instruction& instruction) {
    if (!instruction.guard.empty()) return;
    const auto operands = context_.module.operands_of(instruction);
    if (operands.size() != 1 || operands[0].kind != ptx::OperandKind::Integer) return forget();
    const auto pending = static_cast<std::int64_t>(operands[0].value);
    if (pending < 0) return;
    std::erase_if(flights_,
                  [&](const auto& each) { return each.second.group < groups_ - pending; });
  }

  template <typename Body>
  void each_name(const ptx::Operand& operand, Body&& body) const {
    if (operand.kind == ptx::OperandKind::Name) body(operand.text);
    for (const ptx::Operand& child : context_.module.children(operand)) each_name(child, body);
  }

  int line(const ptx::Instruction& instruction) const {
    return context_.module.source->line(instruction.offset);
  }

  void product(const ptx::Instruction& instruction) {
    const isa::Instruction* row = view_.readings.instruction(context_.module, instruction);
    if (!row || !row->since.has(context_.target)) return;
    if (!fenced_ && view_.function.entry)
      context_.report("wgmma-fence"_rule, instruction.opcode,
                      fmt::format("no wgmma.fence stands before {} in kernel {} (line {})",
                                  isa::spell(row->form), view_.function.name,
                                  context_.module.source->line(view_.function.offset)));
    const auto operands = context_.module.operands_of(instruction);
    bool reported = !fenced_;
    fenced_ = true;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Role role = row->operands[i].role;
      if (role != Role::d && role != Role::a) continue;
      each_name(operands[i], [&](std::string_view name) {
        if (!reported)
          reported = check_fence(instruction, name) || check_chain(instruction, role, name);
      });
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Role role = row->operands[i].role;
      if (role != Role::d && role != Role::a) continue;
      each_name(operands[i], [&](std::string_view name) {
        touched_.erase(name);
        flights_[name] = {&instruction, groups_, role == Role::d};
      });
    }
  }

  bool check_fence(const ptx::Instruction& instruction, std::string_view name) {
    const auto at = touched_.find(name);
    if (at == touched_.end()) return false;
    context_.report("wgmma-fence"_rule, instruction.opcode,
                    fmt::format("{} uses {}, which {} on line {} touched: wgmma.fence is missing "
                                "in between",
                                instruction.opcode, name, at->second->opcode, line(*at->second)));
    return true;
  }

  // Accumulators of one product as the A of the next.
  bool check_chain(const ptx::Instruction& instruction, Role role, std::string_view name) {
    const auto at = flights_.find(name);
    if (role != Role::a || at == flights_.end() || !at->second.accumulator) return false;
    report_flight(instruction, name, at->second);
    return true;
  }

  void ordinary(const ptx::Instruction& instruction) {
    const auto operands = context_.module.operands_of(instruction);
    const std::string_view opcode = instruction.opcode;
    const bool writes =
        !opcode.starts_with("st") && !opcode.starts_with("red.") && !opcode.starts_with("bar");
    for (std::size_t i = 0; i < operands.size(); ++i)
      each_name(operands[i], [&](std::string_view name) {
        touched_[name] = &instruction;
        if (flights_.empty()) return;
        const auto at = flights_.find(name);
        if (at == flights_.end() || !(at->second.accumulator || (i == 0 && writes))) return;
        const ptx::Instruction* by = at->second.by;
        report_flight(instruction, name, at->second);
        // Once for each product.
        std::erase_if(flights_, [&](const auto& each) { return each.second.by == by; });
      });
  }

  void report_flight(const ptx::Instruction& instruction, std::string_view name,
                     const Flight& flight) {
    context_.report(
        "wgmma-wait"_rule, instruction.opcode,
        fmt::format("{} touches {} while wgmma.mma_async of line {} {}: {} in between",
                    instruction.opcode, name, line(*flight.by),
                    flight.accumulator ? "accumulates into it" : "reads it as A",
                    flight.group == groups_ ? "no wgmma.commit_group and wgmma.wait_group stand"
                                            : "no wgmma.wait_group stands"));
  }

  Context& context_;
  const FunctionView& view_;
  bool fenced_ = false;  // a fence stood anywhere before
  std::int64_t groups_ = 0;
  std::vector<std::vector<std::uint32_t>> blocks_;  // around this statement: their registers
  std::unordered_map<std::string_view, const ptx::Instruction*> touched_;  // since the last fence
  std::unordered_map<std::string_view, Flight> flights_;
};

}  // namespace

void check_warpgroups(Context& context, const FunctionView& view) {
  WarpgroupChecker(context, view).run();
}

}  // namespace tartan::verify
