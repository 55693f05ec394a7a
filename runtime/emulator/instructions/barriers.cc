// SPDX-License-Identifier: Apache-2.0
// Barriers of a block and a warp, and fences (PTX ISA 9.0, 9.7.13).
#include <fmt/format.h>

#include <atomic>
#include <bit>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint8_t aligned = 1, waits = 2, counted = 4,
                       relaxed = 8;  // in op.count; op.flags is the reduction, which Block reads

void barrier(Warp& warp, const Op& op) {
  if ((op.count & aligned) && !warp.gather(all_lanes)) return;
  const int lane = std::countr_zero(warp.mask);
  const auto* ids = lanes<std::uint32_t>(warp, op.a);
  const std::uint32_t id = ids[lane];
  warp.defer_all_but(lanes_where(warp.mask, [=](int i) { return ids[i] == id; }));
  if (id > 15)
    return warp.fail("trap"_rule, fmt::format("barrier {} does not exist: expected 0 to 15", id),
                     lane);
  const std::uint32_t expected = op.count & counted ? lanes<std::uint32_t>(warp, op.b)[lane] : 0;
  if ((op.count & counted) && (expected == 0 || expected % 32 != 0))
    return warp.fail(
        "trap"_rule,
        fmt::format("barrier {} for {} threads: the thread count must be a multiple of 32", id,
                    expected),
        lane);
  warp.partial_syncs += warp.mask != warp.started;
  warp.block->arrive(warp, id, expected, op.count & waits, op.flags ? predicate(warp, op.c) : 0);
}

// barrier.cluster: op.count as above.
void cluster_barrier(Warp& warp, const Op& op) {
  if ((op.count & aligned) && !warp.gather(all_lanes)) return;
  Cluster& cluster = warp.block->cluster();
  if (op.count & waits) cluster.wait(warp);
  else cluster.arrive(warp, op.count & relaxed);
}

void decode_cluster_barrier(Decoder& d) {
  const bool wait = d.spelling.opcode() == Opcode::barrier_cluster_wait;
  d.spelling.ignore("release acquire");
  if (!d.expect_operands(0, 0)) return;
  d.emit(cluster_barrier).count =
      static_cast<std::uint8_t>((wait ? waits : 0) | (d.spelling.has("aligned") ? aligned : 0) |
                                (d.spelling.has("relaxed") ? relaxed : 0));
}

void decode_warp_barrier(Decoder& d) {
  d.spelling.ignore("sync");
  if (!d.expect_operands(1, 1)) return;
  const std::uint32_t members = d.source(0, Type::b32);
  Op& op = d.emit([](Warp& warp, const Op& o) {
    if (!warp.gather_members(lanes<std::uint32_t>(warp, o.e))) return;
    tell(warp, &Events::sync_warp);
    warp.partial_syncs += warp.mask != warp.started;
  });
  op.e = members;
  d.gather_anywhere(op, {});
}

void decode_barrier(Decoder& d) {
  d.spelling.ignore("cta aligned");
  const std::string_view kind = d.spelling.any("sync arrive red");
  if (kind.empty()) return d.unsupported();
  std::uint8_t mode = kind == "arrive" ? 0 : waits;
  if (isa::needs_all_lanes(d.spelling.as_read())) mode |= aligned;
  std::uint8_t reduction = 0;
  std::size_t at = 0;
  std::uint32_t to = 0;
  if (kind == "red") {
    const std::string_view name = d.spelling.any("popc and or");
    const Type type = d.spelling.type();
    reduction = name == "popc" ? 1 : name == "and" ? 2 : name == "or" ? 3 : 0;
    if (!reduction || type != (reduction == 1 ? Type::u32 : Type::pred)) return d.unsupported();
    if (d.operand_count() < 3) return void(d.expect_operands(3, 4));
    to = d.destination(at++, type);
  }
  const std::size_t left = d.operand_count() - at - (reduction ? 1 : 0);
  if (left != 1 && left != 2) return void(d.expect_operands(at + 1, at + 2));
  const std::uint32_t id = d.source(at++, Type::u32);
  std::uint32_t count = 0;
  if (left == 2) {
    count = d.source(at++, Type::u32);
    mode |= counted;
  }
  const std::uint32_t p = reduction ? d.predicate_source(d.operand(at)) : 0;
  Op& op = d.emit(barrier);
  op.d = to;
  op.a = id;
  op.b = count;
  op.c = p;
  op.count = mode;
  op.flags = reduction;
}

void fence(Warp&, const Op&) { std::atomic_thread_fence(std::memory_order_seq_cst); }

// fence.proxy.async; op.flags: 1 for shared memory, 2 for global.
void fence_proxy(Warp& warp, const Op& op) {
  tell(warp, &Events::fence_proxy, op.flags & 1, op.flags & 2);
}

void fence_inits(Warp& warp, const Op&) { tell(warp, &Events::fence_inits); }

// fence.proxy.tensormap with .acquire of the map at an address.
void acquire_map(Warp& warp, const Op& op) {
  std::uint64_t at[32];
  addresses(warp, op, at);
  tell(warp, &Events::acquire_map, at, op.window);
}

void decode_fence(Decoder& d) {
  if (d.spelling.has("fabric::generic generic::fabric fabric::fabric"))
    return d.unsupported("copies to and from other nodes (fabric) are not emulated");
  if (d.spelling.has("sync_restrict::read")) return d.unsupported(semantics_unknown);
  const bool async = d.spelling.has("async async::generic"),
             of_map = d.spelling.has("tensormap::generic") && d.spelling.has("acquire"),
             of_inits = d.spelling.opcode() == Opcode::fence_mbarrier_init ||
                        d.spelling.has("mbarrier_init"),
             global = d.spelling.has("global"),
             shared = d.spelling.has("shared::cta shared::cluster");
  d.spelling.ignore_all();
  d.emit(fence);
  if (!d.is_observed()) return;
  if (async) d.emit(fence_proxy).flags = static_cast<std::uint8_t>(global ? 2 : shared ? 1 : 3);
  if (of_inits) d.emit(fence_inits);
  if (of_map && d.operand_count() > 0) {
    Op where{};
    d.address(where, d.operand(0), Window::generic);
    Op& op = d.emit(acquire_map);
    op.a = where.a;
    op.value = where.value;
    op.wide = where.wide;
    op.window = where.window;
  }
}

}  // namespace

constexpr EmulatedRow barriers_rows[] = {
    {Opcode::bar, decode_barrier, Flow::Collects, ValueSources::Predicates, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::bar_warp, decode_warp_barrier, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::barrier, decode_barrier, Flow::Collects, ValueSources::Predicates, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::barrier_cluster_arrive, decode_cluster_barrier, Flow::Uses, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::barrier_cluster_wait, decode_cluster_barrier, Flow::Uses, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::fence, decode_fence, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::Orders,
     Idle::Silent, nothing},
    {Opcode::fence_proxy, decode_fence, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::Orders, Idle::Silent, nothing},
    {Opcode::fence_mbarrier_init, decode_fence, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::Silent, nothing},
    {Opcode::membar, decode_fence, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::Orders, Idle::Silent, nothing},
};
static_assert(are_rows_of(barriers_rows, topics::barriers));

}  // namespace tartan::TARTAN_ABI::emulator
