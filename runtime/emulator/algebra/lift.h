// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/lift.h - what an op does to values, in launches under algebra: a step in
// front of its handler, as decode() works it out from the instruction's row and operands.
#pragma once

#include <cstdint>
#include <vector>

#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::emulator {

struct Warp;
struct Op;
struct Lift;

/// True: the handler is still to run; false: it has run, or the warp waits.
using Step = bool (*)(Warp&, const Op&, const Lift&);

/// A register of an instruction, or a constant.
struct LiftedRegister {
  std::uint32_t slot = 0;
  std::uint8_t bytes = 0;  // of its declared type
};

struct Lift {
  void (*inner)(Warp&, const Op&) = nullptr;
  Step step = nullptr;
  const isa::Spelling* spelling = nullptr;
  std::vector<LiftedRegister> d, s;
  std::uint32_t predicate = 0;  // a slot
  Type to = Type::none, from = Type::none;
  std::uint8_t count = 1;  // elements of a packed type
};

}  // namespace tartan::TARTAN_ABI::emulator
