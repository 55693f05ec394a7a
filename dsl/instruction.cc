// SPDX-License-Identifier: Apache-2.0
// Matrix instructions by name.
#include "compiler/isa/instruction.h"

#include "dsl/state.h"

namespace tartan::detail {
namespace {

using codegen::Pointer;
using codegen::Value;

bool is_memory(const isa::Form& form) {
  return form.opcode == isa::Opcode::ldmatrix || form.opcode == isa::Opcode::stmatrix ||
         form.opcode == isa::Opcode::wmma_load || form.opcode == isa::Opcode::wmma_store;
}

// How many scalars the operands of an instruction are, d left out.
std::size_t scalar_count(const isa::Instruction& row) {
  std::size_t out = 0;
  for (const isa::OperandSpec& spec : row.operands)
    if (spec.role != isa::Role::d)
      out += spec.kind == isa::OperandKind::Vector ? static_cast<std::size_t>(spec.count)
             : spec.kind == isa::OperandKind::Pair ? 2
                                                   : 1;
  return out;
}

std::optional<isa::Instruction> find(KernelState& state, std::string_view spelling,
                                     std::size_t operands) {
  if (isa::matrix_opcode(spelling) == isa::Opcode::none) {
    state.report("unknown-form"_rule, fmt::format("{} is no matrix instruction", spelling));
    return std::nullopt;
  }
  isa::FormText text = isa::parse_form(spelling);
  auto row = text.unknown.empty() && text.repeated.empty() ? isa::find(text.form) : std::nullopt;
  if (row &&
      (text.form.opcode == isa::Opcode::wmma_load || text.form.opcode == isa::Opcode::wmma_store) &&
      operands > scalar_count(*row)) {
    text.form.stride = true;
    row = isa::find(text.form);
  }
  if (!row || row->form.opcode == isa::Opcode::wgmma) {
    const auto nearest = isa::nearest(text.form, state.target);
    state.report("unknown-form"_rule,
                 fmt::format("there is no instruction {}{}", spelling,
                             nearest ? "; the nearest on " + state.target.text() + " is " +
                                           isa::spell(*nearest)
                                     : ""));
    return std::nullopt;
  }
  if (row->since.has(state.target)) return row;
  state.report(
      "no-instruction"_rule,
      fmt::format("{} exists from {} with PTX {} on, the target is {}", isa::spell(row->form),
                  isa::oldest(row->since).text(), row->since.ptx.text(), state.target.text()));
  return std::nullopt;
}

// One operand against what the row takes; gives the value, or reports.
std::optional<Value> operand(KernelState& state, const isa::Instruction& row,
                             const isa::OperandSpec& spec, const Scalar& scalar) {
  const auto wrong = [&](std::string_view expected) {
    state.report(
        "scalar-type"_rule,
        fmt::format("operand {} of {} takes {}, found {}", name(spec.role), isa::spell(row.form),
                    expected,
                    scalar.constant() ? fmt::format("the constant {}", *scalar.constant())
                                      : fmt::format("a value of type {}", name(scalar.type()))));
    return std::nullopt;
  };
  if (spec.kind == isa::OperandKind::Immediate) {
    const auto constant = scalar.constant();
    if (!constant) return wrong("a constant");
    if (*constant < spec.low || *constant > spec.high)
      return wrong(fmt::format("a constant from {} to {}", spec.low, spec.high));
    return state.f().constant(u32, *constant);
  }
  const Type type = spec.kind == isa::OperandKind::Address ? u32
                    : spec.kind == isa::OperandKind::Pair  ? u16
                                                           : spec.type;
  if (scalar.constant()) return state.value(scalar, type);
  if (bits(scalar.type()) != bits(type)) return wrong(fmt::format("{} bits", bits(type)));
  return state.f().bitcast(state.value(scalar), type);
}

}  // namespace

std::vector<Scalar> KernelState::instruction(std::string_view spelling,
                                             std::span<const Scalar> operands) {
  const auto row = find(*this, spelling, operands.size());
  if (!row) return std::vector<Scalar>(16, bad());  // more registers than any instruction has
  const isa::OperandSpec* d = row->operand(isa::Role::d);
  const std::size_t results = d ? static_cast<std::size_t>(d->count) : 0;
  if (operands.size() != scalar_count(*row)) {
    report("operand-count"_rule,
           fmt::format("{} takes {} operands ({}), found {}", isa::spell(row->form),
                       scalar_count(*row), isa::operands_text(*row), operands.size()));
    return std::vector<Scalar>(results, bad());
  }
  Pointer address;
  std::vector<Value> values;
  bool good = true;
  std::size_t next = 0;
  for (const isa::OperandSpec& spec : row->operands) {
    if (spec.role == isa::Role::d) continue;
    const int count = spec.kind == isa::OperandKind::Vector ? spec.count
                      : spec.kind == isa::OperandKind::Pair ? 2
                                                            : 1;
    for (int i = 0; i < count; ++i, ++next) {
      const Scalar& scalar = operands[next];
      if (is_bad(scalar) || (state_of(scalar) && !owns(scalar, "an operand"))) {
        good = false;
        continue;
      }
      const auto value = operand(*this, *row, spec, scalar);
      if (!value) good = false;
      else if (spec.kind == isa::OperandKind::Address) address = f().shared_pointer(*value);
      else values.push_back(*value);
    }
  }
  if (!good) return std::vector<Scalar>(results, bad());
  isa::Form form = row->form;
  if (is_memory(form) && form.space == Space::none)
    form.space = Space::shared;  // the address is one of shared memory
  std::vector<Scalar> out;
  for (const Value& value : f().matrix(form, address, values)) out.push_back(scalar(value));
  return out;
}

}  // namespace tartan::detail
