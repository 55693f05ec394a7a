// SPDX-License-Identifier: Apache-2.0
// Matrix instructions: LLVM's intrinsic if it has one that it can select, else inline assembly.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cassert>

#include "compiler/codegen/assembly.h"
#include "compiler/codegen/intrinsic.h"
#include "compiler/codegen/llvm_builder.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

using isa::Form;
using isa::Instruction;
using isa::Opcode;
using isa::OperandKind;
using isa::OperandSpec;
using isa::Role;

// The number of values that an operand takes from the flattened list.
int flattened(const OperandSpec& operand) {
  switch (operand.kind) {
    case OperandKind::Vector: return operand.count;
    case OperandKind::Address: return 0;
    case OperandKind::Pair: return 2;
    case OperandKind::Register:
    case OperandKind::Immediate: return 1;
  }
  return 0;
}

[[maybe_unused]] int inputs(const Instruction& instruction) {
  int out = 0;
  for (const OperandSpec& operand : instruction.operands)
    if (operand.role != Role::d) out += flattened(operand);
  return out;
}

bool touches_memory(Opcode opcode) {
  return opcode != Opcode::mma && opcode != Opcode::wmma_mma && opcode != Opcode::movmatrix;
}

llvm::Intrinsic::ID usable_intrinsic(const Form& form, const Target& target) {
  const std::string name = intrinsic_name(form);
  if (name.empty() || !selectable(form, target)) return llvm::Intrinsic::not_intrinsic;
  return llvm::Intrinsic::lookupIntrinsicID(name);
}

}  // namespace

std::vector<Value> LlvmBuilder::results(llvm::CallInst* call, Type type, int count) {
  std::vector<Value> out;
  assert(!call->getType()->isStructTy() ||
         call->getType()->getStructNumElements() == static_cast<unsigned>(count));
  for (int i = 0; i < count; ++i) {
    llvm::Value* const one = call->getType()->isStructTy()
                                 ? build.CreateExtractValue(call, static_cast<unsigned>(i))
                                 : call;
    out.push_back(value(bits_as(one, llvm_type(type)), type));
  }
  return out;
}

std::vector<Value> LlvmBuilder::matrix_by_intrinsic(const Instruction& instruction,
                                                    llvm::Intrinsic::ID id, Pointer address,
                                                    std::span<const Value> operands) {
  std::vector<llvm::Value*> arguments;
  std::vector<llvm::Type*> overloads;
  for (const OperandSpec& operand : instruction.operands) {
    if (operand.role == Role::d) continue;
    if (operand.kind == OperandKind::Address) {
      arguments.push_back(pointer_in(address, memory_of(instruction.form.space)));
      overloads.push_back(arguments.back()->getType());
    }
    for (int i = flattened(operand); i > 0; --i) {
      arguments.push_back(get(operands.front()));
      operands = operands.subspan(1);
    }
  }
  llvm::Function* const callee =
      llvm::Intrinsic::getOrInsertDeclaration(module.get(), id, overloads);
  llvm::FunctionType* const signature = callee->getFunctionType();
  assert(signature->getNumParams() == arguments.size() &&
         "the operands of LLVM's intrinsic differ from the instruction table");
  for (unsigned i = 0; i < arguments.size(); ++i) {
    llvm::Type* const wanted = signature->getParamType(i);
    llvm::Value*& argument = arguments[i];
    if (wanted->isIntegerTy() && argument->getType()->isIntegerTy())
      argument = resize(argument, wanted, false);
    else argument = bits_as(argument, wanted);
    assert(!callee->hasParamAttribute(i, llvm::Attribute::ImmArg) ||
           llvm::isa<llvm::Constant>(argument));
  }
  llvm::CallInst* const call = build.CreateCall(callee, arguments);
  make_collective(call);
  // A load whose registers nobody reads goes away.
  if (call->onlyReadsMemory()) call->addFnAttr(llvm::Attribute::WillReturn);
  const OperandSpec* const d = instruction.operand(Role::d);
  return d ? results(call, d->type, d->count) : std::vector<Value>{};
}

std::vector<Value> LlvmBuilder::matrix_by_assembly(const Instruction& instruction, Pointer address,
                                                   std::span<const Value> operands) {
  const Form& form = instruction.form;
  const OperandSpec* const d = instruction.operand(Role::d);
  Assembly assembly(isa::spell(form));
  const auto write_input = [&](const OperandSpec& operand) {
    llvm::Value* const given = get(operands.front());
    operands = operands.subspan(1);
    const bool constant =
        operand.kind == OperandKind::Immediate ||
        (operand.kind == OperandKind::Pair && llvm::isa<llvm::ConstantInt>(given));
    llvm::Type* const wanted = llvm_type(operand.type);
    if (constant) assembly.input(given, "n");
    else
      assembly.input(
          operand.kind == OperandKind::Pair ? resize(given, wanted, false) : bits_as(given, wanted),
          constraint(operand.type));
  };
  const auto write_address = [&] {
    llvm::Value* const pointer = pointer_in(address, memory_of(form.space));
    assembly.write("[");
    assembly.input(
        pointer,
        module->getDataLayout().getPointerTypeSizeInBits(pointer->getType()) == 32 ? "r" : "l");
    assembly.write("]");
  };
  for (const OperandSpec& operand : instruction.operands) {
    assembly.write(&operand == &instruction.operands.front() ? " " : ", ");
    if (operand.kind == OperandKind::Address) {
      write_address();
      continue;
    }
    const bool braces = operand.kind == OperandKind::Vector || operand.kind == OperandKind::Pair;
    if (braces) assembly.write("{");
    for (int i = 0; i < flattened(operand); ++i) {
      if (i > 0) assembly.write(", ");
      if (operand.role == Role::d)
        assembly.result(llvm_type(operand.type), constraint(operand.type));
      else write_input(operand);
    }
    if (braces) assembly.write("}");
  }
  assembly.write(";");
  if (touches_memory(form.opcode)) assembly.clobber_memory();
  llvm::CallInst* const call = assembly.call(build);
  make_collective(call);
  return d ? results(call, d->type, d->count) : std::vector<Value>{};
}

std::vector<Value> LlvmBuilder::matrix(const Form& form, Pointer address,
                                       std::span<const Value> operands) {
  const auto instruction = isa::find(form);
  assert(form.opcode != Opcode::wgmma && "wgmma: use warpgroup_product() instead");
  assert(instruction && instruction->since.has(target) && "unsupported on the target");
  assert(operands.size() == static_cast<std::size_t>(inputs(*instruction)));
  if (const llvm::Intrinsic::ID id = usable_intrinsic(form, target))
    return matrix_by_intrinsic(*instruction, id, address, operands);
  return matrix_by_assembly(*instruction, address, operands);
}

}  // namespace tartan::TARTAN_ABI::codegen
