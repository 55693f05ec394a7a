// SPDX-License-Identifier: Apache-2.0
// tartan/isa/state_space.h - the state spaces of PTX (PTX ISA 9.0, 5.1), for declarations,
// addresses and the qualifiers that name them.
//
//   name(StateSpace::shared_cta)               // "shared::cta"
//   memory_of(StateSpace::shared_cta)          // StateSpace::shared
#pragma once

#include <cstdint>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// A state space, with its sub-qualifier if one is written; `none` is generic addressing.
enum class StateSpace : std::uint8_t {
  none,
  reg,
  global,
  constant,
  shared,
  shared_cta,
  shared_cluster,
  local,
  param,
  param_entry,
  param_func,
};

/// The qualifier in PTX; empty for `none`.
constexpr std::string_view name(StateSpace space) {
  constexpr std::string_view names[] = {"",       "reg",          "global",          "const",
                                        "shared", "shared::cta",  "shared::cluster", "local",
                                        "param",  "param::entry", "param::func"};
  return names[static_cast<int>(space)];
}

/// The space without its sub-qualifier: that of the variables that such an address may name.
constexpr StateSpace memory_of(StateSpace space) {
  switch (space) {
    case StateSpace::shared_cta:
    case StateSpace::shared_cluster: return StateSpace::shared;
    case StateSpace::param_entry:
    case StateSpace::param_func: return StateSpace::param;
    default: return space;
  }
}

/// The spaces whose variables have addresses.
inline constexpr StateSpace memory_spaces[] = {StateSpace::global, StateSpace::constant,
                                               StateSpace::shared, StateSpace::local,
                                               StateSpace::param};

}  // namespace tartan::TARTAN_ABI
