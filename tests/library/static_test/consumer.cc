// SPDX-License-Identifier: Apache-2.0
// Compiles and runs a kernel with the static library, beside names that Tartan's inner libraries
// have, too.
#include <tartan/tartan.h>

#include <cstdio>

namespace llvm {
const char* getDefaultTargetTriple() { return "mine"; }
}  // namespace llvm
extern "C" void LLVMInitializeNVPTXTarget() {}  // LLVM's own must run all the same

int main() {
  const tartan::kernels::Gemm options{.m = 64, .n = 64, .k = 64};
  const auto compiled =
      tartan::compile(tartan::kernels::gemm(options), *tartan::Arch::parse("sm_80"));
  if (!compiled) {
    std::puts(compiled.diags().text().c_str());
    return 1;
  }
  LLVMInitializeNVPTXTarget();
  std::printf("%zu bytes of PTX, %s\n", compiled->ptx.size(), llvm::getDefaultTargetTriple());
}
