// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "compiler/support/counted.h"
#include "runtime/emulator/machine/mbarrier.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::uint64_t longest_round = 64;  // ops of a loop that is looked into
constexpr std::size_t most_places = 8;       // in a message

using isa::Opcode;

// Instructions that compute their first operand from the others and nothing else; and waits.
constexpr Opcode register_only[] = {Opcode::mov,
                                    Opcode::setp,
                                    Opcode::set,
                                    Opcode::selp,
                                    Opcode::slct,
                                    Opcode::not_,
                                    Opcode::and_,
                                    Opcode::or_,
                                    Opcode::xor_,
                                    Opcode::add,
                                    Opcode::sub,
                                    Opcode::shl,
                                    Opcode::shr,
                                    Opcode::cvt,
                                    Opcode::cvt_pack,
                                    Opcode::cvta,
                                    Opcode::mul,
                                    Opcode::mad,
                                    Opcode::min,
                                    Opcode::max,
                                    Opcode::abs,
                                    Opcode::neg,
                                    Opcode::bfe,
                                    Opcode::bfi,
                                    Opcode::lop3,
                                    Opcode::prmt,
                                    Opcode::mbarrier_test_wait,
                                    Opcode::mbarrier_try_wait};
constexpr Opcode silent[] = {Opcode::bra,   Opcode::nanosleep,   Opcode::membar,
                             Opcode::fence, Opcode::fence_proxy, Opcode::fence_mbarrier_init};

// The rounds that lead from the op behind a wait back to it.
class Loop {
 public:
  Loop(const LaunchContext& context, std::uint32_t behind_wait, std::uint64_t length)
      : context_(context), start_(behind_wait), wait_(behind_wait - 1), length_(length) {}

  /// Whether all of them leave everything as it is.
  bool idle() {
    if (length_ == 0 || length_ > longest_round) return false;
    path_.assign(1, wait_);
    return walk(start_, length_ - 1) && rounds_ > 0;
  }

 private:
  const ptx::Instruction* instruction(std::uint32_t pc) const {
    const std::uint32_t offset = context_.program.origins[pc].offset;
    const auto& all = context_.module.instructions;
    const auto at = std::ranges::lower_bound(all, offset, {}, &ptx::Instruction::offset);
    return at == all.end() || at->offset != offset ? nullptr : &*at;
  }

  // `left` ops between `pc` and the wait.
  bool walk(std::uint32_t pc, std::uint64_t left) {
    if (left == 0) {
      if (pc != wait_) return true;
      ++rounds_;
      return rounds_ <= longest_round && leaves_all();
    }
    if (pc >= context_.program.ops.size() || pc == wait_) return true;
    const ptx::Instruction* here = instruction(pc);
    if (!here) return false;
    path_.push_back(pc);
    bool good = true;
    const bool branch = opcode_of(*here) == Opcode::bra;
    if (branch) good = walk(static_cast<std::uint32_t>(context_.program.ops[pc].value), left - 1);
    if (!branch || !here->guard.empty()) good = good && walk(pc + 1, left - 1);
    path_.pop_back();
    return good;
  }

  // No memory, no clocks, and no register that one round takes from the round before.
  bool leaves_all() const {
    std::unordered_set<std::string_view> written, later;
    for (const std::uint32_t pc : path_) collect(*instruction(pc), later);
    const ptx::Instruction* last = nullptr;
    for (const std::uint32_t pc : path_) {
      const ptx::Instruction* here = instruction(pc);
      if (here == last) continue;  // several ops of one instruction
      last = here;
      if (!is_idle(*here, written, later)) return false;
      collect(*here, written);
    }
    return true;
  }

  Opcode opcode_of(const ptx::Instruction& instruction) const {
    return context_.module.spelling(instruction).opcode;
  }
  bool writes(const ptx::Instruction& instruction) const {
    return std::ranges::count(register_only, opcode_of(instruction)) > 0;
  }

  void collect(const ptx::Instruction& instruction,
               std::unordered_set<std::string_view>& out) const {
    if (writes(instruction) && instruction.count > 0)
      each_name(context_.module.operands[instruction.first],
                [&](std::string_view name) { out.insert(name); });
  }

  template <typename Body>
  void each_name(const ptx::Operand& operand, Body&& body) const {
    if (operand.kind == ptx::OperandKind::Name) body(operand.text);
    for (const ptx::Operand& child : context_.module.children(operand)) each_name(child, body);
  }

  bool is_idle(const ptx::Instruction& here, const std::unordered_set<std::string_view>& written,
               const std::unordered_set<std::string_view>& later) const {
    const bool writing = writes(here);
    if (!writing && std::ranges::count(silent, opcode_of(here)) == 0) return false;
    bool good = true;
    const auto read = [&](std::string_view name) {
      const isa::SpecialRegisterRow* const special = isa::find_special_register(name);
      if (special && special->varies) good = false;
      if (later.contains(name) && !written.contains(name)) good = false;
    };
    if (!here.guard.empty()) read(here.guard);
    const auto operands = context_.module.operands_of(here);
    // A guarded write keeps the old value at times.
    const bool keeps = !writing || !here.guard.empty();
    for (std::size_t i = keeps ? 0 : 1; i < operands.size(); ++i) each_name(operands[i], read);
    return good;
  }

  const LaunchContext& context_;
  std::uint32_t start_, wait_;
  std::uint64_t length_;
  std::vector<std::uint32_t> path_;
  std::uint64_t rounds_ = 0;
};

// Threads that wait for the same thing at the same place.
struct WaitingThreads {
  Block* block;
  Warp* warp;
  std::uint32_t pc;
  std::string what;
  int threads;
  int lane;
  std::uint64_t address;
};

std::string mbarrier_text(Warp& warp, const Group::Poll& poll) {
  std::string text =
      fmt::format("the end of phase parity {1:d} of mbarrier 0x{0:x}", poll.address, poll.parity);
  Block& block = *warp.block;
  const std::uint64_t at = poll.address & shared_offset_mask;
  if (at + 8 > block.shared_bytes()) return text;
  const Mbarrier barrier = Mbarrier::load(block.shared() + at);
  const std::string bytes = barrier.transactions < 0
                                ? fmt::format("{} bytes more than expected", -barrier.transactions)
                                : detail::counted(barrier.transactions, "byte");
  return text + fmt::format(" (current phase parity {:d}; pending: {}, {})", barrier.phase,
                            detail::counted(barrier.pending, "arrival"), bytes);
}

class Waiting {
 public:
  explicit Waiting(Cluster& cluster) : cluster_(cluster) {}

  /// False if some lanes may go on.
  bool collect() {
    for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank)
      for (Warp& warp : cluster_.block(rank).warps())
        for (const Group& group : warp.groups)
          if (!warp.done() && !add(warp, group)) return false;
    return !places_.empty();
  }

  void report() {
    std::string text = cluster_.size() > 1 ? "deadlock, no thread of the cluster can proceed: "
                                           : "deadlock, no thread of the CTA can proceed: ";
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (i == most_places) {
        text += fmt::format("; and {} more places", places_.size() - i);
        break;
      }
      WaitingThreads& place = places_[i];
      const Dim3 at = place.block->place();
      if (i > 0) text += "; ";
      if (cluster_.size() > 1) text += fmt::format("CTA {},{},{}: ", at.x, at.y, at.z);
      text += fmt::format("{} thread{} at {} for {}", place.threads,
                          place.threads == 1 ? " waits" : "s wait", place.block->where(place.pc),
                          place.what);
    }
    const WaitingThreads& first = places_.front();
    first.block->fail(*first.warp, first.pc, "deadlock"_rule, std::move(text), first.lane,
                      first.address);
  }

 private:
  bool add(Warp& warp, const Group& group) {
    WaitingThreads place{.block = warp.block,
                         .warp = &warp,
                         .pc = group.pc - 1,
                         .threads = std::popcount(group.mask),
                         .lane = std::countr_zero(group.mask),
                         .address = 0};
    switch (group.state) {
      case Group::State::ready:
        if (group.poll.pc == 0 || group.poll.steps > longest_round ||
            !Loop(warp.block->context(), group.poll.pc, group.poll.length).idle())
          return false;
        place.pc = group.poll.pc - 1;
        place.address = group.poll.address;
        place.what = mbarrier_text(warp, group.poll);
        break;
      case Group::State::gathering:
        place.pc = group.pc;
        place.what = fmt::format("lanes 0x{:08x} of its warp",
                                 group.required & warp.live & ~warp.gathered(group));
        break;
      case Group::State::at_barrier:
        place.what = fmt::format("barrier {}, which {}", group.barrier,
                                 warp.block->barrier_text(group.barrier));
        break;
      case Group::State::in_warpgroup: place.what = "the other warps of the warpgroup"; break;
      case Group::State::for_registers:
        place.what = warp.block->registers_text(warp, group.wanted);
        break;
      case Group::State::at_cluster: place.what = "all threads of the cluster to arrive"; break;
    }
    const auto same = std::ranges::find_if(places_, [&](const WaitingThreads& other) {
      return other.block == place.block && other.pc == place.pc && other.what == place.what;
    });
    if (same == places_.end()) places_.push_back(std::move(place));
    else same->threads += place.threads;
    return true;
  }

  Cluster& cluster_;
  std::vector<WaitingThreads> places_;
};

}  // namespace

void report_waiting(Cluster& cluster) {
  Waiting waiting(cluster);
  if (waiting.collect()) waiting.report();
}

}  // namespace tartan::inline TARTAN_ABI::emulator
