// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/lane_shapes.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using isa::operator""_q;
using Kind = LaneShape::Kind;

constexpr LaneShape unknown{.kind = Kind::unknown}, same_in_all{.kind = Kind::offset};

// Without what all lanes share.
LaneShape offset_of(const LaneValues& values) {
  LaneShape out{.kind = Kind::offset};
  for (std::size_t i = 0; i < values.size(); ++i)
    out.values[i] = plus(values[i], 0 - static_cast<std::uint64_t>(values[0]));
  return out;
}

LaneShape varying() {
  LaneShape out{.kind = Kind::offset};
  out.values[1] = 1;
  return out;
}

LaneShape joined(const LaneShape& x, const LaneShape& y) {
  if (x.kind == Kind::unseen) return y;
  if (y.kind == Kind::unseen) return x;
  if (!x.known() || !y.known()) return unknown;
  if (x.kind == y.kind && x.values == y.values) return x;
  const LaneShape a = offset_of(x.values), b = offset_of(y.values);
  return a.values == b.values ? a : unknown;
}

// What adds x and `factor` times y.
LaneShape sum(const LaneShape& x, const LaneShape& y, std::uint64_t factor) {
  if (x.kind == Kind::unseen || y.kind == Kind::unseen) return {};
  if (!x.known() || !y.known()) return unknown;
  LaneValues values;
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = plus(x.values[i], factor * static_cast<std::uint64_t>(y.values[i]));
  if (x.kind == Kind::exact && y.kind == Kind::exact) return {Kind::exact, values};
  return offset_of(values);
}

bool is_uniform_special(std::string_view name) {
  constexpr std::string_view varying_ones[] = {"%laneid", "%tid",         "%lanemask",
                                               "%clock",  "%globaltimer", "%pm"};
  if (name == "%tid.y" || name == "%tid.z") return true;
  return std::ranges::none_of(varying_ones,
                              [&](std::string_view each) { return name.starts_with(each); });
}

// Whether its result depends on nothing but its sources.
bool is_pure(Opcode opcode) {
  return (opcode >= Opcode::add && opcode <= Opcode::mov) || opcode == Opcode::prmt ||
         (opcode >= Opcode::isspacep && opcode <= Opcode::getctarank);
}

}  // namespace

template <typename Body>
void LaneShapes::each_result(const ptx::Instruction& instruction, Body&& body) const {
  if (instruction.count == 0) return;
  const ptx::Operand& first = module_.operands[instruction.first];
  if (first.kind == ptx::OperandKind::Name) body(first.text);
  if (first.kind == ptx::OperandKind::Address) return;
  for (const ptx::Operand& child : module_.children(first))
    if (child.kind == ptx::OperandKind::Name) body(child.text);
}

LaneShapes::LaneShapes(const ptx::Module& module, const ptx::Function& function,
                       Definitions& definitions, std::vector<std::string_view> registers)
    : module_(module), definitions_(definitions) {
  for (const ptx::Statement& statement : function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = module_.instructions[statement.index];
    each_result(instruction,
                [&](std::string_view name) { writers_[name].push_back(&instruction); });
  }
  const std::vector<const ptx::Instruction*> all = needed(std::move(registers));
  // Each shape changes three times at most.
  for (bool changed = true; changed;) {
    changed = false;
    for (const ptx::Instruction* each : all) changed |= update(*each);
  }
}

// The instructions that give the registers their values, in the order of the text.
std::vector<const ptx::Instruction*> LaneShapes::needed(
    std::vector<std::string_view> registers) const {
  std::vector<const ptx::Instruction*> out;
  NameSet seen;
  const auto read = [&](const auto& self, const ptx::Operand& operand) -> void {
    if (operand.kind == ptx::OperandKind::Name) registers.push_back(operand.text);
    for (const ptx::Operand& child : module_.children(operand)) self(self, child);
  };
  while (!registers.empty()) {
    const std::string_view name = registers.back();
    registers.pop_back();
    if (!seen.insert(name).second) continue;
    for (const ptx::Instruction* const each : writers(name)) {
      out.push_back(each);
      if (!each->guard.empty()) registers.push_back(each->guard);
      for (const ptx::Operand& operand : module_.operands_of(*each).subspan(1)) read(read, operand);
    }
  }
  std::ranges::sort(out);
  const auto [first, last] = std::ranges::unique(out);
  out.erase(first, last);
  return out;
}

const std::vector<const ptx::Instruction*>& LaneShapes::writers(std::string_view name) const {
  static const std::vector<const ptx::Instruction*> none;
  const auto found = writers_.find(name);
  return found == writers_.end() ? none : found->second;
}

bool LaneShapes::update(const ptx::Instruction& instruction) {
  LaneShape made = result(instruction);
  // Lanes whose guard does not hold keep something else.
  if (!instruction.guard.empty() && made.known() && !of(instruction.guard).uniform())
    made = of(instruction.guard).kind == Kind::unseen ? LaneShape{} : unknown;
  bool changed = false;
  each_result(instruction, [&](std::string_view name) {
    LaneShape& shape = shapes_[name];
    LaneShape next = joined(shape, made);
    if (next.kind == shape.kind && next.values == shape.values) return;
    shape = next;
    changed = true;
  });
  return changed;
}

LaneShape LaneShapes::of(std::string_view name) {
  if (const auto values = definitions_.lanes(name)) return {Kind::exact, *values};
  if (const auto found = shapes_.find(name); found != shapes_.end()) return found->second;
  if (writers_.contains(name)) return {};
  if (!name.starts_with('%')) return same_in_all;  // a variable, a label
  return is_uniform_special(name) ? same_in_all : unknown;
}

LaneShape LaneShapes::of(const ptx::Operand& operand) {
  if (const auto values = definitions_.lanes(operand)) return {Kind::exact, *values};
  if (operand.kind == ptx::OperandKind::Name) return of(operand.text);
  return uniform(operand) ? same_in_all : unknown;
}

bool LaneShapes::uniform(const ptx::Operand& operand) {
  if (operand.kind == ptx::OperandKind::Name) return of(operand.text).uniform();
  return std::ranges::all_of(module_.children(operand),
                             [&](const ptx::Operand& child) { return uniform(child); });
}

// Whether something writes it that was not looked at yet.
bool LaneShapes::unseen(const ptx::Operand& operand) {
  if (operand.kind == ptx::OperandKind::Name) return of(operand.text).kind == Kind::unseen;
  return std::ranges::any_of(module_.children(operand),
                             [&](const ptx::Operand& child) { return unseen(child); });
}

bool LaneShapes::uniform_sources(const ptx::Instruction& instruction) {
  return std::ranges::all_of(module_.operands_of(instruction).subspan(1),
                             [&](const ptx::Operand& each) { return uniform(each); });
}

LaneShape LaneShapes::product(const ptx::Operand& one, const ptx::Operand& other) {
  const LaneShape x = of(one), y = of(other);
  if (x.kind == Kind::exact && x.uniform())
    return sum({Kind::exact, {}}, y, static_cast<std::uint64_t>(x.values[0]));
  if (y.kind == Kind::exact && y.uniform())
    return sum({Kind::exact, {}}, x, static_cast<std::uint64_t>(y.values[0]));
  if (x.kind == Kind::unseen || y.kind == Kind::unseen) return {};
  return x.uniform() && y.uniform() ? same_in_all : unknown;
}

// Of integers: sums and multiples keep the distances between lanes.
LaneShape LaneShapes::arithmetic(const ptx::Instruction& instruction) {
  const isa::Spelling& spelling = module_.spelling(instruction);
  const auto operands = module_.operands_of(instruction);
  const bool low = spelling.has("lo"_q) || spelling.has("wide"_q);
  if (!spelling.types.size || info(spelling.type()).floating) return unknown;
  switch (spelling.opcode) {
    case Opcode::mov:
    case Opcode::cvt:
    case Opcode::cvta: return operands.size() == 2 ? of(operands[1]) : unknown;
    case Opcode::add:
      return operands.size() == 3 ? sum(of(operands[1]), of(operands[2]), 1) : unknown;
    case Opcode::sub:
      return operands.size() == 3 ? sum(of(operands[1]), of(operands[2]), ~std::uint64_t{0})
                                  : unknown;
    case Opcode::mul:
      return operands.size() == 3 && low ? product(operands[1], operands[2]) : unknown;
    case Opcode::mad:
      return operands.size() == 4 && low
                 ? sum(product(operands[1], operands[2]), of(operands[3]), 1)
                 : unknown;
    case Opcode::shl: {
      const LaneShape by = operands.size() == 3 ? of(operands[2]) : unknown;
      if (by.kind != Kind::exact || !by.uniform() || by.values[0] < 0 || by.values[0] > 63)
        return unknown;
      return sum({Kind::exact, {}}, of(operands[1]), std::uint64_t{1} << by.values[0]);
    }
    default: return unknown;
  }
}

LaneShape LaneShapes::result(const ptx::Instruction& instruction) {
  const isa::Spelling& spelling = module_.spelling(instruction);
  const auto operands = module_.operands_of(instruction);
  if (operands.empty()) return unknown;
  const auto sources = operands.subspan(1);
  if (std::ranges::any_of(sources, [&](const ptx::Operand& each) { return unseen(each); }))
    return {};
  switch (spelling.opcode) {
    case Opcode::vote:
    case Opcode::redux:
    case Opcode::activemask:
    case Opcode::bar:
    case Opcode::barrier: return same_in_all;
    case Opcode::shfl: {
      if (sources.size() != 4) return unknown;
      const bool one_lane = spelling.has("idx"_q) && of(sources[1]).uniform() &&
                            sources[2].kind == ptx::OperandKind::Integer && sources[2].value == 31;
      return one_lane || of(sources[0]).uniform() ? same_in_all : unknown;
    }
    case Opcode::ld:
    case Opcode::ldu: return uniform_sources(instruction) ? same_in_all : unknown;
    case Opcode::setp: {
      if (uniform_sources(instruction)) return same_in_all;
      const bool known =
          std::ranges::all_of(sources, [&](const ptx::Operand& each) { return of(each).known(); });
      if (!known || sources.size() < 2) return unknown;
      if (sources.size() == 2 && sum(of(sources[0]), of(sources[1]), ~std::uint64_t{0}).uniform())
        return same_in_all;
      return varying();
    }
    default: break;
  }
  if (!is_pure(spelling.opcode)) return unknown;
  if (const LaneShape shape = arithmetic(instruction); shape.kind != Kind::unknown) return shape;
  if (uniform_sources(instruction)) return same_in_all;
  const bool of_predicates = spelling.types.size && spelling.type() == Type::pred;
  const bool known =
      std::ranges::all_of(sources, [&](const ptx::Operand& each) { return of(each).known(); });
  return of_predicates && known ? varying() : unknown;
}

}  // namespace tartan::TARTAN_ABI::verify
