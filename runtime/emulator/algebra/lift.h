// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/lift.h - what an op does to values, in launches under algebra: a step in
// front of its handler, as decode() works it out from the instruction's row and operands.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/emulator/machine/program.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::emulator {

struct Lift;

/// True: the handler is still to run; false: it has run, or the warp waits.
using Step = bool (*)(Warp&, const Op&, const Lift&);

/// A register of an instruction, or a constant.
struct LiftedRegister {
  std::uint32_t slot = 0;
  std::uint8_t bytes = 0;  // of its declared type
};

struct Lift {
  Handler inner = nullptr;
  Step step = nullptr;
  const isa::Spelling* spelling = nullptr;
  std::vector<LiftedRegister> d, s;
  std::uint32_t predicate = 0;  // a slot
  Type to = Type::none, from = Type::none;
  std::uint8_t count = 1;  // elements of a packed type
};

class Lifts final : public Observation {
 public:
  static constexpr Seat seat = 1;

  void decoded(Decoder& decoder, std::size_t first) override;
  void finish(Program& program, const ptx::Module&) override { lifts_.resize(program.ops.size()); }
  const Lift& operator[](std::size_t op) const { return lifts_[op]; }

 private:
  std::vector<Lift> lifts_;
};

}  // namespace tartan::TARTAN_ABI::emulator
