// SPDX-License-Identifier: Apache-2.0
// Registers of wgmma that are accessed between two fences, or while a product that uses them is in
// flight. Checked on the fall-through path, which continues across labels, and once more through
// each loop from its end, as the next iteration would run. A guarded fence or wait may not execute
// and is ignored; a call may do both.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Role;

class WarpgroupChecker {
 public:
  WarpgroupChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    find_products();
    if (of_products_.empty()) return;
    const auto& statements = view_.function.statements;
    again_left_ = 4 * statements.size();
    view_.scopes.restart();
    for (std::size_t i = 0; i < statements.size(); ++i) {
      view_.scopes.enter(statements[i]);
      if (statements[i].kind == ptx::StatementKind::Label)
        labels_[statements[i].index] = {i, state_.blocks.size()};
      else if (const auto head = loop_head(statements[i])) next_round(*head, i);
      step(statements[i]);
    }
  }

 private:
  // A pending product.
  struct Flight {
    const ptx::Instruction* by;
    std::int64_t group;
    bool accumulator;  // else a register of A, which may still be read
  };

  // The state at the current statement.
  struct State {
    bool fenced = false;  // some fence came before
    std::int64_t groups = 0;
    std::vector<std::vector<std::uint32_t>> blocks;  // the enclosing blocks: their registers
    NameMap<const ptx::Instruction*> touched;        // since the last fence
    NameMap<Flight> flights;
  };

  // The position of a label in the walk.
  struct LabelPosition {
    std::size_t statement;
    std::size_t blocks;  // around it
  };

  void step(const ptx::Statement& statement) {
    switch (statement.kind) {
      case ptx::StatementKind::Instruction:
        return instruction(context_.module.instructions[statement.index]);
      case ptx::StatementKind::Registers:
        if (state_.blocks.empty()) return;
        state_.blocks.back().push_back(statement.index);
        return hide(context_.module.registers[statement.index]);
      case ptx::StatementKind::BlockBegin: return void(state_.blocks.emplace_back());
      case ptx::StatementKind::BlockEnd: return leave_block();
      default: return;
    }
  }

  isa::Opcode opcode(const ptx::Instruction& instruction) const {
    return context_.module.spelling(instruction).opcode;
  }

  // Whether the first operand is written: neither an address nor a barrier's number.
  static bool writes_first(isa::Opcode opcode) {
    const auto rows = isa::signatures(opcode);
    return rows.empty() || rows[0].operands.size == 0 || rows[0].operands[0].written;
  }

  // The target of a backward branch.
  std::optional<LabelPosition> loop_head(const ptx::Statement& statement) const {
    if (statement.kind != ptx::StatementKind::Instruction) return std::nullopt;
    const ptx::Instruction& branch = context_.module.instructions[statement.index];
    if (opcode(branch) != isa::Opcode::bra || branch.count != 1) return std::nullopt;
    const auto to = view_.scopes.label(context_.module.operands[branch.first].text);
    const auto place = to ? labels_.find(*to) : labels_.end();
    return place == labels_.end() ? std::nullopt : std::optional(place->second);
  }

  // Walks from a loop's head to its end with the state of the last iteration, then restores the
  // walk.
  void next_round(const LabelPosition& head, std::size_t end) {
    if (end - head.statement > again_left_) return;  // deeply nested loops
    again_left_ -= end - head.statement;
    State before = state_;
    while (state_.blocks.size() > head.blocks) leave_block();
    for (std::size_t i = head.statement; i < end; ++i) step(view_.function.statements[i]);
    state_ = std::move(before);
  }

  void find_products() {
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::Instruction& instruction = context_.module.instructions[statement.index];
      if (opcode(instruction) != isa::Opcode::wgmma) continue;
      for (const ptx::Operand& operand : context_.module.operands_of(instruction))
        each_name(operand, [&](std::string_view name) { of_products_.insert(name); });
    }
  }

  // A block's registers differ from those of the same names outside.
  void leave_block() {
    if (state_.blocks.empty()) return;
    for (const std::uint32_t index : state_.blocks.back()) hide(context_.module.registers[index]);
    state_.blocks.pop_back();
  }

  void hide(const ptx::Registers& registers) {
    const auto erase = [&](std::string_view name) {
      state_.touched.erase(name);
      state_.flights.erase(name);
    };
    if (!registers.numbered) return erase(registers.name);
    constexpr std::uint32_t most = 1024;  // limit for registers declared by inline assembly
    for (std::uint32_t i = 0; i < std::min(registers.count, most); ++i)
      erase(fmt::format("{}{}", registers.name, i));
  }

  void forget() {
    state_.touched.clear();
    state_.flights.clear();
  }

  void instruction(const ptx::Instruction& instruction) {
    switch (opcode(instruction)) {
      case isa::Opcode::wgmma_fence:
        state_.fenced = true;
        if (instruction.guard.empty()) state_.touched.clear();
        return;
      case isa::Opcode::call: state_.fenced = true; return forget();
      case isa::Opcode::wgmma_commit_group: ++state_.groups; return;
      case isa::Opcode::wgmma_wait_group: return wait(instruction);
      case isa::Opcode::wgmma: return product(instruction);
      default: break;
    }
    ordinary(instruction);
    if (ends_way(context_.module, instruction)) forget();
  }

  void wait(const ptx::Instruction& instruction) {
    if (!instruction.guard.empty()) return;
    const auto operands = context_.module.operands_of(instruction);
    if (operands.size() != 1 || operands[0].kind != ptx::OperandKind::Integer) return forget();
    const auto pending = static_cast<std::int64_t>(operands[0].value);
    if (pending < 0) return;
    std::erase_if(state_.flights,
                  [&](const auto& each) { return each.second.group < state_.groups - pending; });
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
    const isa::Instruction* row = view_.readings.instruction(instruction);
    if (!row || !row->since.has(context_.target)) return;
    if (!state_.fenced && view_.function.entry)
      context_.report(
          "wgmma-fence"_rule, instruction.opcode,
          fmt::format("no wgmma.fence precedes {} in kernel {} (line {})", isa::spell(row->form),
                      view_.function.name, context_.module.source->line(view_.function.offset)));
    const auto operands = context_.module.operands_of(instruction);
    bool reported = !state_.fenced;
    state_.fenced = true;
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
        state_.touched.erase(name);
        state_.flights[name] = {&instruction, state_.groups, role == Role::d};
      });
    }
  }

  bool check_fence(const ptx::Instruction& instruction, std::string_view name) {
    const auto at = state_.touched.find(name);
    if (at == state_.touched.end()) return false;
    if (reported_.insert(&instruction).second)
      context_.report(
          "wgmma-fence"_rule, instruction.opcode,
          fmt::format("{} uses {}, which {} on line {} accessed{}: insert wgmma.fence in between",
                      instruction.opcode, name, at->second->opcode, line(*at->second),
                      round_of(*at->second, instruction)));
    return true;
  }

  // Accumulators of one product used as A of the next.
  bool check_chain(const ptx::Instruction& instruction, Role role, std::string_view name) {
    const auto at = state_.flights.find(name);
    if (role != Role::a || at == state_.flights.end() || !at->second.accumulator) return false;
    report_flight(instruction, name, at->second);
    return true;
  }

  void ordinary(const ptx::Instruction& instruction) {
    const auto operands = context_.module.operands_of(instruction);
    const bool writes = writes_first(opcode(instruction));
    for (std::size_t i = 0; i < operands.size(); ++i)
      each_name(operands[i], [&](std::string_view name) {
        if (!of_products_.contains(name)) return;
        state_.touched[name] = &instruction;
        if (state_.flights.empty()) return;
        const auto at = state_.flights.find(name);
        if (at == state_.flights.end() || !(at->second.accumulator || (i == 0 && writes))) return;
        const ptx::Instruction* by = at->second.by;
        report_flight(instruction, name, at->second);
        // Once for each product.
        std::erase_if(state_.flights, [&](const auto& each) { return each.second.by == by; });
      });
  }

  // An `earlier` instruction that follows in the text ran in the preceding iteration of a loop.
  static std::string_view round_of(const ptx::Instruction& earlier,
                                   const ptx::Instruction& instruction) {
    return earlier.offset < instruction.offset ? "" : " in the preceding iteration";
  }

  void report_flight(const ptx::Instruction& instruction, std::string_view name,
                     const Flight& flight) {
    if (!reported_.insert(&instruction).second) return;
    context_.report(
        "wgmma-wait"_rule, instruction.opcode,
        fmt::format("{} accesses {} while wgmma.mma_async of line {}{} {}: insert {} in between",
                    instruction.opcode, name, line(*flight.by), round_of(*flight.by, instruction),
                    flight.accumulator ? "accumulates into it" : "reads it as A",
                    flight.group == state_.groups ? "wgmma.commit_group and wgmma.wait_group"
                                                  : "wgmma.wait_group"));
  }

  Context& context_;
  const FunctionView& view_;
  State state_;
  std::unordered_map<std::uint32_t, LabelPosition> labels_;  // by index into Module::labels
  NameSet of_products_;         // operands of products: no other register matters
  std::size_t again_left_ = 0;  // budget of statements for next iterations
  std::unordered_set<const ptx::Instruction*> reported_;
};

}  // namespace

void check_warpgroups(Context& context, const FunctionView& view) {
  WarpgroupChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
