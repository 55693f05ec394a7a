// SPDX-License-Identifier: Apache-2.0
// Stores of the low bits of a floating-point number. The manual truncates (PTX ISA 9.0, 9.4.1,
// tables of operands that exceed the instruction's type); ptxas of CUDA 13.0 converts the number to
// an integer instead, if an instruction of floating-point numbers is what wrote the register.
// Behind a mov of a bit type, it truncates. Where several instructions may have written the
// register, one of floating-point numbers is enough.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;

// The number's type, if the instruction writes one floating-point number to each of its registers.
// Halves that matrix instructions write come in pairs.
Type number_written(const Context& context, const FunctionView& view, const ptx::Instruction& by) {
  const Type type = context.module.spelling(by).type();
  const bool pairs = bits(type) < 32 && view.readings.instruction(by);
  return (type == f16 || type == bf16 || type == f32 || type == f64) && !pairs ? type : Type::none;
}

class NarrowStores {
 public:
  NarrowStores(Context& context, const FunctionView& view)
      : context_(context), module_(context.module), view_(view) {}

  void run() {
    const auto& statements = view_.function.statements;
    for (std::size_t i = 0; i < statements.size(); ++i)
      if (const ptx::Instruction* each = instruction(i);
          each && module_.spelling(*each).opcode == Opcode::st && !refused(*each))
        check(*each, i);
  }

 private:
  void check(const ptx::Instruction& store, std::size_t at) {
    const isa::Spelling& spelling = module_.spelling(store);
    const Type stored = spelling.type();
    const auto operands = module_.operands_of(store);
    if (info(stored).floating || bits(stored) > 32 || operands.size() < 2 ||
        operands[1].kind != ptx::OperandKind::Name)
      return;
    const std::string_view name = operands[1].text;
    const ptx::Instruction* by = view_.definitions.of(name);
    if (by && !writes_wider(*by, stored)) return;
    if (!by) by = reaching(name, stored, at);
    if (!by) return;
    const Type number = number_written(context_, view_, *by);
    context_.report(
        "narrow-store"_rule, name,
        fmt::format("{} stores the low {} bits of {}, which {} on line {} wrote as {}: NVIDIA's "
                    "assembler may store the number converted to an integer; insert mov.b{} and "
                    "store its result",
                    spelling.text, bits(stored), name, by->opcode, module_.source->line(by->offset),
                    tartan::name(number), bits(number)));
  }

  // Such a store has its error already.
  bool refused(const ptx::Instruction& store) const {
    return std::ranges::find(view_.refused, &store) != view_.refused.end();
  }

  const ptx::Instruction* instruction(std::size_t at) const {
    const ptx::Statement& statement = view_.function.statements[at];
    return statement.kind == ptx::StatementKind::Instruction
               ? &module_.instructions[statement.index]
               : nullptr;
  }

  bool writes_wider(const ptx::Instruction& by, Type stored) const {
    return bits(number_written(context_, view_, by)) > bits(stored);
  }

  bool writes(const ptx::Instruction& by, std::string_view name) const {
    const auto operands = module_.operands_of(by);
    const auto rows = isa::signatures(module_.spelling(by).opcode);
    const bool writes_first =
        !rows.empty() && rows[0].operands.size > 0 && rows[0].operands[0].written;
    if (operands.empty() || !writes_first || operands[0].kind == ptx::OperandKind::Address)
      return false;
    return operands[0].text == name ||
           std::ranges::any_of(module_.children(operands[0]),
                               [&](const ptx::Operand& each) { return each.text == name; });
  }

  // Of the instructions that may have written the register before this statement, one that writes a
  // wider number; null if none does. Follows the ways back, each to the writer that ends it.
  const ptx::Instruction* reaching(std::string_view name, Type stored, std::size_t at) {
    if (!is_number(name)) return nullptr;
    std::vector<bool> seen(view_.function.statements.size());
    std::vector<std::size_t> left;
    add_before(at, left);
    while (!left.empty()) {
      const std::size_t now = left.back();
      left.pop_back();
      if (seen[now]) continue;
      seen[now] = true;
      const ptx::Instruction* const by = instruction(now);
      const bool written = by && writes(*by, name);
      if (written && writes_wider(*by, stored)) return by;
      if (!written || !by->guard.empty()) add_before(now, left);
    }
    return nullptr;
  }

  // The statements that may precede this one; the one in front of it last.
  void add_before(std::size_t at, std::vector<std::size_t>& out) {
    const ptx::Statement& statement = view_.function.statements[at];
    if (statement.kind == ptx::StatementKind::Label) {
      collect();
      const auto found = branches_.find(statement.index);
      if (found != branches_.end())
        out.insert(out.end(), found->second.begin(), found->second.end());
      out.insert(out.end(), tables_.begin(), tables_.end());
    }
    if (at == 0) return;
    const ptx::Instruction* const before = instruction(at - 1);
    if (!before || !ends_way(module_, *before)) out.push_back(at - 1);
  }

  // Whether some instruction writes a floating-point number to the register.
  bool is_number(std::string_view name) {
    collect();
    return numbers_.contains(name);
  }

  // What a few stores need: once for a function.
  void collect() {
    if (collected_) return;
    collected_ = true;
    view_.scopes.restart();
    for (std::size_t i = 0; i < view_.function.statements.size(); ++i) {
      view_.scopes.enter(view_.function.statements[i]);
      const ptx::Instruction* const each = instruction(i);
      if (!each || each->count == 0) continue;
      const Opcode opcode = module_.spelling(*each).opcode;
      const auto operands = module_.operands_of(*each);
      if (opcode == Opcode::brx_idx) tables_.push_back(i);
      if (const auto to =
              opcode == Opcode::bra ? view_.scopes.label(operands[0].text) : std::nullopt)
        branches_[*to].push_back(i);
      if (number_written(context_, view_, *each) == Type::none) continue;
      numbers_.insert(operands[0].text);
      for (const ptx::Operand& child : module_.children(operands[0])) numbers_.insert(child.text);
    }
  }

  Context& context_;
  const ptx::Module& module_;
  const FunctionView& view_;
  bool collected_ = false;
  NameSet numbers_;  // registers to which one is written
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> branches_;  // to a label
  std::vector<std::size_t> tables_;                                       // branches to any label
};

}  // namespace

void check_narrow_stores(Context& context, const FunctionView& view) {
  NarrowStores(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
