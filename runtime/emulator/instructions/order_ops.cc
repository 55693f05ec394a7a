// SPDX-License-Identifier: Apache-2.0
// What Order has to know of ordinary instructions, in kernels that have one: ops in front of a
// store to or a load from shared memory, and around what may order warps through memory.
#include <algorithm>
#include <bit>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::inline TARTAN_ABI::emulator {
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

// Whether other warps may learn by it what this one did, or the other way round.
bool meets(const isa::Spelling& spelling) {
  switch (spelling.opcode) {
    case Opcode::atom:
    case Opcode::red:
    case Opcode::red_async: return true;
    case Opcode::membar: return !spelling.has("proxy"_q);
    case Opcode::fence: return !spelling.has("mbarrier_init"_q);
    case Opcode::ld:
    case Opcode::st:
    case Opcode::st_async: {
      constexpr isa::QualifierSet orders = "volatile relaxed acquire release mmio";
      return !(spelling.words & orders).empty();
    }
    default: return false;
  }
}

std::uint8_t bytes_of(Decoder& d) {
  const isa::Spelling& spelling = d.spelling.as_read();
  if (spelling.opcode == Opcode::stmatrix) return 16;
  if (spelling.opcode == Opcode::cp_async)
    return static_cast<std::uint8_t>(d.operand_count() > 2 ? d.integer(d.operand(2)).value_or(16)
                                                           : 16);
  return static_cast<std::uint8_t>(std::max(1, isa::access_bits(spelling) / 8));
}

// Rows of ldmatrix and stmatrix: 8 lanes a matrix give them.
std::uint8_t lanes_of(const isa::Spelling& spelling) {
  if (spelling.opcode != Opcode::stmatrix && spelling.opcode != Opcode::ldmatrix) return 0;
  return spelling.has("x4"_q) ? 32 : spelling.has("x2"_q) ? 16 : 8;
}

// The window of an access that may go to shared memory.
std::optional<Window> shared_window_of(const isa::Spelling& spelling) {
  if (spelling.opcode == Opcode::cp_async) return Window::shared;
  const auto spaces = isa::state_spaces(spelling);
  if (spaces.size == 0) return Window::generic;
  if (memory_of(spaces[0]) != StateSpace::shared) return std::nullopt;
  return window_of(spaces[0]);
}

// Emits `note` for the instruction's first address.
Op* note(Decoder& d, Handler handler) {
  const auto window = shared_window_of(d.spelling.as_read());
  for (std::size_t i = 0; window && i < d.operand_count(); ++i) {
    const ptx::Operand& operand = d.operand(i);
    if (operand.kind != ptx::OperandKind::Address || operand.count != 1) continue;
    Op where{};
    d.address(where, operand, *window);
    Op& op = d.emit(handler);
    op.a = where.a;
    op.value = where.value;
    op.wide = where.wide;
    op.window = where.window;
    op.count = bytes_of(d);
    op.flags = lanes_of(d.spelling.as_read());
    return &op;
  }
  return nullptr;
}

// wmma.load and wmma.store, st.async, st.bulk and red.async note for themselves what they do.
void note_shared_accesses(Decoder& d) {
  switch (d.spelling.opcode()) {
    case Opcode::ld:
    case Opcode::ldmatrix: note(d, note_load); break;
    case Opcode::st:
    case Opcode::stmatrix: note(d, note_write); break;
    case Opcode::atom:
    case Opcode::red:
      note(d, note_load);
      note(d, note_write);
      break;
    case Opcode::cp_async:
      // It writes through the generic proxy too; compilers leave the fence out there, and it has
      // not been seen to matter.
      if (Op* op = note(d, note_write)) op->c = 1;
      break;
    default: break;
  }
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
  note_shared_accesses(d);
  if (meets(d.spelling.as_read())) d.emit(release);
}

// Whatever the guard has become.
void decode_behind(Decoder& d) {
  if (!meets(d.spelling.as_read())) return;
  const Decoder::Guard guard = d.guard();
  d.set_guard({});
  d.emit(acquire);
  d.set_guard(guard);
}

}  // namespace tartan::inline TARTAN_ABI::emulator
