// SPDX-License-Identifier: Apache-2.0
// compiler/verify/known_bits.h - which bits of a register follow from constants of the text, in
// every thread: a descriptor is often an address, of which nothing is known, with constant fields.
#pragma once

#include "compiler/isa/tensor_descriptors.h"
#include "compiler/verify/definitions.h"

namespace tartan::TARTAN_ABI::verify {

class KnownBits {
 public:
  KnownBits(const ptx::Module& module, Definitions& definitions)
      : module_(module), definitions_(definitions) {}

  isa::PartialBits of(const ptx::Operand& operand, int depth = 0);

 private:
  isa::PartialBits made_by(const ptx::Instruction& instruction, int depth);

  const ptx::Module& module_;
  Definitions& definitions_;
  NameMap<isa::PartialBits> registers_;
};

}  // namespace tartan::TARTAN_ABI::verify
