// SPDX-License-Identifier: Apache-2.0
// The frame of a kernel: module, function, parameters, C++ places.
#include "compiler/codegen/function_builder.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/codegen/impl.h"
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

FunctionBuilder::Impl::Impl(std::string name, Target target, LaunchBounds bounds,
                            std::vector<Param> params)
    : name(std::move(name)),
      target(target),
      params(std::move(params)),
      context(std::make_unique<llvm::LLVMContext>()),
      build(*context) {
  assert(is_identifier(this->name));
  module = std::make_unique<llvm::Module>(this->name, *context);
  module->setTargetTriple(target_triple());
  module->setDataLayout(data_layout());

  std::vector<llvm::Type*> types;
  for (const Param& param : this->params) {
    assert(is_identifier(param.name));
    types.push_back(param.type == Type::none ? pointer_type(param.space) : type(param.type));
  }
  function = llvm::Function::Create(llvm::FunctionType::get(build.getVoidTy(), types, false),
                                    llvm::Function::ExternalLinkage, this->name, *module);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function->addFnAttr(llvm::Attribute::Convergent);
  function->addFnAttr(llvm::Attribute::NoUnwind);
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
}

FunctionBuilder::FunctionBuilder(std::string name, Target target, LaunchBounds bounds,
                                 std::vector<Param> params)
    : impl_(std::make_unique<Impl>(std::move(name), target, bounds, std::move(params))) {}

FunctionBuilder::~FunctionBuilder() = default;
FunctionBuilder::FunctionBuilder(FunctionBuilder&&) noexcept = default;

const Target& FunctionBuilder::target() const { return impl_->target; }

Value FunctionBuilder::param(int index) {
  const Param& param = impl_->params.at(static_cast<std::size_t>(index));
  assert(param.type != Type::none && "this parameter is a pointer");
  return impl_->value(impl_->function->getArg(static_cast<unsigned>(index)), param.type);
}

Pointer FunctionBuilder::pointer_param(int index) {
  const Param& param = impl_->params.at(static_cast<std::size_t>(index));
  assert(param.type == Type::none && "this parameter is a scalar");
  return impl_->pointer(impl_->function->getArg(static_cast<unsigned>(index)), param.space);
}

Value FunctionBuilder::add_param(Type type) {
  auto& params = impl_->late_params;
  params.push_back(std::make_unique<llvm::Argument>(impl_->type(type)));
  return impl_->value(params.back().get(), type);
}

Pointer FunctionBuilder::add_pointer_param(StateSpace space) {
  auto& params = impl_->late_params;
  params.push_back(std::make_unique<llvm::Argument>(impl_->pointer_type(space)));
  return impl_->pointer(params.back().get(), space);
}

// A function's type is fixed when it is created: the body moves to a new function.
void FunctionBuilder::Impl::settle_params() {
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

llvm::Value* FunctionBuilder::Impl::get(Value value) const {
  assert(value.valid() && static_cast<std::size_t>(value.id) < values.size() &&
         "the value belongs to another kernel, or is empty");
  return values[static_cast<std::size_t>(value.id)];
}

llvm::Value* FunctionBuilder::Impl::get(Pointer pointer) const {
  assert(pointer.id >= 0 && static_cast<std::size_t>(pointer.id) < pointers.size() &&
         "the pointer belongs to another kernel, or is empty");
  return pointers[static_cast<std::size_t>(pointer.id)];
}

Value FunctionBuilder::Impl::value(llvm::Value* of, Type type) {
  values.push_back(of);
  return {static_cast<int>(values.size()) - 1, type};
}

Pointer FunctionBuilder::Impl::pointer(llvm::Value* of, StateSpace space) {
  pointers.push_back(of);
  return {static_cast<int>(pointers.size()) - 1, space};
}

llvm::Type* FunctionBuilder::Impl::type(Type of) {
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

llvm::PointerType* FunctionBuilder::Impl::pointer_type(StateSpace space) {
  return build.getPtrTy(address_space(space));
}

llvm::BasicBlock* FunctionBuilder::Impl::block(const char* name) {
  return llvm::BasicBlock::Create(*context, name, function);
}

llvm::AllocaInst* FunctionBuilder::Impl::entry_alloca(llvm::Type* type) {
  llvm::BasicBlock& entry = function->getEntryBlock();
  llvm::IRBuilder<> at(&entry, last_alloca ? std::next(last_alloca->getIterator())
                                           : entry.getFirstNonPHIOrDbgOrAlloca());
  return last_alloca = at.CreateAlloca(type);
}

// ---- Calls.

llvm::CallInst* FunctionBuilder::Impl::call(llvm::Intrinsic::ID id,
                                            llvm::ArrayRef<llvm::Value*> arguments,
                                            llvm::ArrayRef<llvm::Type*> overloads) {
  return build.CreateIntrinsic(id, overloads, arguments);
}

void FunctionBuilder::Impl::make_collective(llvm::CallInst* call) {
  call->addFnAttr(llvm::Attribute::Convergent);
  call->addFnAttr(llvm::Attribute::NoUnwind);
}

llvm::CallInst* FunctionBuilder::Impl::collective(llvm::Intrinsic::ID id,
                                                  llvm::ArrayRef<llvm::Value*> arguments,
                                                  llvm::ArrayRef<llvm::Type*> overloads) {
  llvm::CallInst* out = call(id, arguments, overloads);
  make_collective(out);
  return out;
}

// ---- C++ places.

llvm::DIFile* FunctionBuilder::Impl::file(const char* name) { return debug->createFile(name, ""); }

// Line directives only: the emission kind that gives .loc and .file without debug sections.
void FunctionBuilder::Impl::start_debug_info(const std::source_location& place) {
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

void FunctionBuilder::at(const std::source_location& place) {
  Impl& m = *impl_;
  if (place.line() == 0) return;
  if (!m.debug) m.start_debug_info(place);
  // Places of a file mostly follow each other, and share its name.
  if (place.file_name() != m.file_name) {
    m.file_name = place.file_name();
    llvm::DILexicalBlockFile*& scope = m.scopes[m.file_name];
    if (!scope) scope = m.debug->createLexicalBlockFile(m.subprogram, m.file(m.file_name));
    m.scope = scope;
  }
  m.build.SetCurrentDebugLocation(
      llvm::DILocation::get(*m.context, place.line(), place.column(), m.scope));
}

}  // namespace tartan::TARTAN_ABI::codegen
