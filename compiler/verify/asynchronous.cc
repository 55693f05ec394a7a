// SPDX-License-Identifier: Apache-2.0
// Early reads of shared memory: of cp.async's data before its wait, of other lanes' stores before a
// barrier. Checked on the fall-through path, if both addresses are the same register or variable
// plus constants. After a loop nothing is known of copies, because their groups are not counted. A
// guarded wait may not execute and is ignored.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_set>

#include "compiler/isa/timed.h"
#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::GroupKind;
using isa::GroupStep;
using isa::Opcode;
using isa::operator""_q;

// Bytes [low, high) after a base that both addresses name.
struct Range {
  std::string_view base;
  std::int64_t low = 0, high = 0;  // at most a few bytes apart
};

struct Write {
  std::int64_t high;
  const ptx::Instruction* by;
  std::int64_t group;  // for copies: how many groups were committed before
};

// A write to one base, by first byte and whether it is a copy; one write each.
struct At {
  std::int64_t low;
  bool asynchronous;
  auto operator<=>(const At&) const = default;
};
using Writes = std::map<At, Write>;

constexpr int widest = 16;  // bytes that one lane writes at most

bool shared(const isa::Spelling& spelling) {
  return spelling.has("shared"_q) || spelling.has("shared::cta"_q);
}

class AsynchronousChecker {
 public:
  AsynchronousChecker(Context& context, const FunctionView& view)
      : context_(context), view_(view) {}

  void run() {
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Label) seen_.insert(statement.index);
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  void instruction(const ptx::Instruction& instruction) {
    const isa::Spelling& spelling = context_.module.spelling(instruction);
    const auto operands = context_.module.operands_of(instruction);
    const std::size_t count = operands.size();
    const int bytes = std::max(1, isa::access_bits(spelling) / 8);
    const isa::AsyncGroup group = isa::group_of(spelling.opcode);
    switch (spelling.opcode) {
      case Opcode::cp_async:
        if (count >= 3)
          write(instruction, operands[0], static_cast<int>(operands[2].value & 0xFF), true);
        break;
      case Opcode::st:
        if (shared(spelling) && count) write(instruction, operands[0], bytes, false);
        break;
      case Opcode::stmatrix:
        if (count) write(instruction, operands[0], 16, false);
        break;
      case Opcode::ldmatrix:
        if (count == 2) read(instruction, operands[1], 16, true);
        break;
      case Opcode::wmma_load:
        if (shared(spelling) && count >= 2) read(instruction, operands[1], 16, true);
        break;
      case Opcode::ld:
        if (shared(spelling) && count == 2) read(instruction, operands[1], bytes, false);
        break;
      case Opcode::cp_async_mbarrier_arrive:
        if (instruction.guard.empty()) finish(groups_);
        break;
      default:
        if (group.kind == GroupKind::copies && group.step == GroupStep::Commits) ++groups_;
        else if (group.kind == GroupKind::copies && group.step == GroupStep::Waits)
          wait(instruction, operands);
        else if (backward(instruction)) finish(groups_);
        else if (orders(instruction)) writes_.clear();
    }
    if (!operands.empty()) overwritten(operands[0]);
  }

  // cp.async.wait_group N leaves the last N groups pending, and copies that are in no group.
  void wait(const ptx::Instruction& instruction, std::span<const ptx::Operand> operands) {
    if (!instruction.guard.empty()) return;
    if (operands.empty() || operands[0].kind != ptx::OperandKind::Integer) return finish(groups_);
    const auto left = static_cast<std::int64_t>(operands[0].value);
    if (left >= 0 && left <= groups_) finish(groups_ - left - 1);
  }

  // Copies up to that group are complete.
  void finish(std::int64_t group) {
    for (auto& [base, writes] : writes_)
      std::erase_if(writes, [&](const auto& each) {
        return each.first.asynchronous && each.second.group <= group;
      });
  }

  // A backward branch: the end of a loop.
  bool backward(const ptx::Instruction& instruction) const {
    if (context_.module.spelling(instruction).opcode != Opcode::bra || instruction.guard.empty() ||
        instruction.count != 1)
      return false;
    const auto to = view_.scopes.label(context_.module.operands[instruction.first].text);
    return to && seen_.contains(*to);
  }

  // Whether the instruction may order the accesses: a branch that all take ends the path; barriers,
  // calls and other collectives order accesses.
  bool orders(const ptx::Instruction& instruction) const {
    const isa::Spelling& spelling = context_.module.spelling(instruction);
    if (isa::is_matrix(spelling.opcode)) return false;
    const isa::Control control = spelling.row().control;
    if (control == isa::Control::Calls || spelling.opcode == Opcode::brx_idx) return true;
    if (control != isa::Control::FallsThrough) return instruction.guard.empty();
    return spelling.row().convergence != isa::Convergence::None ||
           isa::is_mbarrier(spelling.opcode) || isa::is_bulk_copy(spelling.opcode) ||
           spelling.has("sync"_q);
  }

  // A guarded write may not execute and is ignored.
  void write(const ptx::Instruction& instruction, const ptx::Operand& address, int bytes,
             bool asynchronous) {
    const auto at = range(address, std::min(bytes, widest));
    if (!at || !instruction.guard.empty()) return;
    Write& write = writes_[at->base][{at->low, asynchronous}];
    if (!write.by) write = {at->high, &instruction, 0};
    write.high = std::max(write.high, at->high);
    write.group = groups_;
  }

  // The first write that overlaps the range; of copies only, or of any.
  std::optional<Writes::value_type> met(const Range& at, bool any) const {
    std::optional<Writes::value_type> first;
    const auto writes = writes_.find(at.base);
    if (writes == writes_.end()) return first;
    for (auto each = writes->second.lower_bound({at.low - widest, false});
         each != writes->second.end() && each->first.low < at.high; ++each)
      if (each->second.high > at.low && (any || each->first.asynchronous) &&
          (!first || each->second.by->offset < first->second.by->offset))
        first.emplace(*each);
    return first;
  }

  void read(const ptx::Instruction& instruction, const ptx::Operand& address, int bytes,
            bool collective) {
    const auto at = range(address, bytes);
    if (!at) return;
    const auto found = met(*at, collective);
    if (!found) return;
    const ptx::Instruction& by = *found->second.by;
    const int line = context_.module.source->line(by.offset);
    if (found->first.asynchronous)
      context_.report("missing-wait"_rule, instruction.opcode,
                      fmt::format("{} reads data that {} on line {} may still be writing: insert "
                                  "cp.async.wait_group or cp.async.wait_all",
                                  instruction.opcode, by.opcode, line));
    else
      context_.report(
          "missing-barrier"_rule, instruction.opcode,
          fmt::format(
              "{} reads data that other lanes stored on line {}: insert bar.sync or bar.warp.sync",
              instruction.opcode, line));
  }

  std::optional<Range> range(const ptx::Operand& address, int bytes) {
    if (address.kind != ptx::OperandKind::Address || address.count != 1) return std::nullopt;
    constexpr std::int64_t far = std::int64_t{1} << 40;  // larger than any shared memory
    if (const auto variable = view_.definitions.variable(address);
        variable && std::abs(variable->offset / 2) > far)
      return std::nullopt;
    if (const auto variable = view_.definitions.variable(address))
      return Range{variable->variable, variable->offset, variable->offset + bytes};
    const ptx::Operand& base = context_.module.operands[address.first];
    if (base.kind != ptx::OperandKind::Name) return std::nullopt;
    const auto offset = static_cast<std::int64_t>(address.value);
    if (std::abs(offset / 2) > far) return std::nullopt;
    return Range{base.text, offset, offset + bytes};
  }

  // A base register with a new value no longer refers to what was written.
  void overwritten(const ptx::Operand& first) {
    const auto drop = [&](const ptx::Operand& operand) {
      if (operand.kind == ptx::OperandKind::Name) writes_.erase(operand.text);
    };
    if (writes_.empty() || first.kind == ptx::OperandKind::Address) return;
    drop(first);
    for (const ptx::Operand& child : context_.module.children(first)) drop(child);
  }

  Context& context_;
  const FunctionView& view_;
  NameMap<Writes> writes_;                  // by base
  std::int64_t groups_ = 0;                 // committed so far
  std::unordered_set<std::uint32_t> seen_;  // labels
};

}  // namespace

void check_asynchronous(Context& context, const FunctionView& view) {
  AsynchronousChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
