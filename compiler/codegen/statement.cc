// SPDX-License-Identifier: Apache-2.0
// Statements of PTX by inline assembly, with operands of every type.
#include <llvm/IR/InlineAsm.h>

#include <cctype>

#include "compiler/codegen/assembly.h"
#include "compiler/codegen/llvm_builder.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

// The class of registers that hold a type: those smaller than 16 bits take 16.
Type register_class(Type type) {
  if (type == Type::pred || type == f32 || type == f64) return type;
  const int size = bits(type);
  return size <= 16 ? Type::b16 : size == 32 ? Type::b32 : Type::b64;
}

// %0 as LLVM's $0; its own $ as $$.
std::string for_llvm(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool operand = text[i] == '%' && i + 1 < text.size() &&
                         std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if (operand) out += '$';
    else if (text[i] == '$') out += "$$";
    else out += text[i];
  }
  return out;
}

}  // namespace

std::vector<Value> LlvmBuilder::statement(std::string_view text, std::span<const Type> results,
                                          std::span<const Value> operands, bool pure) {
  std::vector<Value> out;
  std::string constraints;
  const auto constrain = [&](std::string_view how, Type held) {
    constraints += (constraints.empty() ? "" : ",") + std::string(how) + constraint(held);
  };
  std::vector<llvm::Type*> returned, types;
  std::vector<llvm::Value*> arguments;
  for (const Type each : results) {
    constrain("=", register_class(each));
    returned.push_back(llvm_type(register_class(each)));
  }
  for (const Value& each : operands) {
    const Type held = register_class(each.type);
    constrain("", held);
    llvm::Value* of = get(each);
    if (bits(each.type) < bits(held)) of = resize(of, llvm_type(held), info(each.type).is_signed);
    arguments.push_back(bits_as(of, llvm_type(held)));
    types.push_back(arguments.back()->getType());
  }
  if (!pure) constraints += constraints.empty() ? "~{memory}" : ",~{memory}";
  llvm::Type* const type = returned.empty()       ? build.getVoidTy()
                           : returned.size() == 1 ? returned[0]
                                                  : llvm::StructType::get(*context, returned);
  llvm::CallInst* const call = build.CreateCall(
      llvm::InlineAsm::get(llvm::FunctionType::get(type, types, false), for_llvm(text), constraints,
                           /*hasSideEffects=*/!pure),
      arguments);
  if (!pure) make_collective(call);
  for (std::size_t i = 0; i < results.size(); ++i) {
    llvm::Value* one =
        results.size() > 1 ? build.CreateExtractValue(call, static_cast<unsigned>(i)) : call;
    if (bits(results[i]) < bits(register_class(results[i])))
      one = resize(one, llvm_type(results[i]), false);
    out.push_back(value(bits_as(one, llvm_type(results[i])), results[i]));
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::codegen
