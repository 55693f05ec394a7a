// SPDX-License-Identifier: Apache-2.0
// Which registers may be read before they are written: a definite-assignment analysis of the ops.
// What a guard decides assigns nothing. Functions begin with nothing assigned.
//
// The sets of all blocks are as large as the square of the text, so that their number is limited.
// Beyond it every register that is read may be one: RegisterShadow then hears of its writes, and
// finds the same.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/emulator/definedness/definedness.h"
#include "runtime/emulator/definedness/register_shadow.h"
#include "tartan/isa/spelling.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {
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
    const bool solved = solve();
    std::map<std::uint32_t, UnwrittenRegister> out;
    const auto add = [&](const RegisterUse& use) {
      UnwrittenRegister& found =
          out.try_emplace(use.slot, UnwrittenRegister{.used = 1}).first->second;
      found = {use.slot, static_cast<std::uint32_t>(register_bits(use.type)),
               std::max(found.used, static_cast<std::uint32_t>(std::max(bits(use.type), 1)))};
    };
    for (std::size_t b = 0; solved && b < blocks_.size(); ++b) {
      Set assigned = blocks_[b].in;
      run(b, assigned, add);
    }
    for (std::size_t i = 0; !solved && i < program_.registers.uses.size(); ++i)
      if (const RegisterUse& use = program_.registers.uses[i]; use.reads && !use.constant) add(use);
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
    bool reached = false, changed = true;  // since its ways on were looked at
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

  // The blocks that lanes begin with: those to whom nothing leads are the starts of functions.
  std::vector<std::uint32_t> starts() const {
    std::vector<bool> led(blocks_.size());
    for (const Block& block : blocks_)
      for (const std::uint32_t next : block.next) led[next] = true;
    std::vector<std::uint32_t> out;
    for (std::uint32_t b = 0; b < blocks_.size(); ++b)
      if (!led[b] || blocks_[b].first == program_.entry) out.push_back(b);
    return out;
  }

  // Each block behind those that lead to it, loops aside.
  std::vector<std::uint32_t> order(const std::vector<std::uint32_t>& starts) const {
    std::vector<std::uint32_t> out;
    std::vector<bool> seen(blocks_.size());
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // blocks, and the next way on
    const auto enter = [&](std::uint32_t b) {
      if (!seen[b]) path.emplace_back(b, 0);
      seen[b] = true;
    };
    for (const std::uint32_t start : starts) {
      enter(start);
      while (!path.empty()) {
        const auto [b, way] = path.back();
        if (way < blocks_[b].next.size()) {
          ++path.back().second;
          enter(blocks_[b].next[way]);
        } else {
          out.push_back(b);
          path.pop_back();
        }
      }
    }
    std::ranges::reverse(out);
    return out;
  }

  // False where that takes too long.
  bool solve() {
    constexpr std::size_t most_words = std::size_t{1} << 22, most_work = std::size_t{1} << 25;
    if (words_ && blocks_.size() > most_words / words_) return false;
    const std::vector<std::uint32_t> begin = starts();
    for (const std::uint32_t b : begin) {
      blocks_[b].reached = true;
      blocks_[b].in.assign(words_, 0);
    }
    const std::vector<std::uint32_t> all = order(begin);
    std::size_t work = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t b : all) {
        if (!std::exchange(blocks_[b].changed, false)) continue;
        Set out = blocks_[b].in;
        run(b, out, [](const RegisterUse&) {});
        work += words_ * (1 + blocks_[b].next.size()) + blocks_[b].last - blocks_[b].first;
        for (const std::uint32_t next : blocks_[b].next)
          if (meet(blocks_[next], out)) changed = blocks_[next].changed = true;
      }
      if (work > most_work) return false;
    }
    for (Block& block : blocks_)
      if (!block.reached) block.in.assign(words_, ~std::uint64_t{0});
    return true;
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
  std::unordered_map<std::uint32_t, std::size_t> index_;  // of registers, by slot
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

void Flows::finish(Program& program, const ptx::Module& module) {
  program.unwritten = Assignment(program, module).unwritten();
  if (!examined_) return;
  for (const InstructionOps& each : program.registers.instructions) {
    const isa::Spelling& spelling = module.spelling(module.instructions[each.instruction]);
    const Flow flow = flow_of(spelling);
    flows_.push_back(flow);
    for (std::uint32_t i = 0; i < each.count; ++i)
      program.ops[each.first + i].examined = accesses_memory(flow, spelling);
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
