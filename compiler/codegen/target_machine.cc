// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/target_machine.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/PrettyStackTrace.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

extern "C" {
void LLVMInitializeNVPTXTargetInfo(void);
void LLVMInitializeNVPTXTarget(void);
void LLVMInitializeNVPTXTargetMC(void);
void LLVMInitializeNVPTXAsmPrinter(void);
}

namespace tartan::TARTAN_ABI::codegen {
namespace {

thread_local bool guarded = false;

void on_fatal_error(void*, const char* reason, bool) {
  if (guarded) throw FatalError(reason);
}

// Shared and local pointers of 32 bits. A kernel with 32 swizzled ldmatrix addresses needs 132
// registers instead of 144 and 4 % less text; generating it takes the same time. This is a
// process-wide option in LLVM: it also affects other users of LLVM in a program that links Tartan's
// static libraries.
void use_short_pointers() {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find("nvptx-short-ptr");
  assert(found != options.end() && "this LLVM has no -nvptx-short-ptr");
  if (found != options.end()) found->second->addOccurrence(0, "nvptx-short-ptr", "true");
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    use_short_pointers();
    llvm::install_fatal_error_handler(on_fatal_error);
  });
}

using Machines =
    std::map<std::pair<std::string, std::string>, std::unique_ptr<llvm::TargetMachine>>;

Machines& machines() {
  thread_local Machines machines;
  return machines;
}

std::pair<std::string, std::string> key(const Target& asked) {
  const Target target = known_to_llvm(asked);
  return {target.arch.text(),
          "+ptx" + std::to_string(target.ptx.major) + std::to_string(target.ptx.minor)};
}

}  // namespace

Target known_to_llvm(const Target& target) {
  Target out = target;
  if (out.arch.sm == 107) out.arch.sm = 103;  // its older relative
  out.ptx = std::min(out.ptx, Version{9, 0});
  return out;
}

const llvm::Triple& target_triple() {
  static const llvm::Triple triple("nvptx64-nvidia-cuda");
  return triple;
}

std::string data_layout() { return target_triple().computeDataLayout("shortptr"); }

llvm::TargetMachine& target_machine(const Target& target) {
  initialize_llvm();
  const auto names = key(target);
  std::unique_ptr<llvm::TargetMachine>& machine = machines()[names];
  if (!machine) {
    std::string error;
    const llvm::Target* nvptx = llvm::TargetRegistry::lookupTarget(target_triple(), error);
    assert(nvptx && "LLVM was linked without its NVPTX target");
    machine.reset(nvptx->createTargetMachine(target_triple(), names.first, names.second, {},
                                             llvm::Reloc::PIC_, {},
                                             llvm::CodeGenOptLevel::Default));
    assert(machine->createDataLayout().getStringRepresentation() == data_layout());
  }
  return *machine;
}

void abandon_target_machine(const Target& target) {
  const auto found = machines().find(key(target));
  if (found == machines().end()) return;
  (void)found->second.release();
  machines().erase(found);
}

void guard_fatal_errors(const std::function<void()>& work) {
  const void* trace = llvm::SavePrettyStackState();
  guarded = true;
  try {
    work();
  } catch (...) {
    guarded = false;
    llvm::RestorePrettyStackState(trace);  // it pointed into frames that no longer exist
    throw;
  }
  guarded = false;
}

}  // namespace tartan::TARTAN_ABI::codegen
