// SPDX-License-Identifier: Apache-2.0
// tartan/verify/verify.h - whether a module is legal, and likely errors in legal code.
//
//   Diags diags = verify::verify(module, {});
//
// Each concern is one pass in a file of its own; verify.cc lists them. A legal module assembles:
// the opcode table (tartan/isa/signature.h) decides, for the module's target and version. Errors
// say what was expected, what was found and what would be legal. docs/check.md says what is checked
// and what not yet, and where manual and assembler differ.
#pragma once

#include <optional>

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::verify {

/// The target of a check, and how findings are reported.
struct Options {
  /// Overrides the module's own .target and .version.
  std::optional<Arch> arch;
  std::optional<Version> ptx;
  /// The number of errors that are reported, first in the text first; the others are counted
  /// (Diags::left_out()). 0: no limit.
  int max_errors = 0;
  /// Levels that override those of the rules' table.
  RuleLevels levels;
};

Diags verify(const ptx::Module& module, const Options& options = {});

/// Parses and verifies; the diagnostics of both, in the order of the text.
Diags check(std::shared_ptr<const Source> source, const Options& options = {});

}  // namespace tartan::TARTAN_ABI::verify
