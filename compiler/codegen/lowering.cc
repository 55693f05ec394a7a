// SPDX-License-Identifier: Apache-2.0
// From a Function to LLVM IR: each operation becomes the call of LlvmBuilder that has its name.
#include <bit>
#include <cassert>

#include "compiler/codegen/code.h"
#include "compiler/codegen/llvm_builder.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

class Lowering {
 public:
  Lowering(const Function& function, LlvmBuilder& to)
      : function_(function), to_(to), ids_(static_cast<std::size_t>(function.values), -1) {}

  void run(std::uint32_t region) {
    for (const std::uint32_t each : function_.regions[region].operations) {
      operation_ = &function_.operations[each];
      at(operation_->place);
      lower(*operation_);
    }
    at(function_.regions[region].end);
  }

 private:
  void at(std::uint32_t place) {
    if (place == place_) return;
    place_ = place;
    to_.at(function_.places[place]);
  }

  // ---- What an operation has.

  std::span<const Operand> operands() const {
    return Function::part(function_.operands, operation_->operands);
  }
  std::int64_t number(std::size_t i) const {
    return Function::part(function_.numbers, operation_->numbers)[i];
  }
  int small(std::size_t i) const { return static_cast<int>(number(i)); }
  template <typename Enumeration>
  Enumeration one_of(std::size_t i) const {
    return static_cast<Enumeration>(number(i));
  }
  const std::string& text(std::size_t i) const {
    return function_.texts[operation_->texts.first + i];
  }
  const isa::Form& form() const { return function_.forms[operation_->form]; }
  std::uint32_t region(std::uint32_t i) const { return operation_->regions.first + i; }

  int id(const Operand& operand) const {
    return operand.id < 0 ? -1 : ids_[static_cast<std::size_t>(operand.id)];
  }
  Value value(const Operand& of) const { return {id(of), of.type}; }
  Value value(std::size_t i) const { return value(operands()[i]); }
  Pointer pointer(std::size_t i) const { return {id(operands()[i]), operands()[i].space}; }
  Variable cell(std::size_t i) const { return {id(operands()[i]), operands()[i].type}; }
  std::vector<Value> values(std::size_t first, std::size_t count) const {
    std::vector<Value> out;
    for (const Operand& each : operands().subspan(first, count)) out.push_back(value(each));
    return out;
  }
  std::vector<Value> values(std::size_t first) const {
    return values(first, operands().size() - first);
  }

  // ---- What it makes.

  void note(const Operand& result, int id) { ids_[static_cast<std::size_t>(result.id)] = id; }
  void made(const Operation& by, auto result) {
    assert(by.results.count == 1);
    note(function_.results[by.results.first], result.id);
  }
  void made(const Operation& by, const std::vector<Value>& results) {
    assert(by.results.count == results.size() && "as many results as were recorded");
    for (std::size_t i = 0; i < results.size(); ++i)
      note(function_.results[by.results.first + i], results[i].id);
  }

  void lower(const Operation& op);
  void lower_structure(const Operation& op);
  std::vector<Value> product_of_warpgroup() const;
  std::vector<Type> result_types() const;

  const Function& function_;
  LlvmBuilder& to_;
  const Operation* operation_ = nullptr;
  std::vector<int> ids_;  // of LlvmBuilder, by those of the function
  std::uint32_t place_ = 0;
};

void Lowering::lower_structure(const Operation& op) {
  const std::uint32_t first = op.regions.first;
  switch (op.kind) {
    case OperationKind::if_then: return to_.if_then(value(0), [&] { run(first); });
    case OperationKind::if_else:
      return to_.if_else(
          value(0), [&] { run(first); }, [&] { run(first + 1); });
    case OperationKind::for_range:
      return to_.for_range(cell(0), value(1), value(2), [&](Value index) {
        note(function_.regions[first].arguments[0], index.id);
        run(first);
      });
    case OperationKind::while_loop:
      return to_.while_loop(
          [&] {
            run(first);
            return value(function_.regions[first].result);
          },
          [&] { run(first + 1); });
    default: assert(op.kind == OperationKind::mark); return run(first);
  }
}

std::vector<Value> Lowering::product_of_warpgroup() const {
  const auto accumulators = static_cast<std::size_t>(number(0));
  const auto steps = static_cast<std::size_t>(number(1));
  const std::size_t each = (operands().size() - accumulators) / steps;
  std::vector<std::vector<Value>> of_steps;
  for (std::size_t i = 0; i < steps; ++i) of_steps.push_back(values(accumulators + i * each, each));
  return to_.warpgroup_product(form(), values(0, accumulators), of_steps);
}

std::vector<Type> Lowering::result_types() const {
  std::vector<Type> out;
  for (const Operand& each : Function::part(function_.results, operation_->results))
    out.push_back(each.type);
  return out;
}

void Lowering::lower(const Operation& op) {
  switch (op.kind) {
    using enum OperationKind;
    case param: return made(op, to_.param(small(0)));
    case pointer_param: return made(op, to_.pointer_param(small(0)));
    case add_param: return made(op, to_.add_param(op.type));
    case add_pointer_param:
      return made(op, to_.add_pointer_param(function_.results[op.results.first].space));
    case add_tensor_map: return made(op, to_.add_tensor_map());
    case special: return made(op, to_.special(one_of<isa::SpecialRegister>(0)));

    case constant: return made(op, to_.constant(op.type, number(0)));
    case real_constant: return made(op, to_.constant(op.type, std::bit_cast<double>(number(0))));
    case undefined: return made(op, to_.undefined(op.type));
    case add:
    case subtract:
    case multiply:
    case divide:
    case remainder:
    case bit_and:
    case bit_or:
    case bit_xor:
    case shift_left:
    case shift_right:
    case minimum:
    case maximum: return made(op, to_.binary(op.kind, value(0), value(1)));
    case fma: return made(op, to_.fma(value(0), value(1), value(2)));
    case negate: return made(op, to_.negate(value(0)));
    case absolute: return made(op, to_.absolute(value(0)));
    case signum: return made(op, to_.signum(value(0)));
    case floor: return made(op, to_.floor(value(0)));
    case approximate: return made(op, to_.approximate(one_of<Approximation>(0), value(0)));
    case compare: return made(op, to_.compare(one_of<Compare>(0), value(0), value(1)));
    case select: return made(op, to_.select(value(0), value(1), value(2)));
    case convert: return made(op, to_.convert(value(0), op.type));
    case convert_pair: return made(op, to_.convert_pair(value(0), value(1), op.type));
    case bitcast: return made(op, to_.bitcast(value(0), op.type));
    case pack: return made(op, to_.pack(value(0), value(1), op.type));
    case unpack: {
      const auto [low, high] = to_.unpack(value(0), op.type);
      return made(op, std::vector{low, high});
    }

    case offset: return made(op, to_.offset(pointer(0), value(1)));
    case constant_offset: return made(op, to_.offset(pointer(0), number(0)));
    case shared: return made(op, to_.shared(text(0), number(0), small(1)));
    case dynamic_shared: return made(op, to_.dynamic_shared(small(0)));
    case shared_address: return made(op, to_.shared_address(pointer(0)));
    case global_address: return made(op, to_.global_address(pointer(0)));
    case shared_of_block: return made(op, to_.shared_of_block(pointer(0), value(1)));
    case shared_pointer: return made(op, to_.shared_pointer(value(0)));
    case load: return made(op, to_.load(pointer(0), op.type));
    case load_if: return made(op, to_.load_if(value(0), pointer(1), op.type));
    case load_vector: return made(op, to_.load_vector(pointer(0), op.type, small(0)));
    case store: return to_.store(pointer(0), value(1));
    case store_vector: return to_.store_vector(pointer(0), values(1));

    case copy_async:
      return to_.copy_async(pointer(0), pointer(1), small(0), one_of<CacheOperator>(1), value(2));
    case copy_async_commit: return to_.copy_async_commit();
    case copy_async_wait: return to_.copy_async_wait(small(0));
    case copy_async_arrive: return to_.copy_async_arrive(pointer(0));
    case mbarrier_init: return to_.mbarrier_init(pointer(0), small(0));
    case mbarrier_init_fence: return to_.mbarrier_init_fence();
    case mbarrier_expect: return to_.mbarrier_expect(pointer(0), small(0));
    case mbarrier_arrive: return to_.mbarrier_arrive(pointer(0));
    case mbarrier_arrive_if: return to_.mbarrier_arrive_if(value(0), pointer(1));
    case mbarrier_arrive_in_block: return to_.mbarrier_arrive(pointer(0), value(1));
    case mbarrier_arrive_in_block_if: return to_.mbarrier_arrive_if(value(0), pointer(1), value(2));
    case mbarrier_wait: return to_.mbarrier_wait(pointer(0), value(1));
    case cluster_mbarrier_arrive: return to_.cluster_mbarrier_arrive(pointer(0), value(1));
    case cluster_mbarrier_wait: return to_.cluster_mbarrier_wait(pointer(0), value(1));
    case prefetch_tensor_map: return to_.prefetch_tensor_map(pointer(0));
    case tensor_load:
      return to_.tensor_load(pointer(0), pointer(1), values(4), pointer(2), value(3),
                             one_of<Eviction>(0));
    case pixels_load: {
      const auto coordinates = static_cast<std::size_t>(number(0));
      return to_.pixels_load(pointer(0), pointer(1), values(3, coordinates),
                             values(3 + coordinates), pointer(2));
    }
    case tensor_store: return to_.tensor_store(pointer(0), values(2), pointer(1), number(0) != 0);
    case bulk_commit: return to_.bulk_commit();
    case bulk_wait_read: return to_.bulk_wait_read(small(0));
    case proxy_fence: return to_.proxy_fence();
    case elect: return made(op, to_.elect());
    case set_max_registers: return to_.set_max_registers(small(0), number(1) != 0);

    case OperationKind::variable: return made(op, to_.variable(op.type));
    case get: return made(op, to_.get(cell(0)));
    case set: return to_.set(cell(0), value(1));
    case if_then:
    case if_else:
    case for_range:
    case while_loop:
    case mark: return lower_structure(op);
    case by_role:
    case if_of_role:
    case split: assert(false && "it is in a part that is sliced"); return;

    case barrier: return to_.barrier();
    case barrier_of_some: return to_.barrier(small(0), small(1));
    case cluster_barrier: return to_.cluster_barrier(number(0) != 0);
    case warp_sync: return to_.warp_sync();
    case shuffle_xor: return made(op, to_.shuffle_xor(value(0), small(0)));
    case shuffle: return made(op, to_.shuffle(value(0), value(1)));

    case matrix: return made(op, to_.matrix(form(), pointer(0), values(1)));
    case OperationKind::warpgroup_product: return made(op, product_of_warpgroup());
    case warpgroup_wait: {
      const auto accumulators = static_cast<std::size_t>(number(1));
      return made(op, to_.warpgroup_wait(small(0), values(0, accumulators), values(accumulators)));
    }
    case statement:
    case pure_statement:
      return made(op, to_.statement(text(0), result_types(), values(0), op.kind == pure_statement));
    case print: return to_.print(text(0), values(0));
    case fail_assertion: return to_.fail_assertion(text(0), text(1), small(0));
  }
}

}  // namespace

struct [[gnu::visibility("hidden")]] Code::Impl {
  explicit Impl(const Function& function) : llvm(function) {}
  LlvmBuilder llvm;
};

Code::Code(const Function& function) : impl_(std::make_unique<Impl>(function)) {
  Lowering lowering(function, impl_->llvm);
  lowering.run(Function::frame);
  lowering.run(Function::body);
  if (!function.dynamic_bytes) return;
  [[maybe_unused]] const std::int64_t bytes = impl_->llvm.make_shared_dynamic();
  assert(bytes == *function.dynamic_bytes && "laid out as was recorded");
}

Code::~Code() = default;

Result<std::string> Code::ir() { return impl_->llvm.ir(); }
Result<std::string> Code::emit() { return impl_->llvm.emit(); }

}  // namespace tartan::TARTAN_ABI::codegen
