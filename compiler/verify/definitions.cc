// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/definitions.h"

#include <algorithm>
#include <charconv>

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using isa::Spelling;
using isa::operator""_q;

constexpr int deepest = 24;  // limit of operands followed back

// The low bits of a value, interpreted as a type.
std::int64_t wrapped(std::int64_t value, Type type) {
  const int bits = tartan::bits(type);
  if (bits == 64) return value;
  const auto low = static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << bits) - 1);
  const bool negative = info(type).is_signed && (low >> (bits - 1) & 1);
  return negative ? static_cast<std::int64_t>(low) - (std::int64_t{1} << bits)
                  : static_cast<std::int64_t>(low);
}

bool shifts(const Spelling& spelling) {
  return spelling.opcode == Opcode::shl || spelling.opcode == Opcode::shr;
}

std::optional<std::int64_t> binary(const Spelling& spelling, std::int64_t x, std::int64_t y) {
  const auto logical = static_cast<std::uint64_t>(x), other = static_cast<std::uint64_t>(y);
  if (shifts(spelling) && (y < 0 || y > 63)) return std::nullopt;
  switch (spelling.opcode) {
    case Opcode::add: return static_cast<std::int64_t>(logical + other);
    case Opcode::sub: return static_cast<std::int64_t>(logical - other);
    case Opcode::mul:
      if (!spelling.has("lo"_q)) return std::nullopt;
      return static_cast<std::int64_t>(logical * other);
    case Opcode::and_: return x & y;
    case Opcode::or_: return x | y;
    case Opcode::xor_: return x ^ y;
    case Opcode::shl: return static_cast<std::int64_t>(logical << y);
    case Opcode::shr: return x < 0 ? x >> y : static_cast<std::int64_t>(logical >> y);
    default: return std::nullopt;
  }
}

LaneValues one_lane() {
  LaneValues out{};
  out[0] = 1;
  return out;
}

bool integer_type(const Spelling& spelling) {
  for (const Type type : spelling.types)
    if (info(type).floating || type >= Type::u2) return false;
  return spelling.types.size > 0 && !spelling.has("cc"_q) && !spelling.has("sat"_q);
}

}  // namespace

std::optional<bool> compare_values(const Spelling& spelling, std::int64_t x, std::int64_t y) {
  if (spelling.has("eq"_q)) return x == y;
  if (spelling.has("ne"_q)) return x != y;
  if (spelling.has("lt"_q) || spelling.has("lo"_q)) return x < y;
  if (spelling.has("le"_q) || spelling.has("ls"_q)) return x <= y;
  if (spelling.has("gt"_q) || spelling.has("hi"_q)) return x > y;
  if (spelling.has("ge"_q) || spelling.has("hs"_q)) return x >= y;
  return std::nullopt;
}

bool differs(const LaneValues& values) {
  return std::any_of(values.begin(), values.end(),
                     [&](std::int64_t value) { return value != values[0]; });
}

void Definitions::build() {
  if (built_) return;
  built_ = true;
  writers_.reserve(function_.statements.size());
  const auto write = [&](const ptx::Operand& operand, const ptx::Instruction& by) {
    if (operand.kind != ptx::OperandKind::Name) return;
    const auto [at, fresh] = writers_.try_emplace(operand.text, &by);
    if (!fresh && at->second != &by) at->second = nullptr;
  };
  for (const ptx::Statement& statement : function_.statements) {
    if (statement.kind == ptx::StatementKind::Variable)
      variables_[module_.variables[statement.index].name] = true;
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = module_.instructions[statement.index];
    if (instruction.count == 0) continue;
    const ptx::Operand& first = module_.operands[instruction.first];
    write(first, instruction);
    if (first.kind != ptx::OperandKind::Address)
      for (const ptx::Operand& child : module_.children(first)) write(child, instruction);
  }
  for (const ptx::Variable& variable : module_.variables) variables_[variable.name] = true;
  for (const std::uint32_t index : function_.directives) {
    const ptx::Directive& directive = module_.directives[index];
    if (directive.name != ".reqntid" && directive.name != ".maxntid") continue;
    const std::size_t digits = directive.text.find_first_of("0123456789");
    int x = 0;
    if (digits != std::string_view::npos)
      std::from_chars(directive.text.data() + digits, directive.text.data() + directive.text.size(),
                      x);
    whole_warps_ = whole_warps_ && x >= 32;
  }
}

const ptx::Instruction* Definitions::of(std::string_view name) {
  build();
  const auto at = writers_.find(name);
  return at == writers_.end() || !at->second || !at->second->guard.empty() ? nullptr : at->second;
}

const ptx::Instruction* Definitions::origin(std::string_view& name) {
  const ptx::Instruction* by = of(name);
  for (int steps = 0;
       by && steps < deepest && module_.spelling(*by).opcode == Opcode::mov && by->count == 2;
       ++steps) {
    const ptx::Operand& from = module_.operands[by->first + 1];
    if (from.kind != ptx::OperandKind::Name) break;
    const ptx::Instruction* earlier = of(from.text);
    if (!earlier) break;
    name = from.text;
    by = earlier;
  }
  return by;
}

std::optional<LaneValues> Definitions::lanes(const ptx::Operand& operand, int depth) {
  if (operand.kind == ptx::OperandKind::Integer) {
    LaneValues out;
    out.fill(static_cast<std::int64_t>(operand.value));
    return out;
  }
  if (operand.kind != ptx::OperandKind::Name) return std::nullopt;
  return lanes(operand.text, depth);
}

std::optional<LaneValues> Definitions::lanes(std::string_view name, int depth) {
  build();
  if (depth > deepest) return std::nullopt;
  if (name == "%laneid" || (name == "%tid.x" && whole_warps_)) {
    LaneValues out;
    for (std::size_t lane = 0; lane < out.size(); ++lane)
      out[lane] = static_cast<std::int64_t>(lane);
    return out;
  }
  const ptx::Instruction* by = of(name);
  if (!by) return std::nullopt;
  const auto [known, fresh] = lanes_.try_emplace(name);
  if (!fresh) return known->second;  // nothing while it is being evaluated: a loop
  const auto values = elects(*by, name) ? one_lane() : evaluate(*by, depth + 1);
  lanes_[name] = values;
  return values;
}

// elect.sync r|p, mask: p holds in one lane, chosen by the hardware.
bool Definitions::elects(const ptx::Instruction& by, std::string_view name) const {
  if (module_.spelling(by).opcode != Opcode::elect || by.count == 0) return false;
  const ptx::Operand& first = module_.operands[by.first];
  return first.kind == ptx::OperandKind::Pair && module_.children(first)[1].text == name;
}

std::optional<LaneValues> Definitions::evaluate(const ptx::Instruction& instruction, int depth) {
  const Spelling& spelling = module_.spelling(instruction);
  const auto operands = module_.operands_of(instruction);
  if (!integer_type(spelling) || operands.size() < 2 || operands[0].kind != ptx::OperandKind::Name)
    return std::nullopt;
  const bool converts = spelling.opcode == Opcode::cvt;
  const bool copies = converts || spelling.opcode == Opcode::mov;
  const bool compares = spelling.opcode == Opcode::setp;
  if (!copies && !(compares && operands.size() == 3) && !binary(spelling, 1, 1))
    return std::nullopt;
  const Type type = spelling.types[spelling.types.size - 1u];
  if (operands.size() != (copies ? 2u : 3u)) return std::nullopt;
  std::array<LaneValues, 2> in;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const auto known = lanes(operands[i], depth);
    if (!known) return std::nullopt;
    in[i - 1] = *known;
  }
  LaneValues out;
  for (std::size_t lane = 0; lane < out.size(); ++lane) {
    const std::int64_t x = wrapped(in[0][lane], type), y = copies ? 0 : wrapped(in[1][lane], type);
    if (copies) {
      out[lane] = converts ? wrapped(x, spelling.type()) : x;
    } else if (compares) {
      const auto holds = compare_values(spelling, x, y);
      if (!holds) return std::nullopt;
      out[lane] = *holds;
    } else {
      const auto value = binary(spelling, x, shifts(spelling) ? in[1][lane] : y);
      if (!value) return std::nullopt;
      out[lane] = wrapped(*value, type);
    }
  }
  return out;
}

bool Definitions::is_variable(std::string_view name) {
  build();
  return variables_.contains(name);
}

std::optional<VariableOffset> Definitions::variable(const ptx::Operand& address) {
  if (address.kind != ptx::OperandKind::Address || address.count != 1) return std::nullopt;
  const ptx::Operand& base = module_.operands[address.first];
  if (base.kind != ptx::OperandKind::Name) return std::nullopt;
  auto found = variable(base.text, 0);
  if (found) found->offset = plus(found->offset, address.value);
  return found;
}

std::optional<VariableOffset> Definitions::variable(std::string_view name, int depth) {
  if (depth > deepest) return std::nullopt;
  const ptx::Instruction* by = of(name);
  if (!by) return is_variable(name) ? std::optional(VariableOffset{name, 0}) : std::nullopt;
  const auto operands = module_.operands_of(*by);
  if (operands.size() < 2 || operands[1].kind != ptx::OperandKind::Name) return std::nullopt;
  const Opcode opcode = module_.spelling(*by).opcode;
  if ((opcode == Opcode::mov || opcode == Opcode::cvta || opcode == Opcode::cvt) &&
      operands.size() == 2)
    return variable(operands[1].text, depth + 1);
  if (opcode != Opcode::add || operands.size() != 3 ||
      operands[2].kind != ptx::OperandKind::Integer)
    return std::nullopt;
  auto found = variable(operands[1].text, depth + 1);
  if (found) found->offset = plus(found->offset, operands[2].value);
  return found;
}

}  // namespace tartan::TARTAN_ABI::verify
