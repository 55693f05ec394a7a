// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: cp.async, TMA, and the mbarriers that signal their completion.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cassert>

#include "compiler/codegen/impl.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::codegen {

void FunctionBuilder::copy_async(Pointer to, Pointer from, int bytes, CacheOperator cache,
                                 Value valid_bytes) {
  using namespace llvm::Intrinsic;
  assert((cache == CacheOperator::ca && (bytes == 4 || bytes == 8 || bytes == 16)) ||
         (cache == CacheOperator::cg && bytes == 16));
  if (impl_->muted) return;
  constexpr llvm::Intrinsic::ID whole[] = {
      nvvm_cp_async_ca_shared_global_4, nvvm_cp_async_ca_shared_global_8,
      nvvm_cp_async_ca_shared_global_16, nvvm_cp_async_cg_shared_global_16};
  constexpr llvm::Intrinsic::ID filled[] = {
      nvvm_cp_async_ca_shared_global_4_s, nvvm_cp_async_ca_shared_global_8_s,
      nvvm_cp_async_ca_shared_global_16_s, nvvm_cp_async_cg_shared_global_16_s};
  const int which = cache == CacheOperator::cg ? 3 : bytes == 16 ? 2 : bytes == 8 ? 1 : 0;
  std::vector<llvm::Value*> arguments{impl_->pointer_in(to, StateSpace::shared),
                                      impl_->pointer_in(from, StateSpace::global)};
  if (valid_bytes.valid())
    arguments.push_back(impl_->resize(impl_->get(valid_bytes), impl_->build.getInt32Ty(), false));
  impl_->call(valid_bytes.valid() ? filled[which] : whole[which], arguments);
}

void FunctionBuilder::copy_async_commit() {
  if (!impl_->muted) impl_->call(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
}

void FunctionBuilder::copy_async_wait(int pending_groups) {
  if (impl_->muted) return;
  impl_->call(llvm::Intrinsic::nvvm_cp_async_wait_group,
              impl_->build.getInt32(static_cast<unsigned>(pending_groups)));
}

// ---- mbarriers.

llvm::CallInst* FunctionBuilder::Impl::assembly(const std::string& text,
                                                const std::string& constraints,
                                                llvm::ArrayRef<llvm::Value*> inputs,
                                                llvm::Type* result) {
  std::vector<llvm::Type*> types;
  for (llvm::Value* const input : inputs) types.push_back(input->getType());
  auto* const signature =
      llvm::FunctionType::get(result ? result : build.getVoidTy(), types, false);
  const std::string all = constraints.empty() ? "~{memory}" : constraints + ",~{memory}";
  llvm::CallInst* const call =
      build.CreateCall(llvm::InlineAsm::get(signature, text, all, true), inputs);
  make_collective(call);
  return call;
}

llvm::Value* FunctionBuilder::Impl::shared_window(Pointer pointer) {
  return build.CreatePtrToInt(pointer_in(pointer, StateSpace::shared), build.getInt32Ty());
}

void FunctionBuilder::mbarrier_init(Pointer at, int arrivals) {
  if (impl_->muted) return;
  impl_->assembly(
      "mbarrier.init.shared.b64 [$0], $1;", "r,n",
      {impl_->shared_window(at), impl_->build.getInt32(static_cast<unsigned>(arrivals))});
}

void FunctionBuilder::mbarrier_arrive(Pointer at) {
  if (impl_->muted) return;
  impl_->assembly("mbarrier.arrive.shared.b64 $0, [$1];", "=l,r", {impl_->shared_window(at)},
                  impl_->build.getInt64Ty());
}

void FunctionBuilder::mbarrier_arrive_if(Value condition, Pointer at) {
  if (impl_->muted) return;
  impl_->assembly("@$1 mbarrier.arrive.shared.b64 $0, [$2];", "=l,b,r",
                  {impl_->get(condition), impl_->shared_window(at)}, impl_->build.getInt64Ty());
}

void FunctionBuilder::mbarrier_expect(Pointer at, int bytes) {
  if (impl_->muted) return;
  impl_->assembly("mbarrier.arrive.expect_tx.shared.b64 $0, [$1], $2;", "=l,r,n",
                  {impl_->shared_window(at), impl_->build.getInt32(static_cast<unsigned>(bytes))},
                  impl_->build.getInt64Ty());
}

void FunctionBuilder::copy_async_arrive(Pointer mbarrier) {
  if (impl_->muted) return;
  impl_->assembly("cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", "r",
                  {impl_->shared_window(mbarrier)});
}

void FunctionBuilder::mbarrier_wait(Pointer at, Value parity) {
  if (impl_->muted) return;
  // From sm_90 on a wait suspends the thread for a while; before, it only tests.
  const std::string how = impl_->target.has(Feature::mbarrier_try_wait) ? "try_wait" : "test_wait";
  impl_->wait_for_phase(*this, how + ".parity.shared.b64", at, parity);
}

void FunctionBuilder::cluster_mbarrier_wait(Pointer at, Value parity) {
  if (impl_->muted) return;
  impl_->wait_for_phase(*this, "try_wait.parity.acquire.cluster.shared::cta.b64", at, parity);
}

void FunctionBuilder::Impl::wait_for_phase(FunctionBuilder& f, const std::string& how, Pointer at,
                                           Value parity) {
  llvm::Value* const address = shared_window(at);
  llvm::Value* const phase = resize(get(parity), build.getInt32Ty(), false);
  f.while_loop(
      [&] {
        llvm::Value* const done = assembly("mbarrier." + how + " $0, [$1], $2;", "=b,r,r",
                                           {address, phase}, build.getInt1Ty());
        return value(build.CreateNot(done), Type::pred);
      },
      [] {});
}

llvm::Value* FunctionBuilder::Impl::window_of_block(Pointer pointer, Value block) {
  return assembly("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r",
                  {shared_window(pointer), resize(get(block), build.getInt32Ty(), false)},
                  build.getInt32Ty());
}

// With .cta scope, as the block's own arrivals: cluster scope would invalidate caches.
void FunctionBuilder::mbarrier_arrive(Pointer at, Value block) {
  if (impl_->muted) return;
  impl_->assembly("mbarrier.arrive.shared::cluster.b64 _, [$0];", "r",
                  {impl_->window_of_block(at, block)});
}

void FunctionBuilder::mbarrier_arrive_if(Value condition, Pointer at, Value block) {
  if (impl_->muted) return;
  impl_->assembly("@$0 mbarrier.arrive.shared::cluster.b64 _, [$1];", "b,r",
                  {impl_->get(condition), impl_->window_of_block(at, block)});
}

void FunctionBuilder::cluster_mbarrier_arrive(Pointer at, Value block) {
  if (impl_->muted) return;
  impl_->assembly("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r",
                  {impl_->window_of_block(at, block)});
}

void FunctionBuilder::mbarrier_init_fence() {
  if (!impl_->muted) impl_->assembly("fence.mbarrier_init.release.cluster;", "", {});
}

void FunctionBuilder::cluster_barrier(bool orders) {
  if (impl_->muted) return;
  impl_->assembly(orders ? "barrier.cluster.arrive;" : "barrier.cluster.arrive.relaxed;", "", {});
  impl_->assembly("barrier.cluster.wait;", "", {});
}

// ---- TMA (sm_90 and later).

Pointer FunctionBuilder::add_tensor_map() {
  auto& params = impl_->late_params;
  params.push_back(std::make_unique<llvm::Argument>(impl_->pointer_type(StateSpace::none)));
  impl_->tensor_maps.push_back(params.back().get());
  return impl_->pointer(params.back().get(), StateSpace::none);
}

void FunctionBuilder::prefetch_tensor_map(Pointer map) {
  if (impl_->muted) return;
  impl_->assembly("prefetch.tensormap [$0];", "l",
                  {impl_->build.CreatePtrToInt(impl_->get(map), impl_->build.getInt64Ty())});
}

std::string FunctionBuilder::Impl::coordinates(std::span<const Value> values,
                                               std::vector<llvm::Value*>& inputs,
                                               std::string& constraints) {
  std::string out;
  for (const Value& each : values) {
    out += (out.empty() ? "{$" : ", $") + std::to_string(inputs.size());
    constraints += ",r";
    inputs.push_back(resize(get(each), build.getInt32Ty(), false));
  }
  return out + "}";
}

// What createpolicy.fractional gives for all of the lines. The instruction itself becomes six,
// which a thread that starts many copies repeats for each.
constexpr std::uint64_t evict_first = 0x12f0000000000000, evict_last = 0x14f0000000000000;

void FunctionBuilder::tensor_load(Pointer to, Pointer map, std::span<const Value> coordinates,
                                  Pointer mbarrier, Value blocks, Eviction eviction) {
  if (impl_->muted) return;
  std::string constraints = "r,r,l";
  std::vector<llvm::Value*> inputs{
      impl_->shared_window(to), impl_->shared_window(mbarrier),
      impl_->build.CreatePtrToInt(impl_->get(map), impl_->build.getInt64Ty())};
  const std::string list = impl_->coordinates(coordinates, inputs, constraints);
  std::string text = "cp.async.bulk.tensor." + std::to_string(coordinates.size()) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes";
  if (blocks.valid()) text += ".multicast::cluster";
  if (eviction != Eviction::normal) text += ".L2::cache_hint";
  text += " [$0], [$2, " + list + "], [$1]";
  if (blocks.valid()) {
    text += ", $" + std::to_string(inputs.size());
    constraints += ",h";
    inputs.push_back(impl_->resize(impl_->get(blocks), impl_->build.getInt16Ty(), false));
  }
  if (eviction != Eviction::normal) {
    text += ", $" + std::to_string(inputs.size());
    constraints += ",l";
    inputs.push_back(impl_->build.getInt64(eviction == Eviction::first ? evict_first : evict_last));
  }
  impl_->assembly(text + ";", constraints, inputs);
}

void FunctionBuilder::pixels_load(Pointer to, Pointer map, std::span<const Value> coordinates,
                                  std::span<const Value> offsets, Pointer mbarrier) {
  if (impl_->muted) return;
  std::string constraints = "r,r,l";
  std::vector<llvm::Value*> inputs{
      impl_->shared_window(to), impl_->shared_window(mbarrier),
      impl_->build.CreatePtrToInt(impl_->get(map), impl_->build.getInt64Ty())};
  const std::string list = impl_->coordinates(coordinates, inputs, constraints);
  std::string moved;
  for (const Value& each : offsets) {
    moved += (moved.empty() ? "{$" : ", $") + std::to_string(inputs.size());
    constraints += ",h";
    inputs.push_back(impl_->resize(impl_->get(each), impl_->build.getInt16Ty(), false));
  }
  impl_->assembly("cp.async.bulk.tensor." + std::to_string(coordinates.size()) +
                      "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [$0], [$2, " +
                      list + "], [$1], " + moved + "};",
                  constraints, inputs);
}

void FunctionBuilder::tensor_store(Pointer map, std::span<const Value> coordinates, Pointer from,
                                   bool adds) {
  if (impl_->muted) return;
  std::string constraints = "r,l";
  std::vector<llvm::Value*> inputs{
      impl_->shared_window(from),
      impl_->build.CreatePtrToInt(impl_->get(map), impl_->build.getInt64Ty())};
  const std::string list = impl_->coordinates(coordinates, inputs, constraints);
  impl_->assembly((adds ? "cp.reduce.async.bulk.tensor." : "cp.async.bulk.tensor.") +
                      std::to_string(coordinates.size()) + "d.global.shared::cta" +
                      (adds ? ".add" : "") + ".bulk_group [$1, " + list + "], [$0];",
                  constraints, inputs);
}

void FunctionBuilder::bulk_commit() {
  if (!impl_->muted) impl_->assembly("cp.async.bulk.commit_group;", "", {});
}

void FunctionBuilder::bulk_wait_read(int pending_groups) {
  if (!impl_->muted)
    impl_->assembly("cp.async.bulk.wait_group.read " + std::to_string(pending_groups) + ";", "",
                    {});
}

void FunctionBuilder::proxy_fence() {
  if (!impl_->muted) impl_->assembly("fence.proxy.async.shared::cta;", "", {});
}

Value FunctionBuilder::elect() {
  llvm::Value* const elected =
      impl_->assembly("elect.sync _|$0, 0xffffffff;", "=b", {}, impl_->build.getInt1Ty());
  return impl_->value(elected, Type::pred);
}

void FunctionBuilder::set_max_registers(int count, bool more) {
  if (!impl_->muted)
    impl_->assembly(std::string("setmaxnreg.") + (more ? "inc" : "dec") + ".sync.aligned.u32 " +
                        std::to_string(count) + ";",
                    "", {});
}

}  // namespace tartan::TARTAN_ABI::codegen
