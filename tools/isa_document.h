// SPDX-License-Identifier: Apache-2.0
// tools/isa_document.h - the instruction table as a page: docs/isa.md.
//
// Forms that differ in one qualifier share a line:
//   mma.sync.aligned.m16n8k32.row.col[.satfinite].s32.{s8,u8}.{s8,u8}.s32      stands for eight.
#pragma once

#include <string>

#include "tartan/isa/target.h"

namespace tartan::tools {

std::string isa_document();

/// "sm_90 on", "sm_100a, sm_100f on", "sm_90a".
std::string targets_text(const Since& since);
/// The names, those that CUDA 13 compiles for: "sm_90 sm_90a sm_100".
std::string target_names(const Since& since);

}  // namespace tartan::tools
