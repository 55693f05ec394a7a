// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/profile/profile.h"

#include <algorithm>
#include <bit>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/profile/requests.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::operator""_q;

constexpr std::uint64_t sector_bytes = 32;

void profiled(Warp& warp, const Op& op) {
  warp.block->cluster().find<LaunchProfile>()->run(warp, op);
}

// The executing lanes wait at the op for others, and will run it again.
bool parked(const Warp& warp, std::uint32_t pc) {
  return warp.leave && std::ranges::any_of(warp.groups, [&](const Group& group) {
           return group.state == Group::State::gathering && group.pc == pc;
         });
}

// Source of a cp.async: its address is in the list (decode_copy).
Op source_of(const Warp& warp, const Op& op) {
  const std::uint32_t* more = warp.program->slots.data() + op.list;
  Op source = op;
  source.a = op.b;
  source.value = more[0] | std::uint64_t{more[1]} << 32;
  source.wide = more[2];
  source.window = static_cast<Window>(more[3]);
  return source;
}

// Of sorted [first, last) ranges: bytes, each once, and sectors.
struct Touched {
  std::uint64_t bytes = 0, sectors = 0;
};

Touched touched(const std::uint64_t* at, std::uint32_t lanes, std::uint32_t bytes) {
  std::uint64_t first[32];
  std::size_t count = 0;
  for (std::uint32_t left = lanes; left; left &= left - 1)
    first[count++] = at[std::countr_zero(left)];
  std::sort(first, first + count);
  Touched out;
  std::uint64_t end = 0, next_sector = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t last = first[i] + bytes;
    if (last > end) out.bytes += last - std::max(end, first[i]);
    end = std::max(end, last);
    const std::uint64_t sector = std::max(next_sector, first[i] / sector_bytes);
    const std::uint64_t behind = (last - 1) / sector_bytes + 1;
    if (behind > sector) out.sectors += behind - sector;
    next_sector = std::max(next_sector, behind);
  }
  return out;
}

void count_global(GlobalAccesses& counts, const std::uint64_t* at, std::uint32_t lanes,
                  std::uint32_t bytes) {
  const Touched memory = touched(at, lanes, bytes);
  ++counts.requests;
  counts.sectors += memory.sectors;
  counts.minimum += (memory.bytes + sector_bytes - 1) / sector_bytes;
  counts.bytes += std::uint64_t{bytes} * static_cast<std::uint64_t>(std::popcount(lanes));
}

void sum_up(SharedAccesses& all, const SharedAccesses& more) {
  all.requests += more.requests;
  all.wavefronts += more.wavefronts;
  all.minimum += more.minimum;
  all.bytes += more.bytes;
  if (more.worst_wavefronts - more.worst_minimum <= all.worst_wavefronts - all.worst_minimum)
    return;
  all.worst_banks = more.worst_banks;
  all.worst_wavefronts = more.worst_wavefronts;
  all.worst_minimum = more.worst_minimum;
  all.cures = more.cures;
}

void sum_up(GlobalAccesses& all, const GlobalAccesses& more) {
  all.requests += more.requests;
  all.sectors += more.sectors;
  all.minimum += more.minimum;
  all.bytes += more.bytes;
}

ProfiledOp::Kind kind_of(const isa::Spelling& spelling, AccessKind access) {
  using Kind = ProfiledOp::Kind;
  switch (access) {
    case AccessKind::Loads:
    case AccessKind::Stores:
    case AccessKind::Changes:
    case AccessKind::Reduces: {
      constexpr isa::QualifierSet others = "local param param::entry param::func const";
      return (spelling.words & others).empty() ? Kind::Access : Kind::Plain;
    }
    case AccessKind::LoadsRows:
    case AccessKind::StoresRows: return Kind::Rows;
    case AccessKind::Copies: return Kind::Copy;
    case AccessKind::None:
    case AccessKind::ReplacesFields:
    case AccessKind::Orders: return Kind::Plain;
  }
  return Kind::Plain;
}

}  // namespace

LaunchProfile::LaunchProfile(const LaunchContext& context, RequestRecorder* recorder)
    : context_(context), recorder_(recorder), counts_(context.program.ops.size()) {
  if (!recorder) return;
  for (const NamedRange& each : context.program.shared_variables)
    recorder->place(each.name,
                    each.first + (each.dynamic ? context.program.dynamic_shared_base : 0));
}

void LaunchProfile::run(Warp& warp, const Op& op) {
  const std::uint32_t pc = warp.pc - 1;
  const ProfiledOp& what = (*warp.program->observation<ProfiledOps>())[pc];
  std::uint64_t at[32], from[32];
  if (what.kind != ProfiledOp::Kind::Plain) addresses(warp, op, at);
  Op source;
  if (what.kind == ProfiledOp::Kind::Copy) addresses(warp, source = source_of(warp, op), from);
  const std::uint64_t multiply_adds = warp.multiply_adds, copied = warp.copied;
  const bool diverged = warp.group != warp.live;
  std::uint32_t lanes = warp.mask;
  what.inner(warp, op);
  if (parked(warp, pc)) return;

  lanes |= warp.mask;
  Counts& counts = counts_[pc];
  if (what.first) {
    ++counts.executions;
    counts.lanes += static_cast<std::uint64_t>(std::popcount(lanes));
    counts.diverged += diverged;
  }
  counts.waits += warp.groups[warp.current].poll.pc == pc + 1;
  counts.multiply_adds += warp.multiply_adds - multiply_adds;
  counts.copied += warp.copied - copied;
  if (what.kind == ProfiledOp::Kind::Plain) return;
  count_access(counts, op.window, at, lanes & what.lanes, what);
  if (what.kind == ProfiledOp::Kind::Copy) count_access(counts, source.window, from, lanes, what);
}

void LaunchProfile::count_access(Counts& counts, Window window, const std::uint64_t* at,
                                 std::uint32_t lanes, const ProfiledOp& what) {
  const std::uint32_t bytes = what.bytes;
  const auto window_at = [&](int lane) {
    return window == Window::generic ? window_of(at[lane]) : window;
  };
  std::uint32_t shared = 0, global = 0;
  for (std::uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const Window where = window_at(lane);
    if (where == Window::shared || where == Window::cluster) shared |= std::uint32_t{1} << lane;
    if (where == Window::global) global |= std::uint32_t{1} << lane;
  }
  if (global) count_global(counts.global, at, global, bytes);
  if (!shared) return;
  SharedRequest request{.lanes = shared, .bytes = bytes, .load = what.load};
  std::ranges::copy_n(at, 32, request.at.begin());
  const Wavefronts now = wavefronts(request);
  SharedAccesses& sum = counts.shared;
  ++sum.requests;
  sum.wavefronts += now.all;
  sum.minimum += now.minimum;
  sum.bytes += std::uint64_t{bytes} * static_cast<std::uint64_t>(std::popcount(shared));
  const Wavefronts& worst = counts.worst_wavefronts;
  if (sum.requests > 1 && now.all - now.minimum <= worst.all - worst.minimum) return;
  counts.worst = request;
  counts.worst_wavefronts = now;
}

std::vector<InstructionProfile> LaunchProfile::instructions() const {
  std::vector<InstructionProfile> out;
  const Program& program = context_.program;
  for (std::uint32_t pc = 0; pc < counts_.size(); ++pc) {
    const Counts& counts = counts_[pc];
    const bool begins = (*program.observation<ProfiledOps>())[pc].first;
    if (!begins && out.empty()) continue;
    if (begins) {
      if (!counts.executions) continue;
      out.push_back({.kernel = program.name,
                     .opcode = std::string(opcode(context_, pc)),
                     .line = line(context_, pc),
                     .source = source(context_, pc)});
    }
    InstructionProfile& now = out.back();
    now.executions += counts.executions;
    now.lanes += counts.lanes;
    now.diverged += counts.diverged;
    now.waits += counts.waits;
    now.multiply_adds += counts.multiply_adds;
    now.copied_bytes += counts.copied;
    SharedAccesses shared = counts.shared;
    if (shared.requests && recorder_) {
      SharedRequest worst = counts.worst;
      for (std::uint64_t& address : worst.at) address %= window_bytes;
      recorder_->add(now.line, worst);
    }
    if (const Wavefronts& worst = counts.worst_wavefronts; worst.all > worst.minimum) {
      const auto by_bank = worst_phase(counts.worst);
      shared.worst_banks.assign(by_bank.begin(), by_bank.end());
      shared.worst_wavefronts = worst.all;
      shared.worst_minimum = worst.minimum;
      shared.cures = cures(counts.worst);
    }
    sum_up(now.shared, shared);
    sum_up(now.global, counts.global);
  }
  return out;
}

void ProfiledOps::decoded(Decoder& d, std::size_t first) {
  Program& program = d.program();
  ops_.resize(program.ops.size());
  for (std::size_t i = first; i < program.ops.size(); ++i) {
    ops_[i].inner = program.ops[i].run;
    program.ops[i].run = profiled;
  }
  ops_[first].first = true;
  const isa::Spelling& spelling = d.spelling.as_read();
  ProfiledOp& last = ops_.back();
  const AccessKind access = emulated(spelling).access;
  last.kind = kind_of(spelling, access);
  switch (last.kind) {
    case ProfiledOp::Kind::Plain: break;
    case ProfiledOp::Kind::Access:
      last.bytes = static_cast<std::uint8_t>(std::max(1, isa::access_bits(spelling) / 8));
      last.load = access == AccessKind::Loads;
      break;
    case ProfiledOp::Kind::Rows:
      last.bytes = spelling.type(1) == Type::s4 ? 8 : 16;
      last.lanes = spelling.has("x4"_q)   ? ~std::uint32_t{0}
                   : spelling.has("x2"_q) ? 0xFFFFu
                                          : 0xFFu;
      break;
    case ProfiledOp::Kind::Copy: last.bytes = program.ops.back().count; break;
  }
}

void add(std::vector<InstructionProfile>& all, const std::vector<InstructionProfile>& more) {
  for (const InstructionProfile& each : more) {
    const auto same = std::ranges::find_if(all, [&](const InstructionProfile& other) {
      return other.line == each.line && other.kernel == each.kernel && other.opcode == each.opcode;
    });
    if (same == all.end()) {
      all.push_back(each);
      continue;
    }
    same->executions += each.executions;
    same->lanes += each.lanes;
    same->diverged += each.diverged;
    same->waits += each.waits;
    same->multiply_adds += each.multiply_adds;
    same->copied_bytes += each.copied_bytes;
    sum_up(same->shared, each.shared);
    sum_up(same->global, each.global);
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
