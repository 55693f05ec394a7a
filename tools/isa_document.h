// SPDX-License-Identifier: Apache-2.0
// tools/isa_document.h - the instruction table as a page to read: docs/isa.md.
//
// Forms that differ in one qualifier and agree in everything else share a line:
//   mma.sync.aligned.m16n8k32.row.col[.satfinite].s32.{s8,u8}.{s8,u8}.s32      stands for eight.
#pragma once

#include <string>

namespace tartan::tools {

std::string isa_document();

}  // namespace tartan::tools
