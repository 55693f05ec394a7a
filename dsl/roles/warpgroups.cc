// SPDX-License-Identifier: Apache-2.0
// Bodies of single warpgroups: each described for itself, run side by side.
#include "dsl/roles/warpgroups.h"

#include <utility>

#include "compiler/support/counted.h"
#include "dsl/layout/fragments.h"
#include "dsl/roles/role_ring.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

constexpr std::int64_t position_bytes = 4;

ir::Pointer positions(KernelState& state, const Turns& turns) {
  return state.f().offset(turns.barriers, state.roles.warpgroups * mbarrier_bytes);
}

bool can_divide(KernelState& state) {
  const auto refused = [&](const Rule& rule, std::string message) {
    state.log.report(rule, std::move(message));
    return false;
  };
  if (state.roles.warpgroup >= 0)
    return refused("wrong-role"_rule,
                   "warpgroups() in the body of a warpgroup: they are divided once");
  const int threads = state.config.options.block;
  if (threads % warpgroup_threads)
    return refused("launch-bounds"_rule,
                   fmt::format("warpgroups(): expected a multiple of {} threads, the kernel has {}",
                               warpgroup_threads, threads));
  if (state.roles.current == Role::all && state.config.options.producers > 0)
    return refused("wrong-role"_rule,
                   "warpgroups() outside of roles(), in a kernel with producer warps; call it in "
                   "the body of roles()");
  if (state.fill)
    return refused("kernel-option"_rule,
                   "warpgroups() in a fill callback, which fills a stage for one pipeline; call "
                   "pipeline() in its body instead");
  return by_all_threads(state, "warpgroups()");
}

// The body of one of them. Producers pass through all, in turn.
void describe(KernelState& state, int warpgroup, const std::function<void()>& body) {
  state.roles.next_turn = state.roles.next_ring = 0;
  ir::FunctionBuilder& f = state.f();
  const BeforeBody before = state.flights.before_body(f, false);
  const ir::Value here = state.value(consumer_index(state) / warpgroup_threads == warpgroup);
  const auto described = [&] { state.flights.in_body(f, before, body); };
  if (state.roles.current == Role::all) f.if_then(here, described);
  else f.if_of_role(here, described);
}

std::string_view name_of(bool ping_pong) { return ping_pong ? turns_call : "in_turn()"; }

// The turn of this warpgroup, on mbarriers that all of them have for this place in the body.
class Turn {
 public:
  Turn(Builder& k, KernelState& state, const Turns& turns, const std::source_location& at)
      : state_(state), turns_(turns) {
    // The first turn of the first one comes without anybody's arrival.
    const int parity = state.roles.warpgroup == 0;
    state.f().at_mark(state.roles.begin,
                      [&] { parity_ = k.variable(k.constant(u32, parity, at), at); });
  }

  void wait() { state_.f().mbarrier_wait(barrier(state_.roles.warpgroup), state_.value(*parity_)); }

  /// Where the one before has left the ring.
  Scalar position() {
    return state_.scalar(state_.f().load(position_of(state_.roles.warpgroup), u32));
  }

  /// Where the next one goes on. Each has a place of its own: warps of this one may not have read
  /// theirs yet.
  void leave(Builder& k, const Scalar& position, const std::source_location& at) {
    k.when(
        k.thread(at) == 0, [&] { state_.f().store(position_of(next()), state_.value(position)); },
        at);
  }

  void pass_on(Builder& k, const std::source_location& at) {
    state_.at(at);
    state_.f().warp_sync();  // the lane that arrives does so for its warp
    k.when(
        k.lane(at) == 0, [&] { state_.f().mbarrier_arrive(barrier(next())); }, at);
    *parity_ = Scalar(*parity_) ^ 1;
  }

 private:
  int next() const { return (state_.roles.warpgroup + 1) % state_.roles.warpgroups; }
  ir::Pointer barrier(int warpgroup) {
    return state_.f().offset(turns_.barriers, warpgroup * mbarrier_bytes);
  }
  ir::Pointer position_of(int warpgroup) {
    return state_.f().offset(positions(state_, turns_), warpgroup * position_bytes);
  }

  KernelState& state_;
  Turns turns_;
  std::optional<ScalarVariable> parity_;
};

// The turns of that place in the body: those of the first warpgroup are new.
const Turns* next_turns(KernelState& state, bool ping_pong) {
  RoleState& roles = state.roles;
  const std::size_t number = roles.first_turn + roles.next_turn++;
  const auto refused = [&](std::string message) -> const Turns* {
    state.log.report("operand-count"_rule, std::move(message));
    return nullptr;
  };
  if (number < roles.turns.size()) {
    const Turns& first = roles.turns[number];
    if (first.ping_pong == ping_pong) return &first;
    return refused(
        fmt::format("turn {} in the body of warpgroup {} is {}, in that of warpgroup 0 {}, at {}; "
                    "they take the same turns",
                    roles.next_turn, roles.warpgroup, name_of(ping_pong), name_of(first.ping_pong),
                    text(first.place)));
  }
  if (roles.warpgroup > 0)
    return refused(
        fmt::format("{}: warpgroup {} has more of them than warpgroup 0; each needs as many",
                    name_of(ping_pong), roles.warpgroup));
  const std::int64_t bytes = mbarrier_bytes + (ping_pong ? position_bytes : 0);
  const ir::Pointer barriers =
      state.memories.share(state.f(), state.names.unused("turns"), roles.warpgroups * bytes);
  return &roles.turns.emplace_back(barriers, state.log.place(), ping_pong);
}

void check_turns(KernelState& state) {
  const RoleState& roles = state.roles;
  if (roles.first_turn + roles.next_turn >= roles.turns.size()) return;
  state.log.report_at(
      "operand-count"_rule, roles.turns.back().place,
      fmt::format("{}: warpgroup {} has fewer of them than warpgroup 0; each needs as many",
                  name_of(roles.turns.back().ping_pong), roles.warpgroup));
}

}  // namespace

bool may_take_turns(KernelState& state, std::string_view call) {
  const auto refused = [&](std::string_view why) {
    state.log.report("wrong-role"_rule, fmt::format("{} {}", call, why));
    return false;
  };
  if (state.roles.warpgroup < 0)
    return refused("outside of warpgroups(): warpgroups take turns in the body that each has");
  if (state.roles.current == Role::all)
    return refused("outside of roles(): its mbarriers need sm_80 and KernelOptions::producers");
  return true;
}

bool may_ping_pong(KernelState& state) {
  if (!may_take_turns(state, turns_call)) return false;
  if (state.roles.warpgroups > 1) return true;
  state.log.report("launch-bounds"_rule,
                   fmt::format("{}: expected at least 2 warpgroups, the kernel has {} consumer "
                               "threads; take more, or leave .turns out",
                               turns_call, state.config.options.block));
  return false;
}

CommonRing* next_ring(KernelState& state, int stages) {
  RoleState& roles = state.roles;
  const std::size_t number = roles.next_ring++;
  if (number == roles.rings.size() && roles.warpgroup == 0)
    return &roles.rings.emplace_back(roles.pipelines.size());
  if (number >= roles.rings.size()) {
    state.log.report(
        "operand-count"_rule,
        fmt::format("{}: warpgroup {} has more of them than warpgroup 0; each needs as "
                    "many",
                    turns_call, roles.warpgroup));
    return nullptr;
  }
  CommonRing& ring = roles.rings[number];
  const int first =
      ring.pipeline < roles.pipelines.size() ? roles.pipelines[ring.pipeline].stages : stages;
  if (stages != first)
    state.log.report(
        "operand-count"_rule,
        fmt::format("{}: warpgroup {} has {} stages, warpgroup 0 has {}; they have one ring",
                    turns_call, roles.warpgroup, stages, first));
  return &ring;
}

// The turn passes on before the last products are done.
void consume_in_turn(Builder& k, KernelState& state, const Stages& stages, const CommonRing& ring) {
  RoleState& roles = state.roles;
  const Turns* turns = next_turns(state, true);
  if (!turns) return;
  if (roles.warpgroup == 0) add_pipeline(state, stages);
  roles.pipelines[ring.pipeline].ping_pong = true;
  // Another warpgroup's products may read what is filled for this one.
  Accesses& reads = roles.pipelines[ring.pipeline].reads;
  if (state.has_wgmma) reads.add(StageAccess::wgmma_read);
  if (state.has_tensor_products) reads.add(StageAccess::tensor_read);
  const Reading reading(roles);
  Turn turn(k, state, *turns, stages.at);
  Cursor cursor(k, state, stages);
  turn.wait();
  cursor.go_to(turn.position());
  LateRelease late(k, state, stages, ring.pipeline, cursor.stage());
  each_step(k, stages, [&](const Scalar& t) {
    state.at(stages.at);
    await_stage(state, roles.pipelines[ring.pipeline], cursor);
    const int before = state.flights.commits();
    use_stage(state, stages, t, cursor.stage(), [&](bool) {
      late.release(t, before);
      cursor.advance();
    });
  });
  turn.leave(k, cursor.position(), stages.at);
  turn.pass_on(k, stages.at);
  late.finish();
}

void init_turns(KernelState& state) {
  ir::FunctionBuilder& f = state.f();
  for (const Turns& each : state.roles.turns) {
    for (int i = 0; i < state.roles.warpgroups; ++i)
      f.mbarrier_init(f.offset(each.barriers, i * mbarrier_bytes), warps_of_warpgroup);
    if (each.ping_pong) f.store(positions(state, each), f.constant(u32, 0));
  }
}

namespace {

// Whether warpgroups have no barriers yet; an only one has that of the consumers.
bool need_barriers(const KernelState& state) {
  return state.roles.warpgroup < 0 && warpgroups_of(state) > 1 && !state.roles.first_barrier;
}
int next_barrier(const KernelState& state) {
  return std::max(state.roles.last_named, consumers_barrier) + 1;
}

}  // namespace

bool can_have_barriers(const KernelState& state) {
  const int last = next_barrier(state) + warpgroups_of(state) - 1;
  return !need_barriers(state) || last <= last_barrier - state.roles.warpgroups;
}

// The first that are free: a multiprocessor has 64 barriers, and a CTA takes as many of them as its
// largest number says.
void take_barriers(KernelState& state) {
  if (!need_barriers(state)) return;
  state.roles.first_barrier = next_barrier(state);
  state.roles.last_named = state.roles.first_barrier + warpgroups_of(state) - 1;
}

void warpgroup_barrier(KernelState& state) {
  ir::FunctionBuilder& f = state.f();
  const RoleState& roles = state.roles;
  if (roles.warpgroup >= 0) return f.barrier(last_barrier - roles.warpgroup, warpgroup_threads);
  const int count = warpgroups_of(state);
  if (count == 1) return f.barrier(consumers_barrier, warpgroup_threads);
  // A number in a register would take all 16.
  for (int i = 0; i < count; ++i)
    f.if_then(state.value(consumer_index(state) / warpgroup_threads == i),
              [&] { f.barrier(roles.first_barrier + i, warpgroup_threads); });
}

void note_meeting(KernelState& state) {
  state.roles.producers_meet |= state.roles.current == Role::producer;
}

bool is_free_barrier(KernelState& state, int id) {
  RoleState& roles = state.roles;
  const int count = warpgroups_of(state);
  if (roles.first_barrier && id >= roles.first_barrier && id < roles.first_barrier + count) {
    state.log.report("kernel-option"_rule,
                     fmt::format("named barrier {}: barriers {} to {} are those of the warpgroups "
                                 "that store a tile of wgmma to a column-major matrix; use a "
                                 "larger number",
                                 id, roles.first_barrier, roles.first_barrier + count - 1));
    return false;
  }
  roles.last_named = std::max(roles.last_named, id);
  const int most = last_barrier - roles.warpgroups;
  if (roles.last_named <= most) return true;
  state.log.report("kernel-option"_rule,
                   fmt::format("named barrier {}: barriers {} to {} are those of warpgroups()",
                               roles.last_named, most + 1, last_barrier));
  return false;
}

}  // namespace detail

void Builder::warpgroups(const std::function<void(int)>& body, Here at) {
  state_->at(at);
  detail::KernelState& state = *state_;
  if (!state.has_body(body != nullptr, "warpgroups()") || !detail::can_divide(state)) return;
  detail::RoleState& roles = state.roles;
  roles.warpgroups = detail::warpgroups_of(state);
  if (!detail::is_free_barrier(state, 0)) return;
  state.log.choose("warpgroups",
                   fmt::format("{}, each with a body of its own",
                               detail::counted(roles.warpgroups, "warpgroup")),
                   "they meet at no barrier of the CTA");
  roles.first_turn = roles.turns.size();
  for (int i = 0; i < roles.warpgroups; ++i) {
    roles.warpgroup = i;
    detail::describe(state, i, [&] { body(i); });
    state.at(at);
    detail::check_turns(state);
  }
  roles.warpgroup = 0;
  for (const detail::CommonRing& each : roles.rings)
    if (each.pipeline < roles.pipelines.size())
      detail::settle_releases(*this, state, roles.pipelines[each.pipeline]);
  roles.warpgroup = -1;
  roles.rings.clear();  // they hold the state
}

void Builder::in_turn(const std::function<void()>& body, Here at) {
  state_->at(at);
  detail::KernelState& state = *state_;
  if (!state.has_body(body != nullptr, "in_turn()")) return;
  if (!detail::may_take_turns(state, "in_turn()")) return;
  const detail::Turns* turns = detail::next_turns(state, false);
  if (!turns) return;
  detail::Turn turn(*this, state, *turns, at);
  turn.wait();
  body();
  turn.pass_on(*this, at);
}

}  // namespace tartan::TARTAN_ABI
