// SPDX-License-Identifier: Apache-2.0
// runtime/trace_events.h - from the records that a kernel with timestamps wrote to the events of a
// timeline.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tartan/ptx/trace.h"
#include "tartan/runtime/timeline.h"

namespace tartan::TARTAN_ABI::detail {

/// The four words of compiler/ptx/trace_sites.h.
struct TraceRecord {
  std::uint32_t clock = 0, word = 0, lanes = 0, barrier = 0;
};

/// Whose records they are. By CTA and thread, `records_of_thread` each.
struct TraceLaunch {
  std::string kernel, device;
  Launch shape;
  std::uint32_t ctas = 0, cluster = 1, records_of_thread = 0;
};

Status add_trace(const TraceLaunch& launch, std::span<const TraceRecord> records,
                 const ptx::Traced& text, Timeline& timeline);

}  // namespace tartan::TARTAN_ABI::detail
