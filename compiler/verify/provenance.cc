// SPDX-License-Identifier: Apache-2.0
// Fragments used with another operand, shape, layout or type than they were made for. wmma
// fragments are opaque: a loaded or computed fragment fits only instructions with the same shape,
// type and (for A and B) layout.
#include <fmt/format.h>

#include <memory_resource>

#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Form;
using isa::Opcode;
using isa::Role;

// A fragment, as described by the instruction that made it or by the operand that uses it.
struct Held {
  Operand operand = Operand::none;  // d for results of a product, and for what c and a store use
  Shape shape;
  Type type = Type::none;
  Major major = Major::none;
};

std::string text(const Held& held) {
  const std::string_view what = held.operand == Operand::a   ? "an A"
                                : held.operand == Operand::b ? "a B"
                                                             : "an accumulator";
  return fmt::format("{} fragment of {}.{}{}{}", what, held.shape.text(), name(held.type),
                     held.major == Major::none ? "" : ".", name(held.major));
}

// The result fragment of a wmma instruction.
std::optional<Held> made(const Form& form) {
  if (form.opcode == Opcode::wmma_mma) return Held{Operand::d, form.shape, form.d, Major::none};
  if (form.opcode != Opcode::wmma_load) return std::nullopt;
  if (form.operand == Operand::c) return Held{Operand::d, form.shape, form.d, Major::none};
  return Held{form.operand, form.shape, form.d, form.a_major};
}

std::optional<Held> taken(const Form& form, Role role) {
  if (form.opcode == Opcode::wmma_store && role == Role::c)
    return Held{Operand::d, form.shape, form.d, Major::none};
  if (form.opcode != Opcode::wmma_mma) return std::nullopt;
  switch (role) {
    case Role::a: return Held{Operand::a, form.shape, form.a, form.a_major};
    case Role::b: return Held{Operand::b, form.shape, form.b, form.b_major};
    case Role::c: return Held{Operand::d, form.shape, form.c, Major::none};
    default: return std::nullopt;
  }
}

// Accumulators of products with the same shape and type are one fragment, for any A and B.
bool same(const Held& x, const Held& y) {
  if (x.operand != y.operand || x.type != y.type || x.major != y.major) return false;
  return x.operand == Operand::d ? x.shape.m == y.shape.m && x.shape.n == y.shape.n
                                 : x.shape == y.shape;
}

// The last writer of each register on the fall-through path from the function's start. Accumulators
// of a loop have two writers, one before it and one inside.
class Written {
 public:
  /// The writer, through any number of mov; null if unknown.
  const ptx::Instruction* last(std::string_view name) const {
    const auto at = by_.find(name);
    return at == by_.end() ? nullptr : at->second;
  }

  void write(const ptx::Module& module, const ptx::Instruction& instruction) {
    if (ends_way(module, instruction)) return forget();
    if (instruction.count == 0) return;
    const auto operands = module.operands_of(instruction);
    const ptx::Instruction* by = instruction.guard.empty() ? &instruction : nullptr;
    const bool moves = module.spelling(instruction).opcode == Opcode::mov && operands.size() == 2 &&
                       operands[1].kind == ptx::OperandKind::Name;
    if (by && moves && last(operands[1].text)) by = last(operands[1].text);
    if (operands[0].kind == ptx::OperandKind::Name) by_[operands[0].text] = by;
    if (operands[0].kind != ptx::OperandKind::Vector) return;
    for (const ptx::Operand& each : module.children(operands[0]))
      if (each.kind == ptx::OperandKind::Name) by_[each.text] = by;
  }

  void forget() { by_.clear(); }

 private:
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::unordered_map<std::string_view, const ptx::Instruction*, NameHash> by_{&memory_};
};

class ProvenanceChecker {
 public:
  ProvenanceChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    for (const ptx::Statement& statement : view_.function.statements) {
      switch (statement.kind) {
        case ptx::StatementKind::Instruction:
          read(context_.module.instructions[statement.index]);
          written_.write(context_.module, context_.module.instructions[statement.index]);
          break;
        // A block may redeclare a register name from outside.
        case ptx::StatementKind::Registers:
        case ptx::StatementKind::BlockEnd: written_.forget(); break;
        default: break;
      }
    }
  }

 private:
  void read(const ptx::Instruction& instruction) {
    const isa::Instruction* row = view_.readings.instruction(instruction);
    if (!row) return;
    for (std::size_t i = 0; i < row->operands.size(); ++i)
      operand(*row, row->operands[i].role, context_.module.operands_of(instruction)[i]);
  }

  void operand(const isa::Instruction& row, Role role, const ptx::Operand& operand) {
    if (role == Role::d || operand.kind != ptx::OperandKind::Vector) return;
    // The first register with a known writer decides for the vector.
    for (const ptx::Operand& each : context_.module.children(operand)) {
      if (each.kind != ptx::OperandKind::Name) continue;
      std::string_view origin = each.text;
      const ptx::Instruction* by = written_.last(each.text);
      if (!by) by = view_.definitions.origin(origin);
      const isa::Instruction* source = by ? view_.readings.instruction(*by) : nullptr;
      if (source && wrong(row, role, each, *source, *by)) return;
    }
  }

  bool wrong(const isa::Instruction& row, Role role, const ptx::Operand& reg,
             const isa::Instruction& source, const ptx::Instruction& by) {
    const auto wanted = taken(row.form, role);
    const auto held = made(source.form);
    if (wanted && held && !same(*wanted, *held))
      return report(row, role, reg, by, text(*wanted), text(*held));
    const bool input = role == Role::a || role == Role::b;
    const Type element = role == Role::a ? row.form.a : row.form.b;
    if (row.form.opcode != Opcode::mma) return false;
    const bool bytes = source.form.opcode == Opcode::ldmatrix &&
                       (source.form.d == Type::b8x16 || source.form.d == Type::b8);
    if (input && bytes && bits(element) > 8)
      return report(row, role, reg, by, fmt::format("values of {}", name(element)),
                    fmt::format("bytes of a matrix {}", isa::spell(source.form)));
    if (role == Role::c && source.form.opcode == Opcode::mma && source.form.d != row.form.c)
      return report(row, role, reg, by, fmt::format("an accumulator of {}", name(row.form.c)),
                    fmt::format("one of {}", name(source.form.d)));
    return false;
  }

  bool report(const isa::Instruction& row, Role role, const ptx::Operand& reg,
              const ptx::Instruction& by, std::string wanted, std::string held) {
    context_.report("fragment-provenance"_rule, reg.text,
                    fmt::format("operand {} of {}: expected {}, {} holds {} from line {}",
                                name(role), isa::spell(row.form), wanted, reg.text, held,
                                context_.module.source->line(by.offset)));
    return true;
  }

  Context& context_;
  const FunctionView& view_;
  Written written_;
};

}  // namespace

void check_provenance(Context& context, const FunctionView& view) {
  ProvenanceChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
