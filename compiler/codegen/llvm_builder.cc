// SPDX-License-Identifier: Apache-2.0
// The frame of a kernel: module, function, parameters, C++ places.
#include "compiler/codegen/llvm_builder.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/codegen/target_machine.h"

namespace tartan::TARTAN_ABI::codegen {

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto follow = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '$';
  };
  if (text.empty() || !std::all_of(text.begin() + 1, text.end(), follow)) return false;
  return letter(text[0]) || ((text[0] == '_' || text[0] == '$') && text.size() > 1);
}

LlvmBuilder::LlvmBuilder(const Function& of)
    : name(of.name),
      target(of.target),
      params(of.params),
      context(std::make_unique<llvm::LLVMContext>()),
      build(*context) {
  assert(is_identifier(name));
  module = std::make_unique<llvm::Module>(name, *context);
  module->setTargetTriple(target_triple());
  module->setDataLayout(data_layout());

  std::vector<llvm::Type*> types;
  for (const Param& param : params) {
    assert(is_identifier(param.name));
    types.push_back(param.type == Type::none ? pointer_type(param.space) : llvm_type(param.type));
  }
  function = llvm::Function::Create(llvm::FunctionType::get(build.getVoidTy(), types, false),
                                    llvm::Function::ExternalLinkage, name, *module);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function->addFnAttr(llvm::Attribute::Convergent);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  const LaunchBounds& bounds = of.bounds;
  if (bounds.block[0]) {
    const std::string block = std::to_string(bounds.block[0]) + "," +
                              std::to_string(bounds.block[1]) + "," +
                              std::to_string(bounds.block[2]);
    function->addFnAttr("nvvm.reqntid", block);
  }
  if (bounds.min_blocks) function->addFnAttr("nvvm.minctasm", std::to_string(bounds.min_blocks));
  if (bounds.max_registers)
    function->addFnAttr("nvvm.maxnreg", std::to_string(bounds.max_registers));
  if (bounds.cluster > 1)
    function->addFnAttr("nvvm.cluster_dim", std::to_string(bounds.cluster) + ",1,1");
  build.SetInsertPoint(block("entry"));
  if (of.places.size() > 1) start_debug_info(of.places[1]);
}

Value LlvmBuilder::param(int index) {
  const Param& param = params.at(static_cast<std::size_t>(index));
  assert(param.type != Type::none && "this parameter is a pointer");
  return value(function->getArg(static_cast<unsigned>(index)), param.type);
}

Pointer LlvmBuilder::pointer_param(int index) {
  const Param& param = params.at(static_cast<std::size_t>(index));
  assert(param.type == Type::none && "this parameter is a scalar");
  return pointer(function->getArg(static_cast<unsigned>(index)), param.space);
}

Value LlvmBuilder::add_param(Type type) {
  late_params.push_back(std::make_unique<llvm::Argument>(llvm_type(type)));
  return value(late_params.back().get(), type);
}

Pointer LlvmBuilder::add_pointer_param(StateSpace space) {
  late_params.push_back(std::make_unique<llvm::Argument>(pointer_type(space)));
  return pointer(late_params.back().get(), space);
}

// A function's type is fixed when it is created: the body moves to a new function.
void LlvmBuilder::settle_params() {
  if (late_params.empty()) return;
  std::vector<llvm::Type*> types;
  for (llvm::Argument& each : function->args()) types.push_back(each.getType());
  const unsigned first = static_cast<unsigned>(types.size());
  for (const auto& each : late_params) types.push_back(each->getType());
  llvm::Function* const old = function;
  function = llvm::Function::Create(llvm::FunctionType::get(build.getVoidTy(), types, false),
                                    old->getLinkage(), "", *module);
  function->takeName(old);
  function->setCallingConv(old->getCallingConv());
  function->setAttributes(old->getAttributes());
  function->setSubprogram(old->getSubprogram());
  old->setSubprogram(nullptr);
  function->splice(function->begin(), old);
  for (unsigned i = 0; i < first; ++i) old->getArg(i)->replaceAllUsesWith(function->getArg(i));
  for (unsigned i = 0; i < late_params.size(); ++i) {
    llvm::Argument* const settled = function->getArg(first + i);
    late_params[i]->replaceAllUsesWith(settled);
    if (std::find(tensor_maps.begin(), tensor_maps.end(), late_params[i].get()) ==
        tensor_maps.end())
      continue;
    settled->addAttr(
        llvm::Attribute::getWithByValType(*context, llvm::ArrayType::get(build.getInt8Ty(), 128)));
    settled->addAttr(llvm::Attribute::getWithAlignment(*context, llvm::Align(64)));
    settled->addAttr(llvm::Attribute::get(*context, "nvvm.grid_constant"));
  }
  late_params.clear();
  old->eraseFromParent();
}

// ---- Handles.

llvm::Value* LlvmBuilder::get(Value value) const {
  assert(value.valid() && static_cast<std::size_t>(value.id) < values.size() &&
         "the value belongs to another kernel, or is empty");
  return values[static_cast<std::size_t>(value.id)];
}

llvm::Value* LlvmBuilder::get(Pointer pointer) const {
  assert(pointer.id >= 0 && static_cast<std::size_t>(pointer.id) < pointers.size() &&
         "the pointer belongs to another kernel, or is empty");
  return pointers[static_cast<std::size_t>(pointer.id)];
}

Value LlvmBuilder::value(llvm::Value* of, Type type) {
  values.push_back(of);
  return {static_cast<int>(values.size()) - 1, type};
}

Pointer LlvmBuilder::pointer(llvm::Value* of, StateSpace space) {
  pointers.push_back(of);
  return {static_cast<int>(pointers.size()) - 1, space};
}

llvm::Type* LlvmBuilder::llvm_type(Type of) {
  switch (of) {
    case Type::f16: return build.getHalfTy();
    case Type::bf16: return build.getBFloatTy();
    case Type::f32: return build.getFloatTy();
    case Type::f64: return build.getDoubleTy();
    default:
      assert(bits(of) == 1 || bits(of) % 8 == 0);
      return build.getIntNTy(static_cast<unsigned>(bits(of)));
  }
}

llvm::PointerType* LlvmBuilder::pointer_type(StateSpace space) {
  return build.getPtrTy(address_space(space));
}

llvm::BasicBlock* LlvmBuilder::block(const char* name) {
  return llvm::BasicBlock::Create(*context, name, function);
}

llvm::AllocaInst* LlvmBuilder::entry_alloca(llvm::Type* type) {
  llvm::BasicBlock& entry = function->getEntryBlock();
  llvm::IRBuilder<> at(&entry, last_alloca ? std::next(last_alloca->getIterator())
                                           : entry.getFirstNonPHIOrDbgOrAlloca());
  return last_alloca = at.CreateAlloca(type);
}

// ---- Calls.

llvm::CallInst* LlvmBuilder::call(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> arguments,
                                  llvm::ArrayRef<llvm::Type*> overloads) {
  return build.CreateIntrinsic(id, overloads, arguments);
}

void LlvmBuilder::make_collective(llvm::CallInst* call) {
  call->addFnAttr(llvm::Attribute::Convergent);
  call->addFnAttr(llvm::Attribute::NoUnwind);
}

llvm::CallInst* LlvmBuilder::collective(llvm::Intrinsic::ID id,
                                        llvm::ArrayRef<llvm::Value*> arguments,
                                        llvm::ArrayRef<llvm::Type*> overloads) {
  llvm::CallInst* out = call(id, arguments, overloads);
  make_collective(out);
  return out;
}

// ---- C++ places.

llvm::DIFile* LlvmBuilder::file(const char* name) { return debug->createFile(name, ""); }

// Line directives only: the emission kind that gives .loc and .file without debug sections.
void LlvmBuilder::start_debug_info(const std::source_location& place) {
  module->addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  debug = std::make_unique<llvm::DIBuilder>(*module);
  llvm::DIFile* const where = file(place.file_name());
  llvm::DICompileUnit* const unit =
      debug->createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C_plus_plus), where,
                               "tartan", true, "", 0, "", llvm::DICompileUnit::DebugDirectivesOnly);
  llvm::DISubroutineType* const type = debug->createSubroutineType(debug->getOrCreateTypeArray({}));
  subprogram = debug->createFunction(
      unit, name, name, where, place.line(), type, place.line(), llvm::DINode::FlagZero,
      llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  function->setSubprogram(subprogram);
}

void LlvmBuilder::at(const std::source_location& place) {
  // Places of a file mostly follow each other, and share its name.
  if (place.file_name() != file_name) {
    file_name = place.file_name();
    llvm::DILexicalBlockFile*& of_file = scopes[file_name];
    if (!of_file) of_file = debug->createLexicalBlockFile(subprogram, file(file_name));
    scope = of_file;
  }
  build.SetCurrentDebugLocation(
      llvm::DILocation::get(*context, place.line(), place.column(), scope));
}

}  // namespace tartan::TARTAN_ABI::codegen
