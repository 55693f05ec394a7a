// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/absent_results.h"

#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <set>
#include <tuple>

namespace tartan::TARTAN_ABI::codegen {
namespace {

constexpr llvm::StringRef prefix = "tartan.absent.";

// All that depends on a value, until an effect does.
class Dependents {
 public:
  explicit Dependents(const llvm::PostDominatorTree& ends) : ends_(ends) {}

  bool reach_an_effect(llvm::Instruction& from) {
    add(from);
    while (!work_.empty()) {
      llvm::Instruction* const each = work_.back();
      work_.pop_back();
      for (llvm::User* user : each->users())
        if (auto* const next = llvm::dyn_cast<llvm::Instruction>(user); next && follow(*next))
          return true;
    }
    return false;
  }

 private:
  void add(llvm::Instruction& value) {
    if (seen_.insert(&value).second) work_.push_back(&value);
  }

  // A load, with or without a guard: see LlvmBuilder::load_if().
  static bool is_load(llvm::StringRef text) {
    if (text.starts_with("@")) text = text.drop_until([](char c) { return c == ' '; }).ltrim();
    return text.starts_with("ld.") && text.find(';') + 1 == text.size();
  }

  // What LLVM does not know: calls whose result is all that they give.
  static bool only_computes(const llvm::CallBase& call) {
    if (const auto* const text = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand()))
      return !text->hasSideEffects() || is_load(text->getAsmString());
    switch (call.getIntrinsicID()) {
      case llvm::Intrinsic::nvvm_bar_warp_sync:
      case llvm::Intrinsic::nvvm_shfl_sync_bfly_i32:
      case llvm::Intrinsic::nvvm_shfl_sync_idx_i32: return true;
      default: return false;
    }
  }

  static bool has_effect(const llvm::Instruction& instruction) {
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call && only_computes(*call)) return false;
    return instruction.mayHaveSideEffects() && !instruction.isDebugOrPseudoInst();
  }

  bool follow(llvm::Instruction& user) {
    if (has_effect(user)) return true;
    if (user.isTerminator()) return follow_condition(*user.getParent());
    add(user);
    return false;
  }

  // What is executed or not, or how often, up to where all paths meet; values that differ there.
  bool follow_condition(llvm::BasicBlock& branch) {
    const auto* const node = ends_.getNode(&branch);
    const auto* const next = node ? node->getIDom() : nullptr;
    llvm::BasicBlock* const meet = next ? next->getBlock() : nullptr;
    std::set<llvm::BasicBlock*> region;
    std::vector<llvm::BasicBlock*> open(llvm::succ_begin(&branch), llvm::succ_end(&branch));
    while (!open.empty()) {
      llvm::BasicBlock* const block = open.back();
      open.pop_back();
      if (block == meet || !region.insert(block).second) continue;
      for (const llvm::Instruction& each : *block)
        if (has_effect(each)) return true;
      open.insert(open.end(), llvm::succ_begin(block), llvm::succ_end(block));
    }
    if (meet) region.insert(meet);
    for (llvm::BasicBlock* block : region)
      for (llvm::PHINode& phi : block->phis()) add(phi);
    return false;
  }

  const llvm::PostDominatorTree& ends_;
  std::set<llvm::Instruction*> seen_;
  std::vector<llvm::Instruction*> work_;
};

// Fill callbacks are also described where nothing executes them.
void remove_what_is_never_reached(llvm::Function& function) {
  for (llvm::BasicBlock& block : function)
    llvm::ConstantFoldTerminator(&block, /*DeleteDeadConditions=*/true);
  llvm::removeUnreachableBlocks(function);
}

void promote_variables(llvm::Function& function) {
  std::vector<llvm::AllocaInst*> variables;
  for (llvm::Instruction& each : function.getEntryBlock())
    if (auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(&each);
        variable && llvm::isAllocaPromotable(variable))
      variables.push_back(variable);
  llvm::DominatorTree dominators(function);
  if (!variables.empty()) llvm::PromoteMemToReg(variables, dominators);
}

Place place_of(const llvm::Instruction& instruction) {
  const llvm::DILocation* const at = instruction.getDebugLoc().get();
  if (!at) return {};
  return {at->getFilename().str(), static_cast<int>(at->getLine()),
          static_cast<int>(at->getColumn())};
}

}  // namespace

llvm::FunctionCallee absent_result(llvm::Module& module, llvm::Type* type,
                                   std::vector<std::string>& reasons, const std::string& why) {
  const std::string name = prefix.str() + std::to_string(reasons.size());
  reasons.push_back(why);
  llvm::FunctionCallee out = module.getOrInsertFunction(name, llvm::FunctionType::get(type, false));
  auto* const function = llvm::cast<llvm::Function>(out.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return out;
}

Diags settle_absent_results(llvm::Function& function, const std::vector<std::string>& reasons) {
  Diags out;
  if (reasons.empty()) return out;
  remove_what_is_never_reached(function);
  promote_variables(function);
  const llvm::PostDominatorTree ends(function);
  std::set<std::tuple<std::string, int, int, std::string>> seen;
  std::vector<llvm::Function*> absent;
  for (llvm::Function& each : *function.getParent())
    if (each.getName().starts_with(prefix)) absent.push_back(&each);
  for (llvm::Function* each : absent) {
    const std::string& why = reasons.at(std::stoul(each->getName().substr(prefix.size()).str()));
    while (!each->use_empty()) {
      auto* const call = llvm::cast<llvm::CallInst>(each->user_back());
      if (Dependents(ends).reach_an_effect(*call)) {
        const Place place = place_of(*call);
        if (seen.emplace(place.file, place.line, place.column, why).second)
          out.report("wrong-role"_rule, place, why);
      }
      call->replaceAllUsesWith(llvm::Constant::getNullValue(call->getType()));
      call->eraseFromParent();
    }
    each->eraseFromParent();
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::codegen
