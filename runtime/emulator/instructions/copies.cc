// SPDX-License-Identifier: Apache-2.0
// cp.async and its groups (PTX ISA 9.0, 9.7.9.25). A copy is done when it is issued, and waits find
// it complete; under a schedule it is done some time later. Bulk copies are in bulk.cc.
#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/instructions/mbarriers.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// What the lanes of cp.async copy: so many bytes each, and zeros behind them.
struct Copies {
  Access to, from;
  std::uint32_t bytes[32] = {};
  std::uint32_t room = 0;
};

void move_copies(Warp& warp, const Copies& copies) {
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint32_t bytes = copies.bytes[lane];
    std::byte data[16] = {};
    std::byte* const to = copies.to.at[lane];
    if (bytes) std::memcpy(data, copies.from.at[lane], bytes);
    if (bytes < copies.room) tell(warp, &ValueEvents::fill, to, copies.room);
    if (bytes) tell(warp, &ValueEvents::move, to, copies.from.at[lane], bytes);
    std::memcpy(to, data, copies.room);
  }
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
  Cluster& cluster = warp.block->cluster();
  if (complete == whole && !cluster.issues_late()) {  // the usual case
    if (!resolve(warp, source, op.count, from)) return;
    if (cluster.values_are_followed())
      each_lane(whole,
                [&](int i) { tell(warp, &ValueEvents::move, to.at[i], from.at[i], op.count); });
    const auto move = [&](auto bytes) {
      each_lane(whole, [&](int i) { std::memcpy(to.at[i], from.at[i], bytes); });
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
  Copies copies{.to = to, .from = from, .room = op.count};
  each_lane(reading, [&](int i) { copies.bytes[i] = std::min<std::uint32_t>(sizes[i], op.count); });
  // Lanes that closed as many groups share an operation.
  cluster.issue(warp, warp.mask, AsyncKind::copy, [&warp, copies] { move_copies(warp, copies); });
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

// What lanes of cp.async.mbarrier.arrive know when their copies are over; with .noinc act() says so
// lane by lane, since the phase may end before the last of them.
void note_copies(Warp& warp, const Op& op) {
  Access access;
  if (!warp.block->cluster().is_observed() || !resolve(warp, op, 8, access)) return;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const std::uint32_t lane = m & (0 - m);
    std::byte* const at = access.at[std::countr_zero(m)];
    if (!ask(warp, &Events::use_mbarrier, lane, at, MbarrierUse{.raises = true})) return;
    tell(warp, &Events::arrived_at_mbarrier, lane, at, MbarrierArrival{.by_copies = true});
  }
}

// One arrival at each lane's mbarrier.
void arrive_after_copies(Warp& warp, const Access& access) {
  Cluster& cluster = warp.block->cluster();
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::byte* const at = access.at[lane];
    Mbarrier barrier = Mbarrier::load(at);
    if (barrier.pending == 0)
      return warp.fail("trap"_rule, "too many arrivals: the mbarrier expects no more in this phase",
                       lane);
    --barrier.pending;
    const bool ends = barrier.store(at);
    cluster.tell(&Events::completed, cluster,
                 Completion{.mbarrier = at, .arrivals = 1, .ends = ends});
  }
}

// The lanes' arrivals, once their copies are over. op.flags: the mbarrier expects one more of each.
void arrive_late(Warp& warp, const Op& op) {
  Access access;
  if (!are_in_place(warp, op, true) || !resolve(warp, op, 8, access)) return;
  note_copies(warp, op);
  if (warp.leave) return;
  for (std::uint32_t m = op.flags ? warp.mask : 0; m; m &= m - 1) {
    std::byte* const at = access.at[std::countr_zero(m)];
    Mbarrier barrier = Mbarrier::load(at);
    ++barrier.pending;
    barrier.store(at);
  }
  warp.block->cluster().issue(warp, warp.mask, AsyncKind::arrival,
                              [&warp, access] { arrive_after_copies(warp, access); });
}

// cp.async.mbarrier.arrive: the lane's copies are done, so it arrives now. Without .noinc the
// arrival is one more than the barrier expected, which leaves it as it was.
void decode_copy_arrival(Decoder& d) {
  d.spelling.type();
  if (!d.expect_operands(1, 1)) return;
  const bool counted = d.spelling.has("noinc");
  if (d.is_scheduled()) {
    const Window window = mbarrier_window(d, counted);
    Op& op = d.emit(arrive_late);
    op.flags = !counted;
    return d.address(op, d.operand(0), window);
  }
  if (counted) return decode_arrival_after_copies(d);
  const Window window = mbarrier_window(d, true);
  Op& op = d.emit(note_copies);
  d.address(op, d.operand(0), window);
}

// What is copied when it is issued needs no waiting for: only observers hear of it.
void commit_copies(Warp& warp, const Op&) { warp.block->cluster().commit(warp, AsyncKind::copy); }

// op.value: groups that may be pending; op.flags: what is in no group is not.
void wait_for_copies(Warp& warp, const Op& op) {
  std::optional<std::uint32_t> pending;
  if (!op.flags) pending = static_cast<std::uint32_t>(op.value);
  warp.block->cluster().wait(warp, AsyncKind::copy, pending);
}

void decode_group(Decoder& d) {
  const bool one = d.spelling.opcode() == Opcode::cp_async_wait_group;
  if (!d.expect_operands(one ? 1 : 0, one ? 1 : 0)) return;
  if (d.spelling.opcode() == Opcode::cp_async_commit_group) return void(d.emit(commit_copies));
  const auto pending = one ? d.integer(d.operand(0)) : std::nullopt;
  Op& op = d.emit(wait_for_copies);
  op.value = static_cast<std::uint64_t>(pending.value_or(0));
  op.flags = !one;
}

}  // namespace

constexpr EmulatedRow copies_rows[] = {
    {Opcode::cp_async, decode_copy, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::Copies, Idle::No, nothing},
    {Opcode::cp_async_commit_group, decode_group, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::cp_async_wait_group, decode_group, Flow::ByHandler, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::cp_async_wait_all, decode_group, Flow::ByHandler, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::cp_async_mbarrier_arrive, decode_copy_arrival, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(copies_rows, topics::copies));

}  // namespace tartan::TARTAN_ABI::emulator
