// SPDX-License-Identifier: Apache-2.0
#include "runtime/equal_paths.h"

#include <fmt/format.h>

#include <algorithm>

#include "tartan/ptx/parser.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using emulator::Decision;

std::vector<std::string_view> predicates_of(const ptx::Module& module,
                                            const ptx::Instruction& comparison) {
  std::vector<std::string_view> out;
  const ptx::Operand& to = module.operands_of(comparison).front();
  if (to.kind != ptx::OperandKind::Pair) return {to.text};
  for (const ptx::Operand& each : module.children(to)) out.push_back(each.text);
  return out;
}

// The first instruction behind a comparison that its predicate steers: "the branch on line 12".
std::string user_of(const ptx::Module& module, std::size_t comparison) {
  const auto names = predicates_of(module, module.instructions[comparison]);
  const auto is_one = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (std::size_t i = comparison + 1; i < module.instructions.size(); ++i) {
    const ptx::Instruction& each = module.instructions[i];
    const auto operands = module.operands_of(each);
    const bool guarded = !each.guard.empty() && is_one(each.guard);
    const bool takes = std::ranges::any_of(
        operands, [&](const ptx::Operand& operand) { return is_one(operand.text); });
    if (!guarded && !takes) continue;
    const isa::Opcode opcode = module.spelling(each).opcode;
    if (!guarded && opcode == isa::Opcode::setp) break;
    const std::string what(opcode == isa::Opcode::bra ? "branch" : each.opcode);
    return fmt::format(", which decides the {} on line {}", what, module.source->line(each.offset));
  }
  return {};
}

std::string user_of(const Source& source, int line, const std::string& instruction) {
  Diags ignored;
  const ptx::Module module =
      ptx::parse(std::make_shared<Source>(source.name(), std::string(source.text())), ignored);
  for (std::size_t i = 0; i < module.instructions.size(); ++i) {
    const ptx::Instruction& each = module.instructions[i];
    if (each.opcode == instruction && module.source->line(each.offset) == line && each.count)
      return user_of(module, i);
  }
  return {};
}

std::string text_of(const Source& ptx, int line, const std::string& instruction, bool first) {
  const std::string place = fmt::format("{} on line {}", instruction, line);
  if (instruction.starts_with("setp"))
    return fmt::format("{} {} held{}", place, first ? "always" : "never",
                       user_of(ptx, line, instruction));
  const bool chooses = instruction.starts_with("min") || instruction.starts_with("max") ||
                       instruction.starts_with("slct") || instruction.starts_with("atom") ||
                       instruction.starts_with("red");
  if (!chooses) return fmt::format("{} {} clamped its result", place, first ? "never" : "always");
  return fmt::format("{} always took its {} operand", place, first ? "first" : "other");
}

}  // namespace

void TakenPaths::add(const EqualRun& run, const Source& ptx) {
  for (const auto& [place, decision] : run.algebra->decisions()) {
    Choice& choice = choices_[{ptx.name(), decision.line, decision.instruction}];
    choice.ptx = &ptx;
    choice.sides |= decision.sides;
  }
}

std::vector<EqualPath> TakenPaths::one_way() const {
  std::vector<EqualPath> out;
  for (const auto& [key, choice] : choices_) {
    if (choice.sides == (Decision::first | Decision::other)) continue;
    const auto& [name, line, instruction] = key;
    out.push_back(
        {name, line, text_of(*choice.ptx, line, instruction, choice.sides == Decision::first)});
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
