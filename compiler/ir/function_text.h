// SPDX-License-Identifier: Apache-2.0
// compiler/ir/function_text.h - a Function as text, for people. Not installed.
//
//   kernel copy(global in, global out) sm_80, PTX 7.8
//   frame
//     %1: global = pointer_param #1
//   body
//     %2: u32 = special #0  // copy.cc:12
//     %4: pred = compare %2 32 #2
//     if %4
//       store.u32 %1 %2
//
// Operands are values and constants; after # are numbers that the operation's function takes.
#pragma once

#include <string>

#include "compiler/ir/function.h"

namespace tartan::TARTAN_ABI::ir {

std::string text(const Function& function);

}  // namespace tartan::TARTAN_ABI::ir
