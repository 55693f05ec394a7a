// SPDX-License-Identifier: Apache-2.0
// The lanes' stacks: frames of functions that may be called from within themselves, and alloca.
//
// A lane's stack is at the end of its local memory and grows upwards; Program::stack_slot says up
// to where it is taken. A call that may come back into its caller saves the caller's registers
// there first. The callee's frame follows: its parameters, where the caller puts them, its results
// and its variables. It stays as it was behind the call, until the caller has fetched the results.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::uint32_t* tops(Warp& warp) { return lanes<std::uint32_t>(warp, warp.program->stack_slot); }

std::byte* local_of(Warp& warp, int lane) {
  return warp.local + warp.local_step * static_cast<std::uint64_t>(lane);
}

// Takes `bytes` of a lane's stack; false after a finding.
bool take(Warp& warp, int lane, std::uint64_t bytes, std::string_view what) {
  std::uint32_t& top = tops(warp)[lane];
  const std::uint64_t left = std::uint64_t{warp.program->local_bytes} - top;
  if (bytes > left) {
    warp.fail("stack-overflow"_rule,
              fmt::format("stack overflow: the {} needs {} bytes, of {} bytes {} are free", what,
                          bytes, stack_bytes, left),
              lane);
    return false;
  }
  top += static_cast<std::uint32_t>(bytes);
  warp.stack_top = std::max(warp.stack_top, top);
  return true;
}

template <typename R>
void fill_address(Warp& warp, const FrameAddress& address, int lane, std::uint32_t base) {
  lanes<R>(warp, address.slot)[lane] = base + address.offset;
}

void leave_frame(Warp& warp, const Op& op) {
  const auto* base = lanes<std::uint32_t>(warp, op.a);
  auto* top = tops(warp);
  each_lane(warp.mask, [=](int i) { top[i] = base[i]; });
}

// Calls body(word, bytes) for each piece of a lane's part of a register; predicates apart. 128
// bits: the low words of all lanes, then the high words.
template <typename Body>
void each_word(Warp& warp, const SavedRegister& saved, int lane, Body&& body) {
  const std::size_t word = std::min<std::size_t>(saved.bytes, 8);
  for (std::size_t k = 0; k < saved.bytes / word; ++k)
    body(warp.arena + saved.slot + word * (32 * k + static_cast<std::size_t>(lane)), word);
}

void save_registers(Warp& warp, const Op& op) {
  const Frame& frame = warp.program->frames[op.list];
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::byte* to = local_of(warp, lane) + tops(warp)[lane];
    if (!take(warp, lane, frame.saved_bytes, "call")) return;
    for (const SavedRegister& saved : frame.registers) {
      if (saved.bytes == 0) {
        *to++ = std::byte{static_cast<std::uint8_t>(predicate(warp, saved.slot) >> lane & 1)};
        continue;
      }
      each_word(warp, saved, lane, [&](const std::byte* from, std::size_t bytes) {
        std::memcpy(to, from, bytes);
        tell(warp, &ValueEvents::save, to, static_cast<std::size_t>(from - warp.arena), bytes);
        to += bytes;
      });
    }
  }
}

void restore_registers(Warp& warp, const Op& op) {
  const Frame& frame = warp.program->frames[op.list];
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::byte* from = local_of(warp, lane) + tops(warp)[lane] - frame.saved_bytes;
    for (const SavedRegister& saved : frame.registers) {
      if (saved.bytes == 0) {
        std::uint32_t& p = predicate(warp, saved.slot);
        p = (p & ~(1u << lane)) | static_cast<std::uint32_t>(*from++) << lane;
        continue;
      }
      each_word(warp, saved, lane, [&](std::byte* to, std::size_t bytes) {
        std::memcpy(to, from, bytes);
        tell(warp, &ValueEvents::restore, static_cast<std::size_t>(to - warp.arena), from, bytes);
        from += bytes;
      });
    }
  }
}

void drop_registers(Warp& warp, const Op& op) {
  const std::uint32_t bytes = warp.program->frames[op.list].saved_bytes;
  auto* top = tops(warp);
  each_lane(warp.mask, [=](int i) { top[i] -= bytes; });
}

// alloca d, size, alignment: op.value is the alignment.
template <typename R>
void allocate(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  const auto* sizes = lanes<R>(warp, op.a);
  const std::uint64_t whole = warp.program->stack_alignment;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t size = std::min<std::uint64_t>(sizes[lane], std::uint64_t{1} << 40);
    const std::uint64_t top = tops(warp)[lane];
    const std::uint64_t at = (top + op.value - 1) / op.value * op.value;
    if (!take(warp, lane, (at + size + whole - 1) / whole * whole - top, "alloca")) return;
    d[lane] = static_cast<R>(at);
  }
}

template <typename R>
void save_stack(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  const auto* top = tops(warp);
  each_lane(warp.mask, [=](int i) { d[i] = top[i]; });
}

template <typename R>
void restore_stack(Warp& warp, const Op& op) {
  const auto* a = lanes<R>(warp, op.a);
  auto* top = tops(warp);
  const std::uint32_t begin = warp.program->stack_begin;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (a[lane] < begin || a[lane] > top[lane])
      return warp.fail(
          "memory-fault"_rule,
          fmt::format(
              "stackrestore to 0x{:x}, which is not on the stack: expected 0x{:x} to 0x{:x}",
              a[lane], begin, top[lane]),
          lane, a[lane]);
    top[lane] = static_cast<std::uint32_t>(a[lane]);
  }
}

// .u32 or .u64, and the operands' number.
Type stack_type(Decoder& d, std::size_t low, std::size_t high) {
  const Type type = d.spelling.type();
  if (type != Type::u32 && type != Type::u64) d.unsupported();
  else d.expect_operands(low, high);
  return type;
}

void decode_alloca(Decoder& d) {
  const Type type = stack_type(d, 2, 3);
  if (d.failed()) return;
  std::uint64_t alignment = 8;
  if (d.operand_count() == 3) {
    const auto given = d.integer(d.operand(2));
    if (!given || *given < 1 || *given > (1 << 23) || !std::has_single_bit(std::uint64_t(*given)))
      return d.error("immediate-range"_rule, "alloca requires a power of two as alignment");
    alignment = static_cast<std::uint64_t>(*given);
  }
  const std::uint32_t to = d.destination(0, type), size = d.source(1, type);
  d.stack_slot();
  Op& op = d.emit(type == Type::u64 ? allocate<std::uint64_t> : allocate<std::uint32_t>);
  op.d = to;
  op.a = size;
  op.value = alignment;
}

void decode_stacksave(Decoder& d) {
  const Type type = stack_type(d, 1, 1);
  if (d.failed()) return;
  const std::uint32_t to = d.destination(0, type);
  d.stack_slot();
  d.emit(type == Type::u64 ? save_stack<std::uint64_t> : save_stack<std::uint32_t>).d = to;
}

void decode_stackrestore(Decoder& d) {
  const Type type = stack_type(d, 1, 1);
  if (d.failed()) return;
  const std::uint32_t from = d.source(0, type);
  d.stack_slot();
  d.emit(type == Type::u64 ? restore_stack<std::uint64_t> : restore_stack<std::uint32_t>).a = from;
}

}  // namespace

void emit_enter_frame(Decoder& d) {
  d.emit([](Warp& warp, const Op& op) {
     const Frame& frame = warp.program->frames[op.list];
     auto* base = lanes<std::uint32_t>(warp, frame.base);
     for (std::uint32_t m = warp.mask; m; m &= m - 1) {
       const int lane = std::countr_zero(m);
       base[lane] = tops(warp)[lane];
       if (!take(warp, lane, frame.bytes, "call")) return;
       for (const FrameAddress& each : frame.addresses)
         each.width == 64 ? fill_address<std::uint64_t>(warp, each, lane, base[lane])
                          : fill_address<std::uint32_t>(warp, each, lane, base[lane]);
     }
   }).list = d.current().frame;
}

void emit_leave_frame(Decoder& d) { d.emit(leave_frame).a = d.frame().base; }
void emit_save_registers(Decoder& d) { d.emit(save_registers).list = d.current().frame; }
void emit_restore_registers(Decoder& d) { d.emit(restore_registers).list = d.current().frame; }
void emit_drop_registers(Decoder& d) { d.emit(drop_registers).list = d.current().frame; }

bool Decoder::takes_stack(const ptx::Function& function) const {
  return std::ranges::any_of(function.statements, [&](const ptx::Statement& statement) {
    if (statement.kind != ptx::StatementKind::Instruction) return false;
    using isa::Opcode;
    const Opcode opcode = module_.spelling(module_.instructions[statement.index]).opcode;
    return opcode == Opcode::alloca || opcode == Opcode::stackrestore;
  });
}

constexpr EmulatedRow stack_rows[] = {
    {Opcode::alloca, decode_alloca, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::stacksave, decode_stacksave, Flow::Spreads, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::stackrestore, decode_stackrestore, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(stack_rows, topics::stack));

}  // namespace tartan::TARTAN_ABI::emulator
