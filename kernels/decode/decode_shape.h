// SPDX-License-Identifier: Apache-2.0
// kernels/decode/decode_shape.h - how the warps of the decoding kernel divide its work, and which
// options it takes.
#pragma once

#include "tartan/kernels/decode.h"

namespace tartan::TARTAN_ABI::kernels {

/// How the CTA's warps divide a step: `tile_m` rows and `keys` keys for each group of warps.
struct DecodeShape {
  int tile_m, warps_m, groups, keys;
  /// Whether keys and values stay whole lines of 256 bytes in shared memory: one TMA load for a
  /// page, not one for each half of its lines, so that DRAM reads what is contiguous. mma.sync
  /// reads them with two-way bank conflicts; wgmma takes lines of 128 bytes.
  bool whole_lines;
  int threads() const { return 32 * warps_m * groups; }
};
DecodeShape decode_shape(const Decode& options, const Target& target);

/// Whether products are by tcgen05: of too few rows, most of what it multiplies is not there.
bool by_tensor_memory(const Decode& options, const Target& target);

/// Reports options that do not go together.
bool is_possible(Builder& k, const Decode& options);

}  // namespace tartan::TARTAN_ABI::kernels
