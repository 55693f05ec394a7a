// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/intrinsic.h - which LLVM intrinsic is a matrix instruction form. Private to
// compiler/codegen; no LLVM in it.
#pragma once

#include <string>

#include "tartan/isa/form.h"
#include "tartan/isa/target.h"

namespace tartan::inline TARTAN_ABI::codegen {

/// The name that LLVM would give the form, without a pointer suffix:
/// "llvm.nvvm.mma.m16n8k16.row.col.f32.f32". LLVM may not have it. Empty where LLVM's naming has no
/// room for one of the form's qualifiers.
std::string intrinsic_name(const isa::Form& form);

/// Whether LLVM's back end can select that intrinsic for `target`; it would abort otherwise.
bool selectable(const isa::Form& form, const Target& target);

}  // namespace tartan::inline TARTAN_ABI::codegen
