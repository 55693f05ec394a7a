// SPDX-License-Identifier: Apache-2.0
// compiler/verify/live_registers.h - how many registers the matrix instructions of a function need.
//
//   const LiveRegisters need = live_registers(module, *module.function("gemm"));
//   need.most      // accumulators, fragments, addresses: what lives at the worst product
//   need.product   // what the largest wgmma alone holds
//
// A backward dataflow over basic blocks: a value lives from its definition to its last use on any
// path. The assembler orders instructions anew, so that this is an estimate, made where it has
// least choice: at matrix instructions, with loads as late as their blocks allow. Values that are
// the same in all lanes are not counted: it holds them in uniform registers, or computes them
// again; nor those that one cheap instruction gives of another that lives, such as an address.
#pragma once

#include <cstdint>

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::verify {

struct LiveRegisters {
  int most = 0;     // 32-bit registers that live at once at a matrix instruction; 0: there is none
  int line = 0;     // of it, in the text
  int product = 0;  // of the wgmma with most registers: accumulators, and A if it is in them
  int product_line = 0;  // of it, in the text
};

LiveRegisters live_registers(const ptx::Module& module, const ptx::Function& function);

}  // namespace tartan::TARTAN_ABI::verify
