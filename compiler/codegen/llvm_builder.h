// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/llvm_builder.h - makes LLVM IR. Private to compiler/codegen: the only header
// that includes LLVM.
#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cassert>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/function.h"
#include "compiler/isa/special_registers.h"
#include "compiler/support/shared_layout.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::codegen {

using ir::Approximation, ir::CacheOperator, ir::Compare, ir::Eviction, ir::Function,
    ir::LaunchBounds, ir::Operand, ir::Operation, ir::OperationKind, ir::Param, ir::Pointer,
    ir::Value, ir::Variable;

/// LLVM's address space numbers.
constexpr unsigned address_space(StateSpace space) {
  switch (space) {
    case StateSpace::global: return 1;
    case StateSpace::shared: return 3;
    case StateSpace::local: return 5;
    case StateSpace::shared_cluster: return 7;
    default: assert(space == StateSpace::none); return 0;
  }
}

/// Whether `text` is a valid PTX identifier.
bool is_identifier(std::string_view text);

/// A kernel as LLVM IR, operation by operation. Its functions are named as the operations of a
/// Function (compiler/ir/operation.h) and take what these take; those of two values are one.
struct [[gnu::visibility("hidden")]] LlvmBuilder {
  /// An empty kernel with the frame of `function`.
  explicit LlvmBuilder(const Function& function);

  // ---- Operations.

  void at(const std::source_location& place);
  Value param(int index);
  Pointer pointer_param(int index);
  Value add_param(Type type);
  Pointer add_pointer_param(StateSpace space);
  Value special(isa::SpecialRegister which);
  Value constant(Type type, std::int64_t value);
  Value constant(Type type, double value);
  Value undefined(Type type);
  /// From add to maximum.
  Value binary(OperationKind kind, Value x, Value y);
  Value fma(Value x, Value y, Value z);
  Value negate(Value x);
  Value absolute(Value x);
  Value signum(Value x);
  Value floor(Value x);
  Value approximate(Approximation which, Value x);
  Value compare(Compare how, Value x, Value y);
  Value select(Value condition, Value x, Value y);
  Value convert(Value x, Type to);
  Value convert_pair(Value low, Value high, Type to);
  Value bitcast(Value x, Type to);
  Value pack(Value low, Value high, Type to);
  std::pair<Value, Value> unpack(Value x, Type to);
  Pointer offset(Pointer base, Value bytes);
  Pointer offset(Pointer base, std::int64_t bytes);
  Value load(Pointer from, Type type);
  Value load_if(Value condition, Pointer from, Type type);
  std::vector<Value> load_vector(Pointer from, Type type, int count);
  void store(Pointer to, Value value);
  void store_vector(Pointer to, std::span<const Value> values);
  Pointer shared(const std::string& name, std::int64_t bytes, int align);
  Pointer dynamic_shared(int align);
  std::int64_t make_shared_dynamic();
  Value shared_address(Pointer pointer);
  Value global_address(Pointer pointer);
  Pointer shared_of_block(Pointer pointer, Value block);
  Pointer shared_pointer(Value address);
  void copy_async(Pointer to, Pointer from, int bytes, CacheOperator cache, Value valid_bytes = {});
  void copy_async_commit();
  void copy_async_wait(int pending_groups);
  void mbarrier_init(Pointer at, int arrivals);
  void mbarrier_arrive(Pointer at);
  void mbarrier_arrive_if(Value condition, Pointer at);
  void mbarrier_expect(Pointer at, int bytes);
  void copy_async_arrive(Pointer mbarrier);
  void mbarrier_wait(Pointer at, Value parity);
  void mbarrier_arrive(Pointer at, Value block);
  void mbarrier_arrive_if(Value condition, Pointer at, Value block);
  void cluster_mbarrier_arrive(Pointer at, Value block);
  void cluster_mbarrier_wait(Pointer at, Value parity);
  void mbarrier_init_fence();
  Pointer add_tensor_map();
  void prefetch_tensor_map(Pointer map);
  void tensor_load(Pointer to, Pointer map, std::span<const Value> coordinates, Pointer mbarrier,
                   Value blocks = {}, Eviction eviction = Eviction::normal);
  void pixels_load(Pointer to, Pointer map, std::span<const Value> coordinates,
                   std::span<const Value> offsets, Pointer mbarrier);
  void tensor_store(Pointer map, std::span<const Value> coordinates, Pointer from,
                    bool adds = false);
  void bulk_commit();
  void bulk_wait_read(int pending_groups);
  void proxy_fence();
  Value elect();
  void set_max_registers(int count, bool more);
  Variable variable(Type type);
  Value get(Variable variable);
  void set(Variable variable, Value value);
  void if_then(Value condition, const std::function<void()>& then);
  void if_else(Value condition, const std::function<void()>& then,
               const std::function<void()>& otherwise);
  void for_range(Variable counter, Value end, Value step, const std::function<void(Value i)>& body);
  void while_loop(const std::function<Value()>& condition, const std::function<void()>& body);
  void barrier();
  void barrier(int id, int threads);
  void cluster_barrier(bool orders = true);
  void warp_sync();
  Value shuffle_xor(Value x, int mask);
  Value shuffle(Value x, Value lane);
  std::vector<Value> matrix(const isa::Form& form, Pointer address,
                            std::span<const Value> operands);
  std::vector<Value> statement(std::string_view text, std::span<const Type> results,
                               std::span<const Value> operands, bool pure);
  std::vector<Value> warpgroup_product(const isa::Form& form, std::span<const Value> accumulators,
                                       std::span<const std::vector<Value>> steps);
  std::vector<Value> warpgroup_wait(int pending_groups, std::span<const Value> accumulators,
                                    std::span<const Value> kept = {});
  void print(const std::string& format, std::span<const Value> values);
  void fail_assertion(const std::string& text, const std::string& file, int line);

  // ---- What they share.

  // From handles to LLVM's objects, and back.
  llvm::Value* get(Value value) const;
  llvm::Value* get(Pointer pointer) const;
  Value value(llvm::Value * of, Type type);
  Pointer pointer(llvm::Value * of, StateSpace space);

  llvm::Type* llvm_type(Type of);
  llvm::PointerType* pointer_type(StateSpace space);
  llvm::Value* bits_as(llvm::Value * of, llvm::Type * type);            // same bits, other type
  llvm::Value* resize(llvm::Value * of, llvm::Type * type, bool sign);  // integers
  Value widen(Value x);                                                 // eight-bit types, to f16
  llvm::Value* pointer_in(Pointer pointer,
                          StateSpace space);  // the same place, addressed in `space`
  llvm::Value* byte_offset(llvm::Value * base, llvm::Value * bytes, bool sign);

  /// Calls an intrinsic by id; `overloads` are its overloaded types, if any. Returns the call.
  llvm::CallInst* call(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> arguments,
                       llvm::ArrayRef<llvm::Type*> overloads = {});
  /// The same for an intrinsic that a warp executes together: no pass may move it into or out of
  /// divergent code.
  llvm::CallInst* collective(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> arguments,
                             llvm::ArrayRef<llvm::Type*> overloads = {});
  void make_collective(llvm::CallInst * call);

  /// A statement of inline assembly that names its operands $0, $1...; the result, if any, comes
  /// first. Nothing moves across it.
  llvm::CallInst* assembly(const std::string& text, const std::string& constraints,
                           llvm::ArrayRef<llvm::Value*> inputs, llvm::Type* result = nullptr);
  llvm::Value* shared_window(Pointer pointer);  // the shared-window address as 32 bits
  llvm::Value* window_of_block(Pointer pointer, Value block);  // that of another block's
  void wait_for_phase(const std::string& how, Pointer at, Value parity);
  /// Adds coordinates of a tensor map to the inputs; returns their list in the text, "{$2, $3}".
  std::string coordinate_list(std::span<const Value> values, std::vector<llvm::Value*> & inputs,
                              std::string & constraints);

  /// Declares the parameters that were added while the function was built.
  void settle_params();
  /// Ends the function, and verifies it. A second call does nothing.
  Status finish();
  Result<std::string> ir();
  Result<std::string> emit();
  std::string layout_comment() const;  // of dynamic shared memory

  // Two 16-bit floats (f16x2, bf16x2) are a vector in arithmetic, and a word elsewhere.
  llvm::Type* arithmetic_type(Type of);
  llvm::Value* arithmetic(Value of);
  Value from_arithmetic(llvm::Value * of, Type type);

  llvm::BasicBlock* block(const char* name);
  llvm::AllocaInst* entry_alloca(llvm::Type * type);

  // Matrix instructions, in matrix.cc.
  std::vector<Value> matrix_by_intrinsic(const isa::Instruction& instruction,
                                         llvm::Intrinsic::ID id, Pointer address,
                                         std::span<const Value> operands);
  std::vector<Value> matrix_by_assembly(const isa::Instruction& instruction, Pointer address,
                                        std::span<const Value> operands);
  std::vector<Value> results(llvm::CallInst * call, Type type, int count);

  // C++ places.
  void start_debug_info(const std::source_location& place);
  llvm::DIFile* file(const char* name);

  std::string name;
  Target target;
  bool ended = false;
  std::vector<Param> params;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  llvm::Function* function = nullptr;
  llvm::IRBuilder<> build;
  std::vector<std::unique_ptr<llvm::Argument>> late_params;  // placeholders until settle_params()
  std::vector<llvm::Value*> values;
  std::vector<llvm::Value*> pointers;
  std::vector<llvm::AllocaInst*> variables;
  llvm::AllocaInst* last_alloca = nullptr;
  llvm::GlobalVariable* dynamic_memory = nullptr;
  detail::SharedLayout shared_layout;                // of the variables that became a part of it
  std::vector<llvm::GlobalVariable*> static_shared;  // in the order of their declarations
  std::vector<llvm::Argument*> tensor_maps;          // of late_params

  std::unique_ptr<llvm::DIBuilder> debug;
  llvm::DISubprogram* subprogram = nullptr;
  std::map<std::string, llvm::DILexicalBlockFile*> scopes;  // by file
  const char* file_name = nullptr;                          // of the current place
  llvm::DILexicalBlockFile* scope = nullptr;                // that file's
};

}  // namespace tartan::TARTAN_ABI::codegen
