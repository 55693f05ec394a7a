// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/target_machine.h - LLVM's machine description of a Target, and protection from
// its fatal errors. Private to compiler/codegen.
#pragma once

#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::codegen {

const llvm::Triple& target_triple();

/// The target itself, or what stands for it where LLVM 22 does not know it: PTX after 9.0, sm_107.
Target known_to_llvm(const Target& target);

/// The layout of every NVPTX module here: shared and local pointers have 32 bits.
std::string data_layout();

/// This thread's TargetMachine for `target`. Creating one costs milliseconds, so each thread caches
/// its own.
llvm::TargetMachine& target_machine(const Target& target);

/// Forgets this thread's TargetMachine for `target` without destroying it: after a fatal error its
/// state is unknown.
void abandon_target_machine(const Target& target);

/// The message of report_fatal_error.
struct FatalError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `work`; a fatal error in LLVM becomes a FatalError exception and does not end the process.
/// LLVM's frames are then not cleaned up: every LLVM object that `work` used must be leaked.
void guard_fatal_errors(const std::function<void()>& work);

}  // namespace tartan::TARTAN_ABI::codegen
