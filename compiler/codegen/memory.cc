// SPDX-License-Identifier: Apache-2.0
// Pointers, loads and stores, shared memory.
#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/ReplaceConstant.h>

#include <cassert>
#include <vector>

#include "compiler/codegen/assembly.h"
#include "compiler/codegen/impl.h"
#include "compiler/codegen/shared_layout.h"

namespace tartan::TARTAN_ABI::codegen {

llvm::Value* FunctionBuilder::Impl::pointer_in(Pointer pointer, StateSpace space) {
  if (pointer.space == space) return get(pointer);
  assert(pointer.space == StateSpace::none || space == StateSpace::none);
  return build.CreateAddrSpaceCast(get(pointer), pointer_type(space));
}

// Offsets are as wide as the pointer: LLVM would sign-extend a narrower one.
llvm::Value* FunctionBuilder::Impl::byte_offset(llvm::Value* base, llvm::Value* bytes, bool sign) {
  llvm::Type* const index = module->getDataLayout().getIndexType(base->getType());
  return build.CreateGEP(build.getInt8Ty(), base, resize(bytes, index, sign));
}

Pointer FunctionBuilder::offset(Pointer base, Value bytes) {
  return impl_->pointer(
      impl_->byte_offset(impl_->get(base), impl_->get(bytes), info(bytes.type).is_signed),
      base.space);
}

Pointer FunctionBuilder::offset(Pointer base, std::int64_t bytes) {
  if (bytes == 0) return base;
  return impl_->pointer(
      impl_->byte_offset(impl_->get(base), impl_->build.getInt64(static_cast<std::uint64_t>(bytes)),
                         true),
      base.space);
}

Value FunctionBuilder::load(Pointer from, Type type) {
  assert(type != Type::pred);
  return impl_->value(
      impl_->build.CreateAlignedLoad(impl_->type(type), impl_->get(from),
                                     llvm::Align(static_cast<std::uint64_t>(bits(type) / 8))),
      type);
}

// A branch around each load would keep the loads of a thread from being issued together.
Value FunctionBuilder::load_if(Value condition, Pointer from, Type type) {
  assert(condition.type == Type::pred && bits(type) <= 64);
  const int width = bits(type);
  const Type held = width == 64 ? Type::b64 : width == 32 ? Type::b32 : Type::b16;
  const bool shared = from.space == StateSpace::shared;
  const std::string_view space = shared                                     ? ".shared"
                                 : from.space == StateSpace::shared_cluster ? ".shared::cluster"
                                 : from.space == StateSpace::global         ? ".global"
                                                                            : "";
  Assembly assembly("");
  assembly.hold(impl_->type(held), constraint(held));
  assembly.write("@");
  assembly.input(impl_->get(condition), constraint(Type::pred));
  assembly.write(fmt::format(" ld{}.b{} ", space, width));
  assembly.name(0);
  assembly.write(", [");
  assembly.input(shared ? impl_->shared_window(from) : impl_->get(from), shared ? "r" : "l");
  assembly.write("];");
  assembly.tie(llvm::ConstantInt::get(impl_->type(held), 0), 0);
  llvm::Value* const loaded = assembly.call(impl_->build);
  return impl_->value(impl_->bits_as(impl_->resize(loaded, impl_->build.getIntNTy(width), false),
                                     impl_->type(type)),
                      type);
}

std::vector<Value> FunctionBuilder::load_vector(Pointer from, Type type, int count) {
  assert((count == 2 || count == 4) && bits(type) * count <= 128);
  auto* const vector = llvm::FixedVectorType::get(impl_->type(type), static_cast<unsigned>(count));
  llvm::Value* const loaded = impl_->build.CreateAlignedLoad(
      vector, impl_->get(from), llvm::Align(static_cast<std::uint64_t>(bits(type) * count / 8)));
  std::vector<Value> out;
  for (int i = 0; i < count; ++i)
    out.push_back(impl_->value(
        impl_->build.CreateExtractElement(loaded, static_cast<std::uint64_t>(i)), type));
  return out;
}

void FunctionBuilder::store(Pointer to, Value value) {
  assert(value.type != Type::pred);
  if (impl_->muted) return;
  impl_->build.CreateAlignedStore(impl_->get(value), impl_->get(to),
                                  llvm::Align(static_cast<std::uint64_t>(bits(value.type) / 8)));
}

void FunctionBuilder::store_vector(Pointer to, std::span<const Value> values) {
  assert((values.size() == 2 || values.size() == 4) &&
         static_cast<std::size_t>(bits(values[0].type)) * values.size() <= 128);
  if (impl_->muted) return;
  auto* const element = impl_->type(values[0].type);
  llvm::Value* vector = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(element, static_cast<unsigned>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i)
    vector =
        impl_->build.CreateInsertElement(vector, impl_->bits_as(impl_->get(values[i]), element), i);
  impl_->build.CreateAlignedStore(
      vector, impl_->get(to),
      llvm::Align(static_cast<std::uint64_t>(bits(values[0].type)) / 8 * values.size()));
}

Pointer FunctionBuilder::shared(const std::string& name, std::int64_t bytes, int align) {
  assert(is_identifier(name) && bytes > 0);
  std::string unused = name;  // the kernel may have this name
  while (impl_->module->getNamedValue(unused)) unused += '_';
  auto* const type =
      llvm::ArrayType::get(impl_->build.getInt8Ty(), static_cast<std::uint64_t>(bytes));
  auto* const variable = new llvm::GlobalVariable(
      *impl_->module, type, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type),
      unused, nullptr, llvm::GlobalValue::NotThreadLocal, address_space(StateSpace::shared));
  variable->setAlignment(llvm::Align(static_cast<std::uint64_t>(align)));
  impl_->shared.push_back(variable);
  return impl_->pointer(variable, StateSpace::shared);
}

Pointer FunctionBuilder::dynamic_shared(int align) {
  if (!impl_->dynamic_shared) {
    auto* const type = llvm::ArrayType::get(impl_->build.getInt8Ty(), 0);
    impl_->dynamic_shared = new llvm::GlobalVariable(
        *impl_->module, type, false, llvm::GlobalValue::ExternalLinkage, nullptr,
        impl_->name + "_shared", nullptr, llvm::GlobalValue::NotThreadLocal,
        address_space(StateSpace::shared));
  }
  const llvm::Align wanted(static_cast<std::uint64_t>(align));
  if (impl_->dynamic_shared->getAlign().valueOrOne() < wanted)
    impl_->dynamic_shared->setAlignment(wanted);
  return impl_->pointer(impl_->dynamic_shared, StateSpace::shared);
}

namespace {

// Rebases the instructions that use `old` on `base` + `offset`. The constant comes last, so that it
// becomes an instruction's offset.
void rebase(llvm::Value* old, llvm::Value* base, std::int64_t offset, llvm::IRBuilder<>& build) {
  const auto at = [&](llvm::Value* by) { return build.CreateGEP(build.getInt8Ty(), base, by); };
  for (llvm::User* const user : std::vector<llvm::User*>(old->user_begin(), old->user_end())) {
    auto* const step = llvm::dyn_cast<llvm::GetElementPtrInst>(user);
    build.SetInsertPoint(llvm::cast<llvm::Instruction>(user));
    if (!step || step->getNumIndices() != 1) {
      user->replaceUsesOfWith(
          old, offset ? at(build.getInt64(static_cast<std::uint64_t>(offset))) : base);
      continue;
    }
    auto* const known = llvm::dyn_cast<llvm::ConstantInt>(step->getOperand(1));
    rebase(step, known ? base : at(step->getOperand(1)),
           offset + (known ? known->getSExtValue() : 0), build);
    step->eraseFromParent();
  }
}

}  // namespace

std::int64_t FunctionBuilder::make_shared_dynamic() {
  SharedLayout layout;
  const llvm::IRBuilder<>::InsertPointGuard here(impl_->build);
  for (llvm::GlobalVariable* const each : impl_->shared) {
    const auto align = static_cast<std::int64_t>(each->getAlign()->value());
    const std::int64_t begin =
        layout.place(static_cast<std::int64_t>(each->getValueType()->getArrayNumElements()), align);
    llvm::convertUsersOfConstantsToInstructions({each});
    impl_->shared_layout.emplace_back(each->getName(), begin);
    rebase(each, impl_->get(dynamic_shared(static_cast<int>(align))), begin, impl_->build);
    each->eraseFromParent();
  }
  impl_->shared.clear();
  return layout.bytes();
}

Value FunctionBuilder::shared_address(Pointer pointer) {
  llvm::Value* const address = pointer.space == StateSpace::shared_cluster
                                   ? impl_->get(pointer)
                                   : impl_->pointer_in(pointer, StateSpace::shared);
  return impl_->value(impl_->build.CreatePtrToInt(address, impl_->build.getInt32Ty()), u32);
}

Pointer FunctionBuilder::shared_of_block(Pointer pointer, Value block) {
  return impl_->pointer(
      impl_->call(llvm::Intrinsic::nvvm_mapa_shared_cluster,
                  {impl_->pointer_in(pointer, StateSpace::shared),
                   impl_->resize(impl_->get(block), impl_->build.getInt32Ty(), false)}),
      StateSpace::shared_cluster);
}

Value FunctionBuilder::global_address(Pointer pointer) {
  return impl_->value(impl_->build.CreatePtrToInt(impl_->pointer_in(pointer, StateSpace::global),
                                                  impl_->build.getInt64Ty()),
                      u64);
}

Pointer FunctionBuilder::shared_pointer(Value address) {
  return impl_->pointer(
      impl_->build.CreateIntToPtr(impl_->get(address), impl_->pointer_type(StateSpace::shared)),
      StateSpace::shared);
}

}  // namespace tartan::TARTAN_ABI::codegen
