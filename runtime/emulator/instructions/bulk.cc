// SPDX-License-Identifier: Apache-2.0
// Bulk copies and reductions (cp.async.bulk, cp.reduce.async.bulk; PTX ISA 9.7.9.27), st.async and
// red.async: what moves bytes and then completes transactions of an mbarrier. All of it is done
// when it is issued.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "runtime/emulator/algebra/algebra.h"
#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::inline TARTAN_ABI::emulator {

std::byte* resolve_range(Warp& warp, int lane, Window window, std::uint64_t address,
                         std::uint64_t bytes, std::uint32_t unit) {
  std::uint64_t at[32] = {};
  Access first, last;
  const std::uint32_t whole = warp.mask;
  warp.mask = std::uint32_t{1} << lane;
  at[lane] = address;
  bool good = resolve(warp, window, at, unit, first);
  at[lane] = address + bytes - unit;
  good = good && resolve(warp, window, at, unit, last);
  warp.mask = whole;
  if (!good) return nullptr;
  if (last.at[lane] - first.at[lane] == static_cast<std::ptrdiff_t>(bytes - unit))
    return first.at[lane];
  warp.fail(
      "memory-fault"_rule,
      fmt::format("bulk copy out of bounds: {} bytes at 0x{:x} extend from one buffer into another",
                  bytes, address),
      lane, address);
  return nullptr;
}

namespace {

constexpr std::uint32_t unit = 16;  // addresses and sizes of bulk copies are multiples of it
constexpr std::uint32_t most_bytes = 1u << 20;

// ---- Bulk.

constexpr std::uint8_t has_barrier = 1, is_multicast = 2, is_masked = 4;  // in op.flags

// Of every 16 bytes those whose bit is set.
void copy_masked(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint32_t mask) {
  for (std::uint32_t i = 0; i < bytes; ++i)
    if (mask >> i % 16 & 1) {
      to[i] = from[i];
      move_tags(to + i, from + i, 1);
    }
}

// One lane's copy to one destination.
std::byte* copy_one(Warp& warp, int lane, Window to, std::uint64_t target, const std::byte* source,
                    std::uint32_t bytes, Reduction reduction, std::optional<std::uint32_t> mask) {
  std::byte* const at = resolve_range(warp, lane, to, target, bytes, unit);
  if (ClusterDefinedness* definedness = warp.block->cluster().definedness(); definedness && at)
    definedness->store(warp, static_cast<std::uint32_t>(lane), at, source, bytes);
  if (at && mask) copy_masked(at, source, bytes, *mask);
  else if (at) move_bytes(at, source, bytes, reduction);
  return at;
}

// What such a copy of a bulk group writes.
bool note_written(Warp& warp, int lane, const Stretch& where, std::optional<std::uint32_t> mask,
                  std::optional<Scope> strong) {
  if (!mask) return note_group_copy(warp, lane, where, true, strong);
  for (std::uint64_t i = 0; i < where.bytes; ++i)
    if (*mask >> i % 16 & 1 &&
        !note_group_copy(warp, lane, {where.window, where.address + i, 1}, true, strong))
      return false;
  return true;
}

// op.list: destination, source and mbarrier addresses; op.a: bytes; op.b: the blocks of a
// multicast; op.c: which bytes of 16 are copied; op.value: a Reduction.
void copy_bulk(Warp& warp, const Op& op) {
  const auto* sizes = lanes<std::uint32_t>(warp, op.a);
  const auto reduction = reinterpret_cast<Reduction>(static_cast<std::uintptr_t>(op.value));
  const Op to = address_at(warp, op.list), from = address_at(warp, op.list + address_words);
  std::uint64_t targets[32], sources[32], barriers[32] = {};
  addresses(warp, to, targets);
  addresses(warp, from, sources);
  if (op.flags & has_barrier)
    addresses(warp, address_at(warp, op.list + 2 * address_words), barriers);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint32_t bytes = sizes[lane];
    if (bytes % unit != 0 || bytes > most_bytes)
      return warp.fail(
          "misaligned-access"_rule,
          fmt::format("illegal size of a bulk copy, {} bytes: expected a multiple of 16 below 2^20",
                      bytes),
          lane);
    const std::byte* source =
        bytes ? resolve_range(warp, lane, from.window, sources[lane], bytes, unit) : nullptr;
    if (bytes && !source) return;
    const Stretch taken{from.window, sources[lane], bytes};
    std::optional<std::uint32_t> mask;
    if (op.flags & is_masked) mask = lanes<std::uint32_t>(warp, op.c)[lane];
    const auto strong = reduction ? std::optional(Scope::gpu) : std::nullopt;
    if (bytes && !(op.flags & has_barrier) &&
        (!note_group_copy(warp, lane, taken, false, std::nullopt) ||
         !note_written(warp, lane, {to.window, targets[lane], bytes}, mask, strong)))
      return;
    const auto copy = [&](Window window, std::uint64_t target, std::uint64_t barrier) {
      std::byte* at = nullptr;
      if (bytes && !(at = copy_one(warp, lane, window, target, source, bytes, reduction, mask)))
        return false;
      return !(op.flags & has_barrier) ||
             complete_transactions(warp, lane, barrier, bytes,
                                   {.at = at,
                                    .room = bytes,
                                    .from = std::span(&taken, bytes ? 1 : 0),
                                    .strong = strong});
    };
    if (!(op.flags & is_multicast)) {
      if (!copy(to.window, targets[lane], barriers[lane])) return;
      continue;
    }
    const std::uint32_t blocks = lanes<std::uint32_t>(warp, op.b)[lane];
    if (!check_multicast(warp, lane, blocks)) return;
    for (std::uint32_t left = blocks; left; left &= left - 1) {
      const auto rank = static_cast<std::uint32_t>(std::countr_zero(left));
      if (!copy(Window::cluster, in_block(targets[lane], rank), in_block(barriers[lane], rank)))
        return;
    }
  }
}

void decode_bulk(Decoder& d, Reduction reduction) {
  const auto spaces = read_spaces(d);
  if (!spaces) return d.unsupported("expected two state spaces");
  const bool masked = d.spelling.has("cp_mask"), hinted = d.spelling.has("L2::cache_hint");
  const bool multicast = d.spelling.has("multicast::cluster");
  const bool barrier = d.spelling.has("mbarrier::complete_tx::bytes");
  if (!barrier && !d.spelling.has("bulk_group"))
    return d.unsupported("expected .bulk_group or .mbarrier::complete_tx::bytes at the end");
  if (masked && (barrier || reduction)) return d.unsupported(".cp_mask requires a copy to .global");
  const std::size_t operands =
      3 + (barrier ? 1 : 0) + (multicast ? 1 : 0) + (hinted ? 1 : 0) + (masked ? 1 : 0);
  if (!d.expect_operands(operands, operands)) return;
  const std::uint32_t list = append_address(d, d.operand(0), spaces->to);
  append_address(d, d.operand(1), spaces->from);
  const std::uint32_t bytes = d.source(2, Type::u32);
  if (barrier) append_address(d, d.operand(3), Window::cluster);
  const std::uint32_t blocks = multicast ? d.source(4, Type::u16) : 0;
  const std::uint32_t mask = masked ? d.source(operands - 1, Type::u16) : 0;
  Op& op = d.emit(copy_bulk);
  op.list = list;
  op.a = bytes;
  op.b = blocks;
  op.c = mask;
  op.flags = static_cast<std::uint8_t>((barrier ? has_barrier : 0) |
                                       (multicast ? is_multicast : 0) | (masked ? is_masked : 0));
  op.value = reinterpret_cast<std::uintptr_t>(reduction);
}

void decode_bulk_reduction(Decoder& d) {
  d.spelling.ignore("noftz");
  const std::string_view name = reduction_name(d);
  const Reduction reduction = find_reduction(name, d.spelling.type());
  if (!reduction) return d.unsupported();
  decode_bulk(d, reduction);
}

// ---- st.bulk: zeros.

// op.list: the address; op.a: how many bytes, in 32 bits if op.flags says so.
void fill_shared(Warp& warp, const Op& op) {
  const Op where = address_at(warp, op.list);
  std::uint64_t at[32];
  addresses(warp, where, at);
  constexpr std::uint64_t word = 8, most = std::uint64_t{1} << 24;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t bytes =
        op.flags ? lanes<std::uint32_t>(warp, op.a)[lane] : lanes<std::uint64_t>(warp, op.a)[lane];
    if (bytes % word != 0 || bytes > most)
      return warp.fail(
          "misaligned-access"_rule,
          fmt::format("illegal size of st.bulk, {} bytes: expected a multiple of 8 up to 2^24",
                      bytes),
          lane);
    if (where.window == Window::generic && window_of(at[lane]) != Window::shared)
      return warp.fail(
          "memory-fault"_rule,
          fmt::format("st.bulk requires a shared memory address, found 0x{:x}", at[lane]), lane,
          at[lane]);
    if (bytes == 0) continue;
    std::byte* const to = resolve_range(warp, lane, where.window, at[lane], bytes, word);
    if (!to) return;
    std::memset(to, 0, bytes);
    clear_tags(to, bytes);
    note_lane_access(warp, lane, {where.window, at[lane], bytes}, true);
    if (ClusterDefinedness* definedness = warp.block->cluster().definedness())
      definedness->fill(warp, to, bytes);
  }
}

// ---- st.async, red.async: a value to shared memory, and its bytes to an mbarrier.

// op.list: the address, the mbarrier's; then op.count slots of op.flags bytes each.
void store_async(Warp& warp, const Op& op) {
  const std::uint32_t size = op.flags;
  const Op where = address_at(warp, op.list);
  Access to, barrier;
  if (!resolve(warp, where, size * op.count, to) ||
      !resolve(warp, address_at(warp, op.list + address_words), 8, barrier))
    return;
  const auto reduction = reinterpret_cast<Reduction>(static_cast<std::uintptr_t>(op.value));
  const std::uint32_t* slots = warp.program->slots.data() + op.list + 2 * address_words;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    for (std::uint32_t k = 0; k < op.count; ++k) {
      std::byte value[8];
      if (size == 8) std::memcpy(value, &lanes<std::uint64_t>(warp, slots[k])[lane], 8);
      else std::memcpy(value, &lanes<std::uint32_t>(warp, slots[k])[lane], 4);
      if (active_algebra)
        active_algebra->memory.store(
            value, warp.tags + slots[k] + size * static_cast<unsigned>(lane), size);
      move_bytes(to.at[lane] + k * size, value, size, reduction);
    }
    if (ClusterDefinedness* definedness = warp.block->cluster().definedness())
      definedness->fill(warp, to.at[lane], size * op.count);
    const auto strong = reduction ? std::optional(Scope::cluster) : std::nullopt;
    if (!complete_transactions(warp, lane, barrier.at[lane], size * op.count,
                               {.at = to.at[lane], .room = size * op.count, .strong = strong}))
      return;
  }
}

void decode_to_barrier(Decoder& d, Reduction reduction, Type type, int count) {
  d.spelling.ignore("weak relaxed cluster shared::cluster");
  // What the assembler makes of st.async.shared::cta completes at the mbarrier without saying so.
  const bool here = !reduction && d.spelling.has("shared shared::cta");
  if (!d.spelling.has("mbarrier::complete_tx::bytes") && !here)
    return d.unsupported("expected .mbarrier::complete_tx::bytes at the end");
  if (bits(type) != 32 && bits(type) != 64) return d.unsupported();
  if (!d.expect_operands(3, 3)) return;
  const ptx::Operand& data = d.operand(1);
  const auto elements =
      data.kind == ptx::OperandKind::Vector ? d.children(data) : std::span(&data, 1);
  if (static_cast<int>(elements.size()) != count)
    return d.error("register-count"_rule, fmt::format("{} expects {} values, found {}",
                                                      d.spelling.text(), count, elements.size()));
  std::vector<std::uint32_t> slots;
  for (const ptx::Operand& element : elements) slots.push_back(d.source(element, type));
  const std::uint32_t list = append_address(d, d.operand(0), Window::cluster);
  append_address(d, d.operand(2), Window::cluster);
  d.append(slots);
  Op& op = d.emit(store_async);
  op.list = list;
  op.count = static_cast<std::uint8_t>(count);
  op.flags = static_cast<std::uint8_t>(bits(type) / 8);
  op.value = reinterpret_cast<std::uintptr_t>(reduction);
}

}  // namespace

std::uint32_t append_address(Decoder& d, const ptx::Operand& operand, Window window) {
  Op op{};
  d.address(op, operand, window);
  const std::uint32_t words[address_words] = {op.a, static_cast<std::uint32_t>(op.value),
                                              static_cast<std::uint32_t>(op.value >> 32), op.wide,
                                              static_cast<std::uint32_t>(op.window)};
  return d.append(words);
}

Op address_at(const Warp& warp, std::uint32_t list) {
  const std::uint32_t* words = warp.program->slots.data() + list;
  Op op{};
  op.a = words[0];
  op.value = words[1] | std::uint64_t{words[2]} << 32;
  op.wide = words[3];
  op.window = static_cast<Window>(words[4]);
  return op;
}

std::optional<Spaces> read_spaces(Decoder& d) {
  constexpr StateSpace taken[] = {StateSpace::global, StateSpace::shared_cta,
                                  StateSpace::shared_cluster};
  std::vector<StateSpace> found;
  for (const StateSpace each : taken)
    if (d.spelling.has(isa::qualifier_of(each))) found.push_back(each);
  if (found.size() != 2) return std::nullopt;
  if (!isa::in_order(d.spelling.as_read(), name(found[0]), name(found[1])))
    std::swap(found[0], found[1]);
  return Spaces{window_of(found[0]), window_of(found[1])};
}

std::uint64_t in_block(std::uint64_t address, std::uint32_t rank) {
  return (std::uint64_t{rank} + 1) << rank_shift | (address & shared_offset_mask);
}

bool check_multicast(Warp& warp, int lane, std::uint32_t mask) {
  const std::uint32_t size = warp.block->cluster().size();
  if (!(mask >> size)) return true;
  warp.fail("memory-fault"_rule,
            fmt::format("multicast to CTAs 0x{:x}, which exceeds the cluster of {}", mask, size),
            lane);
  return false;
}

bool complete_transactions(Warp& warp, int lane, std::uint64_t mbarrier, std::uint32_t bytes,
                           const Filled& filled) {
  std::uint64_t at[32] = {};
  at[lane] = mbarrier;
  Access access;
  const std::uint32_t whole = warp.mask;
  warp.mask = std::uint32_t{1} << lane;
  const bool good = resolve(warp, Window::cluster, at, 8, access);
  warp.mask = whole;
  if (!good) return false;
  return complete_transactions(warp, lane, access.at[lane], bytes, filled);
}

bool complete_transactions(Warp& warp, int lane, std::byte* mbarrier, std::uint32_t bytes,
                           const Filled& filled) {
  ClusterRaces* const races = warp.block->cluster().races();
  if (races && !races->use(warp, 1u << lane, mbarrier)) return false;
  if (const auto who = races ? races->completing_on(mbarrier) : std::nullopt) {
    for (const Stretch& each : filled.from)
      races->asynchronous(
          warp, lane,
          {.who = *who, .window = each.window, .address = each.address, .bytes = each.bytes});
    if (filled.map)
      races->asynchronous(warp, lane,
                          {.who = *who, .address = *filled.map, .bytes = map_bytes, .map = true});
    if (const auto address = filled.at ? races->address_of(filled.at) : std::nullopt)
      races->asynchronous(warp, lane,
                          {.who = *who,
                           .window = Window::cluster,
                           .address = *address,
                           .bytes = filled.room,
                           .writes = true,
                           .strong = filled.strong});
    if (filled.shape) races->filled(warp, filled.at, filled.room, *filled.shape, *who);
    if (warp.block->cluster().stopped()) return false;
  }
  if (Mbarrier::complete(mbarrier, bytes) && races) races->end_phase(mbarrier);
  return true;
}

bool note_group_copy(Warp& warp, int lane, const Stretch& where, bool writes,
                     std::optional<Scope> strong) {
  Cluster& cluster = warp.block->cluster();
  ClusterRaces* const races = cluster.races();
  if (!races) return true;
  const auto issuer = static_cast<std::uint32_t>(lane);
  races->asynchronous(warp, lane,
                      {.who = races->clocks().group_epoch(
                           warp, issuer, writes ? Actor::bulk_write : Actor::bulk_read),
                       .window = where.window,
                       .address = where.address,
                       .bytes = where.bytes,
                       .writes = writes,
                       .strong = strong});
  return !cluster.stopped();
}

bool note_group_map(Warp& warp, int lane, std::uint64_t map) {
  Cluster& cluster = warp.block->cluster();
  if (ClusterRaces* const races = cluster.races())
    races->asynchronous(warp, lane,
                        {.who = races->clocks().group_epoch(warp, static_cast<std::uint32_t>(lane),
                                                            Actor::bulk_read),
                         .address = map,
                         .bytes = map_bytes,
                         .map = true});
  return !cluster.stopped();
}

void note_lane_access(Warp& warp, int lane, const Stretch& where, bool writes) {
  ClusterRaces* const races = warp.block->cluster().races();
  if (!races) return;
  std::uint64_t at[32] = {};
  at[lane] = where.address;
  races->access(warp, {.window = where.window,
                       .lanes = 1u << lane,
                       .bytes = where.bytes,
                       .at = at,
                       .writes = writes,
                       .alignment = 1});
}

namespace {

constexpr Actor bulk_actors[] = {Actor::bulk_read, Actor::bulk_write};

void commit_copies(Warp& warp, const Op&) {
  for (const Actor actor : bulk_actors)
    warp.block->cluster().races()->clocks().commit(warp, warp.mask, actor);
}

// op.value: groups that may be pending; op.flags: of what they read alone.
void wait_for_copies(Warp& warp, const Op& op) {
  for (const Actor actor : bulk_actors)
    if (actor == Actor::bulk_read || !op.flags)
      warp.block->cluster().races()->clocks().wait(warp, warp.mask, actor,
                                                   static_cast<std::uint32_t>(op.value));
}

// What is done when it is issued needs no waiting for: only who may go on is taken down.
void decode_bulk_group(Decoder& d) {
  const bool wait = d.spelling.opcode() == Opcode::cp_async_bulk_wait_group;
  const bool reads = d.spelling.has("read");
  if (!d.expect_operands(wait ? 1 : 0, wait ? 1 : 0)) return;
  if (!d.program().judged()) return void(d.emit([](Warp&, const Op&) {}));
  if (!wait) return void(d.emit(commit_copies));
  const auto pending = d.integer(d.operand(0));
  Op& op = d.emit(wait_for_copies);
  op.value = pending ? static_cast<std::uint64_t>(*pending) : 0;
  op.flags = reads;
}

void decode_store_bulk(Decoder& d) {
  d.spelling.ignore("weak");
  const Window window = d.spelling.has("shared::cta") ? Window::shared : Window::generic;
  if (!d.expect_operands(3, 3)) return;
  if (d.integer(d.operand(2)).value_or(1) != 0)
    return d.unsupported("st.bulk stores zeros only: expected the value 0");
  const auto size = d.register_of(d.operand(1));
  const bool narrow = size && bits(size->type) == 32;
  const std::uint32_t list = append_address(d, d.operand(0), window),
                      bytes = d.source(1, narrow ? size->type : Type::u64);
  Op& op = d.emit(fill_shared);
  op.list = list;
  op.a = bytes;
  op.flags = narrow;
}

constexpr InstructionRow rows[] = {
    {Opcode::cp_async_bulk, [](Decoder& d) { decode_bulk(d, nullptr); }},
    {Opcode::cp_reduce_async_bulk, decode_bulk_reduction},
    {Opcode::cp_async_bulk_commit_group, decode_bulk_group},
    {Opcode::cp_async_bulk_wait_group, decode_bulk_group},
    {Opcode::st_bulk, decode_store_bulk},
};

}  // namespace

std::span<const InstructionRow> bulk_instructions() { return rows; }

void decode_store_async(Decoder& d) {
  decode_to_barrier(d, nullptr, d.spelling.type(), d.spelling.vector_length());
}

void decode_reduction_async(Decoder& d) {
  const std::string_view name = reduction_name(d);
  const Type type = d.spelling.type();
  const Reduction reduction = find_reduction(name, type);
  if (!reduction) return d.unsupported();
  decode_to_barrier(d, reduction, type, 1);
}

}  // namespace tartan::inline TARTAN_ABI::emulator
