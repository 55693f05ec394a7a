// SPDX-License-Identifier: Apache-2.0
// Shared memory that ordinary stores write and that wgmma, tcgen05 or TMA reads through the async
// proxy, without a fence.proxy.async in between. Checked on the fall-through path, if both
// addresses derive from one variable and the places overlap: the bytes of a bulk copy of constant
// size, else the same distance from the variable's start. Not seen: stores through generic
// addresses that do not derive from a variable, red and atom. Also checks that tensor maps are in
// memory from which TMA can read them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using isa::operator""_q;

constexpr int deepest = 24;  // limit of operands followed back, if not known yet

// The origin of an address, or of an address in a descriptor.
struct Root {
  std::string_view variable;
  std::int64_t offset = 0;  // the constants added to it before any other operation
  bool exact = true;        // only constants were added; for sums only
  bool sum = true;          // made by additions only: `offset` is its minimum
};

class ProxyChecker {
 public:
  ProxyChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    if (!reads_asynchronously()) return;
    for (const ptx::Variable& variable : context_.module.variables)
      sized_.try_emplace(variable.name, !variable.unsized);
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  // A place in a variable; ordered: those made by additions first.
  struct At {
    std::int64_t offset;
    bool vague;
    auto operator<=>(const At&) const = default;
  };
  // The first store to each place.
  using Writes = std::map<At, const ptx::Instruction*>;

  bool reads_asynchronously() const {
    for (const ptx::Statement& statement : view_.function.statements)
      if (statement.kind == ptx::StatementKind::Instruction) {
        const Opcode opcode =
            context_.module.spelling(context_.module.instructions[statement.index]).opcode;
        if (opcode == Opcode::wgmma || tile_operands(opcode) || isa::is_bulk_copy(opcode))
          return true;
      }
    return false;
  }

  // Operands from the second on that may be descriptors of tiles, of tcgen05.
  static std::size_t tile_operands(Opcode opcode) {
    switch (opcode) {
      case Opcode::tcgen05_cp: return 1;
      case Opcode::tcgen05_mma:
      case Opcode::tcgen05_mma_sp:
      case Opcode::tcgen05_mma_ws:
      case Opcode::tcgen05_mma_ws_sp: return 2;
      default: return 0;
    }
  }

  void instruction(const ptx::Instruction& instruction) {
    const isa::Spelling& spelling = context_.module.spelling(instruction);
    const auto operands = context_.module.operands_of(instruction);
    const bool own = spelling.has("shared"_q) || spelling.has("shared::cta"_q);
    const bool stores = (spelling.opcode == Opcode::st && own) ||
                        spelling.opcode == Opcode::stmatrix || spelling.opcode == Opcode::cp_async;
    if (stores && !operands.empty()) {
      if (const auto to = root(operands[0], 0))
        writes_[to->variable].try_emplace({to->offset, !to->sum}, &instruction);
    } else if (spelling.opcode == Opcode::fence_proxy && fences_shared(spelling)) {
      fence(instruction);
    } else if (spelling.opcode == Opcode::wgmma) {
      for (const ptx::Operand& operand : operands)
        if (operand.kind == ptx::OperandKind::Name) read(instruction, operand, 0);
    } else if (const std::size_t tiles = tile_operands(spelling.opcode)) {
      for (std::size_t i = 1; i < operands.size() && i <= tiles; ++i)
        if (operands[i].kind == ptx::OperandKind::Name) read(instruction, operands[i], 0);
    } else if (isa::is_bulk_copy(spelling.opcode)) {
      tensor_map(instruction);
      if (operands.size() >= 2 && spelling.has("shared::cta"_q) && !to_shared(spelling))
        read(instruction, operands[1], bytes(operands));
    } else if (spelling.row().control == isa::Control::Calls ||
               ends_way(context_.module, instruction)) {
      writes_.clear();
    }
    remember(operands);
  }

  static bool fences_shared(const isa::Spelling& spelling) {
    return spelling.has("async::generic"_q) ||
           (spelling.has("async"_q) && !spelling.has("global"_q));
  }

  // cp.async.bulk.shared::cta.global: .shared::cta is the destination.
  static bool to_shared(const isa::Spelling& spelling) {
    return spelling.has("shared::cta"_q) && spelling.has("global"_q) &&
           isa::in_order(spelling, ".shared::cta", ".global");
  }

  // A guarded fence may not execute: it counts for instructions with the same guard.
  void fence(const ptx::Instruction& instruction) {
    if (instruction.guard.empty()) return writes_.clear();
    for (auto& [variable, writes] : writes_)
      std::erase_if(writes, [&](const auto& each) {
        return each.second->guard == instruction.guard &&
               each.second->guard_negated == instruction.guard_negated;
      });
  }

  // The size of a bulk copy: [to], [from], bytes. 0: unknown, as for boxes.
  static std::int64_t bytes(std::span<const ptx::Operand> operands) {
    const bool constant = operands.size() > 2 && operands[2].kind == ptx::OperandKind::Integer;
    return constant ? static_cast<std::int64_t>(operands[2].value & 0xFFFFFFFF) : 0;
  }

  void read(const ptx::Instruction& instruction, const ptx::Operand& operand, std::int64_t bytes) {
    if (writes_.empty()) return;
    const auto from = root(operand, 0);
    const ptx::Instruction* by = from ? unfenced(*from, bytes) : nullptr;
    if (!by) return;
    context_.report(
        "proxy-fence"_rule, instruction.opcode,
        fmt::format("{} reads {}, which {} stored on line {}: insert fence.proxy.async in between",
                    instruction.opcode, from->variable, by->opcode,
                    context_.module.source->line(by->offset)));
    writes_.clear();  // once
  }

  // A store to the range that `from` reads. Kernels divide dynamic shared memory by constant
  // offsets, and static shared memory into members of a struct.
  const ptx::Instruction* unfenced(const Root& from, std::int64_t bytes) const {
    const auto variable = writes_.find(from.variable);
    if (variable == writes_.end()) return nullptr;
    const Writes& writes = variable->second;
    const auto at = writes.lower_bound({from.offset, false});
    if (at == writes.end()) return nullptr;
    const auto size = sized_.find(from.variable);
    if (size == sized_.end() || size->second)
      return at->first.offset < plus(from.offset, bytes > 0 ? static_cast<std::uint64_t>(bytes) : 1)
                 ? at->second
                 : nullptr;
    return from.exact && at->first == At{from.offset, false} ? at->second : nullptr;
  }

  // Values are recorded before they are used, so that each is traced back once.
  void remember(std::span<const ptx::Operand> operands) {
    if (!operands.empty() && operands[0].kind == ptx::OperandKind::Name) root(operands[0], 0);
  }

  std::optional<Root> root(const ptx::Operand& operand, int depth) {
    if (operand.kind == ptx::OperandKind::Address) {
      if (operand.count != 1) return std::nullopt;
      auto found = root(context_.module.operands[operand.first], depth);
      if (found) found->offset = plus(found->offset, operand.value);
      return found;
    }
    if (operand.kind != ptx::OperandKind::Name || depth > deepest) return std::nullopt;
    const ptx::Instruction* by = view_.definitions.of(operand.text);
    if (by) return register_root(operand.text, *by, depth);
    const NameInfo info = view_.scopes.find(base_name(operand.text));
    if (info.kind != NameKind::Variable || info.space != StateSpace::shared) return std::nullopt;
    return Root{.variable = operand.text, .offset = static_cast<std::int64_t>(operand.value)};
  }

  std::optional<Root> register_root(std::string_view name, const ptx::Instruction& by, int depth) {
    const auto [known, fresh] = roots_.try_emplace(name);
    if (!fresh) return known->second;  // nothing while it is being followed back: a loop
    const auto found = made_by(by, depth + 1);
    roots_[name] = found;
    return found;
  }

  std::optional<Root> made_by(const ptx::Instruction& instruction, int depth) {
    const Opcode opcode = context_.module.spelling(instruction).opcode;
    const auto operands = context_.module.operands_of(instruction);
    constexpr Opcode copying[] = {Opcode::mov, Opcode::cvta, Opcode::cvt, Opcode::shfl};
    constexpr Opcode arithmetic[] = {Opcode::add,  Opcode::sub, Opcode::mad, Opcode::or_,
                                     Opcode::and_, Opcode::shr, Opcode::shl, Opcode::bfe,
                                     Opcode::bfi,  Opcode::xor_};
    const bool copies = std::ranges::find(copying, opcode) != std::end(copying);
    if (!copies && std::ranges::find(arithmetic, opcode) == std::end(arithmetic))
      return std::nullopt;
    std::optional<Root> found;
    std::uint64_t constants = 0;
    bool others = false;
    for (std::size_t i = 1; i < operands.size(); ++i) {
      if (operands[i].kind == ptx::OperandKind::Integer) {
        constants += operands[i].value;
        continue;
      }
      const auto part = root(operands[i], depth);
      if (!part) others = true;
      else if (found && found->variable != part->variable) return std::nullopt;
      else found = part;
    }
    if (!found) return std::nullopt;
    if (opcode == Opcode::add && found->sum) found->offset = plus(found->offset, constants);
    else if (opcode != Opcode::add && !copies && opcode != Opcode::mad) found->sum = false;
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
          (info.space != StateSpace::local && info.space != StateSpace::shared))
        continue;
      const ptx::Instruction* made = view_.definitions.of(base.text);
      context_.report("tensor-map-space"_rule, instruction.opcode,
                      fmt::format("{} uses the tensor map {}, a variable in {} memory{}: pass the "
                                  "address of a kernel parameter, or of global or constant memory",
                                  instruction.opcode, at->variable, tartan::name(info.space),
                                  made ? fmt::format(" (address from line {})",
                                                     context_.module.source->line(made->offset))
                                       : std::string()));
    }
  }

  Context& context_;
  const FunctionView& view_;
  NameMap<Writes> writes_;              // by variable; since the last fence
  NameMap<std::optional<Root>> roots_;  // of registers
  NameMap<bool> sized_;                 // variables
};

}  // namespace

void check_proxies(Context& context, const FunctionView& view) {
  ProxyChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
