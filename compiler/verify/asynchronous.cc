// SPDX-License-Identifier: Apache-2.0
// Shared memory that is read too early: what cp.async writes before its wait, what other lanes
// stored before a barrier. Within straight-line code, where both addresses are the same register or
// variable plus constants.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

// Bytes [low, high) behind a base that both sides name.
struct Range {
  std::string_view base;
  std::int64_t low = 0, high = 0;  // at most a few bytes apart
  bool overlaps(const Range& other) const {
    return base == other.base && low < other.high && other.low < high;
  }
};

struct Write {
  Range range;
  const ptx::Instruction* by;
  bool asynchronous;
};

bool shared(std::string_view opcode) {
  return opcode.find(".shared") != std::string_view::npos &&
         opcode.find("::cluster") == std::string_view::npos;
}

// Bytes that one lane moves: "ld.shared.v4.f32" 16.
int access_bytes(std::string_view opcode) {
  const int count = opcode.find(".v2.") != std::string_view::npos   ? 2
                    : opcode.find(".v4.") != std::string_view::npos ? 4
                                                                    : 1;
  const auto type = parse_type(opcode.substr(opcode.rfind('.') + 1));
  return type ? std::max(1, count * bits(*type) / 8) : 1;
}

class AsynchronousChecker {
 public:
  AsynchronousChecker(Context& context, const FunctionView& view)
      : context_(context), view_(view) {}

  void run() {
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind == ptx::StatementKind::Label) writes_.clear();
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  void instruction(const ptx::Instruction& instruction) {
    const std::string_view opcode = instruction.opcode;
    const auto operands = context_.module.operands_of(instruction);
    if (opcode.starts_with("cp.async.c") && operands.size() >= 3 &&
        opcode.find(".bulk") == std::string_view::npos) {
      write(instruction, operands[0], static_cast<int>(operands[2].value), true);
    } else if (opcode.starts_with("st.") && shared(opcode) && !operands.empty()) {
      write(instruction, operands[0], access_bytes(opcode), false);
    } else if (opcode.starts_with("ldmatrix") && operands.size() == 2) {
      read(instruction, operands[1], 16, true);
    } else if (opcode.starts_with("wmma.load") && shared(opcode) && operands.size() >= 2) {
      read(instruction, operands[1], 16, true);
    } else if (opcode.starts_with("ld.") && shared(opcode) && operands.size() == 2) {
      read(instruction, operands[1], access_bytes(opcode), false);
    } else if (opcode.starts_with("cp.async.wait") || opcode.starts_with("cp.async.mbarrier")) {
      std::erase_if(writes_, [](const Write& each) { return each.asynchronous; });
    } else if (orders(opcode)) {
      writes_.clear();
    }
    if (!operands.empty()) overwritten(operands[0]);
  }

  // Branches end the straight line; barriers, calls and other collectives may order the accesses.
  static bool orders(std::string_view opcode) {
    if (isa::matrix_opcode(opcode) != isa::Opcode::none) return false;
    return opcode.starts_with("bra") || opcode.starts_with("brx") || opcode.starts_with("bar") ||
           opcode.starts_with("call") || opcode.starts_with("ret") ||
           opcode.starts_with("mbarrier") || opcode.starts_with("cp.async.bulk") ||
           opcode.find(".sync") != std::string_view::npos;
  }

  // A guarded write may not happen: it is not followed.
  void write(const ptx::Instruction& instruction, const ptx::Operand& address, int bytes,
             bool asynchronous) {
    const auto at = range(address, bytes);
    if (at && instruction.guard.empty()) writes_.push_back({*at, &instruction, asynchronous});
  }

  void read(const ptx::Instruction& instruction, const ptx::Operand& address, int bytes,
            bool collective) {
    const auto at = range(address, bytes);
    if (!at) return;
    for (const Write& each : writes_) {
      if (!each.range.overlaps(*at) || (!each.asynchronous && !collective)) continue;
      const int line = context_.module.source->line(each.by->offset);
      if (each.asynchronous)
        context_.report("missing-wait"_rule, instruction.opcode,
                        fmt::format("{} reads what {} on line {} is still writing: "
                                    "cp.async.wait_group or cp.async.wait_all is missing",
                                    instruction.opcode, each.by->opcode, line));
      else
        context_.report(
            "missing-barrier"_rule, instruction.opcode,
            fmt::format(
                "{} reads what other lanes stored on line {}: bar.sync or bar.warp.sync is missing",
                instruction.opcode, line));
      return;
    }
  }

  std::optional<Range> range(const ptx::Operand& address, int bytes) {
    if (address.kind != ptx::OperandKind::Address || address.count != 1) return std::nullopt;
    constexpr std::int64_t far = std::int64_t{1} << 40;  // no shared memory is that large
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

  // A base register with a new value no longer names what was written.
  void overwritten(const ptx::Operand& first) {
    const auto drop = [&](const ptx::Operand& operand) {
      if (operand.kind == ptx::OperandKind::Name)
        std::erase_if(writes_, [&](const Write& each) { return each.range.base == operand.text; });
    };
    if (writes_.empty() || first.kind == ptx::OperandKind::Address) return;
    drop(first);
    for (const ptx::Operand& child : context_.module.children(first)) drop(child);
  }

  Context& context_;
  const FunctionView& view_;
  std::vector<Write> writes_;
};

}  // namespace

void check_asynchronous(Context& context, const FunctionView& view) {
  AsynchronousChecker(context, view).run();
}

}  // namespace tartan::verify
