// SPDX-License-Identifier: Apache-2.0
// compiler/isa/acceptance.h - whether a row of the tables covers a form.
//
// Each function rebuilds the form from the row's columns and compares: a qualifier that the row's
// family does not have makes the forms differ. For this folder only; other folders call find() in
// tartan/isa/instruction.h.
#pragma once

#include "tartan/isa/rows.h"

namespace tartan::TARTAN_ABI::isa {

bool accepts(const MatrixMove& row, const Form& form);
bool accepts(const Mma& row, const Form& form);
bool accepts(const Wgmma& row, const Form& form);
/// Whether the fragment of a wmma.load or wmma.store belongs to the product.
bool accepts_load(const Wmma& row, const Form& form);
bool accepts_product(const Wmma& row, const Form& form);

}  // namespace tartan::TARTAN_ABI::isa
