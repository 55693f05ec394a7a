// SPDX-License-Identifier: Apache-2.0
#include "dsl/in_flight.h"

#include <algorithm>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

using codegen::Value;
using codegen::Variable;

bool FlightLog::is_open(int scope) const {
  return std::find(scopes.begin(), scopes.end(), scope) != scopes.end();
}

int FlightLog::newer(int group, std::size_t count) const {
  return static_cast<int>(std::count_if(commits.begin() + group,
                                        commits.begin() + static_cast<std::ptrdiff_t>(count),
                                        [&](int scope) { return is_open(scope); }));
}

bool FlightLog::all_landed() const {
  return commits.empty() || std::any_of(landings.begin(), landings.end(), [&](const Landing& each) {
           return each.group == static_cast<int>(commits.size()) && is_open(each.scope);
         });
}

namespace {

std::vector<Value> get_all(codegen::FunctionBuilder& f, const std::vector<Variable>& variables) {
  std::vector<Value> out;
  for (const Variable& each : variables) out.push_back(f.get(each));
  return out;
}

// Waits, and lets the values come out of the wait: nothing that looks at them moves above it.
std::vector<Value> wait(codegen::FunctionBuilder& f, int pending,
                        const std::vector<Variable>& variables, const std::vector<Value>& kept) {
  const std::vector<Value> landed = f.warpgroup_wait(pending, get_all(f, variables), kept);
  for (std::size_t i = 0; i < variables.size(); ++i) f.set(variables[i], landed[i]);
  return landed;
}

std::vector<Value> kept_of(const Departure& departure) {
  return departure.kept ? *departure.kept : std::vector<Value>();
}

}  // namespace

bool KernelState::has_landed(const Flight& flight) const {
  return std::any_of(flight.landings.begin(), flight.landings.end(),
                     [&](int scope) { return log.is_open(scope); });
}

void KernelState::land(Flight& flight) {
  if (has_landed(flight) || land_before_body(flight)) return;
  const Departure& departure = flight.departure;
  const bool in_sight = log.is_open(departure.scope);
  const std::vector<Value> kept = in_sight ? kept_of(departure) : std::vector<Value>();
  // A copy that is still in flight would have to be moved from registers that are being written.
  if (flight.copied >= 0) {
    f().at_mark(flight.copied, [&] { (void)wait(f(), 0, flight.registers, kept); });
    flight.landings.push_back(flight.copied_scope);
    if (has_landed(flight)) return;
  }
  const bool known = departure.group && flight.copied < 0 && in_sight;
  const int pending = known ? log.newer(departure.group) : 0;
  const std::vector<Value> landed = wait(f(), pending, flight.registers, kept);
  // The variable, too: two values of it, before and after, would not fit the same registers.
  auto next = landed.begin();
  for (const auto& [variable, version] : flight.sources) {
    const bool same = variable->version == version;
    for (const Variable& to : variable->registers) {
      if (same) f().set(to, *next);
      ++next;
    }
    if (same) variable->flying.reset();
  }
  flight.landings.push_back(log.scopes.back());
  log.landings.push_back(
      {pending ? departure.group : static_cast<int>(log.commits.size()), log.scopes.back()});
}

// Variables that were in flight in front of a body and are looked at in it: waited for there. The
// assembler sees no wait that is in one branch only.
bool KernelState::land_before_body(Flight& flight) {
  if (flight.sources.empty()) return false;
  const auto was_flying = [&](const BeforeBody& body) {
    return std::all_of(flight.sources.begin(), flight.sources.end(), [&](const auto& source) {
      return std::any_of(body.variables.begin(), body.variables.end(), [&](const auto& before) {
        return before.record == source.variable && before.version == source.version;
      });
    });
  };
  const auto body = std::find_if(log.bodies.begin(), log.bodies.end(), was_flying);
  if (body == log.bodies.end()) return false;
  std::vector<Variable> all;
  for (const auto& [variable, version] : flight.sources) {
    all.insert(all.end(), variable->registers.begin(), variable->registers.end());
    variable->flying.reset();
    for (auto inside = body; inside != log.bodies.end(); ++inside)
      for (BeforeBody::Variable& before : inside->variables)
        if (before.record == variable) before.flying.reset();
  }
  const Departure& departure = flight.departure;
  const bool known = departure.group && log.is_open(departure.scope);
  const int pending =
      known ? log.newer(departure.group, static_cast<std::size_t>(body->commits)) : 0;
  f().at_mark(body->mark, [&] {
    (void)wait(f(), pending, all, known ? kept_of(departure) : std::vector<Value>());
  });
  flight.landings.push_back(body->scope);
  return true;
}

void KernelState::land_all() {
  if (!fill.read_by_wgmma || roles.current == Role::producer) return;
  (void)f().warpgroup_wait(0, {}, {});
  log.landings.push_back({static_cast<int>(log.commits.size()), log.scopes.back()});
}

std::vector<Value> KernelState::registers(const Fragment& fragment) {
  if (fragment.variable_) fragment.variable_->observed = fragment.state_->log.clock;
  if (!fragment.flight_) return fragment.registers_;
  fragment.state_->land(*fragment.flight_);
  return flying_registers(fragment);
}

std::vector<Value> KernelState::flying_registers(const Fragment& fragment) {
  if (!fragment.flight_) return fragment.registers_;
  KernelState& state = *fragment.state_;
  Flight& flight = *fragment.flight_;
  if (flight.sources.empty() && flight.copied < 0 && !state.has_landed(flight)) {
    flight.copied = state.f().mark();
    flight.copied_scope = state.log.scopes.back();
  }
  std::vector<Value> out;
  for (std::size_t i = 0; i < fragment.registers_.size(); ++i)
    out.push_back(state.f().get(flight.registers[fragment.first_ + i]));
  return out;
}

std::vector<Fragment> KernelState::take_off(const std::vector<Fragment>& like,
                                            const std::vector<Value>& registers,
                                            std::vector<Value> kept) {
  std::vector<Fragment> out;
  auto flight = std::make_shared<Flight>();
  std::size_t next = 0;
  for (const Fragment& each : like) {
    const std::size_t count = each.registers_.size();
    const auto first = registers.begin() + static_cast<std::ptrdiff_t>(next);
    out.push_back(fragment(each.kind(), {first, first + static_cast<std::ptrdiff_t>(count)}));
    out.back().flight_ = flight, out.back().first_ = next;
    next += count;
  }
  for (const Value& each : registers) flight->registers.push_back(f().variable(each));
  log.commits.push_back(log.scopes.back());
  flight->departure = {static_cast<int>(log.commits.size()), log.scopes.back(),
                       std::make_shared<const std::vector<Value>>(std::move(kept))};
  return out;
}

bool KernelState::still_zero(const Fragment& fragment) const {
  const auto& record = fragment.variable_;
  return record && record->version == 0 && record->scope == log.scopes.back();
}

void KernelState::assign(FragmentVariable& variable, const Fragment& fragment) {
  const auto& state = variable.state_;
  if (!state || !state->takes_calls("the variable") || !state->owns(fragment, "the fragment") ||
      is_bad(fragment))
    return;
  if (!(fragment.kind_ == variable.kind_)) {
    state->report("fragment-mismatch"_rule,
                  fmt::format("type mismatch: a variable for {} cannot hold {}",
                              variable.kind_.text(), fragment.kind_.text()));
    return;
  }
  VariableRecord& record = *variable.record_;
  const Flight* const flight = fragment.flight_.get();
  const bool flies = flight && flight->sources.empty() && !state->has_landed(*flight);
  const std::vector<Value> values = flies ? flying_registers(fragment) : registers(fragment);
  for (std::size_t i = 0; i < record.registers.size(); ++i)
    state->f().set(record.registers[i], values[i]);
  ++record.version;
  record.flying = flies ? std::optional(flight->departure) : std::nullopt;
}

std::vector<Fragment> KernelState::read(std::span<const FragmentVariable> variables) {
  std::vector<Fragment> out;
  const auto& state = variables.empty() ? nullptr : variables[0].state_;
  if (!state || !state->takes_calls("the variable")) return std::vector<Fragment>(variables.size());
  const bool flying = std::any_of(variables.begin(), variables.end(), [](const auto& each) {
    return each.record_->flying.has_value();
  });
  const auto flight = flying ? state->flight_of(variables) : nullptr;
  std::size_t first = 0;
  for (const FragmentVariable& each : variables) {
    const VariableRecord& record = *each.record_;
    Fragment fragment = state->fragment(each.kind_, get_all(state->f(), record.registers));
    fragment.made_ = each.made_;
    fragment.variable_ = each.record_;
    fragment.flight_ = flight, fragment.first_ = first;
    first += record.registers.size();
    out.push_back(std::move(fragment));
  }
  return out;
}

// The same for all who read the same variables before anyone waits.
std::shared_ptr<Flight> KernelState::flight_of(std::span<const FragmentVariable> variables) {
  const VariableRecord& one = *variables[0].record_;
  const auto before = one.flight.lock();
  if (before && log.is_open(before->read_scope) && before->sources.size() == variables.size() &&
      std::equal(variables.begin(), variables.end(), before->sources.begin(),
                 [](const FragmentVariable& x, const Flight::Source& y) {
                   return x.record_ == y.variable && x.record_->version == y.version;
                 }))
    return before;
  auto out = std::make_shared<Flight>();
  if (one.flying) out->departure = *one.flying;
  out->read_scope = log.scopes.back();
  for (const FragmentVariable& each : variables) {
    VariableRecord& record = *each.record_;
    if (!record.flying || record.flying->group != out->departure.group) out->departure.group = 0;
    for (const Value& value : get_all(f(), record.registers))
      out->registers.push_back(f().variable(value));
    out->sources.push_back({each.record_, record.version});
    record.flight = out;
  }
  return out;
}

BeforeBody KernelState::before_body(bool loops) {
  BeforeBody out{.scope = log.scopes.back(), .loops = loops};
  for (const auto& each : log.variables)
    if (each->flying) out.variables.push_back({each, each->version, each->flying});
  if (!out.variables.empty()) out.mark = f().mark();
  out.commits = static_cast<int>(log.commits.size());
  return out;
}

// What was in flight in front of a body still is where the body did not run; what the body leaves
// in flight is when it runs again.
void KernelState::in_body(BeforeBody before, const std::function<void()>& body) {
  const int begin = ++log.clock;
  log.scopes.push_back(++log.scope_count);
  log.bodies.push_back(std::move(before));
  body();
  before = std::move(log.bodies.back());
  log.bodies.pop_back();
  std::vector<Variable> looked_at;
  for (const auto& each : log.variables) {
    if (!before.loops || !each->flying || each->observed < begin) continue;
    looked_at.insert(looked_at.end(), each->registers.begin(), each->registers.end());
    each->flying.reset();
  }
  if (!looked_at.empty()) (void)wait(f(), 0, looked_at, {});
  log.scopes.pop_back();
  ++log.clock;
  for (const auto& [record, version, flying] : before.variables) {
    if (!flying) continue;
    record->flight.reset();
    if (!record->flying) record->flying = flying;
    else if (record->flying->group != flying->group) record->flying->group = 0;
  }
}

FragmentVariable KernelState::fragment_variable(const FragmentKind& kind,
                                                std::vector<Variable> registers) {
  if (registers.empty())
    report("fragment-mismatch"_rule, fmt::format("no such fragment: {}", kind.text()));
  FragmentVariable out;
  if (registers.empty() || !is_described()) return out;
  out.state_ = shared_from_this();
  out.kind_ = kind;
  out.record_ = std::make_shared<VariableRecord>();
  out.record_->registers = std::move(registers);
  out.record_->scope = log.scopes.back();
  out.made_ = place;
  log.variables.push_back(out.record_);
  return out;
}

}  // namespace tartan::inline TARTAN_ABI::detail
