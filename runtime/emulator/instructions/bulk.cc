// SPDX-License-Identifier: Apache-2.0
// Bulk copies and reductions (cp.async.bulk, cp.reduce.async.bulk; PTX ISA 9.0, 9.7.9.27): what
// moves bytes and then completes transactions of an mbarrier, or belongs to a group. All of it is
// done when it is issued, unless a schedule says when.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {

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

// In op.flags; op.count: 1 + the scope of a strong copy, or 0.
constexpr std::uint8_t has_barrier = 1, is_multicast = 2, is_masked = 4, is_clipped = 8;

// Of every 16 bytes those whose bit is set.
void copy_masked(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint32_t mask) {
  for (std::uint32_t i = 0; i < bytes; ++i)
    if (mask >> i % 16 & 1) to[i] = from[i];
}

// One lane's copy to one destination.
struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint32_t bytes = 0;
  Reduction reduction = nullptr;
  std::optional<std::uint32_t> mask = {};

  void define(Warp& warp, int lane) const {
    tell(warp, &ValueEvents::store, lane, StoredBytes{to, from, bytes, reduction, mask});
  }
  void move(const std::byte* source) const {
    if (mask) copy_masked(to, source, bytes, *mask);
    else move_bytes(to, source, bytes, reduction);
  }
};

// Of a bulk group: under a schedule it first reads, and writes at some later time.
void copy_in_group(Warp& warp, int lane, const Copy& copy) {
  Cluster& cluster = warp.block->cluster();
  if (!cluster.issues_late()) {
    copy.define(warp, lane);
    return copy.move(copy.from);
  }
  const auto staged = std::make_shared<std::vector<std::byte>>();
  cluster.issue(
      warp, 1u << lane, AsyncKind::bulk, [copy, staged] { copy.move(staged->data()); },
      [&warp, lane, copy, staged] {
        copy.define(warp, lane);
        staged->assign(copy.from, copy.from + copy.bytes);
      });
}

// What such a copy of a bulk group writes.
bool note_written(Warp& warp, int lane, const Stretch& where, std::optional<std::uint32_t> mask,
                  std::optional<Scope> strong, std::uint32_t alike) {
  if (!mask) return note_group_copy(warp, lane, where, true, strong, alike);
  for (std::uint64_t i = 0; i < where.bytes; ++i)
    if (*mask >> i % 16 & 1 &&
        !note_group_copy(warp, lane, {where.window, where.address + i, 1}, true, strong, alike))
      return false;
  return true;
}

// With .ignore_oob the source may lack its first and last bytes, and what comes of them is
// indeterminate: here the destination keeps what stands there.
struct Clip {
  std::uint32_t left = 0, right = 0;
};

std::optional<Clip> clip_of(Warp& warp, const Op& op, int lane, std::uint64_t source,
                            std::uint32_t bytes) {
  if (!(op.flags & is_clipped)) return Clip();
  const Clip clip{lanes<std::uint32_t>(warp, op.c)[lane], lanes<std::uint32_t>(warp, op.e)[lane]};
  if (clip.left < unit && clip.right < unit && clip.left + clip.right <= bytes &&
      source % unit == 0)
    return clip;
  warp.fail("misaligned-access"_rule,
            fmt::format("illegal .ignore_oob: of {} bytes at 0x{:x} {} on the left and {} on the "
                        "right; expected 0 to 15 each, and an address that is a multiple of 16",
                        bytes, source, clip.left, clip.right),
            lane, source);
  return std::nullopt;
}

// op.list: destination, source and mbarrier addresses; op.a: bytes; op.b: the blocks of a
// multicast; op.c: which bytes of 16 are copied, or with op.e those of a Clip; op.value: a
// Reduction.
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
    const auto clip = clip_of(warp, op, lane, sources[lane], bytes);
    if (!clip) return;
    const Stretch taken{from.window, sources[lane] + clip->left, bytes - clip->left - clip->right};
    const std::byte* source = taken.bytes
                                  ? resolve_range(warp, lane, from.window, taken.address,
                                                  taken.bytes, op.flags & is_clipped ? 1 : unit)
                                  : nullptr;
    if (taken.bytes && !source) return;
    std::optional<std::uint32_t> mask;
    if (op.flags & is_masked) mask = lanes<std::uint32_t>(warp, op.c)[lane];
    const auto strong = op.count ? std::optional(static_cast<Scope>(op.count - 1)) : std::nullopt;
    const auto strong_from = reduction ? std::nullopt : strong;
    const auto same = [&](int i) {
      return targets[i] == targets[lane] && sources[i] == sources[lane] && sizes[i] == bytes &&
             (!mask || lanes<std::uint32_t>(warp, op.c)[i] == *mask);
    };
    if (bytes && !(op.flags & has_barrier) &&
        (!note_group_copy(warp, lane, taken, false, strong_from) ||
         !note_written(warp, lane, {to.window, targets[lane], bytes}, mask, strong,
                       lanes_where(warp.mask, same))))
      return;
    const auto copy = [&](Window window, std::uint64_t target, std::uint64_t barrier) {
      std::byte* const to =
          bytes ? resolve_range(warp, lane, window, target, bytes, unit) : nullptr;
      if (bytes && !to) return false;
      const Copy one{.to = to ? to + clip->left : nullptr,
                     .from = source,
                     .bytes = static_cast<std::uint32_t>(taken.bytes),
                     .reduction = reduction,
                     .mask = mask};
      if (!(op.flags & has_barrier)) {
        if (bytes) copy_in_group(warp, lane, one);
        return true;
      }
      Move move = [&warp, lane, one] {
        one.define(warp, lane);
        one.move(one.from);
      };
      return complete_transactions(warp, lane, barrier, bytes,
                                   {.at = to,
                                    .room = bytes,
                                    .from = std::span(&taken, taken.bytes ? 1 : 0),
                                    .strong = strong,
                                    .strong_from = strong_from},
                                   taken.bytes ? std::move(move) : Move());
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
  const bool masked = d.spelling.has("cp_mask"), hinted = d.spelling.has("L2::cache_hint"),
             clipped = d.spelling.has("ignore_oob"), relaxed = d.spelling.has("relaxed");
  const Type mask_type = multicast_mask(d);
  const bool multicast = mask_type != Type::none;
  d.spelling.ignore("weak mbarrier::report::disabled");
  if (!reduction && d.spelling.types() && d.spelling.type() != Type::b128) return d.unsupported();
  const Scope scope = relaxed ? scope_named(d) : Scope::gpu;
  const bool barrier = d.spelling.has("mbarrier::complete_tx::bytes");
  if (!barrier && !d.spelling.has("bulk_group"))
    return d.unsupported("expected .bulk_group or .mbarrier::complete_tx::bytes at the end");
  if (masked && (barrier || reduction)) return d.unsupported(".cp_mask requires a copy to .global");
  const std::size_t barrier_at = clipped ? 5 : 3, operands = barrier_at + (barrier ? 1 : 0) +
                                                             (multicast ? 1 : 0) +
                                                             (hinted ? 1 : 0) + (masked ? 1 : 0);
  if (!d.expect_operands(operands, operands)) return;
  const std::uint32_t list = append_address(d, d.operand(0), spaces->to);
  append_address(d, d.operand(1), spaces->from);
  const std::uint32_t bytes = d.source(2, Type::u32);
  if (barrier) append_address(d, d.operand(barrier_at), Window::cluster);
  const std::uint32_t blocks = multicast ? d.source(barrier_at + 1, mask_type) : 0;
  const std::uint32_t mask = masked    ? d.source(operands - 1, Type::u16)
                             : clipped ? d.source(3, Type::u32)
                                       : 0;
  const std::uint32_t right = clipped ? d.source(4, Type::u32) : 0;
  Op& op = d.emit(copy_bulk);
  op.list = list;
  op.a = bytes;
  op.b = blocks;
  op.c = mask;
  op.e = right;
  op.count = reduction || relaxed ? static_cast<std::uint8_t>(1 + static_cast<int>(scope)) : 0;
  op.flags =
      static_cast<std::uint8_t>((barrier ? has_barrier : 0) | (multicast ? is_multicast : 0) |
                                (masked ? is_masked : 0) | (clipped ? is_clipped : 0));
  op.value = reinterpret_cast<std::uintptr_t>(reduction);
}

void decode_bulk_reduction(Decoder& d) {
  d.spelling.ignore("noftz");
  const std::string_view name = reduction_name(d);
  const Reduction reduction = find_reduction(name, d.spelling.type());
  if (!reduction) return d.unsupported();
  decode_bulk(d, reduction);
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

// A pointer to global memory stays as it is: its access is a finding.
std::uint64_t in_block(std::uint64_t address, std::uint32_t rank) {
  if (address >= global_window) return address;
  return place_of_rank(rank) | (address & shared_offset_mask);
}

bool check_multicast(Warp& warp, int lane, std::uint32_t mask) {
  const std::uint32_t size = warp.block->cluster().size();
  if (size >= 32 || !(mask >> size)) return true;
  warp.fail("memory-fault"_rule,
            fmt::format("multicast to CTAs 0x{:x}, which exceeds the cluster of {}", mask, size),
            lane);
  return false;
}

Type multicast_mask(Decoder& d) {
  if (d.spelling.has("multicast::cluster::32b")) return Type::u32;
  return d.spelling.has("multicast::cluster multicast::cluster::16b") ? Type::u16 : Type::none;
}

Scope scope_named(Decoder& d) {
  const std::string_view name = d.spelling.any("cta cluster gpu sys");
  return name == "cta" ? Scope::cta : name == "cluster" ? Scope::cluster : Scope::gpu;
}

bool complete_transactions(Warp& warp, int lane, std::uint64_t mbarrier, std::uint32_t bytes,
                           const Filled& filled, Move move) {
  std::uint64_t at[32] = {};
  at[lane] = mbarrier;
  Access access;
  const std::uint32_t whole = warp.mask;
  warp.mask = std::uint32_t{1} << lane;
  const bool good = resolve(warp, Window::cluster, at, 8, access);
  warp.mask = whole;
  if (!good) return false;
  return complete_transactions(warp, lane, access.at[lane], bytes, filled, std::move(move));
}

bool complete_transactions(Warp& warp, int lane, std::byte* mbarrier, std::uint32_t bytes,
                           const Filled& filled, Move move) {
  Cluster& cluster = warp.block->cluster();
  warp.copied += bytes;
  const AsyncCopy copy{cluster.next_copy(), mbarrier, bytes, filled};
  if (!cluster.ask(&Events::issue_copy, warp, lane, copy)) return false;
  const auto complete = [=, &cluster, number = copy.number, move = std::move(move)] {
    if (move) move();
    const bool ends = Mbarrier::complete(mbarrier, bytes);
    cluster.tell(&Events::completed, cluster, Completion{number, mbarrier, bytes, 0, ends});
  };
  cluster.issue(warp, 1u << lane, AsyncKind::completion, complete);
  return true;
}

bool note_group_copy(Warp& warp, int lane, const Stretch& where, bool writes,
                     std::optional<Scope> strong, std::uint32_t alike) {
  if (writes) warp.copied += where.bytes;
  return ask(warp, &Events::access_by_group, lane, GroupAccess{where, writes, strong, alike});
}

bool note_group_map(Warp& warp, int lane, std::uint64_t map) {
  const GroupAccess access{.where = {Window::generic, map, map_bytes}, .map = true};
  return ask(warp, &Events::access_by_group, lane, access);
}

void note_lane_access(Warp& warp, int lane, const Stretch& where, bool writes) {
  std::uint64_t at[32] = {};
  at[lane] = where.address;
  const LaneAccess access{.window = where.window,
                          .lanes = 1u << lane,
                          .bytes = where.bytes,
                          .at = at,
                          .writes = writes,
                          .alignment = 1};
  tell(warp, &Events::access, access);
}

namespace {

void commit_copies(Warp& warp, const Op&) { warp.block->cluster().commit(warp, AsyncKind::bulk); }

// op.value: groups that may be pending; op.flags: of what they read alone.
void wait_for_copies(Warp& warp, const Op& op) {
  warp.block->cluster().wait(warp, AsyncKind::bulk, static_cast<std::uint32_t>(op.value),
                             op.flags != 0);
}

// What is done when it is issued needs no waiting for: only who may go on is taken down.
void decode_bulk_group(Decoder& d) {
  const bool wait = d.spelling.opcode() == Opcode::cp_async_bulk_wait_group;
  const bool reads = d.spelling.has("read");
  if (d.spelling.has("sync_restrict::proxy::async")) return d.unsupported(semantics_unknown);
  if (!d.expect_operands(wait ? 1 : 0, wait ? 1 : 0)) return;
  if (!wait) return void(d.emit(commit_copies));
  const auto pending = d.integer(d.operand(0));
  Op& op = d.emit(wait_for_copies);
  op.value = pending ? static_cast<std::uint64_t>(*pending) : 0;
  op.flags = reads;
}

}  // namespace

constexpr EmulatedRow bulk_rows[] = {
    {Opcode::cp_async_bulk, [](Decoder& d) { decode_bulk(d, nullptr); }, Flow::ByHandler,
     ValueSources::None, Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::cp_reduce_async_bulk, decode_bulk_reduction, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::cp_async_bulk_commit_group, decode_bulk_group, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::cp_async_bulk_wait_group, decode_bulk_group, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::st_bulk, decode_store_bulk, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(bulk_rows, topics::bulk));

}  // namespace tartan::TARTAN_ABI::emulator
