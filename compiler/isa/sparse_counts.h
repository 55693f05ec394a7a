// SPDX-License-Identifier: Apache-2.0
// compiler/isa/sparse_counts.h - how many registers of 32 bits the vectors of spcompress and
// spdecompress have, and those of tcgen05.ld.spcompress.
#pragma once

#include <string_view>

#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {

struct SparseCounts {
  int metadata = 0, values = 0, dense = 0;
};

/// Nothing of an instruction without a ratio such as .sp::2:4.
SparseCounts sparse_counts(const Spelling& spelling);

/// Why the ratio does not go with types and .xN; empty if it does.
std::string_view refuses_ratio(const Spelling& spelling);

}  // namespace tartan::TARTAN_ABI::isa
