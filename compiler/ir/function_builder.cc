// SPDX-License-Identifier: Apache-2.0
// The frame of a kernel and its control flow, as they are recorded; recorded_operations.cc has the
// rest.
#include "compiler/ir/function_builder.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <utility>

#include "compiler/ir/shared_layout.h"

namespace tartan::TARTAN_ABI::ir {

FunctionBuilder::FunctionBuilder(std::string name, Target target, LaunchBounds bounds,
                                 std::vector<Param> params)
    : function_{.name = std::move(name),
                .target = target,
                .bounds = bounds,
                .params = std::move(params),
                .regions = {Region{}, Region{}},
                .places = {std::source_location{}}},
      open_{Function::body} {}

const Target& FunctionBuilder::target() const { return function_.target; }

void FunctionBuilder::at(const std::source_location& place) {
  if (place.line() == 0) return;
  const std::source_location& now = function_.places[place_];
  if (now.line() == place.line() && now.column() == place.column() &&
      now.file_name() == place.file_name())
    return;
  place_ = static_cast<std::uint32_t>(function_.places.size());
  function_.places.push_back(place);
}

// ---- Operations.

Operation& FunctionBuilder::record(OperationKind kind, Type type,
                                   std::initializer_list<Operand> operands,
                                   std::initializer_list<std::int64_t> numbers) {
  assert(!open_.empty() && "the function is finished");
  const auto end = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  Function& f = function_;
  const bool placed = !is_constant(kind, operands) && row_of(kind).effect != Effect::frame;
  f.regions[placed ? open_.back() : Function::frame].operations.push_back(end(f.operations));
  Operation& out = f.operations.emplace_back(Operation{.kind = kind,
                                                       .type = type,
                                                       .place = place_,
                                                       .operands = {end(f.operands), end(operands)},
                                                       .results = {end(f.results), 0},
                                                       .numbers = {end(f.numbers), end(numbers)},
                                                       .texts = {end(f.texts), 0},
                                                       .regions = {}});
  for ([[maybe_unused]] const Operand& each : operands)
    assert(each.id < f.values && "the value belongs to another kernel");
  f.operands.insert(f.operands.end(), operands);
  f.numbers.insert(f.numbers.end(), numbers);
  return out;
}

void FunctionBuilder::take(Operation& operation, std::span<const Value> more) {
  for (const Value& each : more) {
    assert(each.valid() && each.id < function_.values && "the value belongs to another kernel");
    function_.operands.emplace_back(each);
  }
  operation.operands.count += static_cast<std::uint32_t>(more.size());
}

void FunctionBuilder::note(Operation& operation, std::string_view text) {
  function_.texts.emplace_back(text);
  ++operation.texts.count;
}

Operand FunctionBuilder::make(Operation& operation, Operand result) {
  result.id = function_.values++;
  facts_.push_back(
      {is_constant(operation.kind, Function::part(function_.operands, operation.operands)),
       is_uniform(operation)});
  function_.results.push_back(result);
  ++operation.results.count;
  return result;
}

Value FunctionBuilder::make(Operation& operation, Type type) {
  return {make(operation, Operand(Value{.type = type})).id, type};
}

Pointer FunctionBuilder::make(Operation& operation, StateSpace space) {
  return {make(operation, Operand(Pointer{.space = space})).id, space};
}

std::vector<Value> FunctionBuilder::make(Operation& operation, Type type, int count) {
  std::vector<Value> out;
  for (int i = 0; i < count; ++i) out.push_back(make(operation, type));
  return out;
}

Value FunctionBuilder::value(OperationKind kind, Type type, std::initializer_list<Operand> operands,
                             std::initializer_list<std::int64_t> numbers) {
  return make(record(kind, type, operands, numbers), type);
}

Pointer FunctionBuilder::pointer(OperationKind kind, StateSpace space,
                                 std::initializer_list<Operand> operands,
                                 std::initializer_list<std::int64_t> numbers) {
  return make(record(kind, Type::none, operands, numbers), space);
}

bool FunctionBuilder::is_constant(OperationKind kind, std::span<const Operand> operands) const {
  return row_of(kind).folds && std::ranges::all_of(operands, [&](const Operand& each) {
           return each.id < 0 || facts_[static_cast<std::size_t>(each.id)].constant;
         });
}

bool FunctionBuilder::is_constant(Value value) const {
  return value.valid() && facts_.at(static_cast<std::size_t>(value.id)).constant;
}

bool FunctionBuilder::is_uniform(const Operation& operation) const {
  switch (row_of(operation.kind).uniform) {
    case Uniform::no: return false;
    case Uniform::yes: return true;
    case Uniform::special:
      return isa::is_of_block(static_cast<isa::SpecialRegister>(
          Function::part(function_.numbers, operation.numbers)[0]));
    case Uniform::operands: break;
  }
  return std::ranges::all_of(
      Function::part(function_.operands, operation.operands), [&](const Operand& each) {
        return each.id < 0 || facts_[static_cast<std::size_t>(each.id)].uniform;
      });
}

bool FunctionBuilder::is_uniform(Value value) const {
  const auto id = static_cast<std::size_t>(value.id);
  return value.valid() && id < facts_.size() && facts_[id].uniform;
}

// ---- The frame.

Value FunctionBuilder::param(int index) {
  const Param& param = function_.params.at(static_cast<std::size_t>(index));
  assert(param.type != Type::none && "this parameter is a pointer");
  return value(OperationKind::param, param.type, {}, {index});
}

Pointer FunctionBuilder::pointer_param(int index) {
  const Param& param = function_.params.at(static_cast<std::size_t>(index));
  assert(param.type == Type::none && "this parameter is a scalar");
  return pointer(OperationKind::pointer_param, param.space, {}, {index});
}

Value FunctionBuilder::add_param(Type type) { return value(OperationKind::add_param, type); }

Pointer FunctionBuilder::add_pointer_param(StateSpace space) {
  return pointer(OperationKind::add_pointer_param, space);
}

Pointer FunctionBuilder::add_tensor_map() {
  return pointer(OperationKind::add_tensor_map, StateSpace::none);
}

Pointer FunctionBuilder::shared(const std::string& name, std::int64_t bytes, int align) {
  Operation& variable = record(OperationKind::shared, Type::none, {}, {bytes, align});
  note(variable, name);
  return make(variable, StateSpace::shared);
}

Pointer FunctionBuilder::dynamic_shared(int align) {
  return pointer(OperationKind::dynamic_shared, StateSpace::shared, {}, {align});
}

std::int64_t FunctionBuilder::make_shared_dynamic() {
  SharedLayout layout;
  for (const Operation& each : function_.operations)
    if (each.kind == OperationKind::shared) {
      const auto numbers = Function::part(function_.numbers, each.numbers);
      layout.place(numbers[0], numbers[1]);
    }
  function_.dynamic_bytes = layout.bytes();
  return layout.bytes();
}

// ---- Control flow.

std::uint32_t FunctionBuilder::add_regions(Operation& operation, std::uint32_t count) {
  const auto first = static_cast<std::uint32_t>(function_.regions.size());
  operation.regions = {first, count};
  function_.regions.resize(first + count);
  return first;
}

void FunctionBuilder::describe(std::uint32_t region, const Body& body) {
  open_.push_back(region);
  body();
  open_.pop_back();
  function_.regions[region].end = place_;
}

Variable FunctionBuilder::variable(Value initial) {
  const Value declared = value(OperationKind::variable, initial.type);
  const Variable out{declared.id, declared.type};
  set(out, initial);
  return out;
}

Value FunctionBuilder::get(Variable variable) {
  return value(OperationKind::get, variable.type, {variable});
}

void FunctionBuilder::set(Variable variable, Value value) {
  assert(bits(variable.type) == bits(value.type));
  record(OperationKind::set, variable.type, {variable, value});
}

void FunctionBuilder::if_then(Value condition, const Body& then) {
  describe(add_regions(record(OperationKind::if_then, Type::none, {condition}), 1), then);
}

void FunctionBuilder::if_else(Value condition, const Body& then, const Body& otherwise) {
  const std::uint32_t first =
      add_regions(record(OperationKind::if_else, Type::none, {condition}), 2);
  describe(first, then);
  describe(first + 1, otherwise);
}

void FunctionBuilder::while_loop(const std::function<Value()>& condition, const Body& body) {
  const std::uint32_t first = add_regions(record(OperationKind::while_loop, Type::none), 2);
  describe(first, [&] {
    const Value goes_on = condition();
    function_.regions[first].result = goes_on;
  });
  describe(first + 1, body);
}

void FunctionBuilder::for_range(Value begin, Value end, Value step,
                                const std::function<void(Value i)>& body) {
  const Variable counter = variable(begin);
  const std::uint32_t region =
      add_regions(record(OperationKind::for_range, begin.type, {counter, end, step}), 1);
  const Value index{function_.values++, begin.type};
  facts_.push_back({});
  function_.regions[region].arguments = {index};
  describe(region, [&] { body(index); });
}

int FunctionBuilder::mark() {
  const int out = detached_mark();
  place(out);
  return out;
}

int FunctionBuilder::mark_at(std::uint32_t region, std::size_t index) {
  const int out = detached_mark();
  open_.push_back(region);
  place(out);
  open_.pop_back();
  auto& operations = function_.regions[region].operations;
  const auto at = operations.begin() + static_cast<std::ptrdiff_t>(index);
  std::rotate(at, operations.end() - 1, operations.end());
  return out;
}

int FunctionBuilder::detached_mark() {
  marks_.push_back(static_cast<std::uint32_t>(function_.regions.size()));
  function_.regions.emplace_back();
  return static_cast<int>(marks_.size()) - 1;
}

void FunctionBuilder::place(int mark) {
  record(OperationKind::mark, Type::none).regions = {marks_.at(static_cast<std::size_t>(mark)), 1};
}

void FunctionBuilder::at_mark(int mark, const Body& body) {
  const std::uint32_t place = place_;
  describe(marks_.at(static_cast<std::size_t>(mark)), body);
  place_ = place;
}

void FunctionBuilder::by_role(const Body& first, const Body& second) {
  const std::uint32_t regions = add_regions(record(OperationKind::by_role, Type::none), 2);
  describe(regions, first);
  describe(regions + 1, second);
}

void FunctionBuilder::if_of_role(Value condition, const Body& then) {
  describe(add_regions(record(OperationKind::if_of_role, Type::none, {condition}), 1), then);
}

bool FunctionBuilder::depends_on(Value value, const std::source_location& place) const {
  std::map<int, std::vector<const Operation*>> makers;  // of values; changes of variables
  for (const Operation& each : function_.operations) {
    for (const Operand& result : Function::part(function_.results, each.results))
      makers[result.id].push_back(&each);
    if (each.kind == OperationKind::set)
      makers[function_.operands[each.operands.first].id].push_back(&each);
  }
  std::set<int> seen;
  std::vector<int> open{value.id};
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    for (const Operation* const by : makers[id]) {
      const std::source_location& there = function_.places[by->place];
      if (there.line() == place.line() && there.column() == place.column() &&
          there.file_name() == place.file_name())
        return true;
      for (const Operand& each : Function::part(function_.operands, by->operands))
        open.push_back(each.id);
    }
  }
  return false;
}

std::vector<Need> FunctionBuilder::take_second_role(int of_mark) {
  std::vector<Need> out =
      partition(function_, marks_.at(static_cast<std::size_t>(of_mark)), open_.back());
  facts_.resize(static_cast<std::size_t>(function_.values));
  return out;
}

Value FunctionBuilder::stand_in(Type type) {
  facts_.push_back({});
  return {function_.values++, type};
}

Pointer FunctionBuilder::stand_in(StateSpace space) {
  facts_.push_back({});
  return {function_.values++, space};
}

void FunctionBuilder::split() { record(OperationKind::split, Type::none); }

std::vector<Need> FunctionBuilder::copy_of(int mark, Half half, std::span<const Renamed> with) {
  std::vector<Need> out =
      copy_half(function_, marks_.at(static_cast<std::size_t>(mark)), open_.back(), half, with);
  facts_.resize(static_cast<std::size_t>(function_.values));
  return out;
}

Function FunctionBuilder::finish() {
  assert(open_.size() == 1);
  open_.clear();
  function_.regions[Function::body].end = place_;
  return std::move(function_);
}

}  // namespace tartan::TARTAN_ABI::ir
