// SPDX-License-Identifier: Apache-2.0
// tartan/verify/verify.h - is this module legal, and is it sane?
//
//   Diags diags = verify::verify(module, {});
//
// Each concern is one pass in a file of its own; verify.cc lists them. A legal module assembles:
// instructions are judged by the opcode table (tartan/isa/signature.h) for the module's target
// and version; what is not in it is an error that says what was expected and found, and what would
// be legal. docs/check.md says what is judged and what not yet, and where manual and assembler
// differ.
#pragma once

#include <optional>

#include "tartan/ptx/tree.h"

namespace tartan::inline TARTAN_ABI::verify {

/// What a module is checked against, and how findings are reported.
struct Options {
  /// In place of what the module's own .target and .version state.
  std::optional<Arch> arch;
  std::optional<Version> ptx;
  /// Errors that are reported, the first ones of the text; the others are counted
  /// (Diags::left_out()). 0: no limit.
  int max_errors = 0;
  /// Of rules that another level suits better than the table's.
  RuleLevels levels;
};

Diags verify(const ptx::Module& module, const Options& options = {});

/// Reads, parses and verifies; the diagnostics of both, in the order of the text.
Diags check(std::shared_ptr<const Source> source, const Options& options = {});

}  // namespace tartan::inline TARTAN_ABI::verify
