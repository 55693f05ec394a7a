// SPDX-License-Identifier: Apache-2.0
// compiler/ir/partition.h - slices of a description: what of it one role executes, or what is
// executed at one place. Not installed.
//
// A part of a function with two roles is described once, as the first role executes it. In it,
// `by_role` operations have a region for each role, and `if_of_role` operations are conditions of
// the first role alone. What the second role executes is a slice of that part: its own regions,
// with the loops and conditions around them and all values that these need. A variable that both
// regions of a `by_role` set is set by each role for itself.
//
// Code that is executed in halves, each at a place of its own, is described once, too, with a
// `split` where the second half begins: a half is the slice of its operations with effects.
#pragma once

#include <cstdint>
#include <source_location>
#include <span>
#include <vector>

#include "compiler/ir/function.h"

namespace tartan::TARTAN_ABI::ir {

/// What a slice needs of the rest, which alone has it; or the rest of the slice.
struct Need {
  enum class Of : std::uint8_t {
    result,    // of an operation with an effect, which others execute
    thread,    // the index of a thread, which is another's in each role
    variable,  // that changes where the other role alone passes
    memory,    // what is in memory that the other role writes
    change,    // the first role, of a variable that the second one has changed for itself
  };
  Of what = Of::result;
  std::source_location place = {};    // of the operation that it needs
  std::source_location written = {};  // Of::memory, Of::change: where
};

/// Appends to region `to` what the second role executes of region `from`, which is then the first
/// role's alone.
std::vector<Need> partition(Function& function, std::uint32_t from, std::uint32_t to);

enum class Half : std::uint8_t { both, before, behind };  // of a split

/// The ids of a value of the description and of the one that stands for it in a copy.
struct Renamed {
  int from, to;
};

/// Appends to region `to` a half of region `from`.
std::vector<Need> copy_half(Function& function, std::uint32_t from, std::uint32_t to, Half half,
                            std::span<const Renamed> names);

}  // namespace tartan::TARTAN_ABI::ir
