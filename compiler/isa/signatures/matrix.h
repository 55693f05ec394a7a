// SPDX-License-Identifier: Apache-2.0
// compiler/isa/signatures/matrix.h - the signatures of a row of compiler/isa/tables.h. For the
// folder above only.
#pragma once

#include <vector>

#include "compiler/isa/signatures/families.h"
#include "tartan/isa/rows.h"

namespace tartan::TARTAN_ABI::isa {

std::vector<Signature> signatures_of(const MatrixMove& row);
/// Of wmma.load, wmma.store and wmma.mma.
std::vector<Signature> signatures_of(const Wmma& row);
std::vector<Signature> signatures_of(const Mma& row);
std::vector<Signature> signatures_of(const Wgmma& row);

}  // namespace tartan::TARTAN_ABI::isa
