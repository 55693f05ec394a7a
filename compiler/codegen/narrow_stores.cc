// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/narrow_stores.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>

#include <string>

namespace tartan::TARTAN_ABI::codegen {
namespace {

using Seen = llvm::SmallPtrSet<const llvm::Value*, 8>;

// Whether an instruction of floating-point numbers may have computed these bits.
bool is_floating(const llvm::Value* bits, Seen& seen) {
  if (!seen.insert(bits).second) return false;
  if (const auto* cast = llvm::dyn_cast<llvm::BitCastInst>(bits))
    return cast->getSrcTy()->isFloatingPointTy();
  if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(bits)) {
    for (const llvm::Value* each : phi->incoming_values())
      if (is_floating(each, seen)) return true;
    return false;
  }
  if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(bits))
    return is_floating(select->getTrueValue(), seen) || is_floating(select->getFalseValue(), seen);
  return false;
}

void move_before(llvm::TruncInst& narrowed) {
  llvm::Value* const bits = narrowed.getOperand(0);
  const unsigned width = bits->getType()->getIntegerBitWidth();
  const char* const constraints = width == 64 ? "=l,l" : width == 32 ? "=r,r" : "=h,h";
  auto* const text =
      llvm::InlineAsm::get(llvm::FunctionType::get(bits->getType(), {bits->getType()}, false),
                           "mov.b" + std::to_string(width) + " $0, $1;", constraints, false);
  narrowed.setOperand(0, llvm::IRBuilder<>(&narrowed).CreateCall(text, {bits}));
}

class NarrowStores : public llvm::FunctionPass {
 public:
  NarrowStores() : FunctionPass(id) {}
  llvm::StringRef getPassName() const override { return "narrow stores"; }

  bool runOnFunction(llvm::Function& function) override {
    bool changed = false;
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& each : block) {
        auto* const store = llvm::dyn_cast<llvm::StoreInst>(&each);
        auto* const narrowed =
            store ? llvm::dyn_cast<llvm::TruncInst>(store->getValueOperand()) : nullptr;
        Seen seen;
        if (!narrowed || !is_floating(narrowed->getOperand(0), seen)) continue;
        move_before(*narrowed);
        changed = true;
      }
    return changed;
  }

 private:
  static char id;
};

char NarrowStores::id = 0;

}  // namespace

llvm::FunctionPass* move_before_narrow_stores() { return new NarrowStores; }

}  // namespace tartan::TARTAN_ABI::codegen
