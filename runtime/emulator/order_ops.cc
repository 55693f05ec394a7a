// SPDX-License-Identifier: Apache-2.0
// What Order has to know of ordinary instructions, in kernels that have one: ops in front of a
// store to or a load from shared memory, and around what may order warps through memory.
#include <algorithm>
#include <bit>

#include "runtime/emulator/cluster.h"
#include "runtime/emulator/instructions.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/memory.h"

namespace tartan::emulator {
namespace {

constexpr Meeting memory_meeting{Meeting::Kind::memory, 0};

void release(Warp& warp, const Op&) {
  warp.block->cluster().order()->release(warp, memory_meeting);
}
void acquire(Warp& warp, const Op&) {
  warp.block->cluster().order()->acquire(warp, memory_meeting);
}

// Where an address of shared memory of the cluster is.
std::optional<Order::Place> place_of(const Warp& warp, Window window, std::uint64_t address) {
  if (window == Window::generic) {
    if (window_of(address) != Window::shared) return std::nullopt;
    address -= shared_window;
  }
  const auto place = static_cast<std::uint32_t>(address >> rank_shift);
  return Order::Place{place == 0 ? warp.block->rank() : place - 1, address & shared_offset_mask};
}

// op.count bytes at each lane's address below op.flags; op.c: 1 where the async proxy sees them.
void note_write(Warp& warp, const Op& op) {
  std::uint64_t at[32];
  addresses(warp, op, at);
  Order& order = *warp.block->cluster().order();
  const std::uint32_t count = op.flags ? op.flags : 32u;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    if (lane >= count) return;
    const auto place = place_of(warp, op.window, at[lane]);
    if (place && !order.write(warp, static_cast<int>(lane), *place, op.count, op.c != 0)) return;
  }
}

// A lane of every eight where there are such: rows of the same 8x8 matrix, or neighbours.
void note_load(Warp& warp, const Op& op) {
  Order& order = *warp.block->cluster().order();
  if (!order.has_boxes()) return;
  std::uint64_t at[32];
  addresses(warp, op, at);
  constexpr std::uint32_t some = 0x01010101;
  const std::uint64_t rows = op.flags ? (std::uint64_t{1} << op.flags) - 1 : all_lanes;
  std::uint32_t looked = warp.mask & static_cast<std::uint32_t>(rows);
  if (looked & some) looked &= some;
  for (std::uint32_t m = looked; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto place = place_of(warp, op.window, at[lane]);
    if (place && !order.load(warp, lane, *place, op.count)) return;
  }
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view each) { return text.starts_with(each); });
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Whether other warps may learn by it what this one did, or the other way round.
bool meets(std::string_view opcode) {
  if (is_one_of(opcode, {"atom", "red.", "membar", "fence."}))
    return !is_one_of(opcode, {"membar.proxy", "fence.proxy", "fence.mbarrier_init"});
  if (!is_one_of(opcode, {"ld.", "st.", "multimem."})) return false;
  for (std::string_view order : {".volatile", ".relaxed", ".acquire", ".release", ".mmio"})
    if (has(opcode, order)) return true;
  return false;
}

std::uint8_t bytes_of(Decoder& d, std::string_view opcode) {
  if (opcode.starts_with("stmatrix")) return 16;
  if (opcode.starts_with("cp.async"))
    return static_cast<std::uint8_t>(d.operand_count() > 2 ? d.integer(d.operand(2)).value_or(16)
                                                           : 16);
  const int count = has(opcode, ".v2.") ? 2 : has(opcode, ".v4.") ? 4 : has(opcode, ".v8.") ? 8 : 1;
  const auto type = parse_type(opcode.substr(opcode.rfind('.') + 1));
  return static_cast<std::uint8_t>(type ? std::max(1, count * bits(*type) / 8) : 1);
}

// Rows of ldmatrix and stmatrix: 8 lanes a matrix give them.
std::uint8_t lanes_of(std::string_view opcode) {
  if (!is_one_of(opcode, {"stmatrix", "ldmatrix"})) return 0;
  return has(opcode, ".x4") ? 32 : has(opcode, ".x2") ? 16 : 8;
}

// The window of an access that may go to shared memory.
std::optional<Window> shared_window_of(std::string_view opcode) {
  if (has(opcode, ".shared::cluster")) return Window::cluster;
  if (has(opcode, ".shared")) return Window::shared;
  for (std::string_view other : {".global", ".local", ".param", ".const"})
    if (has(opcode, other)) return std::nullopt;
  return Window::generic;
}

// Emits `note` for the instruction's first address.
Op* note(Decoder& d, Handler handler, std::string_view opcode, Window window) {
  for (std::size_t i = 0; i < d.operand_count(); ++i) {
    const ptx::Operand& operand = d.operand(i);
    if (operand.kind != ptx::OperandKind::Address || operand.count != 1) continue;
    Op where{};
    d.address(where, operand, window);
    Op& op = d.emit(handler);
    op.a = where.a;
    op.value = where.value;
    op.wide = where.wide;
    op.window = where.window;
    op.count = bytes_of(d, opcode);
    op.flags = lanes_of(opcode);
    return &op;
  }
  return nullptr;
}

// wmma.load and wmma.store, st.async, st.bulk and red.async note for themselves what they do.
void note_shared_load(Decoder& d, std::string_view opcode) {
  if (!is_one_of(opcode, {"ld.", "ldmatrix", "atom.", "red."}) || opcode.starts_with("red.async"))
    return;
  if (const auto window = shared_window_of(opcode)) note(d, note_load, opcode, *window);
}

void note_shared_write(Decoder& d, std::string_view opcode) {
  const bool copies = is_one_of(opcode, {"cp.async.ca", "cp.async.cg"});
  if (!copies && !is_one_of(opcode, {"st.", "stmatrix", "atom.", "red."})) return;
  if (is_one_of(opcode, {"st.async", "st.bulk", "red.async"})) return;
  // cp.async writes through the generic proxy too; compilers leave the fence out there, and it has
  // not been seen to matter.
  const auto window = copies ? Window::shared : shared_window_of(opcode);
  if (!window) return;
  if (Op* op = note(d, note_write, opcode, *window)) op->c = copies ? 1 : 0;
}

}  // namespace

bool note_access(Warp& warp, const Access& access, std::uint32_t bytes, bool writes) {
  Order* const order = warp.block->cluster().order();
  if (!order || (!writes && !order->has_boxes())) return true;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto place = order->place_of(access.at[lane]);
    if (!place) continue;
    if (writes ? !order->write(warp, lane, *place, bytes, false)
               : !order->load(warp, lane, *place, bytes))
      return false;
  }
  return true;
}

void decode_before(Decoder& d) {
  const std::string_view opcode = d.spelling.text();
  note_shared_load(d, opcode);
  note_shared_write(d, opcode);
  if (meets(opcode)) d.emit(release);
}

// Whatever the guard has become.
void decode_behind(Decoder& d) {
  if (!meets(d.spelling.text())) return;
  const Decoder::Guard guard = d.guard();
  d.set_guard({});
  d.emit(acquire);
  d.set_guard(guard);
}

}  // namespace tartan::emulator
