// SPDX-License-Identifier: Apache-2.0
// What the device runtime does for a thread (CUDA C++ Programming Guide, "Formatted Output" and
// "Assertion"): calls of vprintf and __assertfail, which drivers and the emulator provide.
#include "compiler/codegen/llvm_builder.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

llvm::FunctionCallee runtime_function(llvm::Module& module, const char* name, llvm::Type* result,
                                      llvm::ArrayRef<llvm::Type*> parameters) {
  return module.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false));
}

// The generic address of a text that ends in a zero; equal texts share one.
llvm::Constant* text_address(llvm::Module& module, const std::string& text) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Constant* const bytes = llvm::ConstantDataArray::getString(context, text);
  llvm::GlobalVariable* at = nullptr;
  for (llvm::GlobalVariable& each : module.globals())
    if (each.hasInitializer() && each.getInitializer() == bytes) at = &each;
  if (!at)
    at = new llvm::GlobalVariable(
        module, bytes->getType(), true, llvm::GlobalValue::InternalLinkage, bytes, "text", nullptr,
        llvm::GlobalValue::NotThreadLocal, address_space(StateSpace::global));
  return llvm::ConstantExpr::getAddrSpaceCast(at, llvm::PointerType::get(context, 0));
}

}  // namespace

void LlvmBuilder::print(const std::string& format, std::span<const Value> values) {
  llvm::Type *const generic = llvm::PointerType::get(*context, 0), *const word = build.getInt32Ty();
  std::vector<llvm::Type*> types;
  for (const Value& each : values) types.push_back(get(each)->getType());
  llvm::Value* list = llvm::ConstantPointerNull::get(llvm::PointerType::get(*context, 0));
  if (!types.empty()) {
    llvm::StructType* const layout = llvm::StructType::get(*context, types);
    list = entry_alloca(layout);
    for (unsigned i = 0; i < types.size(); ++i)
      build.CreateStore(get(values[i]), build.CreateStructGEP(layout, list, i));
  }
  build.CreateCall(runtime_function(*module, "vprintf", word, {generic, generic}),
                   {text_address(*module, format), list});
}

void LlvmBuilder::fail_assertion(const std::string& text, const std::string& file, int line) {
  llvm::Type *const generic = llvm::PointerType::get(*context, 0), *const word = build.getInt32Ty(),
                    *const wide = build.getInt64Ty();
  build.CreateCall(runtime_function(*module, "__assertfail", build.getVoidTy(),
                                    {generic, generic, word, generic, wide}),
                   {text_address(*module, text), text_address(*module, file),
                    build.getInt32(static_cast<std::uint32_t>(line)), text_address(*module, name),
                    build.getInt64(1)});
}

}  // namespace tartan::TARTAN_ABI::codegen
