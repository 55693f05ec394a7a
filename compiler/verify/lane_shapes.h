// SPDX-License-Identifier: Apache-2.0
// compiler/verify/lane_shapes.h - how the values of registers differ between the lanes of a warp,
// for registers that several instructions write, such as the counters of loops.
//
//   i = tid; do { ...; i += blockDim; } while (i < n);   i: lane 1 has 1 more than lane 0, whatever
//                                                        the round
#pragma once

#include <vector>

#include "compiler/verify/definitions.h"

namespace tartan::TARTAN_ABI::verify {

/// What is known of a register in all places of a function.
struct LaneShape {
  enum class Kind : std::uint8_t {
    unseen,  // nobody writes it
    exact,   // `values`
    offset,  // `values`, and a number more that is unknown and the same in all lanes
    unknown
  } kind = Kind::unseen;
  LaneValues values{};

  bool known() const { return kind == Kind::exact || kind == Kind::offset; }
  bool uniform() const { return known() && !differs(values); }
};

class LaneShapes {
 public:
  /// Knows those registers, and all that their values follow from.
  LaneShapes(const ptx::Module& module, const ptx::Function& function, Definitions& definitions,
             std::vector<std::string_view> registers);

  LaneShape of(const ptx::Operand& operand);
  LaneShape of(std::string_view name);
  /// The instructions that write a register, in their order.
  const std::vector<const ptx::Instruction*>& writers(std::string_view name) const;

 private:
  std::vector<const ptx::Instruction*> needed(std::vector<std::string_view> registers) const;
  bool update(const ptx::Instruction& instruction);
  LaneShape result(const ptx::Instruction& instruction);
  LaneShape arithmetic(const ptx::Instruction& instruction);
  LaneShape product(const ptx::Operand& one, const ptx::Operand& other);
  bool uniform_sources(const ptx::Instruction& instruction);
  bool uniform(const ptx::Operand& operand);
  bool unseen(const ptx::Operand& operand);
  template <typename Body>
  void each_result(const ptx::Instruction& instruction, Body&& body) const;

  const ptx::Module& module_;
  Definitions& definitions_;
  NameMap<std::vector<const ptx::Instruction*>> writers_;
  NameMap<LaneShape> shapes_;
};

}  // namespace tartan::TARTAN_ABI::verify
