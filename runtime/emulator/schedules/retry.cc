// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/retry.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;
using isa::operator""_q;

// The rounds that lead from the op behind a wait back to it.
class Rounds {
 public:
  Rounds(const LaunchContext& context, std::uint32_t wait) : context_(context), wait_(wait) {}

  /// Whether all of so many ops leave everything as it is.
  bool idle(std::uint64_t length) {
    if (length == 0 || length > longest_round) return false;
    path_.assign(1, wait_);
    return walk(wait_ + 1, length - 1) && rounds_ > 0;
  }

  /// Whether there is but one after the wait has failed, and it does.
  bool follows() {
    const ptx::Instruction* wait = instruction(wait_);
    if (!wait || wait->count == 0) return false;
    path_.assign(1, wait_);
    const ptx::Operand& done = context_.module.operands[wait->first];
    const bool reports = done.kind == ptx::OperandKind::Pair;
    Known known{{reports ? context_.module.children(done)[0].text : done.text, false}};
    for (std::uint32_t pc = wait_ + 1; path_.size() <= longest_round;) {
      if (pc == wait_) return leaves_all();
      const ptx::Instruction* here = pc < context_.program.ops.size() ? instruction(pc) : nullptr;
      if (!here) return false;
      const auto taken = takes(*here, known);
      if (!taken) return false;
      const bool branch = opcode_of(*here) == Opcode::bra;
      if (*taken && !branch) {
        path_.push_back(pc);
        learn(*here, known);
      }
      pc = *taken && branch ? static_cast<std::uint32_t>(context_.program.ops[pc].value) : pc + 1;
    }
    return false;
  }

 private:
  using Known = std::unordered_map<std::string_view, std::uint64_t>;

  // Whether its guard lets it run; nothing: that is not known.
  static std::optional<bool> takes(const ptx::Instruction& here, const Known& known) {
    if (here.guard.empty()) return true;
    const auto guard = known.find(here.guard);
    if (guard == known.end()) return std::nullopt;
    return (guard->second != 0) != here.guard_negated;
  }

  std::optional<std::uint64_t> value(const ptx::Operand& operand, const Known& known) const {
    if (operand.kind == ptx::OperandKind::Integer) return operand.value;
    if (operand.kind == ptx::OperandKind::Not) {
      const auto inner = value(context_.module.children(operand)[0], known);
      return inner ? std::optional<std::uint64_t>(*inner == 0) : std::nullopt;
    }
    const auto found = known.find(operand.text);
    return operand.kind == ptx::OperandKind::Name && found != known.end()
               ? std::optional(found->second)
               : std::nullopt;
  }

  // What it makes of values that are known: whatever brings a predicate to a branch.
  std::optional<std::uint64_t> result(const ptx::Instruction& here, const Known& known) const {
    const auto operands = context_.module.operands_of(here);
    const auto source = [&](std::size_t i) {
      return i < operands.size() ? value(operands[i], known) : std::nullopt;
    };
    const auto a = source(1), b = source(2), c = source(3);
    const isa::Spelling& spelling = context_.module.spelling(here);
    const bool predicate = spelling.type(0) == Type::pred;
    switch (spelling.opcode) {
      case Opcode::mov: return a;
      case Opcode::not_: return a && predicate ? std::optional<std::uint64_t>(!*a) : std::nullopt;
      case Opcode::and_: return a && b ? std::optional(*a & *b) : std::nullopt;
      case Opcode::or_: return a && b ? std::optional(*a | *b) : std::nullopt;
      case Opcode::xor_:
        return a && b ? std::optional(predicate ? *a != *b : *a ^ *b) : std::nullopt;
      case Opcode::selp: return c ? (*c ? a : b) : std::nullopt;
      case Opcode::setp:
        if (!a || !b || operands.size() != 3) return std::nullopt;
        if (spelling.has("eq"_q)) return *a == *b;
        return spelling.has("ne"_q) ? std::optional<std::uint64_t>(*a != *b) : std::nullopt;
      default: return std::nullopt;
    }
  }

  void learn(const ptx::Instruction& here, Known& known) const {
    if (!writes(here) || here.count == 0) return;
    const auto made = result(here, known);
    each_name(context_.module.operands[here.first],
              [&](std::string_view name) { known.erase(name); });
    if (made) known[context_.module.operands[here.first].text] = *made;
  }

  const ptx::Instruction* instruction(std::uint32_t pc) const {
    return instruction_at(context_, pc);
  }

  // `left` ops between `pc` and the wait.
  bool walk(std::uint32_t pc, std::uint64_t left) {
    if (left == 0) {
      if (pc != wait_) return true;
      ++rounds_;
      return rounds_ <= longest_round && leaves_all();
    }
    if (pc >= context_.program.ops.size() || pc == wait_) return true;
    const ptx::Instruction* here = instruction(pc);
    if (!here) return false;
    path_.push_back(pc);
    bool good = true;
    const bool branch = opcode_of(*here) == Opcode::bra;
    if (branch) good = walk(static_cast<std::uint32_t>(context_.program.ops[pc].value), left - 1);
    if (!branch || !here->guard.empty()) good = good && walk(pc + 1, left - 1);
    path_.pop_back();
    return good;
  }

  // No memory, no clocks, and no register that one round takes from the round before. What the wait
  // gives is known, since it fails; it stands at the round's end.
  bool leaves_all() const {
    std::unordered_set<std::string_view> written, later;
    for (const std::uint32_t pc : path_) collect(*instruction(pc), later);
    collect(*instruction(wait_), written);
    const ptx::Instruction* last = nullptr;
    for (std::size_t i = 1; i <= path_.size(); ++i) {
      const ptx::Instruction* here = instruction(path_[i % path_.size()]);
      if (here == last) continue;  // several ops of one instruction
      last = here;
      if (!is_idle(*here, written, later)) return false;
      collect(*here, written);
    }
    return true;
  }

  Opcode opcode_of(const ptx::Instruction& instruction) const {
    return context_.module.spelling(instruction).opcode;
  }
  Idle idle_of(const ptx::Instruction& instruction) const {
    return emulated(opcode_of(instruction)).idle;
  }
  bool writes(const ptx::Instruction& instruction) const {
    return idle_of(instruction) == Idle::Computes;
  }

  void collect(const ptx::Instruction& instruction,
               std::unordered_set<std::string_view>& out) const {
    if ((writes(instruction) || &instruction == this->instruction(wait_)) && instruction.count > 0)
      each_name(context_.module.operands[instruction.first],
                [&](std::string_view name) { out.insert(name); });
  }

  template <typename Body>
  void each_name(const ptx::Operand& operand, Body&& body) const {
    if (operand.kind == ptx::OperandKind::Name) body(operand.text);
    for (const ptx::Operand& child : context_.module.children(operand)) each_name(child, body);
  }

  bool is_idle(const ptx::Instruction& here, const std::unordered_set<std::string_view>& written,
               const std::unordered_set<std::string_view>& later) const {
    const bool writing = writes(here) || &here == instruction(wait_);
    if (!writing && idle_of(here) != Idle::Silent) return false;
    bool good = true;
    const auto read = [&](std::string_view name) {
      const isa::SpecialRegisterRow* const special = isa::find_special_register(name);
      if (special && special->varies) good = false;
      if (later.contains(name) && !written.contains(name)) good = false;
    };
    if (!here.guard.empty()) read(here.guard);
    const auto operands = context_.module.operands_of(here);
    // A guarded write keeps the old value at times.
    const bool keeps = !writing || !here.guard.empty();
    for (std::size_t i = keeps ? 0 : 1; i < operands.size(); ++i) each_name(operands[i], read);
    return good;
  }

  const LaunchContext& context_;
  std::uint32_t wait_;
  std::vector<std::uint32_t> path_;
  std::uint64_t rounds_ = 0;
};

}  // namespace

const ptx::Instruction* instruction_at(const LaunchContext& context, std::uint32_t pc) {
  const std::uint32_t offset = context.program.origins[pc].offset;
  const auto& all = context.module.instructions;
  const auto at = std::ranges::lower_bound(all, offset, {}, &ptx::Instruction::offset);
  return at == all.end() || at->offset != offset ? nullptr : &*at;
}

isa::Opcode opcode_at(const LaunchContext& context, std::uint32_t pc) {
  const ptx::Instruction* here = instruction_at(context, pc);
  return here ? context.module.spelling(*here).opcode : isa::Opcode::mov;
}

bool idles(const LaunchContext& context, std::uint32_t behind_wait, std::uint64_t length) {
  return Rounds(context, behind_wait - 1).idle(length);
}

bool retries(const LaunchContext& context, std::uint32_t pc) {
  return Rounds(context, pc).follows();
}

}  // namespace tartan::TARTAN_ABI::emulator
