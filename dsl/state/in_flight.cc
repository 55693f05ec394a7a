// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/in_flight.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::detail {

using ir::FunctionBuilder;
using ir::Value;
using ir::Variable;

namespace {

std::vector<Value> get_all(FunctionBuilder& f, const std::vector<Variable>& variables) {
  std::vector<Value> out;
  for (const Variable& each : variables) out.push_back(f.get(each));
  return out;
}

// Waits, and passes the values through the wait, so that their uses do not move above it.
std::vector<Value> wait(FunctionBuilder& f, int pending, const std::vector<Variable>& variables,
                        const std::vector<Value>& kept) {
  const std::vector<Value> landed = f.warpgroup_wait(pending, get_all(f, variables), kept);
  for (std::size_t i = 0; i < variables.size(); ++i) f.set(variables[i], landed[i]);
  return landed;
}

std::vector<Value> kept_of(const Departure& departure) {
  return departure.kept ? *departure.kept : std::vector<Value>();
}

}  // namespace

bool Flights::is_open(int scope) const {
  return std::find(scopes_.begin(), scopes_.end(), scope) != scopes_.end();
}

int Flights::newer(int group, std::size_t count) const {
  return static_cast<int>(std::count_if(commits_.begin() + group,
                                        commits_.begin() + static_cast<std::ptrdiff_t>(count),
                                        [&](int scope) { return is_open(scope); }));
}

bool Flights::all_landed() const {
  return commits_.empty() ||
         std::any_of(landings_.begin(), landings_.end(), [&](const Landing& each) {
           return each.group == static_cast<int>(commits_.size()) && is_open(each.scope);
         });
}

bool Flights::has_landed(const Flight& flight) const {
  return std::any_of(flight.landings.begin(), flight.landings.end(),
                     [&](int scope) { return is_open(scope); });
}

void Flights::land(FunctionBuilder& f, Flight& flight) {
  if (has_landed(flight) || land_before_body(f, flight)) return;
  if (is_overtaken(flight)) return land_where_read(f, flight);
  const Departure& departure = flight.departure;
  const bool in_sight = is_open(departure.scope);
  const std::vector<Value> kept = in_sight ? kept_of(departure) : std::vector<Value>();
  // A copy that is still in flight would move registers while they are written.
  if (flight.copied >= 0) {
    f.at_mark(flight.copied, [&] { (void)wait(f, 0, flight.registers, kept); });
    flight.landings.push_back(flight.copied_scope);
    if (has_landed(flight)) return;
  }
  const bool known = departure.group && flight.copied < 0 && in_sight;
  const int pending = known ? newer(departure.group, commits_.size()) : 0;
  const std::vector<Value> landed = wait(f, pending, flight.registers, kept);
  // The variable too: its values before and after would need separate registers.
  auto next = landed.begin();
  for (const auto& [variable, version] : flight.sources) {
    const bool same = variable->version == version;
    for (const Variable& to : variable->registers) {
      if (same) f.set(to, *next);
      ++next;
    }
    if (same) variable->flying.reset();
  }
  flight.landings.push_back(scopes_.back());
  landings_.push_back(
      {pending ? departure.group : static_cast<int>(commits_.size()), scopes_.back()});
}

// Variables that were in flight before a body and are read in it are waited for before the body:
// the assembler does not recognize a wait in only one branch.
bool Flights::land_before_body(FunctionBuilder& f, Flight& flight) {
  if (flight.sources.empty()) return false;
  const auto was_flying = [&](const BeforeBody& body) {
    return std::all_of(flight.sources.begin(), flight.sources.end(), [&](const auto& source) {
      return std::any_of(body.variables.begin(), body.variables.end(), [&](const auto& before) {
        return before.record == source.variable && before.version == source.version;
      });
    });
  };
  const auto body = std::find_if(bodies_.begin(), bodies_.end(), was_flying);
  if (body == bodies_.end()) return false;
  std::vector<Variable> all;
  for (const auto& [variable, version] : flight.sources) {
    all.insert(all.end(), variable->registers.begin(), variable->registers.end());
    variable->flying.reset();
    for (auto inside = body; inside != bodies_.end(); ++inside)
      for (BeforeBody::Variable& before : inside->variables)
        if (before.record == variable) before.flying.reset();
  }
  const Departure& departure = flight.departure;
  const bool known = departure.group && is_open(departure.scope);
  const int pending = known ? newer(departure.group, static_cast<std::size_t>(body->commits)) : 0;
  // Readers from before the body read the values after the wait, too.
  f.at_mark(body->mark, [&] {
    const std::vector<Value> landed =
        wait(f, pending, all, known ? kept_of(departure) : std::vector<Value>());
    for (std::size_t i = 0; i < landed.size(); ++i) f.set(flight.registers[i], landed[i]);
  });
  flight.landings.push_back(body->scope);
  return true;
}

// Whether the variables have other values by now: of later products perhaps, which were still
// adding to the registers that were read.
bool Flights::is_overtaken(const Flight& flight) {
  return flight.read >= 0 && std::ranges::any_of(flight.sources, [](const Flight::Source& each) {
           return each.variable->version != each.version;
         });
}

void Flights::land_where_read(FunctionBuilder& f, Flight& flight) {
  const Departure& departure = flight.departure;
  const bool known = departure.group && is_open(departure.scope);
  const int pending = known ? newer(departure.group, static_cast<std::size_t>(flight.commits)) : 0;
  f.at_mark(flight.read, [&] {
    const std::vector<Value> landed =
        wait(f, pending, flight.registers, known ? kept_of(departure) : std::vector<Value>());
    auto next = landed.begin();
    for (const Flight::Source& each : flight.sources)
      for (const Variable& to : each.variable->registers) f.set(to, *next++);
  });
  flight.landings.push_back(flight.scope);
}

void Flights::land_all(FunctionBuilder& f) {
  (void)f.warpgroup_wait(0, {}, {});
  landings_.push_back({static_cast<int>(commits_.size()), scopes_.back()});
}

std::vector<Value> Flights::copy(FunctionBuilder& f, Flight& flight, std::size_t first,
                                 std::size_t count) {
  if (flight.sources.empty() && flight.copied < 0 && !has_landed(flight)) {
    flight.copied = f.mark();
    flight.copied_scope = scopes_.back();
  }
  std::vector<Value> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(f.get(flight.registers[first + i]));
  return out;
}

std::shared_ptr<Flight> Flights::depart(FunctionBuilder& f, const std::vector<Value>& registers,
                                        std::vector<Value> kept) {
  auto flight = std::make_shared<Flight>();
  for (const Value& each : registers) flight->registers.push_back(f.variable(each));
  commits_.push_back(scopes_.back());
  if (!kept.empty()) last_kept_ = commits();
  flight->scope = scopes_.back();
  flight->departure = {static_cast<int>(commits_.size()), scopes_.back(),
                       std::make_shared<const std::vector<Value>>(std::move(kept))};
  return flight;
}

// The same record for all readers of the same variables before a wait.
std::shared_ptr<Flight> Flights::of(FunctionBuilder& f,
                                    const std::vector<std::shared_ptr<VariableRecord>>& variables) {
  const auto before = variables[0]->flight.lock();
  if (before && is_open(before->scope) && before->sources.size() == variables.size() &&
      std::equal(variables.begin(), variables.end(), before->sources.begin(),
                 [](const auto& x, const Flight::Source& y) {
                   return x == y.variable && x->version == y.version;
                 }))
    return before;
  auto out = std::make_shared<Flight>();
  if (variables[0]->flying) out->departure = *variables[0]->flying;
  out->scope = scopes_.back();
  for (const auto& each : variables) {
    if (!each->flying || each->flying->group != out->departure.group) out->departure.group = 0;
    for (const Value& value : get_all(f, each->registers))
      out->registers.push_back(f.variable(value));
    out->sources.push_back({each, each->version});
    each->flight = out;
  }
  out->read = f.mark(), out->commits = commits();
  return out;
}

std::shared_ptr<VariableRecord> Flights::declare(std::vector<Variable> registers) {
  auto out = std::make_shared<VariableRecord>();
  out->registers = std::move(registers);
  out->scope = scopes_.back();
  variables_.push_back(out);
  return out;
}

BeforeBody Flights::before_body(FunctionBuilder& f, bool loops) const {
  BeforeBody out{.scope = scopes_.back(), .loops = loops};
  for (const auto& each : variables_)
    if (each->flying) out.variables.push_back({each, each->version, each->flying});
  if (!out.variables.empty()) out.mark = f.mark();
  out.commits = static_cast<int>(commits_.size());
  return out;
}

// What was in flight before a body still is if the body did not run; what the body leaves in flight
// is in flight when it runs again.
void Flights::in_body(FunctionBuilder& f, BeforeBody before, const std::function<void()>& body) {
  const int begin = ++clock_;
  scopes_.push_back(++scope_count_);
  bodies_.push_back(std::move(before));
  body();
  before = std::move(bodies_.back());
  bodies_.pop_back();
  std::vector<Variable> looked_at;
  for (const auto& each : variables_) {
    if (!before.loops || !each->flying || each->observed < begin) continue;
    looked_at.insert(looked_at.end(), each->registers.begin(), each->registers.end());
    each->flying.reset();
  }
  if (!looked_at.empty()) (void)wait(f, 0, looked_at, {});
  scopes_.pop_back();
  ++clock_;
  for (const auto& [record, version, flying] : before.variables) {
    if (!flying) continue;
    record->flight.reset();
    if (!record->flying) record->flying = flying;
    else if (record->flying->group != flying->group) record->flying->group = 0;
  }
}

}  // namespace tartan::TARTAN_ABI::detail
