// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/value_scopes.h"

#include <fmt/format.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

#include <set>
#include <string>
#include <tuple>

namespace tartan::TARTAN_ABI::codegen {
namespace {

Place place_of(const llvm::Instruction& instruction) {
  const llvm::DILocation* const at = instruction.getDebugLoc().get();
  if (!at) return {};
  return {at->getFilename().str(), static_cast<int>(at->getLine()),
          static_cast<int>(at->getColumn())};
}

std::string text(const Place& made, const Place& used) {
  if (made.line == 0) return "";
  return made.file == used.file ? fmt::format(" on line {}", made.line)
                                : fmt::format(" at {}:{}", made.file, made.line);
}

}  // namespace

Diags values_out_of_scope(llvm::Function& function) {
  const llvm::DominatorTree dominators(function);
  Diags diags;
  std::set<std::tuple<std::string, int, int, std::string>> seen;  // uses, and what they say
  for (const llvm::BasicBlock& block : function)
    for (const llvm::Instruction& user : block)
      for (const llvm::Use& use : user.operands()) {
        const auto* const value = llvm::dyn_cast<llvm::Instruction>(use.get());
        if (!value || dominators.dominates(value, use)) continue;
        const Place used = place_of(user);
        const std::string made = text(place_of(*value), used);
        if (seen.emplace(used.file, used.line, used.column, made).second)
          diags.report("value-scope"_rule, used,
                       fmt::format("the value made{} in the body of a loop, condition or pipeline "
                                   "is used after it: expected a variable() or an accumulator to "
                                   "carry it out",
                                   made));
      }
  return diags;
}

}  // namespace tartan::TARTAN_ABI::codegen
