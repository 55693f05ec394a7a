// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/call_graph.h - the calls in a module, and the functions whose address is taken.
#pragma once

#include <vector>

#include "tartan/ptx/tree.h"

namespace tartan::inline TARTAN_ABI::ptx {

/// The functions that calls name, each once; only those with a body.
struct Callees {
  std::vector<const Function*> named;
  bool indirect = false;  // some call is indirect: to any function of address_taken()
};
Callees callees_of(const Module& module, const Function& function);

/// The functions with a body whose address an instruction or an initializer takes.
std::vector<const Function*> address_taken(const Module& module);
/// Whether an instruction of `function` takes the address of a function.
bool takes_address(const Module& module, const Function& function);

}  // namespace tartan::inline TARTAN_ABI::ptx
