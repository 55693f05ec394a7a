// SPDX-License-Identifier: Apache-2.0
// compiler/verify/parameters.h - the parameters and results of functions.
#pragma once

#include <string>
#include <vector>

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::verify {

/// The parameters and results of a function or prototype.
struct FunctionType {
  FunctionType(const ptx::Module& module, const ptx::Function& function);
  explicit FunctionType(const ptx::Prototype& prototype);

  std::vector<const ptx::Variable*> results, params;
};

/// In bytes: as declared, else that of an element.
std::uint32_t alignment_of(const ptx::Variable& variable);

/// Whether a value declared as `actual` can be passed as `formal`: size, alignment and kind.
bool same_layout(const ptx::Variable& formal, const ptx::Variable& actual);

/// Whether a constant can be passed.
bool takes_constant(const ptx::Variable& formal, bool floating);

/// A single predicate, or a single 8-bit or 16-bit number with a kind (.u16): the assembler
/// compiles no function and no call that passes one.
bool unsupported(const ptx::Variable& variable);

/// How two declarations of one function differ, in words; empty: not at all.
std::string difference(const FunctionType& x, const FunctionType& y);

/// Whether a kernel or function states the directive, such as .noreturn.
bool states(const ptx::Module& module, const ptx::Function& function, std::string_view directive);

/// ".align 16 .b8[64]", ".v2 .f32"
std::string describe(const ptx::Variable& variable);

}  // namespace tartan::TARTAN_ABI::verify
