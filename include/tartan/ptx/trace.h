// SPDX-License-Identifier: Apache-2.0
// tartan/ptx/trace.h - PTX text whose kernels write down when they do what: which warp starts a
// copy or a product, arrives, waits, and until when.
//
//   const auto text = ptx::traced(ptx);     // the same kernels, with timestamps
//   if (!text) return text.diags();
//   auto module = device.load(text->text);  // tartan/runtime/trace.h reads what they write
//
// The kernels keep their parameters: the address of the records is in a variable of the module,
// tartan_trace. While it is zero nothing is written. Functions that kernels call are left as they
// are. Of a compiled kernel: traced(compiled->ptx).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tartan/ptx/tree.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::ptx {

/// What traced() makes.
struct Traced {
  std::string text;
  std::vector<int> lines;  ///< by line of `text`, from 1: that of the PTX before; 0: it is new
};

/// Diagnostics where the text is no PTX, or has timestamps already.
Result<Traced> traced(const std::string& ptx, const std::string& name = "<ptx>");

/// Whether the module is the result of traced().
bool is_traced(const Module& module);

/// The variable that says where the records are: their address (64 bits), the number of CTAs that
/// have some, and how many each thread has (32 bits each).
inline constexpr std::string_view trace_variable = "tartan_trace";

}  // namespace tartan::TARTAN_ABI::ptx
