// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: cp.async, TMA, and the mbarriers that signal their completion.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cassert>

#include "compiler/codegen/llvm_builder.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::codegen {

void LlvmBuilder::copy_async(Pointer to, Pointer from, int bytes, CacheOperator cache,
                             Value valid_bytes) {
  using namespace llvm::Intrinsic;
  assert((cache == CacheOperator::ca && (bytes == 4 || bytes == 8 || bytes == 16)) ||
         (cache == CacheOperator::cg && bytes == 16));
  constexpr llvm::Intrinsic::ID whole[] = {
      nvvm_cp_async_ca_shared_global_4, nvvm_cp_async_ca_shared_global_8,
      nvvm_cp_async_ca_shared_global_16, nvvm_cp_async_cg_shared_global_16};
  constexpr llvm::Intrinsic::ID filled[] = {
      nvvm_cp_async_ca_shared_global_4_s, nvvm_cp_async_ca_shared_global_8_s,
      nvvm_cp_async_ca_shared_global_16_s, nvvm_cp_async_cg_shared_global_16_s};
  const int which = cache == CacheOperator::cg ? 3 : bytes == 16 ? 2 : bytes == 8 ? 1 : 0;
  std::vector<llvm::Value*> arguments{pointer_in(to, StateSpace::shared),
                                      pointer_in(from, StateSpace::global)};
  if (valid_bytes.valid()) arguments.push_back(resize(get(valid_bytes), build.getInt32Ty(), false));
  call(valid_bytes.valid() ? filled[which] : whole[which], arguments);
}

void LlvmBuilder::copy_async_commit() { call(llvm::Intrinsic::nvvm_cp_async_commit_group, {}); }

void LlvmBuilder::copy_async_wait(int pending_groups) {
  call(llvm::Intrinsic::nvvm_cp_async_wait_group,
       build.getInt32(static_cast<unsigned>(pending_groups)));
}

// ---- mbarriers.

llvm::CallInst* LlvmBuilder::assembly(const std::string& text, const std::string& constraints,
                                      llvm::ArrayRef<llvm::Value*> inputs, llvm::Type* result) {
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

llvm::Value* LlvmBuilder::shared_window(Pointer pointer) {
  return build.CreatePtrToInt(pointer_in(pointer, StateSpace::shared), build.getInt32Ty());
}

void LlvmBuilder::mbarrier_init(Pointer at, int arrivals) {
  assembly("mbarrier.init.shared.b64 [$0], $1;", "r,n",
           {shared_window(at), build.getInt32(static_cast<unsigned>(arrivals))});
}

void LlvmBuilder::mbarrier_arrive(Pointer at) {
  assembly("mbarrier.arrive.shared.b64 $0, [$1];", "=l,r", {shared_window(at)}, build.getInt64Ty());
}

void LlvmBuilder::mbarrier_arrive_if(Value condition, Pointer at) {
  assembly("@$1 mbarrier.arrive.shared.b64 $0, [$2];", "=l,b,r",
           {get(condition), shared_window(at)}, build.getInt64Ty());
}

void LlvmBuilder::mbarrier_expect(Pointer at, int bytes) {
  assembly("mbarrier.arrive.expect_tx.shared.b64 $0, [$1], $2;", "=l,r,n",
           {shared_window(at), build.getInt32(static_cast<unsigned>(bytes))}, build.getInt64Ty());
}

void LlvmBuilder::copy_async_arrive(Pointer mbarrier) {
  assembly("cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", "r", {shared_window(mbarrier)});
}

void LlvmBuilder::mbarrier_wait(Pointer at, Value parity) {
  // From sm_90 on a wait suspends the thread for a while; before, it only tests.
  const std::string how = target.has(Feature::mbarrier_try_wait) ? "try_wait" : "test_wait";
  wait_for_phase(how + ".parity.shared.b64", at, parity);
}

void LlvmBuilder::cluster_mbarrier_wait(Pointer at, Value parity) {
  wait_for_phase("try_wait.parity.acquire.cluster.shared::cta.b64", at, parity);
}

void LlvmBuilder::wait_for_phase(const std::string& how, Pointer at, Value parity) {
  llvm::Value* const address = shared_window(at);
  llvm::Value* const phase = resize(get(parity), build.getInt32Ty(), false);
  while_loop(
      [&] {
        llvm::Value* const done = assembly("mbarrier." + how + " $0, [$1], $2;", "=b,r,r",
                                           {address, phase}, build.getInt1Ty());
        return value(build.CreateNot(done), Type::pred);
      },
      [] {});
}

llvm::Value* LlvmBuilder::window_of_block(Pointer pointer, Value block) {
  return assembly("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r",
                  {shared_window(pointer), resize(get(block), build.getInt32Ty(), false)},
                  build.getInt32Ty());
}

// With .cta scope, as the block's own arrivals: cluster scope would invalidate caches.
void LlvmBuilder::mbarrier_arrive(Pointer at, Value block) {
  assembly("mbarrier.arrive.shared::cluster.b64 _, [$0];", "r", {window_of_block(at, block)});
}

void LlvmBuilder::mbarrier_arrive_if(Value condition, Pointer at, Value block) {
  assembly("@$0 mbarrier.arrive.shared::cluster.b64 _, [$1];", "b,r",
           {get(condition), window_of_block(at, block)});
}

void LlvmBuilder::cluster_mbarrier_arrive(Pointer at, Value block) {
  assembly("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r",
           {window_of_block(at, block)});
}

void LlvmBuilder::mbarrier_init_fence() {
  assembly("fence.mbarrier_init.release.cluster;", "", {});
}

void LlvmBuilder::cluster_barrier(bool orders) {
  assembly(orders ? "barrier.cluster.arrive;" : "barrier.cluster.arrive.relaxed;", "", {});
  assembly("barrier.cluster.wait;", "", {});
}

// ---- TMA (sm_90 and later).

Pointer LlvmBuilder::add_tensor_map() {
  late_params.push_back(std::make_unique<llvm::Argument>(pointer_type(StateSpace::none)));
  tensor_maps.push_back(late_params.back().get());
  return pointer(late_params.back().get(), StateSpace::none);
}

void LlvmBuilder::prefetch_tensor_map(Pointer map) {
  assembly("prefetch.tensormap [$0];", "l", {build.CreatePtrToInt(get(map), build.getInt64Ty())});
}

std::string LlvmBuilder::coordinate_list(std::span<const Value> values,
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

void LlvmBuilder::tensor_load(Pointer to, Pointer map, std::span<const Value> coordinates,
                              Pointer mbarrier, Value blocks, Eviction eviction) {
  std::string constraints = "r,r,l";
  std::vector<llvm::Value*> inputs{shared_window(to), shared_window(mbarrier),
                                   build.CreatePtrToInt(get(map), build.getInt64Ty())};
  const std::string list = coordinate_list(coordinates, inputs, constraints);
  std::string text = "cp.async.bulk.tensor." + std::to_string(coordinates.size()) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes";
  if (blocks.valid()) text += ".multicast::cluster";
  if (eviction != Eviction::normal) text += ".L2::cache_hint";
  text += " [$0], [$2, " + list + "], [$1]";
  if (blocks.valid()) {
    text += ", $" + std::to_string(inputs.size());
    constraints += ",h";
    inputs.push_back(resize(get(blocks), build.getInt16Ty(), false));
  }
  if (eviction != Eviction::normal) {
    text += ", $" + std::to_string(inputs.size());
    constraints += ",l";
    inputs.push_back(build.getInt64(eviction == Eviction::first ? evict_first : evict_last));
  }
  assembly(text + ";", constraints, inputs);
}

void LlvmBuilder::pixels_load(Pointer to, Pointer map, std::span<const Value> coordinates,
                              std::span<const Value> offsets, Pointer mbarrier) {
  std::string constraints = "r,r,l";
  std::vector<llvm::Value*> inputs{shared_window(to), shared_window(mbarrier),
                                   build.CreatePtrToInt(get(map), build.getInt64Ty())};
  const std::string list = coordinate_list(coordinates, inputs, constraints);
  std::string moved;
  for (const Value& each : offsets) {
    moved += (moved.empty() ? "{$" : ", $") + std::to_string(inputs.size());
    constraints += ",h";
    inputs.push_back(resize(get(each), build.getInt16Ty(), false));
  }
  assembly("cp.async.bulk.tensor." + std::to_string(coordinates.size()) +
               "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [$0], [$2, " + list +
               "], [$1], " + moved + "};",
           constraints, inputs);
}

void LlvmBuilder::tensor_store(Pointer map, std::span<const Value> coordinates, Pointer from,
                               bool adds) {
  std::string constraints = "r,l";
  std::vector<llvm::Value*> inputs{shared_window(from),
                                   build.CreatePtrToInt(get(map), build.getInt64Ty())};
  const std::string list = coordinate_list(coordinates, inputs, constraints);
  assembly((adds ? "cp.reduce.async.bulk.tensor." : "cp.async.bulk.tensor.") +
               std::to_string(coordinates.size()) + "d.global.shared::cta" + (adds ? ".add" : "") +
               ".bulk_group [$1, " + list + "], [$0];",
           constraints, inputs);
}

void LlvmBuilder::bulk_commit() { assembly("cp.async.bulk.commit_group;", "", {}); }

void LlvmBuilder::bulk_wait_read(int pending_groups) {
  assembly("cp.async.bulk.wait_group.read " + std::to_string(pending_groups) + ";", "", {});
}

void LlvmBuilder::proxy_fence() { assembly("fence.proxy.async.shared::cta;", "", {}); }

Value LlvmBuilder::elect() {
  llvm::Value* const elected =
      assembly("elect.sync _|$0, 0xffffffff;", "=b", {}, build.getInt1Ty());
  return value(elected, Type::pred);
}

void LlvmBuilder::set_max_registers(int count, bool more) {
  assembly(std::string("setmaxnreg.") + (more ? "inc" : "dec") + ".sync.aligned.u32 " +
               std::to_string(count) + ";",
           "", {});
}

}  // namespace tartan::TARTAN_ABI::codegen
