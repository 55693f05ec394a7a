// SPDX-License-Identifier: Apache-2.0
// runtime/trace_thread.h - what one thread of a kernel with timestamps wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/trace_events.h"

namespace tartan::TARTAN_ABI::detail {

/// Times are cycles from the thread's beginning.
struct TraceThread {
  const TraceRecord* first = nullptr;  // null: it did not begin
  struct Entry {
    std::uint64_t time;
    const TraceRecord* record;
  };
  std::vector<Entry> entries;
  std::optional<Entry> exit;
};

TraceThread read_trace_thread(std::span<const TraceRecord> records);

/// The GPU's timer when the thread began, in nanoseconds.
inline std::uint64_t timer(const TraceRecord& first) {
  return (std::uint64_t{first.lanes} << 32) | first.word;
}

}  // namespace tartan::TARTAN_ABI::detail
