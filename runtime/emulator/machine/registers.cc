// SPDX-License-Identifier: Apache-2.0
// The registers that warps of a block give up and take: setmaxnreg.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/machine/cluster.h"

namespace tartan::inline TARTAN_ABI::emulator {

void Block::set_registers(Warp& warp, std::uint32_t count, bool more) {
  if (context_.program.most_registers == 0) return;  // not bounded: the assembler ignores it
  if (more ? count < warp.registers : count > warp.registers)
    return warp.fail("trap"_rule,
                     fmt::format("setmaxnreg.{} to {} registers in a warp that has {}",
                                 more ? "inc" : "dec", count, warp.registers),
                     0);
  if (!more) {
    free_registers_ += warp.registers - count;
    warp.registers = count;
    return hand_out_registers();
  }
  warp.wait_for_registers(count);
  if (ClusterTimeline* timeline = cluster_.timeline()) timeline->waits_for_registers(warp, count);
  hand_out_registers();
}

std::uint32_t Block::first_registers() const {
  return std::min(context_.program.most_registers, context_.program.largest_budget);
}

void Block::hand_out_registers() {
  for (Warp& warp : warps_)
    for (Group& group : warp.groups) {
      if (group.state != Group::State::for_registers) continue;
      const std::uint32_t missing = group.wanted - warp.registers;
      if (missing > free_registers_) continue;
      free_registers_ -= missing;
      warp.registers = group.wanted;
      group.state = Group::State::ready;
      if (ClusterTimeline* timeline = cluster_.timeline()) timeline->has_registers(warp);
    }
}

std::string Block::registers_text(const Warp& warp, std::uint32_t wanted) const {
  return fmt::format(
      "{} registers per thread: it has {}, and of the CTA's {} x {} registers {} are free", wanted,
      warp.registers, warps_.size() * 32, first_registers(), free_registers_ * 32);
}

}  // namespace tartan::inline TARTAN_ABI::emulator
