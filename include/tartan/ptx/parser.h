// SPDX-License-Identifier: Apache-2.0
// tartan/ptx/parser.h - PTX text -> tree, and back.
//
//   Diags diags;
//   ptx::Module module = ptx::parse(source, diags);   // continues after errors, up to 100
//   if (diags.ok()) std::cout << ptx::print(module);
//
// The parser accepts what the assembler accepts: qualifiers in any order, nested blocks, comments,
// debug sections. It knows the syntax of statements and operands but no instruction;
// compiler/verify says whether a module is legal. print(parse(text)) is a fixed point: parsing and
// printing it again gives the same text. Comments are dropped.
#pragma once

#include <memory>
#include <string>

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::ptx {

/// Parses `source`. Errors go to `diags`; the module then holds what could be read. Behind the
/// 100th error nothing is.
Module parse(std::shared_ptr<const Source> source, Diags& diags);

/// How a module is printed.
struct PrintOptions {
  /// Omits .loc, .file, .section and the target option `debug`; the machine code is the same.
  bool strip_debug = false;
};

/// The module as text, one statement a line.
std::string print(const Module& module, const PrintOptions& options = {});

/// One instruction as text, without its semicolon: "@%p1 bra $L_1".
std::string print(const Module& module, const Instruction& instruction);

}  // namespace tartan::TARTAN_ABI::ptx
