// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/polls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/schedules/retry.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;
using isa::operator""_q;

constexpr std::uint64_t longest_loop = 256;  // ops; work in between is no wait

constexpr std::uint8_t only_writes = 0xFF;

bool is_strong(const isa::Spelling& spelling) {
  constexpr isa::QualifierSet strong = "volatile mmio relaxed acquire release acq_rel cv";
  switch (spelling.opcode) {
    case Opcode::atom:
    case Opcode::red: return true;
    case Opcode::ld:
    case Opcode::st: return !(spelling.words & strong).empty();
    default: return false;
  }
}

bool reads(Opcode opcode) { return opcode == Opcode::ld || opcode == Opcode::atom; }

}  // namespace

std::uint64_t agent_of(std::uint64_t cluster, const Warp& warp, std::uint32_t lanes) {
  const auto lane = static_cast<std::uint64_t>(std::countr_zero(lanes));
  const std::uint64_t warps = warp.block->warps().size(), rank = warp.block->rank();
  return cluster << 32 | ((rank * warps + warp.index) * 32 + lane) << 1;
}

Polls::Polls(const LaunchContext& context)
    : context_(context), strong_(context.program.ops.size(), 0) {
  for (std::uint32_t pc = 0; pc < strong_.size(); ++pc) {
    const ptx::Instruction* const here = instruction_at(context, pc);
    // Of the ops of an instruction the last one accesses memory.
    if (!here || (pc + 1 < strong_.size() && instruction_at(context, pc + 1) == here)) continue;
    const isa::Spelling& spelling = context.module.spelling(*here);
    if (is_strong(spelling))
      strong_[pc] = reads(spelling.opcode)
                        ? static_cast<std::uint8_t>(std::max(1, isa::access_bits(spelling) / 8))
                        : only_writes;
  }
}

void Polls::begin_turn(std::uint64_t agent) {
  cluster_ = agent >> 32;
  ++turn_;
  cut_ = std::exchange(next_cut_, 0);
  spun_ = was_cut_ = false;
}

std::uint64_t Polls::hash(const std::vector<const std::byte*>& words, std::uint32_t bytes) {
  std::uint64_t out = 0xCBF29CE484222325;
  const auto add = [&](std::uint64_t value) {
    out = std::rotl((out ^ value) * 0x9E3779B97F4A7C15, 29);
  };
  for (const std::byte* word : words) {
    for (std::uint32_t i = 0; i < bytes; i += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, word + i, std::min<std::size_t>(8, bytes - i));
      add(value);
    }
  }
  return out;
}

void Polls::before(Warp& warp, const Op& op) {
  words_.clear();
  Access access;
  const std::uint32_t bytes = strong_[warp.pc - 1];
  if (bytes == only_writes || !resolve(warp, op, bytes, access)) return;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) words_.push_back(access.at[std::countr_zero(m)]);
  found_ = hash(words_, bytes);
}

void Polls::after(Warp& warp) {
  if (cut_ > 0 && --cut_ == 0) {
    was_cut_ = true;
    warp.yield();
  }
  if (words_.empty() || warp.block->stopped()) return;
  const std::uint32_t pc = warp.pc - 1;
  const std::uint32_t lanes = warp.group ? warp.group : warp.mask;
  Waits& waits = waits_[cluster_][agent_of(cluster_, warp, lanes)];
  if (hash(words_, strong_[pc]) != found_) return waits.clear();  // it did something
  auto last = std::ranges::find(waits, pc, &Poll::pc);
  if (last == waits.end()) last = waits.insert(last, Poll{.pc = pc});
  const bool same = last->turn && last->value == found_ && last->words == words_ &&
                    warp.steps - last->steps <= longest_loop;
  const bool comes_round = same && last->turn == turn_;
  spun_ |= same;
  last->length = comes_round ? warp.steps - last->steps : same ? last->length : 0;
  last->value = found_;
  last->words = words_;
  last->steps = warp.steps;
  last->turn = turn_;
  if (comes_round) warp.yield();
}

const Polls::Waits* Polls::waits(std::uint64_t agent) const {
  const auto cluster = waits_.find(agent >> 32);
  if (cluster == waits_.end()) return nullptr;
  const auto found = cluster->second.find(agent);
  return found == cluster->second.end() || found->second.empty() ? nullptr : &found->second;
}

// Of the places of its last turn.
bool Polls::changed(std::uint64_t agent) const {
  const Waits* const all = waits(agent);
  if (!all) return true;
  const std::uint64_t turn = std::ranges::max(*all, {}, &Poll::turn).turn;
  return std::ranges::any_of(*all, [&](const Poll& each) {
    return each.turn == turn && hash(each.words, strong_[each.pc]) != each.value;
  });
}

bool Polls::idles(std::uint64_t agent) const {
  const Waits* const all = waits(agent);
  if (!all) return false;
  const Poll& last = std::ranges::max(*all, {}, &Poll::turn);
  return last.length != 0 && emulator::idles(context_, last.pc + 1, last.length);
}

void Polls::forget(std::uint64_t cluster) { waits_.erase(cluster); }

}  // namespace tartan::TARTAN_ABI::emulator
