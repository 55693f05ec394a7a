// SPDX-License-Identifier: Apache-2.0
// dsl/layout/fragments.h - fragments and their variables as registers. Not installed.
#pragma once

#include <span>
#include <vector>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// The type of one 32 or 64-bit register of a fragment of `type`.
constexpr Type register_type(Type type) { return type == f32 || type == f64 ? type : b32; }

/// A fragment that the current call makes. `major`: for wmma, how it was loaded.
Fragment make_fragment(KernelState& state, const FragmentKind& kind,
                       std::vector<ir::Value> registers, Major major = Major::none);
/// Whether the fragment was refused and reported.
inline bool is_bad(const Fragment& fragment) { return HandleParts::registers(fragment).empty(); }
/// A fragment's registers, for reading: waits for a product that computes them.
std::vector<ir::Value> registers_of(const Fragment& fragment);

// -- Products in flight: see dsl/state/in_flight.h.

/// Registers for accumulating or copying: without a wait.
std::vector<ir::Value> flying_registers(const Fragment& fragment);
/// The results of a product that was just committed: accumulators `like` those.
std::vector<Fragment> take_off(KernelState& state, const std::vector<Fragment>& like,
                               const std::vector<ir::Value>& registers,
                               std::vector<ir::Value> kept);
/// Waits for all products, if any may be in flight.
void land_all(KernelState& state);

// -- Variables.

FragmentVariable make_variable(KernelState& state, const FragmentKind& kind,
                               std::vector<ir::Variable> registers);
void assign(FragmentVariable& variable, const Fragment& fragment);
std::vector<Fragment> read(std::span<const FragmentVariable> variables);
/// Whether a fragment is of a variable that has not been assigned since its declaration.
bool is_still_zero(const KernelState& state, const Fragment& fragment);

}  // namespace tartan::TARTAN_ABI::detail
