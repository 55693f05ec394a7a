// SPDX-License-Identifier: Apache-2.0
// Tensor memory (PTX ISA 9.0, 9.7.16): its allocation, loads and stores. What the tensor core does
// there is in tensor_products.cc.
//
// Loads and stores are done when they are issued. Observers know that they are over at
// tcgen05.wait: until then a register of a load is undefined.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compiler/isa/hints.h"
#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/instructions/tensor_operands.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {

std::uint32_t tensor_address(Warp& warp, const Op& op, int lane) {
  return lanes<std::uint32_t>(warp, op.a)[lane] + static_cast<std::uint32_t>(op.value);
}

std::optional<std::uint32_t> agreed(Warp& warp, const Op& op, std::uint32_t slot,
                                    std::string_view what) {
  const auto* values = lanes<std::uint32_t>(warp, slot);
  const std::uint32_t other = lanes_where(warp.mask, [=](int i) { return values[i] != values[0]; });
  if (!other) return values[0] + static_cast<std::uint32_t>(op.value);
  const int lane = std::countr_zero(other);
  warp.fail("tensor-memory"_rule,
            fmt::format("the lanes of a warp disagree on the {}: lane 0 has 0x{:x}, lane {} 0x{:x}",
                        what, values[0], lane, values[lane]),
            lane);
  return std::nullopt;
}

bool may_allocate(Warp& warp, TensorMemory& memory, std::uint32_t columns) {
  std::string why;
  if (memory.relinquished())
    why = fmt::format(
        "tcgen05.alloc after tcgen05.relinquish_alloc_permit on {}: the CTA may allocate no more",
        warp.block->where(*memory.relinquished()));
  else if (const std::string refusal = memory.refusal(columns); !refusal.empty())
    why = fmt::format("tcgen05.alloc of {}", refusal);
  if (why.empty()) return true;
  warp.fail("tensor-memory"_rule, std::move(why), 0);
  return false;
}

namespace {

// Whether the instruction is for one CTA; if not, it is refused.
bool is_of_one_cta(Decoder& d) {
  const auto pair = is_of_pair(d);
  if (pair == true) d.unsupported("no instruction of CTA pairs");
  return pair == false;
}

constexpr int quarter = TensorMemory::lanes / 4;

// ---- Allocation.

// op.b: the number of columns.
void allocate(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  TensorMemory& memory = warp.block->tensor();
  Op plain;
  const auto count = agreed(warp, plain, op.b, "number of columns");
  if (!count) return;
  if (!may_allocate(warp, memory, *count)) return;
  std::uint64_t at[32];
  addresses(warp, op, at);
  Access access;
  if (!resolve(warp, op.window, at, 4, access)) return;
  const auto first = memory.allocate(*count, warp.pc - 1);
  if (!first) return warp.wait_for_columns(*count);
  tell(warp, &Events::takes_columns, true);
  warp.block->fill_columns(*first, *count);
  const TensorArea area{0, TensorMemory::lanes, static_cast<int>(*first), static_cast<int>(*count)};
  if (!ask(warp, &Events::access_tensor, 0, TensorTouch{TensorAgent::thread, true, false, area}))
    return;
  note_lane_access(warp, 0, {op.window, at[0], 4}, true);
  std::memcpy(access.at[0], &*first, 4);
  tell(warp, &ValueEvents::fill, access.at[0], 4);
  tell(warp, &ValueEvents::gave_columns, memory.allocations().back());
}

// op.a: the address, op.b: the number of columns.
void deallocate(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const auto address = agreed(warp, op, op.a, "address"),
             count = address ? agreed(warp, op, op.b, "number of columns") : std::nullopt;
  if (!count) return;
  const std::string why = warp.block->tensor().deallocate(*address, *count);
  if (!why.empty())
    return warp.fail("tensor-memory"_rule, fmt::format("tcgen05.dealloc: {}", why), 0, *address);
  const TensorArea area{0, TensorMemory::lanes, static_cast<int>(*address),
                        static_cast<int>(*count)};
  if (!ask(warp, &Events::access_tensor, 0, TensorTouch{TensorAgent::thread, true, false, area}))
    return;
  warp.block->tensor().note_deallocation(warp.pc - 1);
  tell(warp, &Events::gives_columns);
  warp.block->hand_out_columns();
}

void relinquish(Warp& warp, const Op&) {
  if (!warp.gather_whole()) return;
  tell(warp, &Events::takes_columns, false);
  warp.block->tensor().relinquish(warp.pc - 1);
}

// ---- Loads and stores.

// "access", and if nothing is allocated, why.
std::string access_text(const Warp& warp) {
  const TensorMemory& memory = warp.block->tensor();
  if (!memory.allocations().empty()) return "access";
  if (const auto freed = memory.deallocated())
    return fmt::format("access after tcgen05.dealloc on {}", warp.block->where(*freed));
  return "access before tcgen05.alloc";
}

// Where a warp's access begins; nothing after a finding.
std::optional<isa::TensorCell> begin(Warp& warp, const Op& op, const TensorMove& move) {
  const auto address = agreed(warp, op, op.a, "address");
  if (!address) return std::nullopt;
  const isa::TensorShape& shape = *move.access.shape;
  const int own = static_cast<int>(warp.index % 4), lane = static_cast<int>(*address >> 16);
  const auto refuse = [&](std::string why) {
    warp.fail("tensor-memory"_rule,
              fmt::format("{} at address 0x{:x}: {}", access_text(warp), *address, why), 0,
              *address);
    return std::nullopt;
  };
  if (lane % shape.lanes())
    return refuse(fmt::format("its lane {} is no multiple of {}", lane, shape.lanes()));
  // Kernels that run on a B200 leave the quarter out: lane 0 is each warp's own.
  if (lane / quarter != own && lane >= quarter)
    return refuse(
        fmt::format("lane {} is in the quarter of lanes of warp {} of a warpgroup; warp {} "
                    "has lanes {} to {}",
                    lane, lane / quarter, warp.index, quarter * own, quarter * own + quarter - 1));
  const isa::TensorCell first = isa::first_cell(shape, *address, own);
  const isa::TensorAccess& access = move.access;
  for (int half = 0; half <= (shape.split ? 1 : 0); ++half) {
    const TensorArea area{first.lane, shape.lanes(), first.column + half * access.half_split_offset,
                          access.columns()};
    if (const std::string why = warp.block->tensor().fault(area); !why.empty()) return refuse(why);
  }
  return first;
}

bool touch(Warp& warp, const TensorMove& move, isa::TensorCell first, TensorAgent agent) {
  for (int half = 0; half <= (move.access.shape->split ? 1 : 0); ++half) {
    const TensorArea area{first.lane, move.access.shape->lanes(),
                          first.column + half * move.access.half_split_offset,
                          move.access.columns()};
    const TensorTouch touch{agent, agent == TensorAgent::store, false, area};
    if (!ask(warp, &Events::access_tensor, 0, touch)) return false;
  }
  return true;
}

// Calls body(lane, register, its first bit, the cell) for all elements.
template <typename Body>
void each_element(Warp& warp, const TensorMove& move, isa::TensorCell first, Body&& body) {
  std::uint32_t* const cells = &warp.block->tensor().cell(first.lane, first.column);
  const auto per = static_cast<std::size_t>(move.access.per_register());
  const auto elements = static_cast<std::size_t>(move.access.elements());
  for (std::size_t i = 0; i < elements; ++i)
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t place = move.places[32 * i + lane];
      body(lane, i / per, static_cast<int>(i % per) * 16,
           cells[(place >> 16) * TensorMemory::columns + (place & 0xFFFF)]);
    }
}

bool is_nan(std::uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }

// As min and max of f32 have it: -0 is below +0, and a NaN is left out unless .NaN asks for it.
std::uint32_t reduce_floats(const TensorMove& move, std::uint32_t one, std::uint32_t other) {
  constexpr std::uint32_t nan = 0x7FFFFFFF;
  if (is_nan(one) || is_nan(other)) {
    if (move.passes_nan || (is_nan(one) && is_nan(other))) return nan;
    return is_nan(one) ? other : one;
  }
  const auto ordered = [](std::uint32_t bits) { return bits >> 31 ? ~bits : bits | 0x80000000; };
  return (ordered(one) < ordered(other)) == move.maximum ? other : one;
}

std::uint32_t reduce(const TensorMove& move, std::uint32_t one, std::uint32_t other) {
  if (move.type == Type::f32) return reduce_floats(move, one, other);
  const std::uint32_t flip = move.type == Type::s32 ? 0x80000000 : 0;
  return ((one ^ flip) < (other ^ flip)) == move.maximum ? other : one;
}

void reduce_loaded(Warp& warp, const TensorMove& move) {
  auto* const out = lanes<std::uint32_t>(warp, *move.reduced);
  for (std::size_t r = 0; r < move.registers.size(); ++r) {
    const auto* const value = lanes<std::uint32_t>(warp, move.registers[r]);
    for (int lane = 0; lane < 32; ++lane) {
      const std::uint32_t next = move.absolute ? value[lane] & 0x7FFFFFFF : value[lane];
      out[lane] = r                                        ? reduce(move, out[lane], next)
                  : is_nan(next) && move.type == Type::f32 ? 0x7FFFFFFF
                                                           : next;
    }
  }
}

void load(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const TensorMove& move = warp.program->tensor_moves[op.list];
  const auto first = begin(warp, op, move);
  if (!first || !touch(warp, move, *first, TensorAgent::load)) return;
  tell(warp, &ValueEvents::load_tensor, move, *first);
  each_element(warp, move, *first,
               [&](std::size_t lane, std::size_t r, int shift, std::uint32_t cell) {
                 std::uint32_t& to = lanes<std::uint32_t>(warp, move.registers[r])[lane];
                 if (move.access.packed) to = shift ? to | cell << 16 : cell & 0xFFFF;
                 else to = cell;
               });
  if (move.reduced) reduce_loaded(warp, move);
}

// What .unpack::16b leaves above the 16 bits of a cell, no source says: zeros here.
void store(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const TensorMove& move = warp.program->tensor_moves[op.list];
  const auto first = begin(warp, op, move);
  if (!first || !touch(warp, move, *first, TensorAgent::store)) return;
  tell(warp, &ValueEvents::store_tensor, move, *first);
  each_element(warp, move, *first,
               [&](std::size_t lane, std::size_t r, int shift, std::uint32_t& cell) {
                 const std::uint32_t from = lanes<std::uint32_t>(warp, move.registers[r])[lane];
                 cell = move.access.packed ? from >> shift & 0xFFFF : from;
               });
}

// op.flags: for loads.
void wait(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  tell(warp, &Events::wait_for_tensor, op.flags ? TensorAgent::load : TensorAgent::store);
}

// The tensor core's work is in the order of its issue as it is. op.flags: before_thread_sync.
void fence(Warp& warp, const Op& op) { tell(warp, &Events::fence_tensor, op.flags != 0); }

// ---- Decoding.

void decode_allocation(Decoder& d) {
  d.spelling.ignore("sync aligned");
  d.spelling.type();
  const auto pair = is_of_pair(d);
  if (!pair || !d.expect_operands(2, 2)) return;
  const Window window = memory_window(d);
  const std::uint32_t count = d.source(1, Type::u32);
  Op& op = d.emit(*pair ? allocate_for_pair : allocate);
  op.b = count;
  op.writes = true;
  d.address(op, d.operand(0), window);
}

void decode_deallocation(Decoder& d) {
  d.spelling.ignore("sync aligned");
  d.spelling.type();
  const auto pair = is_of_pair(d);
  if (!pair || !d.expect_operands(2, 2)) return;
  const std::uint32_t address = d.source(0, Type::u32), count = d.source(1, Type::u32);
  Op& op = d.emit(*pair ? deallocate_for_pair : deallocate);
  op.a = address;
  op.b = count;
}

void decode_relinquish(Decoder& d) {
  d.spelling.ignore("sync aligned");
  if (is_of_pair(d) && d.expect_operands(0, 0)) d.emit(relinquish);
}

// tcgen05.ld r, [address]{, offset}; .ld.red r, reduced, [address]{, offset};
// .st [address]{, offset}, r.
void decode_move(Decoder& d) {
  const isa::Spelling& spelling = d.spelling.as_read();
  if (!spelling.signatures.empty() && !is_of_one_cta(d)) return;
  d.spelling.ignore_all();
  if (spelling.signatures.empty())
    return d.error(isa::mismatch_rule(spelling), isa::mismatch(spelling));
  const bool stores = d.spelling.opcode() == Opcode::tcgen05_st,
             reduces = d.spelling.opcode() == Opcode::tcgen05_ld_red;
  TensorMove move{.access = isa::tensor_access(spelling.words)};
  const bool split = move.access.shape->split;
  const std::size_t count = 2 + (reduces ? 1 : 0) + (split ? 1 : 0), address = stores    ? 0
                                                                               : reduces ? 2
                                                                                         : 1;
  if (!d.expect_operands(count, count)) return;
  if (split)
    move.access.half_split_offset = static_cast<int>(d.integer(d.operand(address + 1)).value_or(0));
  const ptx::Operand& registers = d.operand(stores ? count - 1 : 0);
  const auto elements =
      registers.kind == ptx::OperandKind::Vector ? d.children(registers) : std::span(&registers, 1);
  if (static_cast<int>(elements.size()) != move.access.registers())
    return d.error("register-count"_rule,
                   fmt::format("{}: expected {} registers, found {}", d.spelling.text(),
                               move.access.registers(), elements.size()));
  for (const ptx::Operand& each : elements)
    move.registers.push_back(stores ? d.source(each, Type::b32) : d.destination(each, Type::b32));
  if (reduces) {
    move.reduced = d.destination(1, Type::b32);
    move.type = spelling.type();
    move.maximum = spelling.has("max"_q);
    move.absolute = spelling.has("abs"_q);
    move.passes_nan = spelling.has("NaN"_q);
    d.rest_on(Trust::Documented, manual_source);
  }
  for (int i = 0; i < move.access.elements(); ++i)
    for (int lane = 0; lane < 32; ++lane) {
      const isa::TensorCell at = isa::cell(move.access, lane, i);
      move.places.push_back(static_cast<std::uint32_t>(at.lane) << 16 |
                            static_cast<std::uint32_t>(at.column & 0xFFFF));
    }
  if (split && move.access.half_split_offset < 0)
    return d.unsupported("a negative offset between the halves");
  Op& op = d.emit(stores ? store : load);
  op.list = static_cast<std::uint32_t>(d.program().tensor_moves.size());
  d.address(op, d.operand(address), Window::global);
  d.program().tensor_moves.push_back(std::move(move));
}

void decode_wait(Decoder& d) {
  d.spelling.ignore("sync aligned");
  if (!is_of_one_cta(d) || !d.expect_operands(0, 0)) return;
  d.emit(wait).flags = d.spelling.opcode() == Opcode::tcgen05_wait_ld;
}

void decode_fence(Decoder& d) {
  if (!is_of_one_cta(d) || !d.expect_operands(0, 0)) return;
  const bool before = d.spelling.opcode() == Opcode::tcgen05_fence_before_thread_sync;
  d.emit(fence).flags = before;
}

}  // namespace

constexpr EmulatedRow tensor_memory_rows[] = {
    {Opcode::tcgen05_alloc, decode_allocation, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_dealloc, decode_deallocation, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_relinquish_alloc_permit, decode_relinquish, Flow::Uses, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_ld, decode_move, Flow::ByHandler, ValueSources::None, Meaning::Forgets,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_ld_red, decode_move, Flow::ByHandler, ValueSources::None, Meaning::Forgets,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_st, decode_move, Flow::ByHandler, ValueSources::Registers, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_wait_ld, decode_wait, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_wait_st, decode_wait, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_fence_before_thread_sync, decode_fence, Flow::Uses, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_fence_after_thread_sync, decode_fence, Flow::Uses, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(tensor_memory_rows, topics::tensor_memory));

}  // namespace tartan::TARTAN_ABI::emulator
