// SPDX-License-Identifier: Apache-2.0
// Which registers may be read before they are written: a definite-assignment analysis of the ops.
// What a guard decides assigns nothing. Functions begin with nothing assigned.
#include <algorithm>
#include <map>
#include <vector>

#include "runtime/emulator/definedness/definedness.h"
#include "runtime/emulator/definedness/register_shadow.h"
#include "tartan/isa/spelling.h"
#include "tartan/ptx/tree.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

using isa::Opcode;

class Assignment {
 public:
  Assignment(const Program& program, const ptx::Module& module)
      : program_(program), module_(module) {
    for (const RegisterUse& use : program.registers.uses)
      if (!use.constant) index_.try_emplace(use.slot, index_.size());
    words_ = (index_.size() + 63) / 64;
  }

  std::vector<UnwrittenRegister> unwritten() {
    find_blocks();
    solve();
    std::vector<bool> found(index_.size());
    std::map<std::uint32_t, UnwrittenRegister> out;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      Set assigned = blocks_[b].in;
      run(b, assigned, [&](const RegisterUse& use) {
        UnwrittenRegister& found =
            out.try_emplace(use.slot, UnwrittenRegister{.used = 1}).first->second;
        found = {use.slot, static_cast<std::uint32_t>(register_bits(use.type)),
                 std::max(found.used, static_cast<std::uint32_t>(std::max(bits(use.type), 1)))};
      });
    }
    std::vector<UnwrittenRegister> list;
    for (const auto& [slot, found] : out) list.push_back(found);
    return list;
  }

 private:
  using Set = std::vector<std::uint64_t>;
  struct Block {
    std::uint32_t first = 0, last = 0;  // ops
    std::vector<std::uint32_t> next;
    Set in;
    bool reached = false;
  };

  Opcode opcode_at(std::uint32_t op) const {
    const InstructionOps* at = program_.registers.at(op);
    return at ? module_.spelling(module_.instructions[at->instruction]).opcode : Opcode::none;
  }

  // The ops that may follow: false where the next one does not.
  bool leads_on(std::uint32_t op, std::vector<std::uint32_t>& targets) const {
    const Op& at = program_.ops[op];
    const Opcode opcode = opcode_at(op);
    const bool guarded = at.guard != always_slot;
    if (opcode == Opcode::bra) targets.push_back(static_cast<std::uint32_t>(at.value));
    if (opcode == Opcode::brx_idx)
      for (std::uint64_t i = 0; i < at.value; ++i) targets.push_back(program_.slots[at.list + i]);
    switch (opcode) {
      case Opcode::bra:
      case Opcode::brx_idx:
      case Opcode::ret:
      case Opcode::exit:
      case Opcode::trap: return guarded;
      default: return true;
    }
  }

  void find_blocks() {
    const auto count = static_cast<std::uint32_t>(program_.ops.size());
    std::vector<bool> leads(count + 1);
    std::vector<std::uint32_t> targets;
    leads[0] = leads[program_.entry] = true;
    for (std::uint32_t op = 0; op < count; ++op) {
      targets.clear();
      const bool on = leads_on(op, targets);
      for (const std::uint32_t to : targets) leads[std::min(to, count)] = true;
      if (!on || !targets.empty()) leads[op + 1] = true;
    }
    std::vector<std::uint32_t> block_of(count + 1, 0);
    for (std::uint32_t op = 0; op < count; ++op) {
      if (leads[op]) blocks_.push_back({.first = op});
      blocks_.back().last = op;
      block_of[op] = static_cast<std::uint32_t>(blocks_.size() - 1);
    }
    for (Block& block : blocks_) {
      targets.clear();
      const bool on = leads_on(block.last, targets);
      for (const std::uint32_t to : targets)
        if (to < count) block.next.push_back(block_of[to]);
      if (on && block.last + 1 < count) block.next.push_back(block_of[block.last + 1]);
    }
  }

  // Those to whom nothing leads are the starts of functions.
  void solve() {
    std::vector<std::uint32_t> work;
    std::vector<bool> led(blocks_.size());
    for (const Block& block : blocks_)
      for (const std::uint32_t next : block.next) led[next] = true;
    for (std::uint32_t b = 0; b < blocks_.size(); ++b)
      if (!led[b] || blocks_[b].first == program_.entry) {
        blocks_[b].reached = true;
        blocks_[b].in.assign(words_, 0);
        work.push_back(b);
      }
    while (!work.empty()) {
      const std::uint32_t b = work.back();
      work.pop_back();
      Set out = blocks_[b].in;
      run(b, out, [](const RegisterUse&) {});
      for (const std::uint32_t next : blocks_[b].next)
        if (meet(blocks_[next], out)) work.push_back(next);
    }
    for (Block& block : blocks_)
      if (!block.reached) block.in.assign(words_, ~std::uint64_t{0});
  }

  static bool meet(Block& block, const Set& with) {
    if (!block.reached) {
      block.reached = true;
      block.in = with;
      return true;
    }
    bool changed = false;
    for (std::size_t i = 0; i < with.size(); ++i) {
      const std::uint64_t both = block.in[i] & with[i];
      changed |= both != block.in[i];
      block.in[i] = both;
    }
    return changed;
  }

  template <typename Unassigned>
  void run(std::size_t b, Set& assigned, Unassigned&& unassigned) const {
    const OpRegisters& table = program_.registers;
    for (std::uint32_t op = blocks_[b].first; op <= blocks_[b].last; ++op) {
      const InstructionOps* now = table.starting_at(op);
      if (!now) continue;
      for (const RegisterUse& use : table.uses_of(*now)) {
        if (!use.reads || use.constant) continue;
        const std::size_t i = index_.at(use.slot);
        if (!(assigned[i / 64] >> i % 64 & 1)) unassigned(use);
      }
      if (program_.ops[now->first + now->count - 1].guard != always_slot) continue;
      for (const RegisterUse& use : table.uses_of(*now)) {
        if (!use.writes) continue;
        const std::size_t i = index_.at(use.slot);
        assigned[i / 64] |= std::uint64_t{1} << i % 64;
      }
    }
  }

  const Program& program_;
  const ptx::Module& module_;
  std::map<std::uint32_t, std::size_t> index_;  // of registers, by slot
  std::size_t words_ = 0;
  std::vector<Block> blocks_;
};

// Of these the shadow of memory is looked at, whatever the registers hold.
bool accesses_memory(Flow flow, const isa::Spelling& spelling) {
  switch (flow) {
    case Flow::Loads:
    case Flow::Stores:
      for (const StateSpace space : isa::state_spaces(spelling))
        if (space == StateSpace::param_entry || space == StateSpace::constant) return false;
      return true;
    case Flow::Atomic:
    case Flow::LoadsRows:
    case Flow::StoresRows: return true;
    default: return false;
  }
}

}  // namespace

void prepare_definedness(Program& program, const ptx::Module& module) {
  program.unwritten = Assignment(program, module).unwritten();
  if (!program.examined) return;
  for (const InstructionOps& each : program.registers.instructions) {
    const isa::Spelling& spelling = module.spelling(module.instructions[each.instruction]);
    const Flow flow = flow_of(spelling);
    program.flows.push_back(flow);
    for (std::uint32_t i = 0; i < each.count; ++i)
      program.ops[each.first + i].examined = accesses_memory(flow, spelling);
  }
}

}  // namespace tartan::inline TARTAN_ABI::emulator
