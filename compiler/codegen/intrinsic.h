// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/intrinsic.h - the LLVM intrinsic of a matrix instruction form. Private to
// compiler/codegen; does not include LLVM.
#pragma once

#include <string>

#include "tartan/isa/form.h"
#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::codegen {

/// The name of the form's intrinsic without a pointer suffix, in LLVM's scheme:
/// "llvm.nvvm.mma.m16n8k16.row.col.f32.f32". LLVM may not have it. Empty if the scheme cannot
/// express one of the form's qualifiers.
std::string intrinsic_name(const isa::Form& form);

/// Whether LLVM's back end can select that intrinsic for `target`; otherwise it would abort.
bool selectable(const isa::Form& form, const Target& target);

}  // namespace tartan::TARTAN_ABI::codegen
