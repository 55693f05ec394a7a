// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/determinacy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/schedules/retry.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;
using isa::operator""_q;

bool names_place_or_time(std::string_view name) {
  const isa::SpecialRegisterRow* const special = isa::find_special_register(name);
  return special && (special->varies || special->first == isa::SpecialRegister::smid);
}

}  // namespace

// How often the program's instructions name each register.
Determinacy::Uses Determinacy::count_uses() const {
  Uses out;
  const auto add = [&](const ptx::Operand& operand, const auto& again) -> void {
    if (operand.kind == ptx::OperandKind::Name) ++out[operand.text];
    for (const ptx::Operand& child : context_.module.children(operand)) again(child, again);
  };
  const ptx::Instruction* last = nullptr;
  for (std::uint32_t pc = 0; pc < context_.program.ops.size(); ++pc) {
    const ptx::Instruction* here = instruction_at(context_, pc);
    if (!here || here == last) continue;
    last = here;
    if (!here->guard.empty()) ++out[here->guard];
    for (const ptx::Operand& operand : context_.module.operands_of(*here)) add(operand, add);
  }
  return out;
}

Determinacy::Determinacy(const LaunchContext& context, const LaunchRaces& races)
    : context_(context), numbers_(races.numbers) {
  read_program();
}

// What its text says already.
void Determinacy::read_program() {
  const Program& program = context_.program;
  const RaceWatches& watches = *program.observation<RaceWatches>();
  const Uses uses = count_uses();
  const bool fences =
      std::ranges::any_of(watches, [](const Watch& each) { return !each.strong && each.acquires; });
  std::uint32_t gives = 0, takes = 0;
  for (std::uint32_t pc = 0; pc < program.ops.size(); ++pc) {
    const ptx::Instruction* here = instruction_at(context_, pc);
    if (!here) continue;
    const isa::Spelling& spelling = context_.module.spelling(*here);
    if (const std::string_view why = emulated(spelling.opcode).learns; !why.empty())
      note(pc, std::string(why));
    for (const ptx::Operand& operand : context_.module.operands_of(*here))
      if (operand.kind == ptx::OperandKind::Name && names_place_or_time(operand.text))
        note(pc, fmt::format("it reads {}", operand.text));
    if (spelling.opcode == Opcode::setmaxnreg) ++(spelling.has("inc"_q) ? takes : gives);
    if (gives > 1 || takes > 1) note(pc, "warps give and take registers several times");
    if (watches[pc].strong) {
      Strong& strong = strong_[pc];
      strong.writes = watches[pc].writes;
      // An atom whose result nobody reads acquires all the same, by itself or by a fence behind it.
      const auto quiet = [&] {
        const std::string_view result = context_.module.operands[here->first].text;
        const auto found = uses.find(result);
        return !watches[pc].acquires && !fences &&
               (result == "_" || (found != uses.end() && found->second == 1));
      };
      if (spelling.opcode == Opcode::red || quiet()) strong.reduction = watches[pc].operation;
    }
  }
  if (program.uses_heap) note(program.entry, "malloc gives what is free");
}

void Determinacy::note(std::uint32_t pc, std::string why, bool explorable) {
  obstacles_.try_emplace(pc, Obstacle{std::move(why), explorable});
}

std::vector<Obstacle> Determinacy::obstacles() const {
  std::vector<Obstacle> out;
  for (const auto& [pc, obstacle] : obstacles_) {
    const std::string text = fmt::format("{}: {}", line_text(context_, pc), obstacle.text);
    if (std::ranges::find(out, text, &Obstacle::text) == out.end())
      out.push_back({text, obstacle.explorable});
  }
  return out;
}

void Determinacy::start(Cluster& cluster, std::uint32_t index) {
  auto& control = controls_[&cluster];
  control = std::make_unique<Control>(numbers_);
  std::vector<std::uint32_t> lanes_of_warps;
  for (std::uint32_t rank = 0; rank < cluster.size(); ++rank)
    for (const Warp& warp : cluster.block(rank).warps()) lanes_of_warps.push_back(warp.live);
  control->clocks.start(index, lanes_of_warps);
  control->arriving = control->arrived = control->clocks.fresh();
}

Determinacy::Deed Determinacy::deed(Control& control, const Warp& warp, std::uint32_t lanes) const {
  return {control.clocks.number(warp), lanes, control.clocks.time(warp), warp.pc - 1};
}

namespace {

// Calls body(lane) for the lanes of a mask until one says no; whether all said yes.
template <typename Body>
bool all_lanes_of(std::uint32_t mask, Body&& body) {
  for (; mask; mask &= mask - 1)
    if (!body(static_cast<std::uint32_t>(std::countr_zero(mask)))) return false;
  return true;
}

}  // namespace

// ---- mbarriers.

void Determinacy::initialised(Cluster& cluster, const std::byte* mbarrier) {
  Control& control = *controls_.at(&cluster);
  Phases made{.arriving = control.clocks.fresh(),
              .arrived = control.clocks.fresh(),
              .due = control.clocks.fresh()};
  made.counted = control.mbarriers_made < numbers_.mbarriers;
  if (made.counted) made.number = control.clocks.number_of_mbarrier(control.mbarriers_made++);
  control.mbarriers.insert_or_assign(mbarrier, std::move(made));
}

void Determinacy::changes(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier,
                          Change change) {
  Control& control = this->control(warp);
  const auto found = control.mbarriers.find(mbarrier);
  if (found == control.mbarriers.end()) return;  // a finding of its own
  Phases& phases = found->second;
  if (!phases.counted) return note(warp.pc - 1, "it uses more mbarriers than are looked at");
  const bool known = phases.over == 0 || all_lanes_of(lanes, [&](std::uint32_t lane) {
                       return control.clocks.knows(warp, lane, {phases.number, phases.over, 0});
                     });
  if (!known) note(warp.pc - 1, "it may come while the phase before is not over", true);
  if (change == Change::bytes || change == Change::counts)
    phases.expects.push_back(deed(control, warp, lanes));
  if (change == Change::arrival) control.clocks.release(warp, lanes, phases.due);
  if (change != Change::bytes) control.clocks.release(warp, lanes, phases.arriving);
}

bool Determinacy::use_mbarrier(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
                               const MbarrierUse& use) {
  switch (use.action) {
    case MbarrierAction::init:
      check_commits(warp, lanes, mbarrier);
      initialised(warp.block->cluster(), mbarrier);
      break;
    case MbarrierAction::invalidate: check_commits(warp, lanes, mbarrier); break;
    case MbarrierAction::expect: changes(warp, lanes, mbarrier, Change::bytes); break;
    case MbarrierAction::complete: changes(warp, lanes, mbarrier, Change::completes); break;
    default: changes(warp, lanes, mbarrier, use.raises ? Change::counts : Change::arrival); break;
  }
  if (use.by_tensor_core) {
    Control& control = this->control(warp);
    if (const auto found = control.mbarriers.find(mbarrier); found != control.mbarriers.end())
      found->second.committed = found->second.due_commit = true;
  }
  return true;
}

// An mbarrier ends: no commit may still be to arrive there, as far as these lanes have heard.
void Determinacy::check_commits(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier) {
  Control& control = this->control(warp);
  const auto found = control.mbarriers.find(mbarrier);
  if (found == control.mbarriers.end() || !found->second.committed) return;
  const Phases& phases = found->second;
  const bool heard = phases.over == 0 || all_lanes_of(lanes, [&](std::uint32_t lane) {
                       return control.clocks.knows(warp, lane, {phases.number, phases.over, 0});
                     });
  if (phases.due_commit || !heard)
    note(warp.pc - 1, "tcgen05.commit may arrive at the mbarrier after that", true);
}

void Determinacy::takes_columns(Warp& warp, bool) {
  Control& control = this->control(warp);
  const Warp* first = control.allocating.try_emplace(warp.block, &warp).first->second;
  if (first != &warp)
    note(warp.pc - 1, "several warps allocate tensor memory, and get what is free when they come");
}

bool Determinacy::issue_copy(Warp& warp, int lane, const AsyncCopy& copy) {
  changes(warp, 1u << lane, copy.mbarrier, Change::completes);
  return true;
}

void Determinacy::completed(Cluster& cluster, const Completion& completion) {
  if (completion.ends) ended_phase(cluster, completion.mbarrier);
}

void Determinacy::ended_phase(Cluster& cluster, std::byte* mbarrier) {
  Control& control = *controls_.at(&cluster);
  const auto found = control.mbarriers.find(mbarrier);
  if (found == control.mbarriers.end()) return;
  Phases& phases = found->second;
  const auto told = [](const VectorClock& clock, const Deed& deed) {
    return all_lanes_of(deed.lanes, [&](std::uint32_t lane) {
      return clock.knows({deed.number, deed.time, lane});
    });
  };
  for (const Deed& each : phases.waits)
    if (!told(phases.arriving, each))
      note(each.pc,
           "a lane may be late and find the next phase over, too: nothing orders its wait before "
           "the arrivals of that phase",
           true);
  for (const Deed& each : phases.expects)
    if (!told(phases.due, each))
      note(each.pc, "the phase may be over before these bytes are expected", true);
  phases.waits.clear();
  phases.expects.clear();
  phases.arrived.join(phases.arriving);
  phases.arriving.clear();
  phases.due.clear();
  phases.due_commit = false;
  ++phases.over;
}

bool Determinacy::test_mbarrier(Warp& warp, int, std::byte*, bool waits) {
  if (!waits || !tests_.insert(warp.pc - 1).second) return true;
  if (!retries(context_, warp.pc - 1))
    note(warp.pc - 1, "where the test of the mbarrier fails the kernel does something else");
  return true;
}

void Determinacy::passed(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
                         const MbarrierPass&) {
  Control& control = this->control(warp);
  const auto found = control.mbarriers.find(mbarrier);
  if (found == control.mbarriers.end() || !found->second.counted) return;
  Phases& phases = found->second;
  const bool known = phases.over < 2 || all_lanes_of(lanes, [&](std::uint32_t lane) {
                       return control.clocks.knows(warp, lane, {phases.number, phases.over - 1, 0});
                     });
  if (!known) note(warp.pc - 1, "it may wait while the phase before is not over", true);
  control.clocks.acquire(warp, lanes, phases.arrived);
  control.clocks.learn_end(warp, lanes, phases.number, phases.over);
  phases.waits.push_back(deed(control, warp, lanes));
  control.uneven.insert(&warp);
}

void Determinacy::met(Warp& warp) {
  Control& control = this->control(warp);
  const auto found = control.uneven.find(&warp);
  if (found == control.uneven.end()) return;
  control.clocks.sync_warp(warp, warp.mask);
  if (!(warp.live & ~warp.mask)) control.uneven.erase(found);
}

// ---- Barriers of a block and of a cluster.

void Determinacy::arrived(Warp& warp, std::uint32_t id, std::uint32_t expected, bool) {
  Control& control = this->control(warp);
  Barrier& barrier = control.barriers[{warp.block->rank(), id}];
  if (!barrier.now.empty() && barrier.expected != expected)
    note(warp.pc - 1, "arrivals at one barrier expect different numbers of threads");
  barrier.expected = expected;
  const auto knows = [&](const Deed& past) {
    return control.clocks.all_know(warp, warp.mask, past.number, past.time) ||
           all_lanes_of(warp.mask, [&](std::uint32_t lane) {
             return all_lanes_of(past.lanes, [&](std::uint32_t of) {
               return control.clocks.knows(warp, lane, {past.number, past.time, of});
             });
           });
  };
  if (!std::ranges::all_of(barrier.last, knows))
    note(warp.pc - 1,
         fmt::format("threads may come to barrier {} while its last use is not over", id));
  barrier.now.push_back(deed(control, warp, warp.mask));
  control.clocks.release(warp, warp.mask, barrier.arriving);
}

void Determinacy::leave(Warp& warp, std::uint32_t lanes, std::uint32_t id) {
  Control& control = this->control(warp);
  control.clocks.acquire(warp, lanes, control.barriers[{warp.block->rank(), id}].arriving);
}

void Determinacy::released(Block& block, std::uint32_t id) {
  Barrier& barrier = controls_.at(&block.cluster())->barriers[{block.rank(), id}];
  barrier.last = std::exchange(barrier.now, {});
  barrier.arriving.clear();
}

void Determinacy::arrived_at_cluster(Warp& warp, bool) {
  Control& control = this->control(warp);
  control.clocks.release(warp, warp.mask, control.arriving);
}

void Determinacy::released_cluster(Cluster& cluster) {
  Control& control = *controls_.at(&cluster);
  control.arrived = control.arriving;
  control.arriving.clear();
}

void Determinacy::leave_cluster(Warp& warp, std::uint32_t lanes) {
  Control& control = this->control(warp);
  control.clocks.acquire(warp, lanes, control.arrived);
}

// ---- Memory.

void Determinacy::communicate(Warp& warp, Window window, const std::uint64_t* at,
                              std::uint32_t bytes) {
  const auto strong = strong_.find(warp.pc - 1);
  if (strong == strong_.end()) return;
  ClusterRaces& races = races_of(warp);
  const std::uint64_t first_warp = races.clocks().number(warp);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    const auto place = races.place_of(warp, window, at[lane]);
    if (!place) continue;
    const std::uint64_t thread = first_warp * 32 + lane;
    for (std::uint64_t word = place->second / 4; word <= (place->second + bytes - 1) / 4; ++word) {
      const auto [found, fresh] = words_.try_emplace(
          {place->first, word}, Word{.thread = thread, .reduction = strong->second.reduction});
      Word& known = found->second;
      known.shared |= known.thread != thread;
      known.written |= strong->second.writes;
      if (known.reduction != strong->second.reduction) known.reduction = 0;
      if (known.shared && known.written && !known.reduction)
        note(warp.pc - 1, "threads communicate through memory, and nothing fixes who is first",
             true);
    }
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
