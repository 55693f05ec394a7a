// SPDX-License-Identifier: Apache-2.0
// Variables, branches and loops; barriers and shuffles.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cassert>
#include <utility>

#include "compiler/codegen/llvm_builder.h"

namespace tartan::TARTAN_ABI::codegen {

Variable LlvmBuilder::variable(Type type) {
  variables.push_back(entry_alloca(llvm_type(type)));
  return {static_cast<int>(variables.size()) - 1, type};
}

Value LlvmBuilder::get(Variable variable) {
  llvm::AllocaInst* const place = variables.at(static_cast<std::size_t>(variable.id));
  return value(build.CreateLoad(place->getAllocatedType(), place), variable.type);
}

void LlvmBuilder::set(Variable variable, Value value) {
  llvm::AllocaInst* const place = variables.at(static_cast<std::size_t>(variable.id));
  assert(bits(variable.type) == bits(value.type));
  build.CreateStore(bits_as(get(value), place->getAllocatedType()), place);
}

void LlvmBuilder::if_then(Value condition, const std::function<void()>& then) {
  llvm::BasicBlock* const body = block("then");
  llvm::BasicBlock* const end = block("end");
  build.CreateCondBr(get(condition), body, end);
  build.SetInsertPoint(body);
  then();
  build.CreateBr(end);
  end->moveAfter(build.GetInsertBlock());
  build.SetInsertPoint(end);
}

void LlvmBuilder::if_else(Value condition, const std::function<void()>& then,
                          const std::function<void()>& otherwise) {
  llvm::BasicBlock* const yes = block("then");
  llvm::BasicBlock* const no = block("else");
  llvm::BasicBlock* const end = block("end");
  build.CreateCondBr(get(condition), yes, no);
  build.SetInsertPoint(yes);
  then();
  build.CreateBr(end);
  no->moveAfter(build.GetInsertBlock());
  build.SetInsertPoint(no);
  otherwise();
  build.CreateBr(end);
  end->moveAfter(build.GetInsertBlock());
  build.SetInsertPoint(end);
}

void LlvmBuilder::while_loop(const std::function<Value()>& condition,
                             const std::function<void()>& body) {
  llvm::BasicBlock* const head = block("while");
  llvm::BasicBlock* const inside = block("body");
  llvm::BasicBlock* const end = block("end");
  build.CreateBr(head);
  build.SetInsertPoint(head);
  build.CreateCondBr(get(condition()), inside, end);
  inside->moveAfter(build.GetInsertBlock());
  build.SetInsertPoint(inside);
  body();
  build.CreateBr(head);
  end->moveAfter(build.GetInsertBlock());
  build.SetInsertPoint(end);
}

void LlvmBuilder::for_range(Variable counter, Value end, Value step,
                            const std::function<void(Value i)>& body) {
  while_loop([&] { return compare(Compare::lt, get(counter), end); },
             [&] {
               const Value now = get(counter);
               body(now);
               set(counter, binary(OperationKind::add, now, step));
             });
}

void LlvmBuilder::barrier(int id, int threads) {
  collective(
      llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_count,
      {build.getInt32(static_cast<unsigned>(id)), build.getInt32(static_cast<unsigned>(threads))});
}

void LlvmBuilder::barrier() {
  collective(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, build.getInt32(0));
}

void LlvmBuilder::warp_sync() {
  collective(llvm::Intrinsic::nvvm_bar_warp_sync, build.getInt32(0xffffffff));
}

Value LlvmBuilder::shuffle_xor(Value x, int mask) {
  assert(bits(x.type) == 32);
  llvm::Value* const moved =
      collective(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
                 {build.getInt32(0xffffffff), bits_as(get(x), build.getInt32Ty()),
                  build.getInt32(static_cast<unsigned>(mask)), build.getInt32(31)});
  return value(bits_as(moved, llvm_type(x.type)), x.type);
}

Value LlvmBuilder::shuffle(Value x, Value lane) {
  assert(bits(x.type) == 32 && bits(lane.type) == 32);
  llvm::Value* const moved =
      collective(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                 {build.getInt32(0xffffffff), bits_as(get(x), build.getInt32Ty()), get(lane),
                  build.getInt32(31)});
  return value(bits_as(moved, llvm_type(x.type)), x.type);
}

}  // namespace tartan::TARTAN_ABI::codegen
