// SPDX-License-Identifier: Apache-2.0
// dsl/memory.h - the memory of a kernel's matrices, and who wrote it. Not installed.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/codegen/function_builder.h"
#include "tartan/support/diagnostic.h"

namespace tartan::inline TARTAN_ABI::detail {

/// A matrix's memory: where it begins, and whether it is shared.
struct Memory {
  codegen::Pointer base;
  bool in_shared = false;
  std::int64_t bytes = 0;
  int stages = 1;                     // of a ring
  std::optional<Place> written = {};  // by other threads too, with no barrier since
  // Between roles: by consumers; by which of their pipelines.
  std::optional<Place> written_by_consumers = {}, filled = {};
  std::size_t filled_by = 0;
  int param = -1;                // of global memory: which of the kernel's
  bool rounded_to_tf32 = false;  // what is copied here from memory of f32
};

}  // namespace tartan::inline TARTAN_ABI::detail
