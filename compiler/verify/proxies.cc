// SPDX-License-Identifier: Apache-2.0
// Shared memory that ordinary stores wrote and that wgmma or the copy engine reads, which goes
// another way to memory (the async proxy): fence.proxy.async must stand in between. Within
// straight-line code, where both addresses lead back to one variable. And tensor maps in memory
// that the copy engine does not read them from.
#include <fmt/format.h>

#include <vector>

#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

constexpr int deepest = 24;  // operands followed back at most

// What an address is made of.
struct Root {
  std::string_view variable;
  std::int64_t offset = 0;  // the constants added to it
  bool exact = true;        // nothing but constants was added; only for sums
  bool sum = true;          // made by adding alone: `offset` is the least it can be
};

class ProxyChecker {
 public:
  ProxyChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    if (!reads_asynchronously()) return;
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Label) writes_.clear();
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  struct Write {
    const ptx::Instruction* by;
    Root root;
  };

  static bool product(std::string_view opcode) { return opcode.starts_with("wgmma.mma_async"); }
  static bool bulk(std::string_view opcode) {
    return opcode.starts_with("cp.async.bulk.") || opcode.starts_with("cp.reduce.async.bulk.");
  }

  bool reads_asynchronously() const {
    for (const ptx::Statement& statement : view_.function.statements)
      if (statement.kind == ptx::StatementKind::Instruction) {
        const std::string_view opcode = context_.module.instructions[statement.index].opcode;
        if (product(opcode) || bulk(opcode)) return true;
      }
    return false;
  }

  static bool has(std::string_view opcode, std::string_view text) {
    return opcode.find(text) != std::string_view::npos;
  }

  void instruction(const ptx::Instruction& instruction) {
    const std::string_view opcode = instruction.opcode;
    const auto operands = context_.module.operands_of(instruction);
    const bool stores =
        (opcode.starts_with("st.") && has(opcode, ".shared") && !has(opcode, ".shared::cluster")) ||
        opcode.starts_with("stmatrix.") || opcode.starts_with("cp.async.ca.") ||
        opcode.starts_with("cp.async.cg.");
    if (stores && !operands.empty()) {
      if (const auto to = root(operands[0], 0)) writes_.push_back({&instruction, *to});
    } else if (opcode.starts_with("fence.proxy.async")) {
      if (!opcode.ends_with(".global")) writes_.clear();
    } else if (product(opcode)) {
      for (const ptx::Operand& operand : operands)
        if (operand.kind == ptx::OperandKind::Name) read(instruction, operand);
    } else if (bulk(opcode)) {
      tensor_map(instruction);
      if (operands.size() >= 2 && has(opcode, ".shared::cta") &&
          !has(opcode, ".shared::cta.global"))
        read(instruction, operands[1]);
    } else if ((opcode.starts_with("bra") || opcode.starts_with("ret")) &&
               instruction.guard.empty()) {
      writes_.clear();
    }
  }

  void read(const ptx::Instruction& instruction, const ptx::Operand& operand) {
    const auto from = root(operand, 0);
    if (!from) return;
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      if (!meet(writes_[i].root, *from)) continue;
      const ptx::Instruction& by = *writes_[i].by;
      context_.report(
          "proxy-fence"_rule, instruction.opcode,
          fmt::format("{} reads {}, where {} stored on line {}: fence.proxy.async is missing in "
                      "between",
                      instruction.opcode, from->variable, by.opcode,
                      context_.module.source->line(by.offset)));
      return writes_.clear();  // once
    }
  }

  // Kernels cut dynamic shared memory into pieces by constant offsets.
  bool meet(const Root& write, const Root& read) const {
    if (write.variable != read.variable) return false;
    if (sized(write.variable)) return !(write.sum && read.exact) || write.offset >= read.offset;
    return write.sum && read.exact && write.offset == read.offset;
  }

  bool sized(std::string_view name) const {
    for (const ptx::Variable& variable : context_.module.variables)
      if (variable.name == name) return !variable.unsized;
    return true;
  }

  std::optional<Root> root(const ptx::Operand& operand, int depth) {
    if (operand.kind == ptx::OperandKind::Address) {
      if (operand.count != 1) return std::nullopt;
      auto found = root(context_.module.operands[operand.first], depth);
      if (found) found->offset += static_cast<std::int64_t>(operand.value);
      return found;
    }
    if (operand.kind != ptx::OperandKind::Name || depth > deepest) return std::nullopt;
    const ptx::Instruction* by = view_.definitions.of(operand.text);
    if (!by) {
      const NameInfo info = view_.scopes.find(base_name(operand.text));
      if (info.kind != NameKind::Variable || info.space != ptx::StateSpace::shared)
        return std::nullopt;
      return Root{.variable = operand.text, .offset = static_cast<std::int64_t>(operand.value)};
    }
    return made_by(*by, depth + 1);
  }

  std::optional<Root> made_by(const ptx::Instruction& instruction, int depth) {
    const std::string_view opcode = instruction.opcode;
    const auto operands = context_.module.operands_of(instruction);
    constexpr std::string_view arithmetic[] = {"mov.", "cvta.", "cvt.", "add.", "sub.",
                                               "mad.", "or.",   "and.", "shr.", "shl.",
                                               "bfe.", "bfi.",  "xor.", "shfl."};
    bool known = false;
    for (const std::string_view each : arithmetic) known |= opcode.starts_with(each);
    if (!known) return std::nullopt;
    std::optional<Root> found;
    std::int64_t constants = 0;
    bool others = false;
    for (std::size_t i = 1; i < operands.size(); ++i) {
      if (operands[i].kind == ptx::OperandKind::Integer) {
        constants += static_cast<std::int64_t>(operands[i].value);
        continue;
      }
      const auto part = root(operands[i], depth);
      if (!part) others = true;
      else if (found && found->variable != part->variable) return std::nullopt;
      else found = part;
    }
    if (!found) return std::nullopt;
    const bool copies = opcode.starts_with("mov.") || opcode.starts_with("cvta.") ||
                        opcode.starts_with("cvt.") || opcode.starts_with("shfl.");
    if (opcode.starts_with("add.")) found->offset += constants;
    else if (!copies && !opcode.starts_with("mad.")) found->sum = false;
    found->exact = found->exact && found->sum && !(others && !copies);
    return found;
  }

  // [map, {x, y}]
  void tensor_map(const ptx::Instruction& instruction) {
    for (const ptx::Operand& operand : context_.module.operands_of(instruction)) {
      if (operand.kind != ptx::OperandKind::Address || operand.count != 2) continue;
      const ptx::Operand& base = context_.module.operands[operand.first];
      ptx::Operand address = operand;
      address.count = 1;
      const auto at = view_.definitions.variable(address);
      if (!at) continue;
      const NameInfo info = view_.scopes.find(at->variable);
      if (info.kind != NameKind::Variable ||
          (info.space != ptx::StateSpace::local && info.space != ptx::StateSpace::shared))
        continue;
      const ptx::Instruction* made = view_.definitions.of(base.text);
      context_.report(
          "tensor-map-space"_rule, instruction.opcode,
          fmt::format("{} takes its tensor map from {}, a variable in {} memory{}: pass the "
                      "address of the kernel's parameter",
                      instruction.opcode, at->variable,
                      info.space == ptx::StateSpace::local ? "local" : "shared",
                      made ? fmt::format(" (address of line {})",
                                         context_.module.source->line(made->offset))
                           : std::string()));
    }
  }

  Context& context_;
  const FunctionView& view_;
  std::vector<Write> writes_;
};

}  // namespace

void check_proxies(Context& context, const FunctionView& view) {
  ProxyChecker(context, view).run();
}

}  // namespace tartan::verify
