// SPDX-License-Identifier: Apache-2.0
// compiler/verify/definitions.h - the definitions of a function's registers, for passes that trace
// values back.
//
// Only registers that exactly one instruction of the function writes are known: no branch and no
// loop can give them another value. A name that two blocks declare counts as written by both.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string_view>

#include "compiler/support/names.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::verify {

/// A register's value in each lane of a block's first warp.
using LaneValues = std::array<std::int64_t, 32>;

/// A variable and a constant distance from its start.
struct VariableOffset {
  std::string_view variable;
  std::int64_t offset = 0;
};

/// Adds a constant to an address, with wrap-around.
inline std::int64_t plus(std::int64_t offset, std::uint64_t value) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(offset) + value);
}

class Definitions {
 public:
  Definitions(const ptx::Module& module, const ptx::Function& function)
      : module_(module), function_(function) {}

  /// The only instruction that writes the register; null if there are several, or none.
  const ptx::Instruction* of(std::string_view name);
  /// The same through any number of mov between registers; `name` becomes the register that the
  /// instruction writes.
  const ptx::Instruction* origin(std::string_view& name);

  /// The register's value in each lane, if it follows from the lane number (%laneid, %tid.x) and
  /// constants alone. A predicate of elect.sync holds in one lane: here the first.
  std::optional<LaneValues> lanes(const ptx::Operand& operand, int depth = 0);
  std::optional<LaneValues> lanes(std::string_view name, int depth = 0);

  /// The address as a variable and a distance, if that is the same in every lane.
  std::optional<VariableOffset> variable(const ptx::Operand& address);

 private:
  void build();
  std::optional<LaneValues> evaluate(const ptx::Instruction& instruction, int depth);
  bool elects(const ptx::Instruction& by, std::string_view name) const;
  std::optional<VariableOffset> variable(std::string_view name, int depth);
  bool is_variable(std::string_view name);

  const ptx::Module& module_;
  const ptx::Function& function_;
  bool built_ = false;
  bool whole_warps_ = true;                     // the first 32 threads differ in %tid.x alone
  std::pmr::monotonic_buffer_resource memory_;  // of a function's many writers
  std::pmr::unordered_map<std::string_view, const ptx::Instruction*, NameHash> writers_{&memory_};
  NameMap<bool> variables_;
  NameMap<std::optional<LaneValues>> lanes_;  // of registers
};

/// What a comparison of two integers gives; nothing for an unknown one.
std::optional<bool> compare_values(const isa::Spelling& spelling, std::int64_t x, std::int64_t y);
/// Whether some lane's value differs from another's.
bool differs(const LaneValues& values);

}  // namespace tartan::TARTAN_ABI::verify
