// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/assembly.h - one inline assembly statement. Private to compiler/codegen.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include <cassert>
#include <string>
#include <vector>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::codegen {

/// LLVM's letter for a register of a type.
inline const char* constraint(Type type) {
  switch (type) {
    case Type::pred: return "b";
    case Type::b16: return "h";
    case Type::f32: return "f";
    case Type::f64: return "d";
    case Type::b64: return "l";
    default: return "r";
  }
}

/// The statement's text, and its operands with LLVM's constraints. Results come first and have the
/// lowest numbers.
class [[gnu::visibility("hidden")]] Assembly {
 public:
  explicit Assembly(std::string text) : text_(std::move(text)) {}

  void write(std::string_view text) { text_ += text; }
  void result(llvm::Type * type, const char* kind) {
    hold(type, kind);
    text_ += "$" + std::to_string(results_.size() - 1);
  }
  /// Adds a result that the text does not name.
  void hold(llvm::Type * type, const char* kind) {
    assert(arguments_.empty());
    constrain("=" + std::string(kind));
    results_.push_back(type);
  }
  /// Adds an input; returns the operand's number, by which the text may name() it again.
  std::size_t input(llvm::Value * value, const char* kind) {
    constrain(kind);
    arguments_.push_back(value);
    name(results_.size() + arguments_.size() - 1);
    return results_.size() + arguments_.size() - 1;
  }
  void name(std::size_t operand) { text_ += "$" + std::to_string(operand); }
  /// Adds an input that the text does not name.
  void keep(llvm::Value * value, const char* kind) {
    constrain(kind);
    arguments_.push_back(value);
  }
  /// `value` enters in the register of result number `result`. Call it after every input().
  void tie(llvm::Value * value, std::size_t result) {
    constrain(std::to_string(result));
    arguments_.push_back(value);
  }
  void clobber_memory() { constrain("~{memory}"); }

  llvm::CallInst* call(llvm::IRBuilderBase & build) const {
    llvm::Type* returned = build.getVoidTy();
    if (results_.size() == 1) returned = results_[0];
    if (results_.size() > 1) returned = llvm::StructType::get(build.getContext(), results_);
    std::vector<llvm::Type*> types;
    for (llvm::Value* const argument : arguments_) types.push_back(argument->getType());
    auto* const type = llvm::FunctionType::get(returned, types, false);
    return build.CreateCall(
        llvm::InlineAsm::get(type, text_, constraints_, /*hasSideEffects=*/true), arguments_);
  }

 private:
  void constrain(std::string_view constraint) {
    if (!constraints_.empty()) constraints_ += ',';
    constraints_ += constraint;
  }

  std::string text_;
  std::string constraints_;
  std::vector<llvm::Type*> results_;
  std::vector<llvm::Value*> arguments_;
};

}  // namespace tartan::TARTAN_ABI::codegen
