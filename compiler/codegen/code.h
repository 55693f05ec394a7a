// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/code.h - from a function to LLVM IR, and from there to PTX. Hides LLVM, whose
// errors come back as diagnostics, never as an abort. Not installed.
#pragma once

#include <memory>
#include <string>

#include "compiler/ir/function.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::codegen {

/// The code of a function.
class Code {
 public:
  explicit Code(const ir::Function& function);
  ~Code();

  /// As text of LLVM's IR, which determines what emit() returns for a target. After it only emit()
  /// may be called.
  Result<std::string> ir();
  /// Runs the passes and the back end. Returns LLVM's text, neither parsed back nor verified. Call
  /// once.
  Result<std::string> emit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tartan::TARTAN_ABI::codegen
