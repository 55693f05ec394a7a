// SPDX-License-Identifier: Apache-2.0
// dsl/compile/dump.h - with the environment variable TARTAN_DUMP=FOLDER each compilation leaves in
// that folder what it made, numbered: 0001.product.sm_90a.ir, the operations as recorded, .ll, the
// LLVM IR before LLVM's passes, and .ptx; of one that failed .txt, the diagnostics.
#pragma once

#include <string>

#include "compiler/codegen/code.h"
#include "tartan/dsl/kernel.h"

namespace tartan::TARTAN_ABI::detail {

/// Of one compilation. Without the variable it does nothing. A folder that cannot be written is
/// said on standard error, once.
class Dump {
 public:
  Dump(const std::string& kernel, const Target& target);

  void operations(const ir::Function& function) const;
  void ir(codegen::Code& code) const;
  void result(const Result<Compiled>& compiled) const;

 private:
  void write(const char* suffix, const std::string& text) const;

  std::string stem_;  // empty: nothing is written
};

}  // namespace tartan::TARTAN_ABI::detail
