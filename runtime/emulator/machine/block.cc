// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/trial.h"
#include "runtime/emulator/watch.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::uint32_t slice_ops = 4096;

// How far behind `storage` the next multiple of `alignment` is.
std::size_t shift_of(const std::byte* storage) {
  return (alignment - reinterpret_cast<std::uintptr_t>(storage) % alignment) % alignment;
}

// Room for `bytes` at a multiple of `alignment` inside `storage`; gives the shift to it.
std::size_t make_room(std::vector<std::byte>& storage, std::size_t bytes) {
  storage.resize(bytes + alignment);
  return shift_of(storage.data());
}

std::uint64_t shared_bytes_of(const LaunchContext& context) {
  const Program& program = context.program;
  const std::uint64_t dynamic = context.launch.dynamic_shared;
  return dynamic ? program.dynamic_shared_base + dynamic : program.shared_bytes;
}

std::uint64_t local_step_of(const Program& program) {
  return (std::uint64_t{program.local_bytes} + 15) / 16 * 16;
}

}  // namespace

std::uint64_t Block::shared_bytes(const LaunchContext& context) { return shared_bytes_of(context); }

std::uint64_t Block::host_bytes(const LaunchContext& context) {
  const std::uint64_t warps = (context.launch.block.count() + 31) / 32;
  // Few kernels use more than a page of a stack.
  constexpr std::uint64_t usual_stack = 4096;
  const Program& program = context.program;
  const std::uint64_t local =
      local_step_of(program) - (program.stack_slot ? stack_bytes - usual_stack : 0);
  const std::uint64_t of_warp = program.arena.size() + 32 * local;
  // The race detector keeps about as much for each 16 bytes as they are.
  const std::uint64_t tensor = program.uses_tensor_memory ? TensorMemory::bytes : 0;
  return warps * of_warp + (program.ordered ? 3 : 1) * (shared_bytes_of(context) + tensor);
}

Block::Block(LaunchContext& context, Cluster& cluster, std::uint32_t rank)
    : context_(context),
      cluster_(cluster),
      rank_(rank),
      own_place_(context.cluster.count() > 1 ? place_of_rank(rank) : 0) {
  const Program& program = context.program;
  const std::uint64_t threads = context.launch.block.count();
  const std::size_t count = (threads + 31) / 32;
  shared_bytes_ = shared_bytes_of(context);
  arena_shift_ = make_room(arenas_, program.arena.size() * count);
  shared_shift_ = make_room(shared_, shared_bytes_);
  const std::size_t lane_bytes = local_step_of(program);
  const std::size_t local_bytes = lane_bytes * 32 * count + alignment;
  locals_.reset(static_cast<std::byte*>(std::calloc(local_bytes, 1)));
  if (!locals_) throw std::bad_alloc();
  local_shift_ = shift_of(locals_.get());
  warps_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    Warp& warp = warps_[i];
    warp.block = this;
    warp.program = &program;
    warp.index = static_cast<std::uint32_t>(i);
    warp.arena = arenas_.data() + arena_shift_ + i * program.arena.size();
    warp.local = locals_.get() + local_shift_ + i * 32 * lane_bytes;
    warp.local_step = lane_bytes;
    warp.stack_top = program.stack_begin;
  }
  for (Barrier& barrier : barriers_) barrier.arrived.resize(count);
  if (program.uses_tensor_memory) tensor_ = std::make_unique<TensorMemory>();
  if (!program.warpgroup_operations.empty())
    warpgroups_.resize((count + warps_of_warpgroup - 1) / warps_of_warpgroup);
}

void Block::fill_columns(std::uint32_t first, std::uint32_t count) {
  if (!context_.trial || !context_.trial->contents) return;
  for (int lane = 0; lane < TensorMemory::lanes; ++lane)
    context_.trial->contents->fill(
        std::as_writable_bytes(std::span(&tensor_->cell(lane, static_cast<int>(first)), count)));
}

void Block::start(Dim3 place) {
  place_ = place;
  recheck_ = false;
  std::ranges::fill(shared_, std::byte{0});
  const bool fills = context_.trial && context_.trial->contents;
  if (fills) context_.trial->contents->fill({shared(), shared_bytes_});
  for (Barrier& barrier : barriers_) {
    barrier.pending = false;
    for (auto& each : barrier.arrived) each.clear();
  }
  std::ranges::fill(warpgroups_, Warpgroup{});
  if (tensor_) {
    tensor_->start();
    fill_columns(0, TensorMemory::columns);
  }
  register_changes_.assign(warps_.size(), {});
  free_registers_ = 0;
  const std::uint32_t registers = first_registers();
  const std::uint64_t threads = context_.launch.block.count();
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    const std::uint64_t left = threads - 32 * i;
    std::memcpy(warps_[i].arena, context_.program.arena.data(), context_.program.arena.size());
    warps_[i].start(left >= 32 ? all_lanes : (std::uint32_t{1} << left) - 1);
    warps_[i].registers = registers;
    fill_specials(warps_[i]);
    clear_local(warps_[i]);
    if (fills) fill_unwritten(warps_[i]);
    if (own_place_)
      for (const SharedSlot& each : context_.program.shared_slots)
        move_address(warps_[i].arena, each, own_place_);
  }
}

// In the steps in which a multiprocessor gives it out.
std::uint32_t Block::allotted_shared() const {
  const std::uint64_t step = context_.multiprocessor.shared_step;
  return static_cast<std::uint32_t>((shared_bytes_ + step - 1) / step * step);
}

// %envreg<1> and <2>: the address that grid.sync() of cooperative groups has its barrier at.
std::uint32_t environment(const LaunchContext& context, std::uint32_t index) {
  if (index == 1) return static_cast<std::uint32_t>(context.workspace >> 32);
  return index == 2 ? static_cast<std::uint32_t>(context.workspace) : 0;
}

std::uint64_t Block::special(isa::SpecialRegister which, std::uint32_t warp,
                             std::uint32_t lane) const {
  const Dim3 block = context_.launch.block, grid = context_.launch.grid, size = context_.cluster;
  const std::uint32_t thread = warp * 32 + lane;
  using isa::SpecialRegister;
  switch (which) {
    case SpecialRegister::tid_x: return thread % block.x;
    case SpecialRegister::tid_y: return thread / block.x % block.y;
    case SpecialRegister::tid_z: return thread / block.x / block.y;
    case SpecialRegister::ntid_x: return block.x;
    case SpecialRegister::ntid_y: return block.y;
    case SpecialRegister::ntid_z: return block.z;
    case SpecialRegister::ctaid_x: return place_.x;
    case SpecialRegister::ctaid_y: return place_.y;
    case SpecialRegister::ctaid_z: return place_.z;
    case SpecialRegister::nctaid_x: return grid.x;
    case SpecialRegister::nctaid_y: return grid.y;
    case SpecialRegister::nctaid_z: return grid.z;
    case SpecialRegister::laneid: return lane;
    case SpecialRegister::warpid: return warp;
    case SpecialRegister::nwarpid: return context_.multiprocessor.warps;
    case SpecialRegister::lanemask_eq: return 1u << lane;
    case SpecialRegister::lanemask_lt: return (1u << lane) - 1;
    case SpecialRegister::lanemask_le: return ((1u << lane) - 1) | 1u << lane;
    case SpecialRegister::lanemask_gt: return ~(((1u << lane) - 1) | 1u << lane);
    case SpecialRegister::lanemask_ge: return ~((1u << lane) - 1);
    case SpecialRegister::clusterid_x: return place_.x / size.x;
    case SpecialRegister::clusterid_y: return place_.y / size.y;
    case SpecialRegister::clusterid_z: return place_.z / size.z;
    case SpecialRegister::nclusterid_x: return grid.x / size.x;
    case SpecialRegister::nclusterid_y: return grid.y / size.y;
    case SpecialRegister::nclusterid_z: return grid.z / size.z;
    case SpecialRegister::cluster_ctaid_x: return place_.x % size.x;
    case SpecialRegister::cluster_ctaid_y: return place_.y % size.y;
    case SpecialRegister::cluster_ctaid_z: return place_.z % size.z;
    case SpecialRegister::cluster_nctaid_x: return size.x;
    case SpecialRegister::cluster_nctaid_y: return size.y;
    case SpecialRegister::cluster_nctaid_z: return size.z;
    case SpecialRegister::cluster_ctarank: return rank_;
    case SpecialRegister::cluster_nctarank: return static_cast<std::uint32_t>(size.count());
    case SpecialRegister::is_explicit_cluster: return context_.explicit_cluster;
    case SpecialRegister::dynamic_smem_size: return context_.launch.dynamic_shared;
    case SpecialRegister::total_smem_size: return allotted_shared();
    case SpecialRegister::aggr_smem_size:
      return shared_bytes_ + context_.multiprocessor.shared_reserved;
    case SpecialRegister::reserved_smem_offset_end: return context_.multiprocessor.reserved_end;
    case SpecialRegister::reserved_smem_offset_cap: return context_.multiprocessor.shared_reserved;
    case SpecialRegister::nsmid: return context_.multiprocessor.count;
    case SpecialRegister::smid:
      return (place_.x + grid.x * (place_.y + std::uint64_t{grid.y} * place_.z)) %
             context_.multiprocessor.count;
    case SpecialRegister::gridid: return context_.grid;
    case SpecialRegister::reserved_smem_offset_begin: return 0;
    // Nobody has asked for any of it, and there is no graph.
    case SpecialRegister::reserved_smem_offset_0:
    case SpecialRegister::reserved_smem_offset_1:
    case SpecialRegister::current_graph_exec: return 0;
    case SpecialRegister::envreg: break;
    // Read by mov when it runs, constants, or refused by the decoder: they have no slots.
    default: assert(which > SpecialRegister::envreg); break;
  }
  return environment(context_, static_cast<std::uint32_t>(which) -
                                   static_cast<std::uint32_t>(SpecialRegister::envreg));
}

void Block::fill_specials(Warp& warp) {
  for (const SpecialSlot& slot : context_.program.specials) {
    std::uint32_t holds = 0;
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const std::uint64_t value = special(slot.which, warp.index, lane);
      holds |= std::uint32_t{value != 0} << lane;
      if (slot.width == 64) lanes<std::uint64_t>(warp, slot.slot)[lane] = value;
      if (slot.width == 32)
        lanes<std::uint32_t>(warp, slot.slot)[lane] = static_cast<std::uint32_t>(value);
    }
    if (slot.width == 1) predicate(warp, slot.slot) = holds;
  }
}

// Variables, and what was taken of the stacks.
void Block::clear_local(Warp& warp) {
  const Program& program = context_.program;
  if (!program.stack_slot) {
    std::memset(warp.local, 0, 32 * warp.local_step);
    return;
  }
  for (std::size_t lane = 0; lane < 32; ++lane)
    std::memset(warp.local + lane * warp.local_step, 0, warp.stack_top);
  warp.stack_top = program.stack_begin;
}

// Registers and local memory in which nobody has written, of a launch that has something else there
// than zeros. What is on the stack counts as written.
void Block::fill_unwritten(Warp& warp) {
  detail::Contents& contents = *context_.trial->contents;
  const Program& program = context_.program;
  for (const UnwrittenRegister& each : program.unwritten) {
    std::byte* const first = warp.arena + each.slot;
    if (each.bits == 1) {
      contents.fill({first, 4});
      continue;
    }
    const std::size_t step = each.bits / 8, used = std::max<std::size_t>(each.used / 8, 1);
    for (std::size_t at = 0; at < 32 * step; at += step) contents.fill({first + at, used});
  }
  const std::size_t variables = program.stack_slot ? program.stack_begin : program.local_bytes;
  for (std::size_t lane = 0; lane < 32; ++lane)
    contents.fill({warp.local + lane * warp.local_step, variables});
}

bool Block::done() const { return std::ranges::all_of(warps_, &Warp::done); }
bool Block::stopped() const { return cluster_.stopped(); }

void Block::report_limit(Warp& warp, const Rule& rule, std::string message) {
  fail(warp, warp.first_pc(), rule, std::move(message), -1, 0);
}

bool Block::within_limits(Warp& warp) {
  detail::Watch* const watch = context_.watch;
  if (watch && watch->wants_line()) watch->set_line(line(warp.first_pc()));
  if (watch && watch->stopped()) report_limit(warp, "interrupted"_rule, "interrupted");
  else if (warp.steps >= context_.max_steps)
    report_limit(warp, "step-limit"_rule,
                 fmt::format("warp {} has issued {} instructions without finishing", warp.index,
                             warp.steps));
  else if (context_.deadline && std::chrono::steady_clock::now() >= *context_.deadline)
    report_limit(warp, "time-limit"_rule, "the launch has not finished within the time limit");
  return !stopped();
}

// `ops`, or as many as the limit allows.
std::uint32_t Block::slice(const Warp& warp, std::uint32_t ops) const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(ops, context_.max_steps - warp.steps));
}

Block::Turn Block::run_turn() {
  bool alive = false, ran = false, progressed = false;
  for (Warp& warp : warps_) {
    if (warp.done()) continue;
    if (!within_limits(warp)) return Turn::done;
    const bool now = warp.run(slice(warp, slice_ops));
    if (stopped()) return Turn::done;
    if (recheck_) recheck();
    ran |= now;
    progressed |= now && !warp.only_polled;
    alive |= !warp.done();
  }
  if (!alive && done()) return Turn::done;
  return progressed ? Turn::progressed : ran ? Turn::polled : Turn::parked;
}

void Block::run_group(Warp& warp, std::size_t group, std::uint32_t instructions) {
  if (!within_limits(warp)) return;
  warp.run_group(group, slice(warp, instructions));
  if (recheck_ && !stopped()) recheck();
}

void Block::count(Report& report) const {
  for (const Warp& warp : warps_) {
    report.warp_instructions += warp.steps;
    report.lane_instructions += warp.lane_steps;
    report.multiply_adds += warp.multiply_adds;
  }
}

// Barriers count whole warps: lanes that do not exist or have exited count with their warp. A
// warp that arrives again in the same phase, after bar.arrive, counts again.
bool Block::complete(const Barrier& barrier) const {
  std::uint32_t threads = 0, expected = barrier.expected;
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    const std::uint32_t live = warps_[i].live;
    for (const std::uint32_t arrived : barrier.arrived[i])
      threads += live & ~arrived ? static_cast<std::uint32_t>(std::popcount(arrived)) : 32;
    if (!barrier.expected && (live || !barrier.arrived[i].empty())) expected += 32;
  }
  return threads >= expected;
}

void Block::arrive(Warp& warp, std::uint32_t id, std::uint32_t expected, bool wait,
                   std::uint32_t votes) {
  Barrier& barrier = barriers_[id];
  if (!barrier.pending) {
    barrier.pending = true;
    barrier.votes = barrier.voters = 0;
    for (auto& each : barrier.arrived) each.clear();
  }
  barrier.expected = expected;
  std::uint32_t left = warp.mask;
  for (std::uint32_t& arrived : barrier.arrived[warp.index])
    arrived = std::exchange(left, left & arrived) | arrived;
  if (left) barrier.arrived[warp.index].push_back(left);
  barrier.votes += static_cast<std::uint32_t>(std::popcount(votes & warp.mask));
  barrier.voters += static_cast<std::uint32_t>(std::popcount(warp.mask));
  if (wait) warp.wait_at_barrier(static_cast<std::uint8_t>(id));
  const bool is_complete = complete(barrier);
  cluster_.tell(&Events::arrived, warp, id, expected, wait && !is_complete);
  if (is_complete) release(static_cast<std::uint8_t>(id));
}

void Block::release(std::uint8_t id) {
  Barrier& barrier = barriers_[id];
  barrier.pending = false;
  for (Warp& warp : warps_) {
    std::uint32_t here = 0;
    for (const Group& group : warp.groups)
      if (group.state == Group::State::at_barrier && group.barrier == id) here |= group.mask;
    if (here) cluster_.tell(&Events::leave, warp, here, id);
    for (Group& group : warp.groups) {
      if (group.state != Group::State::at_barrier || group.barrier != id) continue;
      group.state = Group::State::ready;
      const Op& op = context_.program.ops[group.pc - 1];
      if (op.flags == 0) continue;  // no reduction
      // barrier.red: 1 popc, 2 and, 3 or
      const std::uint32_t lanes_here = group.mask;
      if (op.flags == 1) {
        auto* d = lanes<std::uint32_t>(warp, op.d);
        each_lane(lanes_here, [&](int i) { d[i] = barrier.votes; });
      } else {
        const bool holds = op.flags == 2 ? barrier.votes == barrier.voters : barrier.votes != 0;
        std::uint32_t& p = predicate(warp, op.d);
        p = holds ? p | lanes_here : p & ~lanes_here;
      }
    }
  }
  cluster_.tell(&Events::released, *this, id);
}

std::span<Warp> Block::warpgroup(const Warp& warp) {
  const std::size_t first = warp.index / warps_of_warpgroup * warps_of_warpgroup;
  return std::span(warps_).subspan(first, std::min(warps_of_warpgroup, warps_.size() - first));
}

bool Block::gather_warpgroup(Warp& warp) {
  const std::span<Warp> warps = warpgroup(warp);
  if (warps.size() < warps_of_warpgroup) {
    warp.fail("divergent-collective"_rule,
              fmt::format("incomplete warpgroup: warps {} and following are {} of 4 warps",
                          warps[0].index, warps.size()));
    return false;
  }
  Warpgroup& group = warpgroups_[warp.index / warps_of_warpgroup];
  if (group.arrived != 0 && group.pc != warp.pc) {
    warp.fail("divergent-collective"_rule,
              fmt::format("warp {} is here while others of its warpgroup wait at line {}",
                          warp.index, line(group.pc - 1)),
              0);
    return false;
  }
  group.pc = warp.pc;
  group.arrived |= 1u << warp.index % warps_of_warpgroup;
  if (group.arrived != 0xF) {
    warp.wait_for_warpgroup();
    cluster_.tell(&Events::waits_for_warpgroup, warp);
    return false;
  }
  group.arrived = 0;
  cluster_.tell(&Events::gathered_warpgroup, warp);
  for (Warp& one : warps)
    for (Group& waiting : one.groups)
      if (waiting.state == Group::State::in_warpgroup) waiting.state = Group::State::ready;
  return true;
}

void Block::recheck() {
  recheck_ = false;
  for (std::uint8_t id = 0; id < 16; ++id) {
    Barrier& barrier = barriers_[id];
    const bool anyone =
        std::ranges::any_of(barrier.arrived, [](const auto& each) { return !each.empty(); });
    if (barrier.pending && anyone && complete(barrier)) release(id);
  }
  cluster_.recheck();
}

bool Block::waits_for_itself() const {
  for (const Warp& warp : warps_)
    for (const Group& group : warp.groups)
      if (group.state == Group::State::ready || group.state == Group::State::at_cluster ||
          group.state == Group::State::for_peer)
        return false;
  return true;
}

std::string Block::barrier_text(std::uint8_t id) const {
  const Barrier& barrier = barriers_[id];
  std::uint32_t here = 0;
  for (const auto& of_warp : barrier.arrived)
    for (const std::uint32_t arrived : of_warp)
      here += static_cast<std::uint32_t>(std::popcount(arrived));
  return fmt::format("has {} threads and waits for {}", here,
                     barrier.expected ? fmt::format("{}", barrier.expected)
                                      : std::string("all threads of the CTA"));
}

void Block::report_deadlock() {
  for (Warp& warp : warps_)
    for (const Group& group : warp.groups)
      if (group.state == Group::State::gathering) {
        const std::uint32_t missing = group.required & warp.live & ~warp.gathered(group);
        fail(warp, group.pc, "divergent-collective"_rule,
             fmt::format("lanes 0x{:08x} wait here for lanes 0x{:08x}, which wait at a barrier",
                         group.mask, missing),
             std::countr_zero(group.mask), 0);
        return;
      }
  for (Warp& warp : warps_)
    for (const Group& group : warp.groups)
      if (group.state == Group::State::in_warpgroup)
        return fail(
            warp, group.pc - 1, "divergent-collective"_rule,
            fmt::format("{} of the 4 warps of a warpgroup wait here, the others never arrive",
                        std::popcount(warpgroups_[warp.index / warps_of_warpgroup].arrived)),
            0, 0);
  for (Warp& warp : warps_)
    for (const Group& group : warp.groups)
      if (group.state == Group::State::for_registers)
        return fail(warp, group.pc - 1, "deadlock"_rule,
                    fmt::format("waits for {}", registers_text(warp, group.wanted)), 0, 0);
  for (Warp& warp : warps_)
    for (const Group& group : warp.groups)
      if (group.state == Group::State::for_columns)
        return fail(warp, group.pc, "deadlock"_rule,
                    fmt::format("waits for {}", columns_text(group.wanted)), 0, 0);
  for (Warp& warp : warps_)
    for (const Group& group : warp.groups) {
      return fail(warp, group.pc - 1, "barrier-deadlock"_rule,
                  fmt::format("barrier {} {}", group.barrier, barrier_text(group.barrier)),
                  std::countr_zero(group.mask), 0);
    }
}

int Block::line(std::uint32_t pc) const { return emulator::line(context_, pc); }
std::string Block::where(std::uint32_t pc) const { return line_text(context_, pc); }

void Block::fail(Warp& warp, std::uint32_t pc, const Rule& rule, std::string message, int lane,
                 std::uint64_t address) {
  Finding finding;
  finding.id = rule.id;
  finding.message = std::move(message);
  finding.line = line(pc);
  finding.source = source(context_, pc);
  finding.block = place_;
  if (lane >= 0) finding.lane = static_cast<int>(warp.index) * 32 + lane;
  finding.address = address;
  cluster_.stop(std::move(finding));
}

}  // namespace tartan::TARTAN_ABI::emulator
