// SPDX-License-Identifier: Apache-2.0
// How undefined bits go through each instruction: what its row says.
#include "runtime/emulator/definedness/definedness.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::emulator {

Flow flow_of(const isa::Spelling& spelling) { return emulated(spelling).flow; }

// In the order of Flow: what comes behind Loads does, or brings lanes together.
bool has_side_effect(Flow flow) { return flow > Flow::Loads; }

bool is_value(const isa::Spelling& spelling, const RegisterUse& use) {
  switch (emulated(spelling).values) {
    case ValueSources::None: return false;
    case ValueSources::Source: return use.operand == 1;
    case ValueSources::Predicates: return use.type == Type::pred;
    case ValueSources::Arguments: return use.operand != 0 || spelling.signatures.empty();
    case ValueSources::Registers: return true;
    case ValueSources::Factors: return use.operand <= 1 && use.type != Type::b64;
  }
  return false;
}

}  // namespace tartan::TARTAN_ABI::emulator
