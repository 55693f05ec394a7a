// SPDX-License-Identifier: Apache-2.0
// What the race detector hears of instructions, in launches that it watches: handlers around those
// whose row has an access.
//
// A strong write tells what its thread knows before it is done, a strong read learns after it: all
// in one op, so that no other warp comes in between.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/races/detector.h"
#include "runtime/emulator/races/watches.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

const Watch& watch_of(const Warp& warp) {
  return (*warp.program->observation<RaceWatches>())[warp.pc - 1];
}

void note_strong(Warp& warp, const Op& op, const Watch& watch, const std::uint64_t* at) {
  if (watch.strong) tell(warp, &Events::communicate, op.window, at, watch.bytes);
}

Ordering ordering(const Watch& watch) {
  return {static_cast<Scope>(watch.scope), watch.acquires, watch.releases, watch.sequential};
}

WatchedAccess access_of(const Watch& watch, const Op& op, std::uint32_t lanes,
                        const std::uint64_t* at) {
  return {.window = op.window,
          .lanes = lanes,
          .bytes = watch.bytes,
          .at = at,
          .writes = watch.writes,
          .strong = watch.strong,
          .noncoherent = watch.noncoherent,
          .is_volatile = watch.is_volatile,
          .scope = static_cast<Scope>(watch.scope),
          .element_bytes = watch.atom_bytes,
          .continues = watch.atomic != Watch::Atomic::no,
          .observes = watch.atomic != Watch::Atomic::no && watch.atomic != Watch::Atomic::reduces};
}

StrongAccess strong_of(const Watch& watch, const Op& op, std::uint32_t lanes,
                       const std::uint64_t* at) {
  using Kind = StrongUse::Kind;
  const bool reduces = watch.atomic == Watch::Atomic::reduces;
  const bool commutes = reduces && watch.operation;
  return {.window = op.window,
          .lanes = lanes,
          .at = at,
          .ordering = ordering(watch),
          .use = {!watch.writes ? Kind::reads
                  : commutes    ? Kind::reduces
                                : Kind::writes,
                  watch.operation},
          .reads = !watch.writes || (watch.atomic != Watch::Atomic::no && !reduces),
          .replaces = watch.writes && watch.atomic == Watch::Atomic::no};
}

void watched_load(Warp& warp, const Op& op) {
  const Watch& watch = watch_of(warp);
  std::uint64_t at[32];
  addresses(warp, op, at);  // the load may go to their register
  note_strong(warp, op, watch, at);
  races_of(warp).access(warp, access_of(watch, op, warp.mask, at));
  watch.inner(warp, op);
  if (watch.strong) races_of(warp).order(warp, strong_of(watch, op, warp.mask, at));
}

void watched_store(Warp& warp, const Op& op) {
  const Watch& watch = watch_of(warp);
  std::uint64_t at[32];
  addresses(warp, op, at);
  note_strong(warp, op, watch, at);
  const StoredValue value{op, watch.element_bytes, watch.wide};
  WatchedAccess access = access_of(watch, op, warp.mask, at);
  if (watch.element_bytes) access.value = &value;
  races_of(warp).access(warp, access);
  if (watch.strong) races_of(warp).order(warp, strong_of(watch, op, warp.mask, at));
  watch.inner(warp, op);
}

// Those lanes of a compare-and-swap that find what they compare with: the others only read (PTX ISA
// 9.7.13). Lanes come one after another.
std::uint32_t swapping(Warp& warp, const Op& op, const Watch& watch) {
  Access access;
  const std::size_t bytes = watch.bytes;
  if (bytes > 8 || !resolve(warp, op, static_cast<std::uint32_t>(bytes), access)) return warp.mask;
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const std::size_t step = bytes == 8 ? 8 : 4;
  const auto value = [&](std::uint32_t slot, int lane) {
    std::uint64_t out = 0;
    std::memcpy(&out, warp.arena + slot + step * static_cast<std::size_t>(lane), bytes);
    return out;
  };
  std::uint32_t out = 0;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::uint64_t there = 0;
    std::memcpy(&there, access.at[lane], bytes);
    for (std::uint32_t before = out; before; before &= before - 1)
      if (const int other = std::countr_zero(before); access.at[other] == access.at[lane])
        there = value(op.c, other);
    if (there == value(slots[1], lane)) out |= 1u << lane;
  }
  return out;
}

void watched_atomic(Warp& warp, const Op& op) {
  const Watch& watch = watch_of(warp);
  std::uint64_t at[32];
  addresses(warp, op, at);
  note_strong(warp, op, watch, at);
  const std::uint32_t writes =
      watch.atomic == Watch::Atomic::compares ? swapping(warp, op, watch) : warp.mask;
  if (warp.leave) return;
  Watch reading = watch;
  reading.writes = false;
  const auto tell = [&](const Watch& how, std::uint32_t lanes) {
    if (!lanes) return;
    races_of(warp).access(warp, access_of(how, op, lanes, at));
    races_of(warp).order(warp, strong_of(how, op, lanes, at));
  };
  tell(watch, writes);
  tell(reading, warp.mask & ~writes);
  watch.inner(warp, op);
}

// What is in the block's shared memory at those addresses, as far as they lead there.
void copy_rows(Warp& warp, Window window, std::uint32_t rows, const std::uint64_t* at,
               std::byte (*to)[StoredRows::bytes]) {
  for (std::uint32_t m = rows; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::uint64_t offset = at[lane];
    if (window == Window::generic) offset -= window_base(Window::shared);
    offset &= shared_offset_mask;
    if (offset + StoredRows::bytes <= warp.block->shared_bytes())
      std::memcpy(to[lane], warp.block->shared() + offset, StoredRows::bytes);
  }
}

// The rows that stmatrix stores.
void copy_stored(Warp& warp, const Op& op, std::byte (*to)[StoredRows::bytes]) {
  const MatrixOperation& m = warp.program->matrices[op.list];
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  const auto bytes = static_cast<std::size_t>(fragment.container_bits) / 8;
  for (int i = 0; i < fragment.elements(); ++i) {
    const auto* from =
        lanes<std::uint32_t>(warp, m.c[static_cast<std::size_t>(i / fragment.per_register)]);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const RowElement place = m.places[static_cast<std::size_t>(32 * i) + lane];
      const std::uint32_t value = from[lane] >> i % fragment.per_register * fragment.container_bits;
      std::memcpy(to[place.row] + place.col * bytes, &value, bytes);
    }
  }
}

// ldmatrix and stmatrix: done when all lanes have come.
void watched_rows(Warp& warp, const Op& op) {
  const Watch& watch = watch_of(warp);
  std::uint64_t at[32];
  addresses(warp, op, at);
  const std::uint32_t rows = watch.rows >= 32 ? all_lanes : (1u << watch.rows) - 1;
  StoredRows stored;
  if (watch.writes) copy_rows(warp, op.window, rows, at, stored.before);
  watch.inner(warp, op);
  if (warp.leave) return;
  WatchedAccess access = access_of(watch, op, warp.mask & rows, at);
  access.collective = !watch.writes;
  if (watch.writes) {
    copy_stored(warp, op, stored.now);
    access.rows = &stored;
  }
  races_of(warp).access(warp, access);
}

void watched_copy(Warp& warp, const Op& op) {
  const Watch& watch = watch_of(warp);
  std::uint64_t at[32];
  addresses(warp, op, at);
  WatchedAccess access = access_of(watch, op, warp.mask, at);
  access.actor = Actor::cp_async;
  races_of(warp).access(warp, access);
  const std::uint32_t* more = warp.program->slots.data() + op.list;
  Op source = op;
  source.a = op.b;
  source.value = more[0] | std::uint64_t{more[1]} << 32;
  source.wide = more[2];
  addresses(warp, source, at);
  const auto* sizes = lanes<std::uint32_t>(warp, op.c);
  const std::uint32_t ignore = op.flags & 1 ? predicate(warp, op.e) : 0;
  access.window = static_cast<Window>(more[3]);
  access.writes = false;
  access.lanes &= ~ignore & lanes_where(warp.mask, [=](int i) { return sizes[i] >= op.count; });
  races_of(warp).access(warp, access);
  watch.inner(warp, op);
}

// A weak access to the whole of the map, whichever field it writes.
void watched_replace(Warp& warp, const Op& op) {
  const Watch& watch = watch_of(warp);
  const Op where = address_at(warp, op.list);
  std::uint64_t at[32];
  addresses(warp, where, at);
  constexpr int map_bytes = 128;
  for (int done = 0; done < map_bytes; done += watch.bytes) {
    races_of(warp).access(warp, access_of(watch, where, warp.mask, at));
    for (std::uint64_t& each : at) each += watch.bytes;
  }
  watch.inner(warp, op);
}

void watched_fence(Warp& warp, const Op& op) {
  const Watch& watch = watch_of(warp);
  watch.inner(warp, op);
  races_of(warp).clocks().fence(warp, warp.mask, ordering(watch));
}

// ---- Decoding.

Scope scope_of(const isa::Spelling& spelling) {
  if (spelling.has("cta"_q)) return Scope::cta;
  if (spelling.has("cluster"_q)) return Scope::cluster;
  return Scope::gpu;
}

// State spaces in which nobody else is, or nobody writes.
bool private_space(const isa::Spelling& spelling) {
  constexpr isa::QualifierSet spaces = "local param param::entry param::func const";
  return !(spelling.words & spaces).empty();
}

// What a load, store or atomic does beside its access.
void read_order(const isa::Spelling& spelling, AccessKind kind, Watch& watch) {
  const bool volatile_ = spelling.has("volatile"_q) || spelling.has("mmio"_q);
  const bool atomic = kind == AccessKind::Changes || kind == AccessKind::Reduces;
  const bool both = spelling.has("acq_rel"_q);
  watch.is_volatile = spelling.has("volatile"_q);
  watch.acquires = both || spelling.has("acquire"_q);
  watch.releases = both || spelling.has("release"_q);
  watch.strong =
      volatile_ || atomic || watch.acquires || watch.releases || spelling.has("relaxed"_q);
  watch.scope = static_cast<std::uint8_t>(volatile_ ? Scope::gpu : scope_of(spelling));
}

// Weak accesses of global memory, where shared memory alone is looked at.
bool is_global(const isa::Spelling& spelling) {
  const auto spaces = isa::state_spaces(spelling);
  return spaces.size > 0 && memory_of(spaces[0]) == StateSpace::global;
}

// Of an element of a vector. Packed types are changed by halves.
std::uint8_t atom_bytes(const isa::Spelling& spelling, std::uint8_t bytes) {
  if (spelling.type(0) == Type::f16x2 || spelling.type(0) == Type::bf16x2) return 0;
  const int elements = spelling.has("v8"_q)   ? 8
                       : spelling.has("v4"_q) ? 4
                       : spelling.has("v2"_q) ? 2
                                              : 1;
  return static_cast<std::uint8_t>(bytes / elements);
}

// Names what the order of several makes no difference to: ".global.add.u32" of atom and of red. inc
// and dec with different bounds do not commute.
std::uint64_t commuting(const isa::Spelling& spelling) {
  constexpr isa::Qualifier operations[] = {"add"_q, "min"_q, "max"_q, "and"_q, "or"_q, "xor"_q};
  const auto has = [&](isa::Qualifier each) { return spelling.has(each); };
  if (std::ranges::none_of(operations, has)) return 0;
  return std::hash<std::string_view>()(spelling.text.substr(spelling.row().name.size())) | 1;
}

Handler watch_access(const isa::Spelling& spelling, AccessKind kind, bool all, Watch& watch) {
  if (private_space(spelling)) return nullptr;
  watch.bytes = static_cast<std::uint8_t>(std::max(1, isa::access_bits(spelling) / 8));
  read_order(spelling, kind, watch);
  if (!all && !watch.strong && is_global(spelling)) return nullptr;
  watch.noncoherent = spelling.has("nc"_q) || spelling.has("proxy::readonly"_q);
  watch.atom_bytes = atom_bytes(spelling, watch.bytes);
  if (kind == AccessKind::Loads) return watched_load;
  watch.writes = true;
  if (kind == AccessKind::Stores) return watched_store;
  watch.atomic = kind == AccessKind::Reduces ? Watch::Atomic::reduces
                 : spelling.has("cas"_q)     ? Watch::Atomic::compares
                                             : Watch::Atomic::gives;
  watch.operation = commuting(spelling);
  return watched_atomic;
}

std::uint8_t rows_of(const isa::Spelling& spelling) {
  return spelling.has("x4"_q) ? 32 : spelling.has("x2"_q) ? 16 : 8;
}

Handler watch_fence(const isa::Spelling& spelling, Watch& watch) {
  const bool orders =
      spelling.has("tensormap::generic"_q) || (spelling.has("alias"_q) && spelling.has("sys"_q));
  if (spelling.opcode == Opcode::fence_proxy && !orders) return nullptr;
  if (spelling.opcode == Opcode::fence && spelling.has("mbarrier_init"_q)) return nullptr;
  if (spelling.opcode == Opcode::membar && spelling.has("proxy"_q)) return nullptr;
  watch.sequential = spelling.opcode == Opcode::membar || spelling.has("sc"_q);
  const bool one_way = spelling.has("acquire"_q) || spelling.has("release"_q);
  watch.acquires = !one_way || spelling.has("acquire"_q);
  watch.releases = !one_way || spelling.has("release"_q);
  watch.scope = static_cast<std::uint8_t>(scope_of(spelling));
  return watched_fence;
}

Handler watch_instruction(const isa::Spelling& spelling, AccessKind kind, bool all, Watch& watch) {
  switch (kind) {
    case AccessKind::None: return nullptr;
    case AccessKind::Loads:
    case AccessKind::Stores:
    case AccessKind::Changes:
    case AccessKind::Reduces: return watch_access(spelling, kind, all, watch);
    case AccessKind::LoadsRows:
    case AccessKind::StoresRows:
      watch.bytes = spelling.type(1) == Type::s4 ? 8 : 16;
      watch.rows = rows_of(spelling);
      watch.writes = kind == AccessKind::StoresRows;
      return watched_rows;
    case AccessKind::Copies: watch.writes = true; return watched_copy;
    case AccessKind::ReplacesFields:
      watch.bytes = 32;
      watch.writes = true;
      return watched_replace;
    case AccessKind::Orders: return watch_fence(spelling, watch);
  }
  return nullptr;
}

}  // namespace

void RaceWatches::decoded(Decoder& d, std::size_t first) {
  Program& program = d.program();
  Watch watch;
  const isa::Spelling& spelling = d.spelling.as_read();
  const AccessKind kind = emulated(spelling).access;
  const Handler outer = watch_instruction(spelling, kind, whole_, watch);
  if (!outer) return;
  Op& op = program.ops[spelling.opcode == Opcode::fence_proxy ? first : program.ops.size() - 1];
  if (kind == AccessKind::Copies) watch.bytes = op.count;
  if (kind == AccessKind::Stores && isa::access_bits(spelling) <= 256) {
    const Type type = spelling.type(0);
    const auto slots = std::span(program.slots).subspan(op.list, op.count);
    const bool plain = bits(type) <= 64 && std::ranges::count(slots, ~0u) == 0;
    if (plain) watch.element_bytes = static_cast<std::uint8_t>(std::max(bits(type), 8) / 8);
    watch.wide = op.flags & 1;
  }
  watch.inner = op.run;
  op.run = outer;
  watches_.resize(program.ops.size());
  watches_[static_cast<std::size_t>(&op - program.ops.data())] = watch;
}

}  // namespace tartan::TARTAN_ABI::emulator
