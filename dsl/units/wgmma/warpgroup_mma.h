// SPDX-License-Identifier: Apache-2.0
// dsl/units/wgmma/warpgroup_mma.h - a TiledMma by wgmma (sm_90a). Not installed.
#pragma once

#include "dsl/state/state.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI::detail {

/// The wgmma that computes a tile, 64 rows per warpgroup; or the reason why wgmma cannot.
std::optional<isa::Form> warpgroup_form(const KernelState& state, const MmaKind& kind,
                                        const Tile& tile, const MmaOptions& options,
                                        const Target& target, std::string& why_not);

/// sums + A * B. `sums` are the warp's 16 rows, as accumulators of m16n8; `group` is the
/// warpgroup's index in the block. A is in shared memory, or in registers: one fragment of 16 rows
/// per k-step. The results are in flight: see dsl/state/in_flight.h. `metadata` of a sparse A: each
/// register serves isa::selectors() k-steps. `fresh`: A * B in the registers of `sums`.
std::vector<Fragment> warpgroup_multiply(KernelState& state, const isa::Form& form,
                                         const MmaOptions& options,
                                         const std::vector<Fragment>& sums, const Tensor& a,
                                         const Tensor& b, const Scalar& group,
                                         std::vector<ir::Value> metadata = {}, bool fresh = false);
std::vector<Fragment> warpgroup_multiply(KernelState& state, const isa::Form& form,
                                         const MmaOptions& options,
                                         const std::vector<Fragment>& sums, const WarpTile& a,
                                         const Tensor& b, bool fresh);

}  // namespace tartan::TARTAN_ABI::detail
