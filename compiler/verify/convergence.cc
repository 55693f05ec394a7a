// SPDX-License-Identifier: Apache-2.0
// Warp-collective instructions that are control-dependent on a lane-varying condition. Only certain
// cases are reported: the condition follows from the lane number and constants, and differs between
// lanes of the block's first warp.
#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

bool leaves(const isa::Spelling& spelling) {
  const isa::Control control = spelling.row().control;
  return control == isa::Control::Returns || control == isa::Control::Exits;
}

class ConvergenceChecker {
 public:
  ConvergenceChecker(Context& context, const FunctionView& view,
                     std::unordered_set<const ptx::Instruction*>& reported)
      : context_(context), view_(view), reported_(reported) {}

  void run() {
    count_references();
    find_ends();
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Label) label(statement.index);
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  // A label, as index into Module::labels: blocks have their own labels.
  using Label = std::optional<std::uint32_t>;

  const isa::Spelling& spelling(const ptx::Instruction& instruction) const {
    return context_.module.spelling(instruction);
  }

  // The target of a branch, from its position.
  Label target(const ptx::Instruction& branch) const {
    if (branch.count != 1) return std::nullopt;
    return view_.scopes.label(context_.module.operands[branch.first].text);
  }

  void count_references() {
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Directive) {
        // .branchtargets name labels too: their labels count as joined.
        if (context_.module.directives[statement.index].name == ".branchtargets") tables_ = true;
      } else if (statement.kind == ptx::StatementKind::Instruction) {
        const ptx::Instruction& instruction = context_.module.instructions[statement.index];
        if (spelling(instruction).opcode != isa::Opcode::bra) continue;
        if (const Label to = target(instruction)) ++references_[*to];
      }
    }
  }

  // Labels that lead straight to the function's exit.
  void find_ends() {
    Label last;
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind == ptx::StatementKind::Label) last = statement.index;
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      if (last && leaves(spelling(context_.module.instructions[statement.index])))
        ends_.insert(*last);
      last.reset();
    }
  }

  // Between a branch that only some lanes take and the next label, only the other lanes execute.
  // After the branch's own label it is the reverse, if nothing else leads there.
  void label(std::uint32_t index) {
    seen_.insert(index);
    const bool own = branch_ && target_ == index;
    region_ = own && !falls_through_ && references_[index] == 1 && !tables_ ? branch_ : nullptr;
    if (own) leaves_ = ends_.contains(index);
    if (own || falls_through_) branch_ = nullptr;
    falls_through_ = true;
  }

  void instruction(const ptx::Instruction& instruction) {
    if (isa::needs_all_lanes(spelling(instruction))) {
      if (region_) in_region(instruction);
      else if (!instruction.guard.empty() && divergent(instruction.guard))
        report(instruction, instruction.guard, instruction);
    }
    if (spelling(instruction).opcode == isa::Opcode::bra && !instruction.guard.empty() &&
        instruction.count == 1 && !region_ && forward(instruction) &&
        divergent(instruction.guard)) {
      branch_ = region_ = &instruction;
      target_ = target(instruction);
      leaves_ = target_ && ends_.contains(*target_);
    }
    if (leaves(spelling(instruction)) && !instruction.guard.empty() && !region_ &&
        divergent(instruction.guard)) {
      region_ = &instruction;
      leaves_ = true;
    }
    falls_through_ = !ends_way(context_.module, instruction);
  }

  // Lanes that have exited the function are not missing at a barrier.
  void in_region(const ptx::Instruction& instruction) {
    const isa::Convergence needs = spelling(instruction).row().convergence;
    const bool barrier = needs == isa::Convergence::Cta || needs == isa::Convergence::Cluster;
    if (!barrier || !leaves_) report(instruction, region_->guard, *region_);
  }

  // Of loops hears check_divergent_loops().
  bool forward(const ptx::Instruction& branch) const {
    const Label to = target(branch);
    return !to || !seen_.contains(*to);
  }

  bool divergent(std::string_view guard) {
    const auto values = view_.definitions.lanes(guard);
    return values && differs(*values);
  }

  void report(const ptx::Instruction& instruction, std::string_view guard,
              const ptx::Instruction& at) {
    reported_.insert(&instruction);
    context_.report(
        "maybe-divergent"_rule, instruction.opcode,
        fmt::format(
            "{} must be executed by all lanes of the warp, but {} (line {}) is lane-varying",
            instruction.opcode, guard, context_.module.source->line(at.offset)));
  }

  Context& context_;
  const FunctionView& view_;
  std::unordered_set<const ptx::Instruction*>& reported_;
  std::unordered_map<std::uint32_t, int> references_;
  std::unordered_set<std::uint32_t> seen_, ends_;
  bool tables_ = false;  // brx.idx: any label may be a target
  const ptx::Instruction* region_ =
      nullptr;  // the branch whose condition holds for the following statements
  const ptx::Instruction* branch_ = nullptr;  // the last divergent branch, until its label
  Label target_;                              // of the last divergent branch
  bool leaves_ = false;                       // it leads straight out of the function
  bool falls_through_ = true;
};

}  // namespace

void check_convergence(Context& context, const FunctionView& view) {
  std::unordered_set<const ptx::Instruction*> reported;
  ConvergenceChecker(context, view, reported).run();
  check_divergent_loops(context, view, reported);
}

}  // namespace tartan::TARTAN_ABI::verify
