// SPDX-License-Identifier: Apache-2.0
// tcgen05 works on one CTA or on a pair of CTAs: all instructions of a kernel use the same choice
// (PTX ISA 9.0, 9.7.16.5).
#include <fmt/format.h>

#include <unordered_map>

#include "compiler/ptx/call_graph.h"
#include "compiler/verify/pass.h"
#include "tartan/isa/qualifier.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::operator""_q;

/// The first instruction with .cta_group::1, and the first with ::2; null if none.
struct Groups {
  const ptx::Instruction* of[2] = {};

  bool both() const { return of[0] && of[1]; }
  void add(const Groups& other) {
    for (int i = 0; i < 2; ++i)
      if (!of[i]) of[i] = other.of[i];
  }
};

Groups groups_of(const ptx::Module& module, const ptx::Function& function) {
  Groups groups;
  for (const ptx::Statement& statement : function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = module.instructions[statement.index];
    const isa::Spelling& spelling = module.spelling(instruction);
    if (!isa::is_tensor_memory(spelling.opcode)) continue;
    if (!groups.of[0] && spelling.has("cta_group::1"_q)) groups.of[0] = &instruction;
    if (!groups.of[1] && spelling.has("cta_group::2"_q)) groups.of[1] = &instruction;
  }
  return groups;
}

/// The groups of a function and of all that it may call.
class GroupsOfCalls {
 public:
  explicit GroupsOfCalls(const ptx::Module& module) : reach_(module, true) {
    for (const ptx::Function& function : module.functions)
      all_.add(own_[&function] = groups_of(module, function));
  }

  bool needed() const { return all_.both(); }

  Groups from(const ptx::Function& start) {
    Groups groups;
    for (const ptx::Function* function : reach_.from(start)) groups.add(own_.at(function));
    return groups;
  }

 private:
  ptx::Reach reach_;
  std::unordered_map<const ptx::Function*, Groups> own_;
  Groups all_;
};

}  // namespace

void check_tensor_memory_groups(Context& context) {
  const ptx::Module& module = context.module;
  GroupsOfCalls reach(module);
  if (!reach.needed()) return;
  std::unordered_set<const ptx::Instruction*> reported;
  for (const ptx::Function& function : module.functions) {
    if (!function.body) continue;
    const Groups groups = function.entry ? reach.from(function) : groups_of(module, function);
    if (!groups.both()) continue;
    const bool ordered =
        module.offset_of(groups.of[0]->opcode) < module.offset_of(groups.of[1]->opcode);
    const ptx::Instruction& first = *groups.of[ordered ? 0 : 1];
    const ptx::Instruction& second = *groups.of[ordered ? 1 : 0];
    if (!reported.insert(&second).second) continue;
    context.report("cta-group"_rule, second.opcode,
                   fmt::format("{}: expected .cta_group::{}, as on line {}: all tcgen05 "
                               "instructions of {} {} must use the same group",
                               second.opcode, ordered ? 1 : 2,
                               module.source->line(module.offset_of(first.opcode)),
                               function.entry ? "kernel" : "function", function.name));
  }
}

}  // namespace tartan::TARTAN_ABI::verify
