// SPDX-License-Identifier: Apache-2.0
// tools/built_in.h - a built-in kernel named on the command line, with its options: for `tartan
// emit` and `tartan explore`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "kernels/registry/registry.h"

namespace tartan::tools {

/// What the command line says of a built-in kernel.
struct BuiltInWords {
  std::string kernel, target, ptx;
  builtins::KernelRegistry kernels;  // with the values of their options
};

/// Adds an option of a kernel.
void add_option(CLI::App& command, const builtins::Option& of);

/// Adds the options of all kernels. `words` must outlive the command.
void add_built_in_options(CLI::App& command, BuiltInWords& words);

/// The options of built-in kernels that the command line has, without the dashes; target and ptx
/// too.
std::vector<std::string> given_options(const BuiltInWords& words, const CLI::App& command);

/// The kernel with its options, or what is wrong with them.
Result<builtins::Described> describe(const BuiltInWords& words, const CLI::App& command);

/// How many multiprocessors the GPU has for which it is described.
int multiprocessors_of(const BuiltInWords& words);

/// Compiles it. Its C++ lines are not the user's, so diagnostics leave them out.
/// What compile() records before LLVM has a part in it.
Result<std::string> operations(const BuiltInWords& words, const builtins::Described& described);
Result<Compiled> compile(const BuiltInWords& words, const builtins::Described& described);

}  // namespace tartan::tools
