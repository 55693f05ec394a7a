// SPDX-License-Identifier: Apache-2.0
// Values, memory, copies, barriers and instructions, as they are recorded.
#include <bit>
#include <cassert>

#include "compiler/ir/function_builder.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::ir {
namespace {

std::int64_t number(auto of) { return static_cast<std::int64_t>(of); }

}  // namespace

// ---- Values.

Value FunctionBuilder::special(isa::SpecialRegister which) {
  return value(OperationKind::special, u32, {}, {number(which)});
}

Value FunctionBuilder::constant(Type type, std::int64_t value) {
  return this->value(OperationKind::constant, type, {}, {value});
}

Value FunctionBuilder::constant(Type type, double value) {
  return this->value(OperationKind::real_constant, type, {}, {std::bit_cast<std::int64_t>(value)});
}

Value FunctionBuilder::undefined(Type type) { return value(OperationKind::undefined, type); }

Value FunctionBuilder::add(Value x, Value y) { return value(OperationKind::add, x.type, {x, y}); }

Value FunctionBuilder::subtract(Value x, Value y) {
  return value(OperationKind::subtract, x.type, {x, y});
}

Value FunctionBuilder::multiply(Value x, Value y) {
  return value(OperationKind::multiply, x.type, {x, y});
}

Value FunctionBuilder::divide(Value x, Value y) {
  return value(OperationKind::divide, x.type, {x, y});
}

Value FunctionBuilder::remainder(Value x, Value y) {
  return value(OperationKind::remainder, x.type, {x, y});
}

Value FunctionBuilder::bit_and(Value x, Value y) {
  return value(OperationKind::bit_and, x.type, {x, y});
}

Value FunctionBuilder::bit_or(Value x, Value y) {
  return value(OperationKind::bit_or, x.type, {x, y});
}

Value FunctionBuilder::bit_xor(Value x, Value y) {
  return value(OperationKind::bit_xor, x.type, {x, y});
}

Value FunctionBuilder::shift_left(Value x, Value y) {
  return value(OperationKind::shift_left, x.type, {x, y});
}

Value FunctionBuilder::shift_right(Value x, Value y) {
  return value(OperationKind::shift_right, x.type, {x, y});
}

Value FunctionBuilder::minimum(Value x, Value y) {
  return value(OperationKind::minimum, x.type, {x, y});
}

Value FunctionBuilder::maximum(Value x, Value y) {
  return value(OperationKind::maximum, x.type, {x, y});
}

Value FunctionBuilder::fma(Value x, Value y, Value z) {
  return value(OperationKind::fma, x.type, {x, y, z});
}

Value FunctionBuilder::negate(Value x) { return value(OperationKind::negate, x.type, {x}); }
Value FunctionBuilder::absolute(Value x) { return value(OperationKind::absolute, x.type, {x}); }
Value FunctionBuilder::signum(Value x) { return value(OperationKind::signum, x.type, {x}); }
Value FunctionBuilder::floor(Value x) { return value(OperationKind::floor, x.type, {x}); }

Value FunctionBuilder::approximate(Approximation which, Value x) {
  return value(OperationKind::approximate, f32, {x}, {number(which)});
}

Value FunctionBuilder::compare(Compare how, Value x, Value y) {
  return value(OperationKind::compare, Type::pred, {x, y}, {number(how)});
}

Value FunctionBuilder::select(Value condition, Value x, Value y) {
  return value(OperationKind::select, x.type, {condition, x, y});
}

Value FunctionBuilder::convert(Value x, Type to) {
  return x.type == to ? x : value(OperationKind::convert, to, {x});
}

Value FunctionBuilder::convert_pair(Value low, Value high, Type to) {
  Operation& pair = record(OperationKind::convert_pair, to, {low, high});
  return make(pair, u16);
}

Value FunctionBuilder::bitcast(Value x, Type to) {
  assert(bits(x.type) == bits(to));
  return value(OperationKind::bitcast, to, {x});
}

Value FunctionBuilder::pack(Value low, Value high, Type to) {
  return value(OperationKind::pack, to, {low, high});
}

std::pair<Value, Value> FunctionBuilder::unpack(Value x, Type to) {
  Operation& halves = record(OperationKind::unpack, to, {x});
  const Value low = make(halves, to);
  return {low, make(halves, to)};
}

// ---- Memory.

Pointer FunctionBuilder::offset(Pointer base, Value bytes) {
  return pointer(OperationKind::offset, base.space, {base, bytes});
}

Pointer FunctionBuilder::offset(Pointer base, std::int64_t bytes) {
  return bytes ? pointer(OperationKind::constant_offset, base.space, {base}, {bytes}) : base;
}

Value FunctionBuilder::shared_address(Pointer of) {
  return value(OperationKind::shared_address, u32, {of});
}

Value FunctionBuilder::global_address(Pointer of) {
  return value(OperationKind::global_address, u64, {of});
}

Pointer FunctionBuilder::shared_of_block(Pointer of, Value block) {
  return pointer(OperationKind::shared_of_block, StateSpace::shared_cluster, {of, block});
}

Pointer FunctionBuilder::shared_pointer(Value address) {
  return pointer(OperationKind::shared_pointer, StateSpace::shared, {address});
}

Value FunctionBuilder::load(Pointer from, Type type) {
  return value(OperationKind::load, type, {from});
}

Value FunctionBuilder::load_if(Value condition, Pointer from, Type type) {
  return value(OperationKind::load_if, type, {condition, from});
}

std::vector<Value> FunctionBuilder::load_vector(Pointer from, Type type, int count) {
  return make(record(OperationKind::load_vector, type, {from}, {count}), type, count);
}

void FunctionBuilder::store(Pointer to, Value value) {
  record(OperationKind::store, value.type, {to, value});
}

void FunctionBuilder::store_vector(Pointer to, std::span<const Value> values) {
  Operation& store = record(OperationKind::store_vector, values[0].type, {to});
  take(store, values);
}

// ---- Asynchronous copies and mbarriers.

void FunctionBuilder::copy_async(Pointer to, Pointer from, int bytes, CacheOperator cache,
                                 Value valid_bytes) {
  record(OperationKind::copy_async, Type::none, {to, from, valid_bytes}, {bytes, number(cache)});
}

void FunctionBuilder::copy_async_commit() { record(OperationKind::copy_async_commit, Type::none); }

void FunctionBuilder::copy_async_wait(int pending_groups) {
  record(OperationKind::copy_async_wait, Type::none, {}, {pending_groups});
}

void FunctionBuilder::copy_async_arrive(Pointer mbarrier) {
  record(OperationKind::copy_async_arrive, Type::none, {mbarrier});
}

void FunctionBuilder::mbarrier_init(Pointer at, int arrivals) {
  record(OperationKind::mbarrier_init, Type::none, {at}, {arrivals});
}

void FunctionBuilder::mbarrier_init_fence() {
  record(OperationKind::mbarrier_init_fence, Type::none);
}

void FunctionBuilder::mbarrier_expect(Pointer at, int bytes) {
  record(OperationKind::mbarrier_expect, Type::none, {at}, {bytes});
}

void FunctionBuilder::mbarrier_arrive(Pointer at) {
  record(OperationKind::mbarrier_arrive, Type::none, {at});
}

void FunctionBuilder::mbarrier_arrive_if(Value condition, Pointer at) {
  record(OperationKind::mbarrier_arrive_if, Type::none, {condition, at});
}

void FunctionBuilder::mbarrier_arrive(Pointer at, Value block) {
  record(OperationKind::mbarrier_arrive_in_block, Type::none, {at, block});
}

void FunctionBuilder::mbarrier_arrive_if(Value condition, Pointer at, Value block) {
  record(OperationKind::mbarrier_arrive_in_block_if, Type::none, {condition, at, block});
}

void FunctionBuilder::mbarrier_wait(Pointer at, Value parity) {
  record(OperationKind::mbarrier_wait, Type::none, {at, parity});
}

void FunctionBuilder::cluster_mbarrier_arrive(Pointer at, Value block) {
  record(OperationKind::cluster_mbarrier_arrive, Type::none, {at, block});
}

void FunctionBuilder::cluster_mbarrier_wait(Pointer at, Value parity) {
  record(OperationKind::cluster_mbarrier_wait, Type::none, {at, parity});
}

void FunctionBuilder::prefetch_tensor_map(Pointer map) {
  record(OperationKind::prefetch_tensor_map, Type::none, {map});
}

void FunctionBuilder::tensor_load(Pointer to, Pointer map, std::span<const Value> coordinates,
                                  Pointer mbarrier, Value blocks, Eviction eviction) {
  Operation& copy = record(OperationKind::tensor_load, Type::none, {to, map, mbarrier, blocks},
                           {number(eviction)});
  take(copy, coordinates);
}

void FunctionBuilder::pixels_load(Pointer to, Pointer map, std::span<const Value> coordinates,
                                  std::span<const Value> offsets, Pointer mbarrier) {
  Operation& copy = record(OperationKind::pixels_load, Type::none, {to, map, mbarrier},
                           {number(coordinates.size())});
  take(copy, coordinates);
  take(copy, offsets);
}

void FunctionBuilder::tensor_store(Pointer map, std::span<const Value> coordinates, Pointer from,
                                   std::int64_t bytes, bool adds) {
  Operation& copy = record(OperationKind::tensor_store, Type::none, {map, from}, {adds, bytes});
  take(copy, coordinates);
}

void FunctionBuilder::bulk_commit() { record(OperationKind::bulk_commit, Type::none); }

void FunctionBuilder::bulk_wait_read(int pending_groups) {
  record(OperationKind::bulk_wait_read, Type::none, {}, {pending_groups});
}

void FunctionBuilder::proxy_fence() { record(OperationKind::proxy_fence, Type::none); }
Value FunctionBuilder::elect() { return value(OperationKind::elect, Type::pred); }

void FunctionBuilder::set_max_registers(int count, bool more) {
  record(OperationKind::set_max_registers, Type::none, {}, {count, more});
}

// ---- The block and the warp.

void FunctionBuilder::barrier() { record(OperationKind::barrier, Type::none); }

void FunctionBuilder::barrier(int id, int threads) {
  record(OperationKind::barrier_of_some, Type::none, {}, {id, threads});
}

void FunctionBuilder::cluster_barrier(bool orders) {
  record(OperationKind::cluster_barrier, Type::none, {}, {orders});
}

void FunctionBuilder::warp_sync() { record(OperationKind::warp_sync, Type::none); }

Value FunctionBuilder::shuffle_xor(Value x, int mask) {
  return value(OperationKind::shuffle_xor, x.type, {x}, {mask});
}

Value FunctionBuilder::shuffle(Value x, Value lane) {
  return value(OperationKind::shuffle, x.type, {x, lane});
}

// ---- Instructions by their forms, and text.

std::vector<Value> FunctionBuilder::matrix(const isa::Form& form, Pointer address,
                                           std::span<const Value> operands) {
  const auto instruction = isa::find(form);
  assert(instruction && "no such instruction");
  const isa::OperandSpec* const d = instruction->operand(isa::Role::d);
  const int count = d ? d->count : 0;
  Operation& product = record(OperationKind::matrix, d ? d->type : Type::none, {address});
  product.form = static_cast<std::uint32_t>(function_.forms.size());
  function_.forms.push_back(form);
  take(product, operands);
  return make(product, product.type, count);
}

std::vector<Value> FunctionBuilder::warpgroup_product(const isa::Form& form,
                                                      std::span<const Value> accumulators,
                                                      std::span<const std::vector<Value>> steps) {
  const auto instruction = isa::find(form);
  assert(instruction && "no such instruction");
  Operation& product =
      record(OperationKind::warpgroup_product, instruction->operand(isa::Role::d)->type, {},
             {number(accumulators.size()), number(steps.size())});
  product.form = static_cast<std::uint32_t>(function_.forms.size());
  function_.forms.push_back(form);
  take(product, accumulators);
  for (const std::vector<Value>& step : steps) take(product, step);
  return make(product, product.type, static_cast<int>(accumulators.size()));
}

std::vector<Value> FunctionBuilder::warpgroup_wait(int pending_groups,
                                                   std::span<const Value> accumulators,
                                                   std::span<const Value> kept) {
  Operation& wait = record(OperationKind::warpgroup_wait, Type::none, {},
                           {pending_groups, number(accumulators.size())});
  take(wait, accumulators);
  take(wait, kept);
  std::vector<Value> out;
  for (const Value& each : accumulators) out.push_back(make(wait, each.type));
  return out;
}

std::vector<Value> FunctionBuilder::statement(std::string_view text, std::span<const Type> results,
                                              std::span<const Value> operands, bool pure) {
  Operation& statement =
      record(pure ? OperationKind::pure_statement : OperationKind::statement, Type::none);
  note(statement, text);
  take(statement, operands);
  std::vector<Value> out;
  for (const Type each : results) out.push_back(make(statement, each));
  return out;
}

void FunctionBuilder::print(const std::string& format, std::span<const Value> values) {
  Operation& print = record(OperationKind::print, Type::none);
  note(print, format);
  take(print, values);
}

void FunctionBuilder::fail_assertion(const std::string& text, const std::string& file, int line) {
  Operation& fail = record(OperationKind::fail_assertion, Type::none, {}, {line});
  note(fail, text);
  note(fail, file);
}

}  // namespace tartan::TARTAN_ABI::ir
