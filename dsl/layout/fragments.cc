// SPDX-License-Identifier: Apache-2.0
#include "dsl/layout/fragments.h"
#include "dsl/state/scalars.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::detail {

using ir::Value;
using Parts = HandleParts;

Fragment make_fragment(KernelState& state, const FragmentKind& kind, std::vector<Value> registers,
                       Major major) {
  if (!state.is_described()) return {};
  Fragment out;
  Parts::state(out) = state.shared_from_this();
  Parts::kind(out) = kind;
  Parts::registers(out) = std::move(registers);
  Parts::major(out) = major;
  Parts::made(out) = state.log.place();
  return out;
}

namespace {

// What codegen::values_out_of_scope() says of values that are in no variable.
void check_scope(KernelState& state, const Fragment& fragment) {
  const auto& flight = Parts::flight(fragment);
  if (!flight || flight->told || !state.flights.is_out_of_scope(*flight)) return;
  flight->told = true;
  const Place &made = flight->made, &used = state.log.place();
  state.log.report(
      "value-scope"_rule,
      fmt::format("the value made {} in the body of a loop, condition or pipeline is used after "
                  "it: expected a variable() or an accumulator to carry it out",
                  made.file == used.file ? fmt::format("on line {}", made.line)
                                         : fmt::format("at {}:{}", made.file, made.line)));
}

}  // namespace

std::vector<Value> registers_of(const Fragment& fragment) {
  KernelState* const state = state_of(fragment).get();
  check_scope(*state, fragment);
  if (const auto& variable = Parts::variable(fragment)) state->flights.observe(*variable);
  if (const auto& flight = Parts::flight(fragment)) state->flights.land(state->f(), *flight);
  return flying_registers(fragment);
}

std::vector<Value> flying_registers(const Fragment& fragment) {
  const auto& flight = Parts::flight(fragment);
  if (!flight) return Parts::registers(fragment);
  KernelState& state = *state_of(fragment);
  check_scope(state, fragment);
  return state.flights.copy(state.f(), *flight, Parts::first(fragment),
                            Parts::registers(fragment).size());
}

std::vector<Fragment> take_off(KernelState& state, const std::vector<Fragment>& like,
                               const std::vector<Value>& registers, std::vector<Value> kept) {
  const auto flight = state.flights.depart(state.f(), registers, std::move(kept));
  flight->made = state.log.place();
  std::vector<Fragment> out;
  std::size_t next = 0;
  for (const Fragment& each : like) {
    const std::size_t count = Parts::registers(each).size();
    const auto first = registers.begin() + static_cast<std::ptrdiff_t>(next);
    out.push_back(
        make_fragment(state, each.kind(), {first, first + static_cast<std::ptrdiff_t>(count)}));
    Parts::flight(out.back()) = flight, Parts::first(out.back()) = next;
    next += count;
  }
  return out;
}

void land_all(KernelState& state) {
  if (state.has_wgmma && state.roles.current != Role::producer) state.flights.land_all(state.f());
}

FragmentVariable make_variable(KernelState& state, const FragmentKind& kind,
                               std::vector<ir::Variable> registers) {
  if (registers.empty())
    state.log.report("fragment-mismatch"_rule, fmt::format("no such fragment: {}", kind.text()));
  FragmentVariable out = Parts::fragment_variable();
  if (registers.empty() || !state.is_described()) return out;
  Parts::state(out) = state.shared_from_this();
  Parts::kind(out) = kind;
  Parts::record(out) = state.flights.declare(std::move(registers));
  Parts::made(out) = state.log.place();
  return out;
}

void assign(FragmentVariable& variable, const Fragment& fragment) {
  const auto& state = state_of(variable);
  if (!is_made(state, "the variable") || !state->takes_calls("the variable") ||
      !state->owns(fragment, "the fragment") || is_bad(fragment))
    return;
  const FragmentKind& kind = Parts::kind(variable);
  if (!(fragment.kind() == kind)) {
    state->log.report("fragment-mismatch"_rule,
                      fmt::format("type mismatch: a variable for {} cannot hold {}", kind.text(),
                                  fragment.kind().text()));
    return;
  }
  VariableRecord& record = *Parts::record(variable);
  const Flight* const flight = Parts::flight(fragment).get();
  const bool flies = flight && flight->sources.empty() && !state->flights.has_landed(*flight);
  const std::vector<Value> values = flies ? flying_registers(fragment) : registers_of(fragment);
  for (std::size_t i = 0; i < record.registers.size(); ++i)
    state->f().set(record.registers[i], values[i]);
  ++record.version;
  record.flying = flies ? std::optional(flight->departure) : std::nullopt;
}

std::vector<Fragment> read(std::span<const FragmentVariable> variables) {
  const auto& state = variables.empty() ? nullptr : state_of(variables[0]);
  if (!variables.empty() && !is_made(state, "the variable"))
    return std::vector<Fragment>(variables.size());
  if (!state || !state->takes_calls("the variable")) return std::vector<Fragment>(variables.size());
  std::vector<std::shared_ptr<VariableRecord>> records;
  for (const FragmentVariable& each : variables) records.push_back(Parts::record(each));
  const bool flying = std::any_of(records.begin(), records.end(),
                                  [](const auto& each) { return each->flying.has_value(); });
  const auto flight = flying ? state->flights.of(state->f(), records) : nullptr;
  if (flight && !flight->made.line) flight->made = state->log.place();
  std::vector<Fragment> out;
  std::size_t first = 0;
  for (const FragmentVariable& each : variables) {
    const auto& record = Parts::record(each);
    std::vector<Value> registers;
    for (const ir::Variable& one : record->registers) registers.push_back(state->f().get(one));
    Fragment fragment = make_fragment(*state, Parts::kind(each), std::move(registers));
    Parts::made(fragment) = Parts::made(each);
    Parts::variable(fragment) = record;
    Parts::flight(fragment) = flight, Parts::first(fragment) = first;
    first += record->registers.size();
    out.push_back(std::move(fragment));
  }
  return out;
}

bool is_still_zero(const KernelState& state, const Fragment& fragment) {
  const auto& variable = Parts::variable(fragment);
  return variable && state.flights.is_untouched(*variable);
}

}  // namespace tartan::TARTAN_ABI::detail
