// SPDX-License-Identifier: Apache-2.0
// Variables, branches and loops; barriers and shuffles.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cassert>
#include <utility>

#include "compiler/codegen/impl.h"

namespace tartan::TARTAN_ABI::codegen {

Variable FunctionBuilder::variable(Value initial) {
  llvm::Value* const value = impl_->get(initial);
  llvm::AllocaInst* const place = impl_->entry_alloca(value->getType());
  impl_->build.CreateStore(value, place);
  impl_->variables.push_back(place);
  return {static_cast<int>(impl_->variables.size()) - 1, initial.type};
}

Value FunctionBuilder::get(Variable variable) {
  llvm::AllocaInst* const place = impl_->variables.at(static_cast<std::size_t>(variable.id));
  return impl_->value(impl_->build.CreateLoad(place->getAllocatedType(), place), variable.type);
}

void FunctionBuilder::set(Variable variable, Value value) {
  llvm::AllocaInst* const place = impl_->variables.at(static_cast<std::size_t>(variable.id));
  assert(bits(variable.type) == bits(value.type));
  impl_->build.CreateStore(impl_->bits_as(impl_->get(value), place->getAllocatedType()), place);
}

void FunctionBuilder::if_then(Value condition, const std::function<void()>& then) {
  llvm::BasicBlock* const body = impl_->block("then");
  llvm::BasicBlock* const end = impl_->block("end");
  impl_->build.CreateCondBr(impl_->get(condition), body, end);
  impl_->build.SetInsertPoint(body);
  then();
  impl_->build.CreateBr(end);
  end->moveAfter(impl_->build.GetInsertBlock());
  impl_->build.SetInsertPoint(end);
}

void FunctionBuilder::if_else(Value condition, const std::function<void()>& then,
                              const std::function<void()>& otherwise) {
  llvm::BasicBlock* const yes = impl_->block("then");
  llvm::BasicBlock* const no = impl_->block("else");
  llvm::BasicBlock* const end = impl_->block("end");
  impl_->build.CreateCondBr(impl_->get(condition), yes, no);
  impl_->build.SetInsertPoint(yes);
  then();
  impl_->build.CreateBr(end);
  no->moveAfter(impl_->build.GetInsertBlock());
  impl_->build.SetInsertPoint(no);
  otherwise();
  impl_->build.CreateBr(end);
  end->moveAfter(impl_->build.GetInsertBlock());
  impl_->build.SetInsertPoint(end);
}

void FunctionBuilder::while_loop(const std::function<Value()>& condition,
                                 const std::function<void()>& body) {
  llvm::BasicBlock* const head = impl_->block("while");
  llvm::BasicBlock* const inside = impl_->block("body");
  llvm::BasicBlock* const end = impl_->block("end");
  impl_->build.CreateBr(head);
  impl_->build.SetInsertPoint(head);
  impl_->build.CreateCondBr(impl_->get(condition()), inside, end);
  inside->moveAfter(impl_->build.GetInsertBlock());
  impl_->build.SetInsertPoint(inside);
  body();
  impl_->build.CreateBr(head);
  end->moveAfter(impl_->build.GetInsertBlock());
  impl_->build.SetInsertPoint(end);
}

void FunctionBuilder::for_range(Value begin, Value end, Value step,
                                const std::function<void(Value i)>& body) {
  const Variable i = variable(begin);
  while_loop([&] { return compare(Compare::lt, get(i), end); },
             [&] {
               const Value now = get(i);
               body(now);
               set(i, add(now, step));
             });
}

int FunctionBuilder::mark() {
  llvm::BasicBlock* const open = impl_->block("mark");
  llvm::BasicBlock* const next = impl_->block("marked");
  impl_->build.CreateBr(open);
  impl_->build.SetInsertPoint(next);
  impl_->marks.push_back({open, next});
  return static_cast<int>(impl_->marks.size()) - 1;
}

void FunctionBuilder::at_mark(int mark, const std::function<void()>& body) {
  const llvm::IRBuilderBase::InsertPointGuard guard(impl_->build);
  impl_->build.SetInsertPoint(impl_->marks.at(static_cast<std::size_t>(mark)).open);
  body();
  impl_->marks[static_cast<std::size_t>(mark)].open = impl_->build.GetInsertBlock();
}

bool FunctionBuilder::is_muted() const { return impl_->muted; }
bool FunctionBuilder::mute(bool muted) { return std::exchange(impl_->muted, muted); }

void FunctionBuilder::barrier(int id, int threads) {
  if (impl_->muted) return;
  impl_->collective(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                    {impl_->build.getInt32(static_cast<unsigned>(id)),
                     impl_->build.getInt32(static_cast<unsigned>(threads))});
}

void FunctionBuilder::barrier() {
  if (impl_->muted) return;
  impl_->collective(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, impl_->build.getInt32(0));
}

void FunctionBuilder::warp_sync() {
  impl_->collective(llvm::Intrinsic::nvvm_bar_warp_sync, impl_->build.getInt32(0xffffffff));
}

Value FunctionBuilder::shuffle_xor(Value x, int mask) {
  assert(bits(x.type) == 32);
  auto& build = impl_->build;
  llvm::Value* const moved = impl_->collective(
      llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
      {build.getInt32(0xffffffff), impl_->bits_as(impl_->get(x), build.getInt32Ty()),
       build.getInt32(static_cast<unsigned>(mask)), build.getInt32(31)});
  return impl_->value(impl_->bits_as(moved, impl_->type(x.type)), x.type);
}

Value FunctionBuilder::shuffle(Value x, Value lane) {
  assert(bits(x.type) == 32 && bits(lane.type) == 32);
  auto& build = impl_->build;
  llvm::Value* const moved = impl_->collective(
      llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
      {build.getInt32(0xffffffff), impl_->bits_as(impl_->get(x), build.getInt32Ty()),
       impl_->get(lane), build.getInt32(31)});
  return impl_->value(impl_->bits_as(moved, impl_->type(x.type)), x.type);
}

}  // namespace tartan::TARTAN_ABI::codegen
