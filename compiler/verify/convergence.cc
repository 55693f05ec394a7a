// SPDX-License-Identifier: Apache-2.0
// Instructions that all lanes of a warp must execute together, behind a condition that differs
// between lanes. Only what is certain is reported: the condition follows from the lane number and
// constants, and differs in the block's first warp.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

bool unconditional_end(const ptx::Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  return instruction.guard.empty() && (opcode.starts_with("bra") || opcode == "ret" ||
                                       opcode == "ret.uni" || opcode == "exit" || opcode == "trap");
}

class ConvergenceChecker {
 public:
  ConvergenceChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    count_references();
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind == ptx::StatementKind::Label)
        label(context_.module.labels[statement.index].name);
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  void count_references() {
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind == ptx::StatementKind::Directive) {
        // .branchtargets name labels too: their labels count as joined.
        if (context_.module.directives[statement.index].name == ".branchtargets") tables_ = true;
      } else if (statement.kind == ptx::StatementKind::Instruction) {
        const ptx::Instruction& instruction = context_.module.instructions[statement.index];
        if (!instruction.opcode.starts_with("bra") || instruction.count != 1) continue;
        ++references_[context_.module.operands[instruction.first].text];
      }
    }
    // Labels that lead straight out of the function.
    std::string_view last;
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind == ptx::StatementKind::Label)
        last = context_.module.labels[statement.index].name;
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const std::string_view opcode = context_.module.instructions[statement.index].opcode;
      if (!last.empty() && (opcode.starts_with("ret") || opcode.starts_with("exit")))
        ends_.insert(last);
      last = {};
    }
  }

  // What stands between a branch that only some lanes take and the next label, only the others
  // execute. Behind the branch's own label it is the other way round, if nothing else leads there.
  void label(std::string_view name) {
    seen_.insert(name);
    const bool only_way = !falls_through_ && references_[name] == 1 && !tables_;
    if (branch_ && only_way && context_.module.operands[branch_->first].text == name) {
      region_ = branch_;
      branch_ = nullptr;
    } else {
      region_ = nullptr;
      if (!branch_ || context_.module.operands[branch_->first].text == name || falls_through_)
        branch_ = nullptr;
    }
    falls_through_ = true;
  }

  void instruction(const ptx::Instruction& instruction) {
    if (collective(instruction)) {
      if (region_) in_region(instruction);
      else if (!instruction.guard.empty() && divergent(instruction.guard))
        report(instruction, instruction.guard, instruction);
    }
    if (instruction.opcode.starts_with("bra") && !instruction.guard.empty() &&
        instruction.count == 1 && !region_ && forward(instruction) && divergent(instruction.guard))
      branch_ = region_ = &instruction;
    falls_through_ = !unconditional_end(instruction);
  }

  // Lanes that left the function are not missing at a barrier.
  void in_region(const ptx::Instruction& instruction) {
    const bool barrier = instruction.opcode.starts_with("bar");
    if (!barrier || !ends_.contains(context_.module.operands[region_->first].text))
      report(instruction, region_->guard, *region_);
  }

  // Behind a branch back, all lanes come out of the loop.
  bool forward(const ptx::Instruction& branch) const {
    return !seen_.contains(context_.module.operands[branch.first].text);
  }

  bool divergent(std::string_view guard) {
    const auto values = view_.definitions.lanes(guard);
    return values && differs(*values);
  }

  bool collective(const ptx::Instruction& instruction) const {
    const std::string_view opcode = instruction.opcode;
    if (opcode.starts_with("bar.sync") || opcode.starts_with("bar.red") ||
        opcode.starts_with("bar.arrive") || opcode.starts_with("barrier.sync.aligned") ||
        opcode.starts_with("wgmma.") || opcode.starts_with("setmaxnreg."))
      return true;
    if (opcode.starts_with("barrier.cluster.")) return opcode.ends_with(".aligned");
    return isa::matrix_opcode(opcode) != isa::Opcode::none;
  }

  void report(const ptx::Instruction& instruction, std::string_view guard,
              const ptx::Instruction& at) {
    context_.report(
        "maybe-divergent"_rule, instruction.opcode,
        fmt::format("{} needs all lanes of a warp, but {} (line {}) differs between them",
                    instruction.opcode, guard, context_.module.source->line(at.offset)));
  }

  Context& context_;
  const FunctionView& view_;
  std::unordered_map<std::string_view, int> references_;
  std::unordered_set<std::string_view> seen_, ends_;
  bool tables_ = false;                       // brx.idx: any label may be a target
  const ptx::Instruction* region_ = nullptr;  // the branch whose condition holds for what comes now
  const ptx::Instruction* branch_ = nullptr;  // the last divergent branch, until its label
  bool falls_through_ = true;
};

}  // namespace

void check_convergence(Context& context, const FunctionView& view) {
  ConvergenceChecker(context, view).run();
}

}  // namespace tartan::verify
