// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/definedness/definedness.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "runtime/emulator/definedness/flow_rules.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/trial.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t origin_bytes = 4;  // of memory, that have one origin

bool within(const std::byte* at, const std::byte* first, std::uint64_t bytes) {
  return !std::less<>()(at, first) && std::less<>()(at, first + bytes);
}

// Where the account of a word's origin is kept.
const std::byte* word_of(const std::byte* bits) {
  return bits - reinterpret_cast<std::uintptr_t>(bits) % origin_bytes;
}

// Variables; what is on the stack counts as written.
std::uint64_t variables_of(const Program& program) {
  return program.stack_slot ? program.stack_begin : program.local_bytes;
}

}  // namespace

ClusterDefinedness::ClusterDefinedness(Cluster& cluster, LaunchDefinedness& launch)
    : cluster_(cluster), launch_(launch) {
  const std::size_t warps = cluster.block(0).warps().size();
  const Program& program = cluster.block(0).context().program;
  shared_.resize(cluster.size());
  for (auto& each : shared_) each.resize(cluster.block(0).shared_bytes());
  tensor_.resize(cluster.size());
  for (auto& each : tensor_)
    if (program.uses_tensor_memory)
      each.resize(std::size_t{TensorMemory::lanes} * TensorMemory::columns);
  locals_.resize(cluster.size() * warps);
  for (auto& each : locals_) each.resize(32 * variables_of(program));
  registers_.resize(cluster.size() * warps);
}

LaunchDefinedness::LaunchDefinedness(const LaunchContext& context)
    : reports(context),
      poisoned(context.trial && context.trial->poisons ? context.trial : nullptr),
      grid(context.grid) {}

void LaunchDefinedness::attach(Cluster& cluster) {
  cluster.add(std::make_unique<ClusterDefinedness>(cluster, *this));
}

void ClusterDefinedness::start() {
  const std::byte unwritten{launch_.poisoned ? std::uint8_t{0} : std::uint8_t{0xFF}};
  for (auto& each : shared_) std::ranges::fill(each, unwritten);
  for (auto& each : locals_) std::ranges::fill(each, unwritten);
  for (auto& each : tensor_) std::ranges::fill(each, launch_.poisoned ? 0u : ~0u);
  origins_.clear();
  recent_ = nullptr;
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank)
    for (Warp& warp : cluster_.block(rank).warps()) {
      shadow(warp).start(*warp.program, launch_.poisoned ? std::span<const UnwrittenRegister>()
                                                         : warp.program->unwritten);
      settle(warp);
    }
}

RegisterShadow& ClusterDefinedness::shadow(Warp& warp) {
  return registers_[warp.block->rank() * warp.block->warps().size() + warp.index];
}

const isa::Spelling& ClusterDefinedness::spelling(const InstructionOps& now) const {
  const ptx::Module& module = cluster_.block(0).context().module;
  return module.spelling(module.instructions[now.instruction]);
}

Flow ClusterDefinedness::flow(const InstructionOps& now) const {
  const Program& program = cluster_.block(0).context().program;
  return (*program.observation<Flows>())[static_cast<std::size_t>(
      &now - program.registers.instructions.data())];
}

// ---- Memory.

ClusterDefinedness::Piece ClusterDefinedness::piece(Warp& warp, const std::byte* host) {
  using Place = UndefinedOrigin::Place;
  const std::uint32_t own = warp.block->rank();
  for (std::uint32_t i = 0, rank = own; i < cluster_.size(); ++i, ++rank) {
    if (rank == cluster_.size()) rank = 0;
    Block& block = cluster_.block(rank);
    if (!within(host, block.shared(), block.shared_bytes())) continue;
    const auto at = static_cast<std::uint64_t>(host - block.shared());
    return {shared_[rank].data() + at, Place::shared, at};
  }
  const Program& program = *warp.program;
  if (within(host, warp.local, 32 * warp.local_step)) {
    const auto at = static_cast<std::uint64_t>(host - warp.local);
    const std::uint64_t lane = at / warp.local_step, inside = at % warp.local_step;
    const std::uint64_t bytes = variables_of(program);
    if (inside >= bytes) return {};
    auto& shadow = locals_[own * warp.block->warps().size() + warp.index];
    return {shadow.data() + lane * bytes + inside, Place::local, inside};
  }
  if (!recent_ || !within(host, recent_->host, recent_->bytes))
    recent_ = warp.block->memory().find_host(host);
  if (!recent_ || !recent_->undefined) return {};
  const auto at = static_cast<std::uint64_t>(host - recent_->host);
  return {recent_->undefined + at, Place::global, recent_->address + at};
}

bool ClusterDefinedness::any_undefined(const Piece& piece, std::uint64_t bytes) const {
  if (!piece.bits) return false;
  std::uint64_t i = 0, any = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, piece.bits + i, 8);
    any |= word;
  }
  for (; i < bytes; ++i) any |= static_cast<std::uint64_t>(piece.bits[i]);
  return any != 0;
}

bool ClusterDefinedness::defined_in_shared(Warp& warp, std::uint32_t lanes, std::byte* const* at,
                                           std::uint64_t bytes) const {
  if (bytes != 4 && bytes != 8 && bytes != 16) return false;
  const std::byte* const memory = warp.block->shared();
  const std::vector<std::byte>& bits = shared_[warp.block->rank()];
  std::uint64_t any = 0;
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    const auto offset = static_cast<std::uint64_t>(at[std::countr_zero(m)] - memory);
    if (offset >= bits.size() || bits.size() - offset < bytes) return false;
    std::uint64_t words[2] = {};
    if (bytes == 4) std::memcpy(words, bits.data() + offset, 4);
    else if (bytes == 8) std::memcpy(words, bits.data() + offset, 8);
    else std::memcpy(words, bits.data() + offset, 16);
    any |= words[0] | words[1];
  }
  return !any;
}

void ClusterDefinedness::fill(Warp& warp, const std::byte* to, std::uint64_t bytes) {
  if (const Piece at = piece(warp, to); at.bits) std::memset(at.bits, 0, bytes);
}

void ClusterDefinedness::move(Warp& warp, std::byte* to, const std::byte* from,
                              std::uint64_t bytes) {
  const Piece source = piece(warp, from), target = piece(warp, to);
  if (!target.bits) return;
  if (!source.bits || !any_undefined(source, bytes))
    return void(std::memset(target.bits, 0, bytes));
  const std::uint32_t came_from = origin(warp, source, 0);
  std::memmove(target.bits, source.bits, bytes);
  remember(target.bits, bytes, came_from);
}

void ClusterDefinedness::store(Warp& warp, int lane, const StoredBytes& stored) {
  const std::uint64_t bytes = stored.bytes;
  const auto l = static_cast<std::uint32_t>(lane);
  const Piece source = piece(warp, stored.from), target = piece(warp, stored.to);
  if (target.bits && target.place != UndefinedOrigin::Place::global)
    return move(warp, stored.to, stored.from, bytes);
  if (source.bits && any_undefined(source, bytes)) {
    for (std::uint64_t i = 0; i < bytes; ++i)
      if (source.bits[i] != std::byte{0}) {
        const Piece first{source.bits + i, source.place, source.address + i};
        report(warp, l, origin(warp, first, l), "what is copied to global memory");
        break;
      }
    std::memset(source.bits, 0, bytes);
  }
  if (target.bits) std::memset(target.bits, 0, bytes);
}

std::uint32_t ClusterDefinedness::origin(Warp& warp, const Piece& piece, std::uint32_t) {
  if (const auto found = origins_.find(word_of(piece.bits)); found != origins_.end())
    return found->second;
  return launch_.reports.origin(
      {.place = piece.place, .address = piece.address, .pc = warp.pc - 1});
}

void ClusterDefinedness::remember(const std::byte* bits, std::uint64_t bytes,
                                  std::uint32_t origin) {
  for (const std::byte* at = word_of(bits); at < bits + bytes; at += origin_bytes)
    origins_[at] = origin;
}

// ---- Registers.

std::uint32_t ClusterDefinedness::origin(Warp& warp, const RegisterUse& use, std::uint32_t lane) {
  const std::uint32_t known = shadow(warp).origin(use.slot, register_bits(use.type), lane);
  if (known) return known;
  return launch_.reports.origin(
      {.place = UndefinedOrigin::Place::register_, .slot = use.slot, .pc = warp.pc - 1});
}

void ClusterDefinedness::report(Warp& warp, std::uint32_t lane, std::uint32_t origin,
                                std::string_view what) {
  if (launch_.poisoned) {
    const UndefinedOrigin& from = launch_.reports.of(origin);
    return from.place == UndefinedOrigin::Place::race
               ? launch_.poisoned->reads.use(launch_.grid, from.pc)
               : launch_.poisoned->reads.give_up();
  }
  launch_.reports.add({.origin = origin,
                       .pc = warp.pc - 1,
                       .what = what,
                       .block = warp.block->place(),
                       .warp = warp.index,
                       .lane = lane});
}

bool ClusterDefinedness::touches_undefined(Warp& warp, const InstructionOps& now) {
  const RegisterShadow& bits = shadow(warp);
  return std::ranges::any_of(warp.program->registers.uses_of(now), [&](const RegisterUse& use) {
    return !use.constant && bits.holds(use.slot);
  });
}

void ClusterDefinedness::run(Warp& warp, const Op& op) {
  const InstructionOps* now = warp.program->registers.starting_at(warp.pc - 1);
  if (!now) return;
  if (!warp.undefined || !touches_undefined(warp, *now)) {
    const Flow flow = this->flow(*now);
    if (!op.examined || access_defined(warp, op, flow)) return;
  }
  FlowRules(*this, warp, *now).before();
  settle(warp);
}

void ClusterDefinedness::gathered(Warp& warp, std::uint32_t pc) {
  const InstructionOps* now = warp.program->registers.at(pc);
  if (!now) return;
  FlowRules(*this, warp, *now).gathered();
  settle(warp);
}

void ClusterDefinedness::gathered_apart(Warp& warp, std::span<const GatheredPlace> places) {
  std::uint32_t from = 0;
  for (const GatheredPlace& each : places)
    if (const InstructionOps* now = warp.program->registers.at(each.pc); now && !from)
      from = FlowRules(*this, warp, *now).undefined_source(each.lanes).value_or(0);
  for (const GatheredPlace& each : places)
    if (const InstructionOps* now = warp.program->registers.at(each.pc))
      FlowRules(*this, warp, *now).set_results(each.lanes, from);
  settle(warp);
}

void ClusterDefinedness::shuffle(Warp& warp, const Op& op, const std::uint32_t (&from)[32]) {
  const auto* const members = lanes<std::uint32_t>(warp, op.e);
  const auto is_named = [&](int lane) { return (members[lane] >> (from[lane] & 31) & 1) != 0; };
  if (!warp.undefined && lanes_where(warp.mask, is_named) == warp.mask) return;
  RegisterShadow& bits = shadow(warp);
  std::uint32_t out[32] = {}, origins[32] = {};
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    const std::uint32_t other = from[lane] & 31;
    if (!(members[lane] >> other & 1)) {
      out[lane] = ~0u;
      origins[lane] = launch_.reports.origin(
          {.place = UndefinedOrigin::Place::lane, .address = other, .pc = warp.pc - 1});
      continue;
    }
    out[lane] = static_cast<std::uint32_t>(bits.get(op.a, 32, other));
    if (out[lane]) origins[lane] = origin(warp, {.slot = op.a, .type = Type::b32}, other);
  }
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    bits.set(op.d, 32, lane, out[lane]);
    if (out[lane]) bits.origin(op.d, 32, lane) = origins[lane];
  }
  bits.settle(op.d, 32);
  if (op.flags & 1) bits.clear(op.list, 1, warp.mask);
  settle(warp);
}

namespace {
Type type_of_width(int width) {
  return width == 1 ? Type::pred : width == 64 ? Type::b64 : Type::b32;
}
}  // namespace

void ClusterDefinedness::copy_register(Warp& warp, std::uint32_t to, std::uint32_t from,
                                       int width) {
  RegisterShadow& bits = shadow(warp);
  if (!bits.holds(from)) return define(warp, to, width, warp.mask);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    bits.set(to, width, lane, bits.get(from, width, lane));
    bits.origin(to, width, lane) = origin(warp, {.slot = from, .type = type_of_width(width)}, lane);
  }
  bits.settle(to, width);
  settle(warp);
}

void ClusterDefinedness::poison(Warp& warp, std::uint32_t lanes, std::uint32_t pc) {
  const InstructionOps* const now = warp.program->registers.at(warp.pc - 1);
  const Flow flow = now ? this->flow(*now) : Flow::Uses;
  if (flow != Flow::Loads && flow != Flow::LoadsRows)
    return launch_.poisoned->reads.use(launch_.grid, pc);
  launch_.poisoned->reads.follow(launch_.grid, pc);
  FlowRules(*this, warp, *now)
      .set_results(lanes,
                   launch_.reports.origin({.place = UndefinedOrigin::Place::race, .pc = pc}));
  settle(warp);
}

void ClusterDefinedness::define(Warp& warp, std::uint32_t slot, int bits, std::uint32_t lanes) {
  if (!warp.undefined) return;
  shadow(warp).clear(slot, bits, lanes);
  settle(warp);
}

}  // namespace tartan::TARTAN_ABI::emulator
