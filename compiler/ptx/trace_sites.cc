// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/trace_sites.h"

#include "tartan/isa/qualifier.h"

namespace tartan::TARTAN_ABI::ptx {
namespace {

using isa::Opcode;
using isa::Timed;
using isa::operator""_q;

// Of those that share records, without a guard: one of its lanes might not see the first.
bool may_share(const TraceSite& site) {
  return (site.kind == Timed::CopyAsync || site.kind == Timed::Multiplies) &&
         site.instruction->guard.empty();
}

void add_sites(const Module& module, const Function& function, std::vector<TraceSite>& sites) {
  bool same_block = false;  // as the site before
  for (const Statement& each : function.statements) {
    if (each.kind == StatementKind::Label) same_block = false;
    if (each.kind != StatementKind::Instruction) continue;
    const Instruction& instruction = module.instructions[each.index];
    const isa::Spelling& spelling = module.spelling(instruction);
    if (spelling.row().control != isa::Control::FallsThrough) same_block = false;
    TraceSite site{.instruction = &instruction,
                   .kind = isa::timed_as(spelling.opcode),
                   .group = isa::group_of(spelling.opcode).kind};
    if (site.kind == Timed::No) continue;
    if (same_block && may_share(site) && may_share(sites.back()) &&
        module.spelling(*sites.back().instruction).opcode == spelling.opcode) {
      site.first = false;
      sites.back().last = false;
    }
    sites.push_back(site);
    same_block = true;
  }
}

}  // namespace

std::vector<TraceSite> trace_sites(const Module& module) {
  std::vector<TraceSite> sites;
  for (const Item& item : module.items) {
    if (item.kind != ItemKind::Function) continue;
    const Function& function = module.functions[item.index];
    if (function.entry && function.body) add_sites(module, function, sites);
  }
  return sites;
}

bool waits_there(const Module& module, const Instruction& instruction) {
  const isa::Spelling& spelling = module.spelling(instruction);
  const bool barrier = spelling.opcode == Opcode::bar || spelling.opcode == Opcode::barrier;
  return barrier && !spelling.has("arrive"_q);
}

bool has_end(const Module& module, const TraceSite& site) {
  switch (site.kind) {
    case Timed::CopyAsync:
    case Timed::Multiplies:
    case Timed::Waits:
    case Timed::WaitsAtMbarrier:
    case Timed::WaitsForCluster:
    case Timed::WaitsForRegisters: return true;
    case Timed::Arrives: return waits_there(module, *site.instruction);
    case Timed::No:
    case Timed::Bulk:
    case Timed::Wgmma:
    case Timed::Commits: break;
  }
  return false;
}

const Operand* barrier_of(const Module& module, const Instruction& instruction) {
  const isa::Spelling& spelling = module.spelling(instruction);
  const auto operands = module.operands_of(instruction);
  switch (isa::timed_as(spelling.opcode)) {
    case Timed::Arrives:
      if (spelling.opcode == Opcode::barrier_cluster_arrive) return nullptr;
      if (spelling.opcode == Opcode::bar || spelling.opcode == Opcode::barrier) {
        const std::size_t at = spelling.has("red"_q) ? 1 : 0;  // behind the result
        return at < operands.size() ? &operands[at] : nullptr;
      }
      [[fallthrough]];
    case Timed::WaitsAtMbarrier:
      for (const Operand& each : operands)
        if (each.kind == OperandKind::Address) return &each;
      return nullptr;
    case Timed::Bulk: {
      const Operand* last = nullptr;
      for (const Operand& each : operands)
        if (each.kind == OperandKind::Address) last = &each;
      return spelling.has("mbarrier::complete_tx::bytes"_q) ? last : nullptr;
    }
    default: return nullptr;
  }
}

}  // namespace tartan::TARTAN_ABI::ptx
