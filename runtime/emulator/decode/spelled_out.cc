// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/decode/spelled_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "compiler/isa/special_registers.h"
#include "tartan/isa/signature.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using ptx::Operand;
using ptx::OperandKind;
using ptx::StatementKind;

// An unsigned integer of the register's width.
Type unsigned_of(Type type) {
  const int width = bits(type);
  return width <= 8 ? Type::u8 : width == 16 ? Type::u16 : width <= 32 ? Type::u32 : Type::u64;
}

class Rewriter {
 public:
  explicit Rewriter(ptx::Module& module) : module_(module) {}

  void run() {
    scopes_.emplace_back();
    for (const ptx::Item& item : module_.items)
      if (item.kind == ptx::ItemKind::Variable) declare_variable(item.index);
    for (ptx::Function& function : module_.functions)
      if (std::ranges::any_of(function.statements,
                              [&](const auto& each) { return computes(each); }))
        rewrite(function);
  }

 private:
  struct Meaning {
    Type type = Type::none;  // of a register
    const ptx::Variable* variable = nullptr;
  };
  struct Scope {
    std::unordered_map<std::string_view, ptx::Registers> registers;
    std::unordered_map<std::string_view, std::uint32_t> variables;
  };

  bool computes(const ptx::Statement& statement) const {
    return statement.kind == StatementKind::Instruction &&
           std::ranges::any_of(module_.operands_of(module_.instructions[statement.index]),
                               [](const Operand& each) { return computes(each); });
  }
  static bool computes(const Operand& operand) {
    return operand.kind == OperandKind::Element ||
           (operand.kind == OperandKind::Name && operand.value != 0);
  }

  void rewrite(ptx::Function& function) {
    scopes_.resize(1);
    scopes_.emplace_back();
    for (const std::uint32_t index : function.params) declare_variable(index);
    for (const std::uint32_t index : function.results) declare_variable(index);
    out_.clear();
    for (const ptx::Statement& statement : function.statements) {
      enter(statement);
      if (computes(statement)) rewrite(statement.index);
      out_.push_back(statement);
    }
    function.statements = out_;
  }

  // ---- Names.

  void enter(const ptx::Statement& statement) {
    switch (statement.kind) {
      case StatementKind::BlockBegin: scopes_.emplace_back(); break;
      case StatementKind::BlockEnd: scopes_.pop_back(); break;
      case StatementKind::Variable: declare_variable(statement.index); break;
      case StatementKind::Registers: {
        const ptx::Registers& registers = module_.registers[statement.index];
        scopes_.back().registers[registers.name] = registers;
        break;
      }
      default: break;
    }
  }

  void declare_variable(std::uint32_t index) {
    const ptx::Variable& variable = module_.variables[index];
    if (variable.space == StateSpace::reg)
      scopes_.back().registers[variable.name] = {.type = variable.type, .name = variable.name};
    else scopes_.back().variables[variable.name] = index;
  }

  Meaning meaning(std::string_view name) const {
    const auto numbered = ptx::numbered_name(name);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->registers.find(name);
          found != scope->registers.end() && !found->second.numbered)
        return {found->second.type};
      if (numbered)
        if (const auto row = scope->registers.find(numbered->row);
            row != scope->registers.end() && row->second.numbered &&
            numbered->number < row->second.count)
          return {row->second.type};
      if (const auto found = scope->variables.find(name); found != scope->variables.end())
        return {.variable = &module_.variables[found->second]};
    }
    const isa::SpecialRegisterRow* special = isa::find_special_register(name);
    return {special ? special->type : Type::none};
  }

  // ---- New text and statements.

  std::string_view keep(std::string text) {
    module_.joined.push_back({std::make_shared<std::string>(std::move(text)), at_.offset});
    return *module_.joined.back().text;
  }

  static Operand named(std::string_view name) { return {.kind = OperandKind::Name, .text = name}; }
  static Operand number(std::uint64_t value) {
    return {.kind = OperandKind::Integer, .type = Type::s64, .value = value};
  }

  Operand declare(std::string name, Type type) {
    const std::string_view text = keep(std::move(name));
    out_.push_back(
        {StatementKind::Registers, static_cast<std::uint32_t>(module_.registers.size())});
    module_.registers.push_back({.type = type, .name = text, .offset = at_.offset});
    return named(text);
  }

  void emit(std::string opcode, const std::vector<Operand>& operands) {
    ptx::Instruction out = at_;
    out.opcode = keep(std::move(opcode));
    out.spelling = static_cast<std::uint32_t>(module_.spellings.size());
    module_.spellings.push_back(isa::read_spelling(out.opcode));
    set_operands(out, operands);
    out_.push_back(
        {StatementKind::Instruction, static_cast<std::uint32_t>(module_.instructions.size())});
    module_.instructions.push_back(out);
  }

  void set_operands(ptx::Instruction& instruction, std::vector<Operand> operands) {
    for (Operand& each : operands)
      if (each.offset == 0) each.offset = at_.offset;
    instruction.first = static_cast<std::uint32_t>(module_.operands.size());
    instruction.count = static_cast<std::uint32_t>(operands.size());
    module_.operands.insert(module_.operands.end(), operands.begin(), operands.end());
  }

  Operand address(Operand base, std::uint64_t offset) {
    base.offset = at_.offset;
    Operand out{.kind = OperandKind::Address, .value = offset};
    out.first = static_cast<std::uint32_t>(module_.operands.size());
    out.count = 1;
    module_.operands.push_back(base);
    return out;
  }

  // ---- Operands.

  void rewrite(std::uint32_t index) {
    at_ = module_.instructions[index];
    const auto tree = module_.operands_of(at_);
    std::vector<Operand> operands(tree.begin(), tree.end());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind == OperandKind::Element) operands[i] = element(operands[i], i);
      else if (computes(operands[i])) operands[i] = sum(operands[i]);
    }
    set_operands(module_.instructions[index], std::move(operands));
  }

  // x+4 of a register; the address of a variable takes an offset anyway.
  Operand sum(const Operand& operand) {
    const Meaning of = meaning(operand.text);
    if (of.variable || of.type == Type::none || of.type == Type::pred) return operand;
    const Type type = std::max(bits(of.type), 16) == 16 ? Type::u16 : unsigned_of(of.type);
    const auto value = static_cast<std::int64_t>(operand.value);
    Operand from = named(operand.text);
    if (isa::find_special_register(operand.text)) {  // add takes none
      from = declare(fmt::format("({})", operand.text), type);
      emit(fmt::format("mov.{}", name(type)), {from, named(operand.text)});
    }
    const Operand out = declare(fmt::format("({}+{})", operand.text, value), type);
    emit(fmt::format("add.{}", name(type)), {out, from, number(operand.value)});
    return out;
  }

  // t[4], t[r], t[r+1]: a place of an access, else its address.
  Operand element(const Operand& operand, std::size_t i) {
    const ptx::Variable* array = meaning(operand.text).variable;
    if (!array) return operand;
    const isa::Spelling spelling = module_.spelling(at_);
    const bool place = is_place(spelling, i);
    // Where nobody states how long the array is, the index counts bytes.
    const auto size = array->unsized && !array->initialiser
                          ? 1u
                          : static_cast<std::uint32_t>(bits(array->type)) / 8;
    const Operand index = module_.children(operand)[0];
    if (index.kind == OperandKind::Integer) {
      const auto bytes = static_cast<std::uint32_t>(index.value * size);
      const std::uint64_t offset =
          array->space == StateSpace::global ? bytes : extended(static_cast<std::int32_t>(bytes));
      if (place) return address(named(operand.text), offset);
      Operand out = named(operand.text);
      out.value = offset;
      return out;
    }
    const StateSpace space = array->space;
    const Operand sum = address_of(operand, index, size, space);
    if (!place) return resized(sum, spelling.type());
    if (isa::state_spaces(spelling).size == 0 && space != StateSpace::global)
      emit(fmt::format("cvta.{}.u64", name(space)), {sum, sum});
    return address(sum, 0);
  }

  static bool is_place(const isa::Spelling& spelling, std::size_t i) {
    return std::ranges::any_of(spelling.signatures, [&](const isa::Signature* each) {
      const auto rows = isa::operands(*each, spelling);
      return i < rows.size && rows[i]->indexed;
    });
  }

  static std::uint64_t extended(std::int32_t bytes) {
    return static_cast<std::uint64_t>(std::int64_t{bytes});
  }

  // The offset has 32 bits without a sign; in a space of 32 bits, addresses wrap.
  Operand address_of(const Operand& element, const Operand& index, std::uint32_t size,
                     StateSpace space) {
    const std::string text = fmt::format("{}[{}]", element.text, index.text);
    const Operand bytes = declare(text + "'s offset", Type::u32),
                  wide = declare(text + "'s wide offset", Type::u64),
                  out = declare(text, Type::u64);
    const Type type = unsigned_of(meaning(index.text).type);
    if (type == Type::u32) emit("mov.u32", {bytes, named(index.text)});
    else emit(fmt::format("cvt.u32.{}", name(type)), {bytes, named(index.text)});
    if (index.value) emit("add.u32", {bytes, bytes, number(index.value)});
    emit("mul.lo.u32", {bytes, bytes, number(size)});
    emit(space == StateSpace::global ? "cvt.u64.u32" : "cvt.s64.s32", {wide, bytes});
    emit("mov.u64", {out, named(element.text)});
    emit("add.u64", {out, out, wide});
    return out;
  }

  Operand resized(const Operand& address, Type type) {
    if (bits(type) == 64) return address;
    const Operand out = declare(fmt::format("low {}", address.text), unsigned_of(type));
    emit(fmt::format("cvt.{}.u64", name(unsigned_of(type))), {out, address});
    return out;
  }

  ptx::Module& module_;
  std::vector<Scope> scopes_;  // of the module, the function and its blocks
  std::vector<ptx::Statement> out_;
  ptx::Instruction at_;  // that is rewritten
};

}  // namespace

void spell_out(ptx::Module& module) { Rewriter(module).run(); }

}  // namespace tartan::TARTAN_ABI::emulator
