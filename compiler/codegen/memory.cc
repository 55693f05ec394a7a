// SPDX-License-Identifier: Apache-2.0
// Pointers, loads and stores, shared memory.
#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/ReplaceConstant.h>

#include <cassert>
#include <vector>

#include "compiler/codegen/assembly.h"
#include "compiler/codegen/llvm_builder.h"
#include "compiler/ir/shared_layout.h"

namespace tartan::TARTAN_ABI::codegen {

llvm::Value* LlvmBuilder::pointer_in(Pointer pointer, StateSpace space) {
  if (pointer.space == space) return get(pointer);
  assert(pointer.space == StateSpace::none || space == StateSpace::none);
  return build.CreateAddrSpaceCast(get(pointer), pointer_type(space));
}

// Offsets are as wide as the pointer: LLVM would sign-extend a narrower one.
llvm::Value* LlvmBuilder::byte_offset(llvm::Value* base, llvm::Value* bytes, bool sign) {
  llvm::Type* const index = module->getDataLayout().getIndexType(base->getType());
  return build.CreateGEP(build.getInt8Ty(), base, resize(bytes, index, sign));
}

Pointer LlvmBuilder::offset(Pointer base, Value bytes) {
  return pointer(byte_offset(get(base), get(bytes), info(bytes.type).is_signed), base.space);
}

Pointer LlvmBuilder::offset(Pointer base, std::int64_t bytes) {
  if (bytes == 0) return base;
  return pointer(byte_offset(get(base), build.getInt64(static_cast<std::uint64_t>(bytes)), true),
                 base.space);
}

Value LlvmBuilder::load(Pointer from, Type type) {
  assert(type != Type::pred);
  return value(build.CreateAlignedLoad(llvm_type(type), get(from),
                                       llvm::Align(static_cast<std::uint64_t>(bits(type) / 8))),
               type);
}

// A branch around each load would keep the loads of a thread from being issued together.
Value LlvmBuilder::load_if(Value condition, Pointer from, Type type) {
  assert(condition.type == Type::pred && bits(type) <= 64);
  const int width = bits(type);
  const Type held = width == 64 ? Type::b64 : width == 32 ? Type::b32 : Type::b16;
  const bool shared = from.space == StateSpace::shared;
  const std::string_view space = shared                                     ? ".shared"
                                 : from.space == StateSpace::shared_cluster ? ".shared::cluster"
                                 : from.space == StateSpace::global         ? ".global"
                                                                            : "";
  Assembly assembly("");
  assembly.hold(llvm_type(held), constraint(held));
  assembly.write("@");
  assembly.input(get(condition), constraint(Type::pred));
  assembly.write(fmt::format(" ld{}.b{} ", space, width));
  assembly.name(0);
  assembly.write(", [");
  assembly.input(shared ? shared_window(from) : get(from), shared ? "r" : "l");
  assembly.write("];");
  assembly.tie(llvm::ConstantInt::get(llvm_type(held), 0), 0);
  llvm::Value* const loaded = assembly.call(build);
  return value(bits_as(resize(loaded, build.getIntNTy(width), false), llvm_type(type)), type);
}

std::vector<Value> LlvmBuilder::load_vector(Pointer from, Type type, int count) {
  assert((count == 2 || count == 4) && bits(type) * count <= 128);
  auto* const vector = llvm::FixedVectorType::get(llvm_type(type), static_cast<unsigned>(count));
  llvm::Value* const loaded = build.CreateAlignedLoad(
      vector, get(from), llvm::Align(static_cast<std::uint64_t>(bits(type) * count / 8)));
  std::vector<Value> out;
  for (int i = 0; i < count; ++i)
    out.push_back(value(build.CreateExtractElement(loaded, static_cast<std::uint64_t>(i)), type));
  return out;
}

void LlvmBuilder::store(Pointer to, Value value) {
  assert(value.type != Type::pred);
  build.CreateAlignedStore(get(value), get(to),
                           llvm::Align(static_cast<std::uint64_t>(bits(value.type) / 8)));
}

void LlvmBuilder::store_vector(Pointer to, std::span<const Value> values) {
  assert((values.size() == 2 || values.size() == 4) &&
         static_cast<std::size_t>(bits(values[0].type)) * values.size() <= 128);
  auto* const element = llvm_type(values[0].type);
  llvm::Value* vector = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(element, static_cast<unsigned>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i)
    vector = build.CreateInsertElement(vector, bits_as(get(values[i]), element), i);
  build.CreateAlignedStore(
      vector, get(to),
      llvm::Align(static_cast<std::uint64_t>(bits(values[0].type)) / 8 * values.size()));
}

Pointer LlvmBuilder::shared(const std::string& name, std::int64_t bytes, int align) {
  assert(is_identifier(name) && bytes > 0);
  std::string unused = name;  // the kernel may have this name
  while (module->getNamedValue(unused)) unused += '_';
  auto* const type = llvm::ArrayType::get(build.getInt8Ty(), static_cast<std::uint64_t>(bytes));
  auto* const variable = new llvm::GlobalVariable(
      *module, type, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type),
      unused, nullptr, llvm::GlobalValue::NotThreadLocal, address_space(StateSpace::shared));
  variable->setAlignment(llvm::Align(static_cast<std::uint64_t>(align)));
  static_shared.push_back(variable);
  return pointer(variable, StateSpace::shared);
}

Pointer LlvmBuilder::dynamic_shared(int align) {
  if (!dynamic_memory) {
    auto* const type = llvm::ArrayType::get(build.getInt8Ty(), 0);
    dynamic_memory = new llvm::GlobalVariable(
        *module, type, false, llvm::GlobalValue::ExternalLinkage, nullptr, name + "_shared",
        nullptr, llvm::GlobalValue::NotThreadLocal, address_space(StateSpace::shared));
  }
  const llvm::Align wanted(static_cast<std::uint64_t>(align));
  if (dynamic_memory->getAlign().valueOrOne() < wanted) dynamic_memory->setAlignment(wanted);
  return pointer(dynamic_memory, StateSpace::shared);
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

std::int64_t LlvmBuilder::make_shared_dynamic() {
  ir::SharedLayout layout;
  const llvm::IRBuilder<>::InsertPointGuard here(build);
  for (llvm::GlobalVariable* const each : static_shared) {
    const auto align = static_cast<std::int64_t>(each->getAlign()->value());
    const std::int64_t begin =
        layout.place(static_cast<std::int64_t>(each->getValueType()->getArrayNumElements()), align);
    llvm::convertUsersOfConstantsToInstructions({each});
    shared_layout.emplace_back(each->getName(), begin);
    rebase(each, get(dynamic_shared(static_cast<int>(align))), begin, build);
    each->eraseFromParent();
  }
  static_shared.clear();
  return layout.bytes();
}

Value LlvmBuilder::shared_address(Pointer pointer) {
  llvm::Value* const address = pointer.space == StateSpace::shared_cluster
                                   ? get(pointer)
                                   : pointer_in(pointer, StateSpace::shared);
  return value(build.CreatePtrToInt(address, build.getInt32Ty()), u32);
}

Pointer LlvmBuilder::shared_of_block(Pointer pointer, Value block) {
  return this->pointer(call(llvm::Intrinsic::nvvm_mapa_shared_cluster,
                            {pointer_in(pointer, StateSpace::shared),
                             resize(get(block), build.getInt32Ty(), false)}),
                       StateSpace::shared_cluster);
}

Value LlvmBuilder::global_address(Pointer pointer) {
  return value(build.CreatePtrToInt(pointer_in(pointer, StateSpace::global), build.getInt64Ty()),
               u64);
}

Pointer LlvmBuilder::shared_pointer(Value address) {
  return pointer(build.CreateIntToPtr(get(address), pointer_type(StateSpace::shared)),
                 StateSpace::shared);
}

}  // namespace tartan::TARTAN_ABI::codegen
