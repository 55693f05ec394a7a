// SPDX-License-Identifier: Apache-2.0
// mbarriers (PTX ISA 9.0, 9.7.13.15).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/mbarriers.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {

bool are_in_place(Warp& warp, const Op& op, bool own) {
  if (op.window != Window::generic) return true;
  std::uint64_t at[32];
  addresses(warp, op, at);
  const std::uint32_t lost = lanes_where(warp.mask, [&](int i) {
    const std::uint32_t rank = rank_at(at[i] & (window_bytes - 1), warp.block->rank());
    return window_of(at[i]) != Window::shared || (own && rank != warp.block->rank());
  });
  if (!lost) return true;
  const int lane = std::countr_zero(lost);
  warp.fail("memory-fault"_rule,
            fmt::format("expected an mbarrier in shared memory of the {}, found address 0x{:x}",
                        own ? "own CTA" : "cluster", at[lane]),
            lane, at[lane]);
  return false;
}

Window mbarrier_window(Decoder& d, bool own) {
  const Window window = memory_window(d);
  if (window == Window::global || window == Window::local || window == Window::param)
    d.unsupported("an mbarrier must be in shared memory");
  else if (own && window == Window::cluster)
    d.unsupported(
        "with .shared::cluster, only arrivals without a state, expect_tx and complete_tx are "
        "supported; use .shared::cta for an mbarrier of the own CTA");
  return window;
}

namespace {

using Action = MbarrierAction;

// Whether an mbarrier can count `bytes` more.
bool expect_more(Warp& warp, int lane, Mbarrier& barrier, std::uint32_t bytes) {
  const std::int64_t sum = std::int64_t{barrier.transactions} + bytes;
  if (sum <= Mbarrier::most_transactions) {
    barrier.transactions = static_cast<std::int32_t>(sum);
    return true;
  }
  warp.fail("trap"_rule,
            fmt::format("expect_tx overflow: the mbarrier already waits for {} bytes and is to "
                        "expect {} more, at most {} in total",
                        barrier.transactions, bytes, Mbarrier::most_transactions),
            lane);
  return false;
}

// op.c of act(): a relaxed arrival, one that cp.async makes when its copies are over, an mbarrier
// of .layout::v1.
constexpr std::uint32_t is_relaxed = 1, after_copies = 2, of_v1 = 4;

// op.b: the count or the transactions; op.d: the state before, if op.count says so.
void act_at(Warp& warp, const Op& op, const Access& access) {
  const auto* counts = lanes<std::uint32_t>(warp, op.b);
  const auto action = static_cast<Action>(op.flags);
  const bool observed = warp.block->cluster().is_observed(), by_copies = op.c & after_copies;
  // Lanes that arrived at the mbarrier of the last of them, and are still to say what they did.
  std::uint32_t arrived = 0;
  std::byte* arrived_at = nullptr;
  const auto tell_arrivals = [&] {
    const MbarrierArrival arrival{(op.c & is_relaxed) != 0, op.e != 0, by_copies};
    if (arrived) tell(warp, &Events::arrived_at_mbarrier, arrived, arrived_at, arrival);
    arrived = 0;
  };
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::byte* at = access.at[lane];
    MbarrierUse use{.action = action, .by_copies = by_copies};
    if (observed && action == Action::init)
      use.alike = lanes_where(warp.mask & ((1u << lane) - 1), [&](int other) {
        return access.at[other] == at && counts[other] == counts[lane];
      });
    if (!ask(warp, &Events::use_mbarrier, 1u << lane, at, use)) return;
    tell(warp, &ValueEvents::fill, at, 8);
    Mbarrier barrier = Mbarrier::load(at);
    if (op.count) lanes<std::uint64_t>(warp, op.d)[lane] = barrier.word();
    const std::uint32_t count = counts[lane];
    switch (action) {
      case Action::init: {
        const bool v1 = op.c & of_v1;
        if (count == 0 || count > (v1 ? Mbarrier::most_arrivals_v1 : Mbarrier::most_arrivals))
          return warp.fail("trap"_rule, fmt::format("mbarrier.init with a count of {}", count),
                           lane);
        barrier = {.pending = count, .expected = count, .v1 = v1};
        break;
      }
      case Action::invalidate: {
        const std::uint64_t zero = 0;
        std::memcpy(at, &zero, 8);
        tell(warp, &Events::count_mbarrier, lane, at, action, count);
        continue;
      }
      case Action::expect:
        if (!expect_more(warp, lane, barrier, count)) return;
        break;
      case Action::complete: barrier.transactions -= static_cast<std::int32_t>(count); break;
      case Action::arrive_expect:
      case Action::arrive_drop_expect:
        if (!expect_more(warp, lane, barrier, count)) return;
        if (barrier.pending == 0)
          return warp.fail("trap"_rule,
                           "too many arrivals: the mbarrier expects no more in this phase", lane);
        --barrier.pending;
        if (action == Action::arrive_drop_expect) --barrier.expected;
        break;
      case Action::arrive:
      case Action::arrive_drop:
        if (barrier.pending < count)
          return warp.fail("trap"_rule,
                           "too many arrivals: the mbarrier expects no more in this phase", lane);
        barrier.pending -= count;
        if (action == Action::arrive_drop) barrier.expected -= count;
        break;
    }
    const bool arrives = action != Action::init && action != Action::expect;
    if (observed && arrives) {
      if (at != arrived_at) tell_arrivals();
      arrived |= 1u << lane;
      arrived_at = at;
    }
    tell(warp, &Events::count_mbarrier, lane, at, action, count);
    if (!barrier.store(at)) continue;
    tell_arrivals();
    warp.block->cluster().tell(&Events::ended_phase, warp.block->cluster(), at);
  }
  tell_arrivals();
}

void act(Warp& warp, const Op& op) {
  const bool own = op.count || op.flags <= static_cast<std::uint8_t>(Action::invalidate);
  Access access;
  if (are_in_place(warp, op, own) && resolve(warp, op, 8, access)) act_at(warp, op, access);
}

// At the mbarriers that lie alike in the blocks of a lane's mask, op.list.
void act_everywhere(Warp& warp, const Op& op) {
  std::uint64_t at[32];
  addresses(warp, op, at);
  const auto* masks = lanes<std::uint32_t>(warp, op.list);
  const std::uint32_t whole = warp.mask;
  for (std::uint32_t m = whole; m && !warp.leave; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (!check_multicast(warp, lane, masks[lane])) break;
    warp.mask = 1u << lane;
    for (std::uint32_t left = masks[lane]; left && !warp.leave; left &= left - 1) {
      std::uint64_t there[32] = {};
      there[lane] = in_block(at[lane], static_cast<std::uint32_t>(std::countr_zero(left)));
      Access access;
      if (resolve(warp, Window::cluster, there, 8, access)) act_at(warp, op, access);
    }
  }
  warp.mask = whole;
}

// op.b: the state (64 bits) or, with flag 1, the parity (32 bits); op.e: a WaitScope. A wait that
// fails gives the other warps their turn.
void test_wait(Warp& warp, const Op& op) {
  Access access;
  if (!are_in_place(warp, op, true) || !resolve(warp, op, 8, access)) return;
  const int first = std::countr_zero(warp.mask);
  if (!ask(warp, &Events::test_mbarrier, first, access.at[first], true)) return;
  const std::uint32_t done = lanes_where(warp.mask, [&](int i) {
    const bool phase = Mbarrier::load(access.at[i]).phase;
    const bool waited = op.flags & 1 ? lanes<std::uint32_t>(warp, op.b)[i] & 1
                                     : lanes<std::uint64_t>(warp, op.b)[i] >> 63;
    return phase != waited;
  });
  set_predicate(warp, op.d, done);
  const int lane = std::countr_zero(done ? done : warp.mask);
  const bool parity = op.flags & 1 ? lanes<std::uint32_t>(warp, op.b)[lane] & 1
                                   : lanes<std::uint64_t>(warp, op.b)[lane] >> 63;
  if (done == 0) {
    tell(warp, &Events::found_pending, access.at[lane], parity);
    return warp.poll_again(static_cast<std::uint64_t>(access.at[lane] - warp.block->shared()),
                           parity);
  }
  warp.poll_done();
  for (std::uint32_t m = warp.block->cluster().is_observed() ? done : 0; m;) {
    std::byte* const at = access.at[std::countr_zero(m)];
    const std::uint32_t same = lanes_where(m, [&](int i) { return access.at[i] == at; });
    const MbarrierPass pass{.parity = parity,
                            .relaxed = (op.flags & 2) != 0,
                            .scope = static_cast<WaitScope>(op.e),
                            .first = m == done};
    tell(warp, &Events::passed, same, at, pass);
    m &= ~same;
  }
  if (done != warp.mask) warp.yield();
}

// What a phase that nothing has reported on tells: a predicate, or a byte.
void give_no_predicate(Warp& warp, const Op& op) { set_predicate(warp, op.d, 0); }
void give_no_value(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [=](int i) { d[i] = 0; });
}

// op.flags: whether .layout::v1 is asked for.
void check_layout(Warp& warp, const Op& op) {
  Access access;
  if (!are_in_place(warp, op, true) || !resolve(warp, op, 8, access)) return;
  const int lane = std::countr_zero(warp.mask);
  if (!ask(warp, &Events::test_mbarrier, lane, access.at[lane], false)) return;
  set_predicate(warp, op.d, lanes_where(warp.mask, [&](int i) {
                  return Mbarrier::load(access.at[i]).v1 == (op.flags != 0);
                }));
}

void pending_count(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto* a = lanes<std::uint64_t>(warp, op.a);
  each_lane(warp.mask, [=](int i) { d[i] = static_cast<std::uint32_t>(a[i] & Mbarrier::field); });
}

// `masks`: of a multicast, the blocks.
void emit_action(Decoder& d, Action action, std::size_t where, std::uint32_t count,
                 std::optional<std::uint32_t> state,
                 std::optional<std::uint32_t> masks = std::nullopt) {
  const Window window = mbarrier_window(
      d, state.has_value() || action == Action::init || action == Action::invalidate);
  Op& op = d.emit(masks ? act_everywhere : act);
  op.flags = static_cast<std::uint8_t>(action);
  op.b = count;
  op.list = masks.value_or(0);
  const bool copies = d.spelling.opcode() == Opcode::cp_async_mbarrier_arrive;
  op.c = (d.spelling.has("relaxed") ? is_relaxed : 0) | (copies ? after_copies : 0) |
         (d.spelling.has("layout::v1") ? of_v1 : 0);
  op.e = d.spelling.has("cta");
  op.d = state.value_or(0);
  op.count = state.has_value();
  d.address(op, d.operand(where), window);
}

constexpr isa::QualifierSet mbarrier_orders = "release acquire relaxed cta cluster";

void decode_init(Decoder& d) {
  d.spelling.type();
  d.spelling.ignore("layout::v0 layout::v1");
  if (d.expect_operands(2, 2))
    emit_action(d, Action::init, 0, d.source(1, Type::u32), std::nullopt);
}

void decode_invalidate(Decoder& d) {
  d.spelling.type();
  d.program().invalidates = true;
  if (d.expect_operands(1, 1))
    emit_action(d, Action::invalidate, 0, d.constant(1, 32), std::nullopt);
}

void decode_wait(Decoder& d) {
  d.spelling.type();
  d.spelling.ignore(mbarrier_orders);
  // Nothing reports here: both types of phase are the same.
  d.spelling.ignore("phase_type::primary phase_type::conditional");
  const bool parity = d.spelling.has("parity");
  // done[|reported][, report], [address], state or parity[, time]
  const bool has_value = d.operand_count() > 1 && d.operand(1).kind != ptx::OperandKind::Address;
  const std::size_t where = has_value ? 2 : 1;
  if (!d.expect_operands(where + 2, where + 3)) return;
  const std::string_view scope = d.spelling.any("cta cluster");
  const ptx::Operand& done = d.operand(0);
  const bool has_predicate = done.kind == ptx::OperandKind::Pair;
  const std::uint32_t to = d.destination(has_predicate ? d.children(done)[0] : done, Type::pred),
                      from = d.source(where + 1, parity ? Type::u32 : Type::b64);
  const Window window = mbarrier_window(d, true);
  if (has_predicate) {
    const std::uint32_t reported = d.destination(d.children(done)[1], Type::pred);
    d.emit(give_no_predicate).d = reported;
  }
  if (has_value) {
    const std::uint32_t report = d.destination(1, Type::b8);
    d.emit(give_no_value).d = report;
  }
  Op& op = d.emit(test_wait);
  op.d = to;
  op.b = from;
  op.e = static_cast<std::uint32_t>(scope.empty()    ? WaitScope::unsaid
                                    : scope == "cta" ? WaitScope::cta
                                                     : WaitScope::cluster);
  op.flags = static_cast<std::uint8_t>(parity | (d.spelling.has("relaxed") ? 2 : 0));
  d.address(op, d.operand(where), window);
}

void decode_check_layout(Decoder& d) {
  d.spelling.type();
  const bool v1 = d.spelling.has("layout::v1");
  d.spelling.ignore("layout::v0");
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t to = d.destination(0, Type::pred);
  const Window window = mbarrier_window(d, true);
  Op& op = d.emit(check_layout);
  op.d = to;
  op.flags = v1;
  d.address(op, d.operand(1), window);
}

void decode_pending_count(Decoder& d) {
  d.spelling.type();
  d.spelling.ignore("layout::v0");
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t to = d.destination(0, Type::u32), from = d.source(1, Type::b64);
  Op& op = d.emit(pending_count);
  op.d = to;
  op.a = from;
}

// Arrivals, and the transactions that a phase waits for.
void decode_mbarrier(Decoder& d) {
  d.spelling.type();
  d.spelling.ignore(mbarrier_orders);
  d.spelling.ignore("noComplete");
  const bool with_transactions = d.spelling.has("expect_tx");
  Action action = Action::complete;
  if (d.spelling.opcode() == Opcode::mbarrier_expect_tx) action = Action::expect;
  if (d.spelling.opcode() == Opcode::mbarrier_arrive)
    action = with_transactions ? Action::arrive_expect : Action::arrive;
  if (d.spelling.opcode() == Opcode::mbarrier_arrive_drop)
    action = with_transactions ? Action::arrive_drop_expect : Action::arrive_drop;
  const bool multicast = d.spelling.has("multicast::cluster::32b");
  // [state,] [address] [, count] [, blocks]
  if (d.operand_count() < 2 && multicast) return void(d.expect_operands(2, 4));
  const std::size_t n = d.operand_count() - (multicast ? 1 : 0);
  const bool has_state = n > 0 && d.operand(0).kind != ptx::OperandKind::Address;
  const std::size_t where = has_state ? 1 : 0, more = multicast ? 1 : 0;
  if (!d.expect_operands(where + 1 + more, where + 2 + more)) return;
  std::optional<std::uint32_t> state, masks;
  if (multicast) masks = d.source(n, Type::u32);
  if (has_state && d.operand(0).text != "_") state = d.destination(0, Type::b64);
  const std::uint32_t count = n > where + 1 ? d.source(where + 1, Type::u32) : d.constant(1, 32);
  emit_action(d, action, where, count, state, masks);
}

}  // namespace

void decode_arrival_after_copies(Decoder& d) {
  emit_action(d, Action::arrive, 0, d.constant(1, 32), std::nullopt);
}

constexpr EmulatedRow mbarriers_rows[] = {
    {Opcode::mbarrier_init, decode_init, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::mbarrier_inval, decode_invalidate, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::mbarrier_expect_tx, decode_mbarrier, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::mbarrier_complete_tx, decode_mbarrier, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::mbarrier_arrive, decode_mbarrier, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::mbarrier_arrive_drop, decode_mbarrier, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::mbarrier_test_wait, decode_wait, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::Computes, nothing},
    {Opcode::mbarrier_try_wait, decode_wait, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::Computes, nothing},
    {Opcode::mbarrier_pending_count, decode_pending_count, Flow::Uses, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::Computes, "the pending count tells who has arrived"},
    {Opcode::mbarrier_check_layout, decode_check_layout, Flow::Uses, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::Computes, nothing},
};
static_assert(are_rows_of(mbarriers_rows, topics::mbarriers));

}  // namespace tartan::TARTAN_ABI::emulator
