// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/declarations.h - the parser's middle layer: registers, variables, parameters and
// directives.
#pragma once

#include <span>

#include "compiler/ptx/operands.h"

namespace tartan::TARTAN_ABI::ptx {

/// The state space of a declaration that starts with ".shared" and the like; none for any other
/// word.
StateSpace declared_space(std::string_view word);

class DeclarationParser : public OperandParser {
 public:
  using OperandParser::OperandParser;

 protected:
  /// .extern, .visible, .weak or .common, if present.
  std::string_view take_linkage();

  /// `.reg .type names;`: appends to Module::registers.
  void registers();
  /// `.space ... names;`: appends to Module::variables.
  void variables(std::string_view linkage);
  /// `( .param ..., ... )`: appends to Module::variables and lists the indices. False: recover.
  bool parameters(std::vector<std::uint32_t>& into, bool kernel);
  /// Whether a directive of a module begins with the word.
  static bool begins_item(std::string_view word);
  bool attribute();  // .attribute(...)
  bool at_name() const;
  bool at_item() const;  // the first word of an item of a module that is not its header
  /// The name; nothing, and a report, if no name is there.
  std::optional<Token> take_name(std::string_view what);

  std::optional<std::uint32_t> location();        // .loc
  std::uint32_t intermediate_location();          // .loc_intermediate
  std::uint32_t file();                           // .file 1 "name", time, size
  std::uint32_t section();                        // .section name { ... }
  std::uint32_t function_directive(bool kernel);  // .maxntid 1, 2, 3 before a body
  std::uint32_t module_directive();               // .pragma "..."; .alias f, g;
  /// The module's directives, and those that need a label, such as `.branchtargets L1, L2;`.
  std::uint32_t statement_directive(bool labelled);

 private:
  bool variable(Variable& variable);
  bool type_and_attributes(Variable& variable);
  bool alignment(std::uint32_t& into);
  bool parameter_list(std::vector<std::uint32_t>& into);
  bool section_data();
  bool section_address();
  bool section_label();
  bool inlining();
  std::optional<std::uint32_t> numbered(std::string_view what);
  bool declarator(Variable& variable);
  bool initialiser(Variable& variable);
  std::uint32_t keep_directive(std::string_view name, std::uint32_t from, std::uint32_t to,
                               bool semicolon);
  std::uint32_t keep_directive(const Directive& directive);
  std::uint32_t unknown_directive(std::span<const std::string_view> known);
  std::uint32_t ended_directive();
  bool strings(Directive& directive);
  bool names(Directive& directive, bool numbered);
  bool prototype(Directive& directive);

  bool parameters_ = false;         // reading a function's parameters
  bool kernel_parameters_ = false;  // reading a kernel's parameters
  bool prototype_ = false;          // in .callprototype: _ is a name
};

}  // namespace tartan::TARTAN_ABI::ptx
