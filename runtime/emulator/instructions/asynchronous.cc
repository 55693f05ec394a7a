// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies and mbarriers (PTX ISA 9.7.9.25, 9.7.13.15). A copy is done when it is
// issued: waits find it complete. Bulk copies are in bulk.cc.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/algebra/algebra.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

void no_operation(Warp&, const Op&) {}

// Undefined bits of the source go along; what is not copied is zero.
void note_copy(Warp& warp, const std::byte* to, const std::byte* from, std::uint32_t copied,
               std::uint32_t filled) {
  ClusterDefinedness* const definedness = warp.block->cluster().definedness();
  if (!definedness) return;
  if (copied < filled) definedness->fill(warp, to, filled);
  if (copied) definedness->move(warp, to, from, copied);
}

// cp.async: op.a, op.value, op.window: destination; op.b and the list (offset, width, window):
// source; op.c: bytes to read. op.count bytes are written, those beyond the source's as zeros.
void copy(Warp& warp, const Op& op) {
  Access to, from;
  const std::uint32_t* more = warp.program->slots.data() + op.list;
  if (!resolve(warp, op, op.count, to)) return;
  Op source = op;
  source.a = op.b;
  source.value = more[0] | std::uint64_t{more[1]} << 32;
  source.wide = more[2];
  const auto* sizes = lanes<std::uint32_t>(warp, op.c);
  source.window = static_cast<Window>(more[3]);
  const std::uint32_t whole = warp.mask;
  const std::uint32_t ignore = op.flags & 1 ? predicate(warp, op.e) : 0;
  const std::uint32_t reading =
      lanes_where(whole, [&](int i) { return !(ignore >> i & 1) && sizes[i] != 0; });
  const std::uint32_t complete = lanes_where(reading, [&](int i) { return sizes[i] >= op.count; });
  if (complete == whole) {  // the usual case
    if (!resolve(warp, source, op.count, from)) return;
    if (active_algebra) each_lane(whole, [&](int i) { move_tags(to.at[i], from.at[i], op.count); });
    const auto move = [&](auto bytes) {
      each_lane(whole, [&](int i) { std::memcpy(to.at[i], from.at[i], bytes); });
      for (std::uint32_t m = whole; m; m &= m - 1) {
        const int lane = std::countr_zero(m);
        note_copy(warp, to.at[lane], from.at[lane], op.count, op.count);
      }
    };
    if (op.count == 16) return move(std::integral_constant<std::size_t, 16>{});
    if (op.count == 8) return move(std::integral_constant<std::size_t, 8>{});
    return move(std::integral_constant<std::size_t, 4>{});
  }
  std::uint64_t at[32];
  addresses(warp, source, at);
  bool good = true;
  if ((warp.mask = complete)) good = resolve(warp, source.window, at, op.count, from);
  if (good && (warp.mask = reading & ~complete)) {
    // Only the bytes that are read must exist: the last one, then the first.
    std::uint64_t last[32] = {};
    each_lane(warp.mask, [&](int i) { last[i] = at[i] + sizes[i] - 1; });
    good = resolve(warp, source.window, last, 1, from) && resolve(warp, source.window, at, 1, from);
  }
  warp.mask = whole;
  if (!good) return;
  for (std::uint32_t m = whole; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint32_t bytes =
        reading >> lane & 1 ? std::min<std::uint32_t>(sizes[lane], op.count) : 0;
    std::byte data[16] = {};
    if (bytes) std::memcpy(data, from.at[lane], bytes);
    clear_tags(to.at[lane], op.count);
    if (bytes) move_tags(to.at[lane], from.at[lane], bytes);
    note_copy(warp, to.at[lane], from.at[lane], bytes, op.count);
    std::memcpy(to.at[lane], data, op.count);
  }
}

void decode_copy(Decoder& d) {
  if (!d.spelling.has("ca cg")) return d.unsupported();
  d.spelling.ignore("shared shared::cta global");
  d.spelling.ignore(cache_hints);
  if (!d.expect_operands(3, 5)) return;
  const auto size = d.integer(d.operand(2));
  if (!size || (*size != 4 && *size != 8 && *size != 16))
    return d.unsupported("it copies 4, 8 or 16 bytes");
  // A fourth operand is the number of bytes to read, or a predicate that says whether to read
  // nothing at all; or a cache policy (64 bits).
  std::uint32_t bytes = d.constant(static_cast<std::uint64_t>(*size), 32), ignore = 0;
  bool has_ignore = false;
  if (d.operand_count() >= 4) {
    const auto ref = d.register_of(d.operand(3));
    if ((ref && ref->type == Type::pred) || d.operand(3).kind == ptx::OperandKind::Not) {
      ignore = d.predicate_source(d.operand(3));
      has_ignore = true;
    } else if (!ref || bits(ref->type) == 32) {
      bytes = d.source(3, Type::u32);
    }
  }
  Op source{}, target{};
  d.address(source, d.operand(1), Window::global);
  d.address(target, d.operand(0), Window::shared);
  const std::uint32_t more[] = {static_cast<std::uint32_t>(source.value),
                                static_cast<std::uint32_t>(source.value >> 32), source.wide,
                                static_cast<std::uint32_t>(source.window)};
  const std::uint32_t list = d.append(more);
  Op& op = d.emit(copy);
  op.a = target.a;
  op.value = target.value;
  op.window = target.window;
  op.wide = target.wide;
  op.b = source.a;
  op.c = bytes;
  op.e = ignore;
  op.list = list;
  op.count = static_cast<std::uint8_t>(*size);
  op.flags = has_ignore;
}

// ---- mbarrier.

enum class Action : std::uint8_t {
  init,
  invalidate,
  arrive,
  expect,
  complete,
  arrive_expect,
  arrive_drop,
  arrive_drop_expect
};

// At generic addresses: whether the mbarriers are in shared memory, of this block with `own`, else
// of the cluster.
bool are_in_place(Warp& warp, const Op& op, bool own) {
  if (op.window != Window::generic) return true;
  std::uint64_t at[32];
  addresses(warp, op, at);
  const std::uint32_t lost = lanes_where(warp.mask, [&](int i) {
    const std::uint64_t place = (at[i] & (window_bytes - 1)) >> rank_shift;
    return window_of(at[i]) != Window::shared ||
           (own && place != 0 && place != warp.block->rank() + 1);
  });
  if (!lost) return true;
  const int lane = std::countr_zero(lost);
  warp.fail("memory-fault"_rule,
            fmt::format("expected an mbarrier in shared memory of the {}, found address 0x{:x}",
                        own ? "own CTA" : "cluster", at[lane]),
            lane, at[lane]);
  return false;
}

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

// op.c of act(): a relaxed arrival, and one that cp.async makes when its copies are over.
constexpr std::uint32_t is_relaxed = 1, after_copies = 2;

// op.b: the count or the transactions; op.d: the state before, if op.count says so.
void act(Warp& warp, const Op& op) {
  const bool own = op.count || op.flags <= static_cast<std::uint8_t>(Action::invalidate);
  Access access;
  if (!are_in_place(warp, op, own) || !resolve(warp, op, 8, access)) return;
  const auto* counts = lanes<std::uint32_t>(warp, op.b);
  const auto action = static_cast<Action>(op.flags);
  ClusterRaces* const races = warp.block->cluster().races();
  // Lanes that arrived at the mbarrier of the last of them, and are still to say what they did.
  std::uint32_t arrived = 0;
  const std::byte* arrived_at = nullptr;
  const auto tell = [&] {
    for (std::uint32_t m = op.c & after_copies ? arrived : 0; m; m &= m - 1)
      races->copies_arrive(warp, static_cast<std::uint32_t>(std::countr_zero(m)), arrived_at);
    if (arrived && !(op.c & after_copies))
      races->arrive_at(warp, arrived, arrived_at, (op.c & is_relaxed) != 0, op.e != 0);
    arrived = 0;
  };
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::byte* at = access.at[lane];
    if (races && action == Action::init) races->initialise(warp, lane, at);
    if (ClusterDefinedness* definedness = warp.block->cluster().definedness())
      definedness->fill(warp, at, 8);
    if (races && action != Action::init && action != Action::invalidate &&
        !races->use(warp, 1u << lane, at))
      return;
    Mbarrier barrier = Mbarrier::load(at);
    if (op.count) lanes<std::uint64_t>(warp, op.d)[lane] = barrier.word();
    const std::uint32_t count = counts[lane];
    switch (action) {
      case Action::init: {
        if (count == 0 || count > Mbarrier::most_arrivals)
          return warp.fail("trap"_rule, fmt::format("mbarrier.init with a count of {}", count),
                           lane);
        barrier = {.pending = count, .expected = count};
        break;
      }
      case Action::invalidate: {
        const std::uint64_t zero = 0;
        std::memcpy(at, &zero, 8);
        if (races) races->invalidate(warp, lane, at);
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
    if (races && arrives) {
      if (at != arrived_at) tell();
      arrived |= 1u << lane;
      arrived_at = at;
    }
    if (!barrier.store(at)) continue;
    if (!races) continue;
    tell();
    races->end_phase(at);
  }
  if (races) tell();
}

// op.b: the state (64 bits) or, with flag 1, the parity (32 bits). A wait that fails gives the
// other warps their turn.
void test_wait(Warp& warp, const Op& op) {
  Access access;
  if (!are_in_place(warp, op, true) || !resolve(warp, op, 8, access)) return;
  ClusterRaces* const races = warp.block->cluster().races();
  if (const int lane = std::countr_zero(warp.mask);
      races && !races->exists(warp, lane, access.at[lane]))
    return;
  const std::uint32_t done = lanes_where(warp.mask, [&](int i) {
    const bool phase = Mbarrier::load(access.at[i]).phase;
    const bool waited = op.flags & 1 ? lanes<std::uint32_t>(warp, op.b)[i] & 1
                                     : lanes<std::uint64_t>(warp, op.b)[i] >> 63;
    return phase != waited;
  });
  set_predicate(warp, op.d, done);
  if (done == 0) {
    const int lane = std::countr_zero(warp.mask);
    const bool parity = op.flags & 1 ? lanes<std::uint32_t>(warp, op.b)[lane] & 1
                                     : lanes<std::uint64_t>(warp, op.b)[lane] >> 63;
    return warp.poll_again(static_cast<std::uint64_t>(access.at[lane] - warp.block->shared()),
                           parity);
  }
  warp.poll_done();
  for (std::uint32_t m = races ? done : 0; m;) {
    const std::byte* at = access.at[std::countr_zero(m)];
    const std::uint32_t same = lanes_where(m, [&](int i) { return access.at[i] == at; });
    races->waited(warp, same, at, op.flags & 2, op.flags & 4);
    m &= ~same;
  }
  if (done != warp.mask) warp.yield();
}

void pending_count(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto* a = lanes<std::uint64_t>(warp, op.a);
  each_lane(warp.mask, [=](int i) { d[i] = static_cast<std::uint32_t>(a[i] & Mbarrier::field); });
}

// The state space of an mbarrier; with `own`, it is of this block.
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

void emit_action(Decoder& d, Action action, std::size_t where, std::uint32_t count,
                 std::optional<std::uint32_t> state) {
  const Window window = mbarrier_window(
      d, state.has_value() || action == Action::init || action == Action::invalidate);
  Op& op = d.emit(act);
  op.flags = static_cast<std::uint8_t>(action);
  op.b = count;
  const bool copies = d.spelling.opcode() == Opcode::cp_async_mbarrier_arrive;
  op.c = (d.spelling.has("relaxed") ? is_relaxed : 0) | (copies ? after_copies : 0);
  op.e = d.spelling.has("cta");
  op.d = state.value_or(0);
  op.count = state.has_value();
  d.address(op, d.operand(where), window);
}

constexpr isa::QualifierSet mbarrier_orders = "release acquire relaxed cta cluster";

void decode_init(Decoder& d) {
  d.spelling.type();
  if (d.expect_operands(2, 2))
    emit_action(d, Action::init, 0, d.source(1, Type::u32), std::nullopt);
}

void decode_invalidate(Decoder& d) {
  d.spelling.type();
  if (d.expect_operands(1, 1))
    emit_action(d, Action::invalidate, 0, d.constant(1, 32), std::nullopt);
}

void decode_wait(Decoder& d) {
  d.spelling.type();
  d.spelling.ignore(mbarrier_orders);
  const bool parity = d.spelling.has("parity");
  if (!d.expect_operands(3, 4)) return;
  const bool of_cta = d.spelling.has("cta");
  const std::uint32_t to = d.destination(0, Type::pred),
                      from = d.source(2, parity ? Type::u32 : Type::b64);
  const Window window = mbarrier_window(d, true);
  Op& op = d.emit(test_wait);
  op.d = to;
  op.b = from;
  op.flags =
      static_cast<std::uint8_t>(parity | (d.spelling.has("relaxed") ? 2 : 0) | (of_cta ? 4 : 0));
  d.address(op, d.operand(1), window);
}

void decode_pending_count(Decoder& d) {
  d.spelling.type();
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
  // [state,] [address] [, count]
  const std::size_t n = d.operand_count();
  const bool has_state = n > 0 && d.operand(0).kind != ptx::OperandKind::Address;
  const std::size_t where = has_state ? 1 : 0;
  if (!d.expect_operands(where + 1, where + 2)) return;
  std::optional<std::uint32_t> state;
  if (has_state && d.operand(0).text != "_") state = d.destination(0, Type::b64);
  const std::uint32_t count = n > where + 1 ? d.source(where + 1, Type::u32) : d.constant(1, 32);
  emit_action(d, action, where, count, state);
}

// What lanes of cp.async.mbarrier.arrive know when their copies are over; with .noinc act() says so
// lane by lane, since the phase may end before the last of them.
void note_copies(Warp& warp, const Op& op) {
  ClusterRaces* const races = warp.block->cluster().races();
  Access access;
  if (!races || !resolve(warp, op, 8, access)) return;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    if (!races->use(warp, 1u << lane, access.at[lane])) return;
    races->copies_arrive(warp, lane, access.at[lane]);
  }
}

// cp.async.mbarrier.arrive: the lane's copies are done, so it arrives now. Without .noinc the
// arrival is one more than the barrier expected, which leaves it as it was.
void decode_copy_arrival(Decoder& d) {
  d.spelling.type();
  if (!d.expect_operands(1, 1)) return;
  if (d.spelling.has("noinc"))
    return emit_action(d, Action::arrive, 0, d.constant(1, 32), std::nullopt);
  const Window window = mbarrier_window(d, true);
  Op& op = d.emit(d.program().judged() ? note_copies : no_operation);
  d.address(op, d.operand(0), window);
}

// What is copied when it is issued needs no waiting for: only the race detector hears of it.
void commit_copies(Warp& warp, const Op&) {
  warp.block->cluster().races()->clocks().commit(warp, warp.mask, Actor::cp_async);
}

// op.value: groups that may be pending; op.flags: what is in no group is not.
void wait_for_copies(Warp& warp, const Op& op) {
  std::optional<std::uint32_t> pending;
  if (!op.flags) pending = static_cast<std::uint32_t>(op.value);
  warp.block->cluster().races()->clocks().wait(warp, warp.mask, Actor::cp_async, pending);
}

void decode_group(Decoder& d) {
  const bool one = d.spelling.opcode() == Opcode::cp_async_wait_group;
  if (!d.expect_operands(one ? 1 : 0, one ? 1 : 0)) return;
  if (!d.program().judged()) return void(d.emit(no_operation));
  if (d.spelling.opcode() == Opcode::cp_async_commit_group) return void(d.emit(commit_copies));
  const auto pending = one ? d.integer(d.operand(0)) : std::nullopt;
  Op& op = d.emit(wait_for_copies);
  op.value = static_cast<std::uint64_t>(pending.value_or(0));
  op.flags = !one;
}

constexpr InstructionRow rows[] = {
    {Opcode::cp_async, decode_copy},
    {Opcode::cp_async_commit_group, decode_group},
    {Opcode::cp_async_wait_group, decode_group},
    {Opcode::cp_async_wait_all, decode_group},
    {Opcode::cp_async_mbarrier_arrive, decode_copy_arrival},
    {Opcode::mbarrier_init, decode_init},
    {Opcode::mbarrier_inval, decode_invalidate},
    {Opcode::mbarrier_expect_tx, decode_mbarrier},
    {Opcode::mbarrier_complete_tx, decode_mbarrier},
    {Opcode::mbarrier_arrive, decode_mbarrier},
    {Opcode::mbarrier_arrive_drop, decode_mbarrier},
    {Opcode::mbarrier_test_wait, decode_wait},
    {Opcode::mbarrier_try_wait, decode_wait},
    {Opcode::mbarrier_pending_count, decode_pending_count},
};

}  // namespace

std::span<const InstructionRow> asynchronous_instructions() { return rows; }

}  // namespace tartan::inline TARTAN_ABI::emulator
