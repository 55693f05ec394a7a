// SPDX-License-Identifier: Apache-2.0
// Matrix instructions by name.
#include "dsl/cluster/cluster.h"
#include "dsl/layout/addressing.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/ptx/assembly.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Pointer;
using ir::Value;

bool is_memory(const isa::Form& form) {
  return form.opcode == isa::Opcode::ldmatrix || form.opcode == isa::Opcode::stmatrix ||
         form.opcode == isa::Opcode::wmma_load || form.opcode == isa::Opcode::wmma_store;
}

// The number of scalars of an operand.
int scalars(const isa::OperandSpec& spec) {
  return spec.kind == isa::OperandKind::Vector ? spec.count
         : spec.kind == isa::OperandKind::Pair ? 2
                                               : 1;
}

// The number of scalars of an instruction's operands, without d, and without the address if it is
// given separately.
std::size_t scalar_count(const isa::Instruction& row, bool with_address) {
  int out = 0;
  for (const isa::OperandSpec& spec : row.operands)
    if (spec.role != isa::Role::d && (with_address || spec.kind != isa::OperandKind::Address))
      out += scalars(spec);
  return static_cast<std::size_t>(out);
}

// The constants that an operand accepts; empty if it accepts any.
std::string constants(const isa::OperandSpec& spec, int part) {
  if (spec.kind == isa::OperandKind::Immediate)
    return fmt::format("a constant from {} to {}", spec.low, spec.high);
  if (spec.kind != isa::OperandKind::Pair) return "";
  if (part == 1) return fmt::format("a thread-id from 0 to {}", spec.threads - 1);
  return fmt::format("a byte-id from 0 to {} in steps of {}", spec.high, spec.step);
}

bool takes(const isa::OperandSpec& spec, int part, std::int64_t constant) {
  switch (spec.kind) {
    case isa::OperandKind::Immediate: return constant >= spec.low && constant <= spec.high;
    case isa::OperandKind::Pair:
      if (part == 1) return constant >= 0 && constant < spec.threads;
      return constant >= 0 && constant <= spec.high && constant % spec.step == 0;
    default: return true;
  }
}

// Whether an instruction with state space `space` accepts a pointer to `memory`.
bool reaches(StateSpace space, StateSpace memory) {
  return space == StateSpace::none ||
         (space == StateSpace::global) == (memory == StateSpace::global);
}

// Its registers may not move between a product and its wait, which only the tiled MMA sees to.
void refuse_warpgroup(KernelState& state, std::string_view spelling) {
  state.log.report("no-instruction"_rule,
                   fmt::format("{} by name: warpgroups multiply by k.tiled_mma() of a best_mma() "
                               "kind, which issues wgmma with its fences and waits",
                               spelling));
}

std::string nearest_text(const KernelState& state, const isa::Form& form) {
  const auto nearest = isa::nearest(form, state.config.target);
  return nearest ? fmt::format("; the nearest on {} is {}", state.config.target.text(),
                               isa::spell(*nearest))
                 : "";
}

std::optional<isa::Instruction> find(KernelState& state, std::string_view spelling,
                                     std::size_t operands, bool with_address) {
  if (isa::matrix_opcode(spelling) == isa::Opcode::none) {
    if (spelling.starts_with("wgmma.")) refuse_warpgroup(state, spelling);
    else
      state.log.report("unknown-form"_rule,
                       fmt::format("{} is not a matrix instruction", spelling));
    return std::nullopt;
  }
  isa::FormText text = isa::parse_form(spelling);
  auto row = text.unknown.empty() && text.repeated.empty() ? isa::find(text.form) : std::nullopt;
  if (row &&
      (text.form.opcode == isa::Opcode::wmma_load || text.form.opcode == isa::Opcode::wmma_store) &&
      operands > scalar_count(*row, with_address)) {
    text.form.stride = true;
    row = isa::find(text.form);
  }
  if (row && row->form.opcode == isa::Opcode::wgmma)
    return refuse_warpgroup(state, spelling), std::nullopt;
  if (!row) {
    state.log.report("unknown-form"_rule, fmt::format("unknown instruction {}{}", spelling,
                                                      nearest_text(state, text.form)));
    return std::nullopt;
  }
  if (row->since.has(state.config.target)) return row;
  state.log.refuse_target(*row);
  return std::nullopt;
}

}  // namespace

std::optional<Value> instruction_operand(KernelState& state, const isa::Instruction& row,
                                         const isa::OperandSpec& spec, const Scalar& scalar,
                                         int part) {
  const auto wrong = [&](const std::string& expected) {
    state.log.report("scalar-type"_rule,
                     fmt::format("operand {} of {}: expected {}, found {}", name(spec.role),
                                 isa::spell(row.form), expected, text(scalar)));
    return std::nullopt;
  };
  if (is_bad(scalar) || (state_of(scalar) && !state.owns(scalar, "an operand")))
    return std::nullopt;
  const auto constant = scalar.constant();
  if (constant && !takes(spec, part, *constant)) return wrong(constants(spec, part));
  if (spec.kind == isa::OperandKind::Immediate)
    return constant ? std::optional(state.f().constant(u32, *constant)) : wrong("a constant");
  const Type type = spec.kind == isa::OperandKind::Address ? u32
                    : spec.kind == isa::OperandKind::Pair  ? u16
                                                           : spec.type;
  if (constant) return state.value(scalar, type);
  if (bits(scalar.type()) != bits(type)) return wrong(fmt::format("{} bits", bits(type)));
  return state.f().bitcast(state.value(scalar), type);
}

bool has_instruction(KernelState& state, std::string_view spelling) {
  const auto answer = [&](const Since& since) {
    state.log.asks(since);
    return since.has(state.config.target);
  };
  if (isa::matrix_opcode(spelling) != isa::Opcode::none) {
    const isa::FormText text = isa::parse_form(spelling);
    if (text.unknown.empty() && text.repeated.empty())
      if (const auto row = isa::find(text.form)) return answer(row->since);
    state.log.report("unknown-form"_rule, fmt::format("has(): there is no instruction {}{}",
                                                      spelling, nearest_text(state, text.form)));
    return false;
  }
  const isa::Spelling read = isa::read_spelling(spelling);
  if (read.signatures.empty()) {
    state.log.report(
        "unknown-form"_rule,
        fmt::format("has(): there is no instruction {}: {}", spelling,
                    read.opcode == isa::Opcode::none ? "no such opcode" : isa::mismatch(read)));
    return false;
  }
  const Since* soonest = nullptr;  // of what the signatures lack
  for (const isa::Signature* const signature : read.signatures) {
    const Since* const lacks = isa::missing(*signature, read, state.config.target);
    if (!lacks) return true;
    if (!lacks->has(state.config.target.arch)) continue;
    if (!soonest || lacks->ptx < soonest->ptx) soonest = lacks;
  }
  return soonest && answer(*soonest);
}

std::vector<Scalar> named_instruction(KernelState& state, std::string_view spelling,
                                      std::span<const Scalar> operands, const Pointer* address) {
  if (!address && isa::matrix_opcode(spelling) == isa::Opcode::none)
    return any_instruction(state, spelling, operands);
  const auto row = find(state, spelling, operands.size(), !address);
  if (!row)
    return std::vector<Scalar>(16, bad_scalar());  // more registers than any instruction has
  const isa::OperandSpec* d = row->operand(isa::Role::d);
  const std::vector<Scalar> refused(d ? static_cast<std::size_t>(d->count) : 0, bad_scalar());
  const std::size_t wanted = scalar_count(*row, !address);
  isa::Form form = row->form;
  if (operands.size() != wanted || (address && !is_memory(form))) {
    state.log.report("operand-count"_rule,
                     fmt::format("wrong number of operands: {} takes {} ({}), found {}{}",
                                 isa::spell(form), wanted, isa::operands_text(*row),
                                 operands.size(), address ? " and an address" : ""));
    return refused;
  }
  if (address && !reaches(form.space, address->space)) {
    state.log.report(
        "layout-mismatch"_rule,
        fmt::format("wrong state space: {} addresses {} memory, the pointer is to {} memory",
                    isa::spell(form), form.space == StateSpace::global ? "global" : "shared",
                    form.space == StateSpace::global ? "shared" : "global"));
    return refused;
  }
  Pointer place = address ? *address : Pointer{};
  std::vector<Value> values;
  bool good = true;
  for (const isa::OperandSpec& spec : row->operands) {
    if (spec.role == isa::Role::d || (address && spec.kind == isa::OperandKind::Address)) continue;
    for (int i = 0; i < scalars(spec); ++i) {
      const auto value = instruction_operand(state, *row, spec, operands.front(), i);
      operands = operands.subspan(1);
      if (!value) good = false;
      else if (spec.kind == isa::OperandKind::Address) place = state.f().shared_pointer(*value);
      else values.push_back(*value);
    }
  }
  if (!good || !by_all_lanes(state, "instruction()")) return refused;
  if (!address && is_memory(form) && form.space == StateSpace::none)
    form.space = StateSpace::shared;  // the address is one of shared memory
  std::vector<Scalar> out;
  for (const Value& value : state.f().matrix(form, place, values))
    out.push_back(state.scalar(value));
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail

namespace tartan::TARTAN_ABI {

namespace {

std::vector<Scalar> at_element(detail::KernelState& state, std::string_view spelling,
                               const detail::Tensor& memory, const Scalar& row, const Scalar& col,
                               const std::vector<Scalar>& operands) {
  if (refuse_remote(state, memory, spelling)) return std::vector<Scalar>(16, detail::bad_scalar());
  const auto address = checked_address(state, memory, row, col);
  if (!address) return std::vector<Scalar>(16, detail::bad_scalar());
  if (state.memories.of(memory).in_shared) state.roles.note_read(detail::StageAccess::load);
  return named_instruction(state, spelling, operands, &*address);
}

}  // namespace

std::vector<Scalar> Builder::instruction(std::string_view spelling, const Global& memory,
                                         const Scalar& row, const Scalar& col,
                                         const std::vector<Scalar>& operands, Here at) {
  state_->at(at);
  return at_element(*state_, spelling, detail::tensor_of(memory), row, col, operands);
}
std::vector<Scalar> Builder::instruction(std::string_view spelling, const Shared& memory,
                                         const Scalar& row, const Scalar& col,
                                         const std::vector<Scalar>& operands, Here at) {
  state_->at(at);
  return at_element(*state_, spelling, detail::tensor_of(memory), row, col, operands);
}

}  // namespace tartan::TARTAN_ABI
