// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/interruption.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/support/counted.h"
#include "runtime/emulator/machine/waiting.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t most_lines = 8;

}  // namespace

void Interruption::add(std::uint64_t index, Cluster& cluster) {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t rank = 0; rank < cluster.size(); ++rank) {
    std::string where = positions(cluster.block(rank));
    if (where.empty()) continue;  // it was just done
    ++stopped_;
    Blocks& same = positions_[std::move(where)];
    if (same.count++ == 0 || index < same.first) {
      same.first = index;
      same.place = cluster.block(rank).place();
    }
  }
}

void Interruption::explain(Finding& finding, std::uint64_t blocks,
                           const LaunchContext& context) const {
  if (finding.id != "interrupted"_rule.id) return;
  finding.message = fmt::format("interrupted: {} of {} done", blocks - std::min(stopped_, blocks),
                                detail::counted(context.launch.grid.count(), "CTA"));
  std::vector<std::pair<const std::string*, const Blocks*>> lines;
  for (const auto& [where, those] : positions_) lines.emplace_back(&where, &those);
  std::ranges::stable_sort(lines, {}, [](const auto& each) { return each.second->first; });
  std::uint64_t left_out = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [where, those] = lines[i];
    if (i >= most_lines) {
      left_out += those->count;
      continue;
    }
    finding.message +=
        fmt::format("\nCTA {},{},{}", those->place.x, those->place.y, those->place.z);
    if (those->count > 1) finding.message += fmt::format(" and {} more", those->count - 1);
    finding.message += fmt::format(": {}", *where);
  }
  if (left_out)
    finding.message += fmt::format("\nand {} elsewhere", detail::counted(left_out, "CTA"));
}

}  // namespace tartan::TARTAN_ABI::emulator
