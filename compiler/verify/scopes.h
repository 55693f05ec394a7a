// SPDX-License-Identifier: Apache-2.0
// compiler/verify/scopes.h - name resolution (PTX ISA 9.0, 4.6: names are visible from their
// declaration to the end of the block, labels in all of it; inner blocks hide outer ones).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/support/names.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::verify {

enum class NameKind : std::uint8_t { Unknown, Register, Variable, Function, Label, Special };

/// The kind of an opaque variable (PTX ISA 9.0, 5.3): texture, sampler or surface.
enum class Opaque : std::uint8_t { No, Texture, Sampler, Surface };

struct NameInfo {
  NameKind kind = NameKind::Unknown;
  Type type = Type::none;               // registers: their type
  std::uint8_t vector = 1;              // registers: .v2, .v4
  StateSpace space = StateSpace::none;  // variables
  bool constant = false;                // parameters of kernels: read-only
  bool local_param = false;             // a .param of a function's body: for calls; has no address
  Opaque opaque = Opaque::No;           // variables
  const ptx::Variable* variable = nullptr;
  std::uint32_t offset = 0;  // of variables and functions of the module: where they are declared
};

/// The names of a module that every function sees.
class ModuleNames {
 public:
  explicit ModuleNames(const ptx::Module& module);
  NameInfo find(std::string_view name) const;

 private:
  struct Row {
    std::uint32_t count = 0;
    NameInfo info;
  };
  NameMap<NameInfo> names_;
  NameMap<Row> rows_;  // a<3>: a0, a1, a2
};

/// The names inside one function. Walk over its statements in order and call enter() for each.
class Scopes {
 public:
  Scopes(const ptx::Module& module, const ModuleNames& names, const ptx::Function& function);

  /// Back to the function's first statement.
  void restart();
  void enter(const ptx::Statement& statement);

  /// The meaning of `name` here, without a ".x" or "+4" suffix (see base_name).
  NameInfo find(std::string_view name) const;
  /// The label that a branch here refers to, as index into Module::labels: of this block, else of
  /// the nearest enclosing one. No branch leads into a block.
  std::optional<std::uint32_t> label(std::string_view name) const;

 private:
  struct Row {  // %r<5>: %r0 to %r4
    std::uint32_t count;
    NameInfo info;
  };
  struct Block {
    std::size_t rows = 0, plain = 0;  // how many existed when the block began
    std::uint32_t number = 0;         // blocks count from 1, in order; 0 is the function
  };

  void collect_labels();
  void enter_block();
  void leave_block();
  void show_labels(std::uint32_t block);
  void hide_labels(std::uint32_t block);
  void declare(std::string_view name, NameInfo info);
  void declare_row(std::string_view name, Row row);
  const std::vector<Row>& rows_named(std::string_view name) const;
  const Row* row_of(std::string_view name) const;

  const ptx::Module& module_;
  const ModuleNames& module_names_;
  const ptx::Function& function_;
  std::vector<std::vector<std::uint32_t>> block_labels_;            // of each block, in order
  NameMap<std::vector<std::uint32_t>> labels_;                      // innermost last
  std::vector<std::string_view> row_order_;                         // for leaving blocks
  NameMap<std::vector<Row>> rows_;                                  // innermost last
  std::vector<std::pair<std::string_view, NameInfo>> plain_order_;  // for leaving blocks
  NameMap<std::vector<NameInfo>> plain_;                            // innermost last
  // The last result of rows_named(): neighbouring operands are mostly of one row.
  mutable std::string_view last_name_;
  mutable const std::vector<Row>* last_rows_ = nullptr;
  NameSet plain_rows_;        // prefixes of plain names that end in a number
  bool hidden_rows_ = false;  // some plain name may be one of a row
  std::vector<Block> blocks_;
  std::uint32_t begun_ = 0;  // blocks so far
};

/// `%tid.x` -> `%tid`, `generic(x)` -> `x`.
std::string_view base_name(std::string_view name);

}  // namespace tartan::TARTAN_ABI::verify
