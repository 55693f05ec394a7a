// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/call_graph.h - the calls in a module, and the functions whose address is taken.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::ptx {

/// What names mean where functions are called or their addresses taken: of an alias, another one's
/// name. The module lives longer.
class FunctionNames {
 public:
  explicit FunctionNames(const Module& module);
  const Module& module() const { return *module_; }
  /// The function, or null.
  const Function* find(std::string_view name) const;

 private:
  const Module* module_;
  std::unordered_map<std::string_view, std::string_view> aliases_;
};

/// The functions that calls name, each once; only those with a body.
struct Callees {
  std::vector<const Function*> named;
  bool indirect = false;  // some call is indirect: to any function of address_taken()
};
Callees callees_of(const FunctionNames& names, const Function& function);

/// The functions with a body whose address an instruction or an initializer takes.
std::vector<const Function*> address_taken(const FunctionNames& names);
/// Whether an instruction of `function` takes the address of a function.
bool takes_address(const FunctionNames& names, const Function& function);

/// All that a function may call, for many functions: what each of them calls is looked up once.
class Reach {
 public:
  /// `and_addresses`: who takes the address of a function may call every one whose address is
  /// taken, as the assembler has it for tensor memory.
  Reach(const Module& module, bool and_addresses) : names_(module), and_addresses_(and_addresses) {}
  /// `start`, and what it may call.
  std::vector<const Function*> from(const Function& start);

 private:
  const Callees& callees(const Function& function);

  const FunctionNames names_;
  const bool and_addresses_;
  std::unordered_map<const Function*, Callees> callees_;
  std::optional<std::vector<const Function*>> taken_;
};

}  // namespace tartan::TARTAN_ABI::ptx
