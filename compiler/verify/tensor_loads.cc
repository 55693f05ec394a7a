// SPDX-License-Identifier: Apache-2.0
// tcgen05.ld: registers that are overwritten before tcgen05.wait::ld, which the load may do later
// (PTX ISA 9.0, 9.7.16.6.4.5: a read of them waits by itself); and narrow loads in a loop.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using isa::operator""_q;

class TensorLoadChecker {
 public:
  TensorLoadChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Label) {
        pending_.clear();
        labels_[statement.index] = narrow_.size();
      }
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  void instruction(const ptx::Instruction& at) {
    const isa::Spelling& spelling = context_.module.spelling(at);
    const auto operands = context_.module.operands_of(at);
    if (spelling.opcode == Opcode::bra && !operands.empty()) loop(operands.back().text);
    const bool loads =
        spelling.opcode == Opcode::tcgen05_ld || spelling.opcode == Opcode::tcgen05_ld_red;
    if (loads && (spelling.has("x1"_q) || spelling.has("x2"_q)) && spelling.has("32x32b"_q))
      narrow_.push_back(&at);
    if (spelling.opcode == Opcode::tcgen05_wait_ld) return pending_.clear();
    if (!pending_.empty() || loads) registers(at, operands, loads);
  }

  void registers(const ptx::Instruction& at, std::span<const ptx::Operand> operands, bool loads) {
    if (!at.guard.empty()) read(at.guard);
    const bool writes = !operands.empty() && operands[0].kind != ptx::OperandKind::Address;
    for (std::size_t i = writes ? 1 : 0; i < operands.size(); ++i) read(operands[i]);
    if (!writes) return;
    each_name(operands[0], [&](std::string_view name) {
      const auto found = pending_.find(name);
      if (found == pending_.end()) return;
      const ptx::Instruction& load = *found->second;
      if (reported_.insert(&load).second)
        context_.report(
            "tensor-memory"_rule, at.opcode,
            fmt::format("{} writes {} while {} of line {} may still load it: insert "
                        "tcgen05.wait::ld in between",
                        at.opcode, name, load.opcode, context_.module.source->line(load.offset)));
      pending_.erase(name);
    });
    if (loads && at.guard.empty())
      for (const ptx::Operand& operand : operands)
        if (operand.kind != ptx::OperandKind::Address)
          each_name(operand, [&](std::string_view name) { pending_[name] = &at; });
  }

  // A read waits for all that its load brings.
  void read(const ptx::Operand& operand) {
    each_name(operand, [&](std::string_view name) { read(name); });
  }
  void read(std::string_view name) {
    const auto found = pending_.find(name);
    if (found == pending_.end()) return;
    const ptx::Instruction* const load = found->second;
    std::erase_if(pending_, [&](const auto& each) { return each.second == load; });
  }

  template <typename Body>
  void each_name(const ptx::Operand& operand, Body&& body) {
    if (operand.kind == ptx::OperandKind::Name) body(operand.text);
    for (const ptx::Operand& child : context_.module.children(operand)) each_name(child, body);
  }

  void loop(std::string_view label) {
    const auto to = view_.scopes.label(label);
    const auto first = to ? labels_.find(*to) : labels_.end();
    if (first == labels_.end()) return;
    for (std::size_t i = first->second; i < narrow_.size(); ++i) {
      if (!noted_.insert(narrow_[i]).second) continue;
      context_.report("slow-instruction"_rule, narrow_[i]->opcode,
                      fmt::format("{} in a loop may be slow: load more columns at once, up to "
                                  ".x128, and wait once",
                                  narrow_[i]->opcode));
    }
  }

  Context& context_;
  const FunctionView& view_;
  NameMap<const ptx::Instruction*> pending_;  // by register: what loads it
  std::unordered_set<const ptx::Instruction*> reported_, noted_;
  std::unordered_map<std::uint32_t, std::size_t> labels_;  // how many narrow loads stand before
  std::vector<const ptx::Instruction*> narrow_;
};

}  // namespace

void check_tensor_loads(Context& context, const FunctionView& view) {
  TensorLoadChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
