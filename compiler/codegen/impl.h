// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/impl.h - the implementation of FunctionBuilder. Private to compiler/codegen: the
// only header that includes LLVM.
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

#include "compiler/codegen/function_builder.h"
#include "compiler/support/shared_layout.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::codegen {

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

struct [[gnu::visibility("hidden")]] FunctionBuilder::Impl {
  Impl(std::string name, Target target, LaunchBounds bounds, std::vector<Param> params);

  // From handles to LLVM's objects, and back.
  llvm::Value* get(Value value) const;
  llvm::Value* get(Pointer pointer) const;
  Value value(llvm::Value * of, Type type);
  Pointer pointer(llvm::Value * of, StateSpace space);

  llvm::Type* type(Type of);
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
  void wait_for_phase(FunctionBuilder & f, const std::string& how, Pointer at, Value parity);
  /// Adds coordinates of a tensor map to the inputs; returns their list in the text, "{$2, $3}".
  std::string coordinates(std::span<const Value> values, std::vector<llvm::Value*> & inputs,
                          std::string & constraints);

  /// Declares the parameters that were added while the function was built.
  void settle_params();
  /// Ends the function, and verifies it. A second call does nothing.
  Status finish();
  std::string layout_comment() const;  // of dynamic shared memory

  // Two 16-bit floats (f16x2, bf16x2) are a vector in arithmetic, and a word elsewhere.
  llvm::Type* arithmetic_type(Type of);
  llvm::Value* arithmetic(Value of);
  Value from_arithmetic(llvm::Value * of, Type type);

  using Operation = llvm::Instruction::BinaryOps;
  Value binary(Operation integer, Operation real, Value x, Value y);

  llvm::BasicBlock* block(const char* name);
  llvm::AllocaInst* entry_alloca(llvm::Type * type);

  // Matrix instructions, in matrix.cc.
  std::vector<Value> matrix_by_intrinsic(const isa::Instruction& instruction,
                                         llvm::Intrinsic::ID id, Pointer address,
                                         std::span<const Value> operands);
  std::vector<Value> matrix_by_assembly(const isa::Instruction& instruction, Pointer address,
                                        std::span<const Value> operands);
  std::vector<Value> zeros(const isa::Instruction& instruction);
  std::vector<Value> results(llvm::CallInst * call, Type type, int count);

  // C++ places, in function_builder.cc.
  void start_debug_info(const std::source_location& place);
  llvm::DIFile* file(const char* name);

  std::string name;
  Target target;
  bool finished = false;
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
  llvm::GlobalVariable* dynamic_shared = nullptr;
  detail::SharedLayout shared_layout;         // of the variables that became a part of it
  std::vector<llvm::GlobalVariable*> shared;  // static, in the order of their declarations
  std::vector<llvm::Argument*> tensor_maps;   // of late_params
  struct Mark {
    llvm::BasicBlock *open, *next;
  };
  std::vector<Mark> marks;
  bool muted = false;
  std::vector<std::string> absent;  // why results are: absent_results.h

  std::unique_ptr<llvm::DIBuilder> debug;
  llvm::DISubprogram* subprogram = nullptr;
  std::map<std::string, llvm::DILexicalBlockFile*> scopes;  // by file
  const char* file_name = nullptr;                          // of the current place
  llvm::DILexicalBlockFile* scope = nullptr;                // that file's
};

}  // namespace tartan::TARTAN_ABI::codegen
