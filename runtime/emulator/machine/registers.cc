// SPDX-License-Identifier: Apache-2.0
// The registers that warps of a block give up and take: setmaxnreg.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/machine/cluster.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::string_view word(bool more) { return more ? "inc" : "dec"; }

}  // namespace

// PTX ISA, "setmaxnreg": all warps of a warpgroup execute the same ones.
bool Block::change_alike(Warp& warp, const RegisterChange& change) {
  auto& mine = register_changes_[warp.index];
  const std::size_t which = mine.size();
  mine.push_back(change);
  for (const Warp& other : warpgroup(warp)) {
    const auto& theirs = register_changes_[other.index];
    if (theirs.size() <= which) continue;
    const RegisterChange& same = theirs[which];
    if (same.count == change.count && same.more == change.more) continue;
    warp.fail("divergent-collective"_rule,
              fmt::format("setmaxnreg.{} {} in warp {}, but warp {} of its warpgroup executed "
                          "setmaxnreg.{} {} on {}: expected the same in all warps of a warpgroup",
                          word(change.more), change.count, warp.index, other.index, word(same.more),
                          same.count, where(same.pc)),
              0);
    return false;
  }
  return true;
}

void Block::warp_exited(Warp& warp) {
  if (!context_.program.largest_budget || cluster_.stopped()) return;
  const Warp* most = &warp;
  for (const Warp& other : warpgroup(warp)) {
    if (!other.done()) return;
    if (register_changes_[other.index].size() > register_changes_[most->index].size())
      most = &other;
  }
  const auto& all = register_changes_[most->index];
  for (const Warp& other : warpgroup(warp)) {
    const std::size_t done = register_changes_[other.index].size();
    if (done == all.size()) continue;
    return fail(warps_[most->index], all[done].pc, "divergent-collective"_rule,
                fmt::format("setmaxnreg.{} {} in warp {}, but warp {} of its warpgroup exited "
                            "without it: expected the same in all warps of a warpgroup",
                            word(all[done].more), all[done].count, most->index, other.index),
                0, 0);
  }
}

void Block::set_registers(Warp& warp, std::uint32_t count, bool more) {
  if (!change_alike(warp, {warp.pc - 1, count, more})) return;
  if (context_.program.most_registers == 0) return;  // not bounded: the assembler ignores it
  if (more ? count < warp.registers : count > warp.registers)
    return warp.fail("trap"_rule,
                     fmt::format("setmaxnreg.{} to {} registers in a warp that has {}", word(more),
                                 count, warp.registers),
                     0);
  if (!more) {
    free_registers_ += warp.registers - count;
    warp.registers = count;
    return hand_out_registers();
  }
  warp.wait_for_registers(count);
  cluster_.tell(&Events::waits_for_registers, warp, count);
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
      cluster_.tell(&Events::has_registers, warp);
    }
}

std::string Block::registers_text(const Warp& warp, std::uint32_t wanted) const {
  return fmt::format(
      "{} registers per thread: it has {}, and of the CTA's {} x {} registers {} are free", wanted,
      warp.registers, warps_.size() * 32, first_registers(), free_registers_ * 32);
}

}  // namespace tartan::TARTAN_ABI::emulator
