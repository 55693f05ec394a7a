// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace_thread.h"

#include <utility>

#include "compiler/ptx/trace_sites.h"

namespace tartan::TARTAN_ABI::detail {

namespace word = ptx::trace_record;

TraceThread read_trace_thread(std::span<const TraceRecord> records) {
  TraceThread thread;
  const TraceRecord& first = records[0];
  if (!first.clock && !first.word && !first.lanes) return thread;
  thread.first = &first;
  std::uint64_t time = 0;
  std::uint32_t clock = first.clock;
  for (const TraceRecord& each : records.subspan(1)) {
    const bool exits = (each.word & word::site) == word::exited;
    if (!exits && !each.lanes) break;
    time += each.clock - std::exchange(clock, each.clock);  // 32 bits wrap
    if (exits) {
      thread.exit = {time, &each};
      break;
    }
    thread.entries.push_back({time, &each});
  }
  return thread;
}

}  // namespace tartan::TARTAN_ABI::detail
