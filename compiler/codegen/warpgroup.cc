// SPDX-License-Identifier: Apache-2.0
// Asynchronous products of a warpgroup: wgmma (PTX ISA 9.0, 9.7.15).
#include <cassert>
#include <map>

#include "compiler/codegen/assembly.h"
#include "compiler/codegen/llvm_builder.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

using isa::OperandKind;
using isa::OperandSpec;

std::string registers(std::size_t count) {
  std::string out = "{";
  for (std::size_t i = 0; i < count; ++i) out += (i ? ", $" : "$") + std::to_string(i);
  return out + "}";
}

// The statements of one product as a single piece of assembly: LLVM moves the accumulators' phis
// once, and cannot insert anything between the statements.
class ProductText {
 public:
  ProductText(Assembly& assembly, std::string d) : assembly_(assembly), d_(std::move(d)) {}

  /// `get` returns LLVM's value for a handle, as the operand's type.
  template <typename Get>
  void write(const isa::Instruction& instruction, std::span<const Value> operands, Get get) {
    assembly_.write(isa::spell(instruction.form) + " " + d_);
    for (const OperandSpec& operand : instruction.operands) {
      if (operand.role == isa::Role::d) continue;
      assembly_.write(operand.kind == OperandKind::Vector ? ", {" : ", ");
      const int count = operand.kind == OperandKind::Vector ? operand.count : 1;
      for (int i = 0; i < count; ++i, operands = operands.subspan(1)) {
        if (i > 0) assembly_.write(", ");
        write(operand, operands.front(), get);
      }
      if (operand.kind == OperandKind::Vector) assembly_.write("}");
    }
    assert(operands.empty());
    assembly_.write(";\n\t");
  }

 private:
  template <typename Get>
  void write(const OperandSpec& operand, Value value, Get get) {
    llvm::Value* const given = get(value, operand.type);
    if (operand.kind == OperandKind::Immediate)
      return assembly_.write(std::to_string(llvm::cast<llvm::ConstantInt>(given)->getSExtValue()));
    if (const auto before = numbers_.find(given); before != numbers_.end())
      return assembly_.name(before->second);
    numbers_[given] = assembly_.input(given, constraint(operand.type));
  }

  Assembly& assembly_;
  std::string d_;
  std::map<llvm::Value*, std::size_t> numbers_;  // of operands, each of which is an input once
};

}  // namespace

std::vector<Value> LlvmBuilder::warpgroup_product(const isa::Form& form,
                                                  std::span<const Value> accumulators,
                                                  std::span<const std::vector<Value>> steps) {
  const auto instruction = isa::find(form);
  assert(instruction && instruction->since.has(target) && "unsupported on the target");
  const OperandSpec& d = *instruction->operand(isa::Role::d);
  assert(accumulators.size() == static_cast<std::size_t>(d.count));
  Assembly assembly("wgmma.fence.sync.aligned;\n\t");
  for (std::size_t i = 0; i < accumulators.size(); ++i)
    assembly.hold(llvm_type(d.type), constraint(d.type));
  ProductText text(assembly, registers(accumulators.size()));
  for (const std::vector<Value>& step : steps)
    text.write(*instruction, step, [&](Value value, Type type) {
      llvm::Value* const given = get(value);
      return llvm::isa<llvm::ConstantInt>(given) ? given : bits_as(given, llvm_type(type));
    });
  assembly.write("wgmma.commit_group.sync.aligned;");
  for (std::size_t i = 0; i < accumulators.size(); ++i)
    assembly.tie(bits_as(get(accumulators[i]), llvm_type(d.type)), i);
  assembly.clobber_memory();
  llvm::CallInst* const call = assembly.call(build);
  make_collective(call);
  return results(call, d.type, d.count);
}

// The wait returns the results: otherwise LLVM would move their uses above it.
std::vector<Value> LlvmBuilder::warpgroup_wait(int pending_groups,
                                               std::span<const Value> accumulators,
                                               std::span<const Value> kept) {
  Assembly assembly("wgmma.wait_group.sync.aligned " + std::to_string(pending_groups) + ";");
  for (const Value& each : accumulators) assembly.hold(llvm_type(each.type), constraint(each.type));
  for (const Value& each : kept) assembly.keep(get(each), constraint(each.type));
  for (std::size_t i = 0; i < accumulators.size(); ++i) assembly.tie(get(accumulators[i]), i);
  assembly.clobber_memory();
  llvm::CallInst* const call = assembly.call(build);
  make_collective(call);
  std::vector<Value> out;
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    llvm::Value* const one =
        accumulators.size() == 1 ? call : build.CreateExtractValue(call, static_cast<unsigned>(i));
    out.push_back(value(one, accumulators[i].type));
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::codegen
