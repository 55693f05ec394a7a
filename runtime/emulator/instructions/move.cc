// SPDX-License-Identifier: Apache-2.0
// Moves (PTX ISA 9.0, 9.7.9): mov with packing and unpacking, addresses of variables, cvta,
// isspacep, istypep, clocks.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "compiler/isa/special_registers.h"
#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

template <typename R>
void move(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  const auto* a = lanes<R>(warp, op.a);
  each_lane(warp.mask, [=](int i) { d[i] = a[i]; });
}
void move_wide(Warp& warp, const Op& op) {  // 128 bits: two runs of 64
  move<std::uint64_t>(warp, op);
  Op high = op;
  high.d += 256;
  high.a += 256;
  move<std::uint64_t>(warp, high);
}
void move_predicate(Warp& warp, const Op& op) { set_predicate(warp, op.d, predicate(warp, op.a)); }

// Part op.flags (of op.count bits each) of a wider register, and back.
template <typename D, typename S>
void unpack(Warp& warp, const Op& op) {
  auto* d = lanes<D>(warp, op.d);
  const auto* a = lanes<S>(warp, op.a);
  const int shift = op.flags;
  const auto mask = static_cast<S>(op.value);
  each_lane(warp.mask, [=](int i) { d[i] = static_cast<D>(a[i] >> shift & mask); });
}
template <typename D, typename S>
void pack(Warp& warp, const Op& op) {  // merges into d, whose other parts are given by other ops
  auto* d = lanes<D>(warp, op.d);
  const auto* a = lanes<S>(warp, op.a);
  const int shift = op.flags;
  const auto mask = static_cast<D>(op.value);
  each_lane(warp.mask, [=](int i) {
    d[i] = (d[i] & ~(mask << shift)) | (static_cast<D>(a[i]) & mask) << shift;
  });
}

std::uint64_t ones(int width) {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

Type plain(int width) {
  switch (width) {
    case 8: return Type::b8;
    case 16: return Type::b16;
    case 32: return Type::b32;
    case 64: return Type::b64;
    default: return Type::b128;
  }
}

Handler move_handler(Type type) {
  switch (bits(type)) {
    case 1: return move_predicate;
    case 64: return move<std::uint64_t>;
    case 128: return move_wide;
    default: return move<std::uint32_t>;
  }
}

void emit_move(Decoder& d, Handler handler, std::uint32_t to, std::uint32_t from,
               std::uint8_t flags = 0, std::uint64_t value = 0) {
  Op& op = d.emit(handler);
  op.d = to;
  op.a = from;
  op.flags = flags;
  op.value = value;
}

// Registers that change while a warp runs: 0 the steps of the warp, 1 the host's nanoseconds.
template <typename R>
void read_clock(Warp& warp, const Op& op) {
  std::uint64_t now = warp.steps;
  if (op.flags & 1)
    now = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                         std::chrono::system_clock::now().time_since_epoch())
                                         .count());
  now >>= op.value;
  auto* d = lanes<R>(warp, op.d);
  each_lane(warp.mask, [=](int i) { d[i] = static_cast<R>(now); });
}

struct ClockRow {
  isa::SpecialRegister which;
  std::uint8_t flags;
  std::uint8_t shift;
};
constexpr ClockRow clocks[] = {
    {isa::SpecialRegister::clock, 0, 0},          {isa::SpecialRegister::clock64, 0, 0},
    {isa::SpecialRegister::clock_hi, 0, 32},      {isa::SpecialRegister::globaltimer, 1, 0},
    {isa::SpecialRegister::globaltimer_lo, 1, 0}, {isa::SpecialRegister::globaltimer_hi, 1, 32}};

const ClockRow* find_clock(const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Name) return nullptr;
  const isa::SpecialRegisterRow* const found = isa::find_special_register(operand.text);
  const auto* row = std::ranges::find_if(
      clocks, [&](const ClockRow& each) { return found && found->first == each.which; });
  return row == std::end(clocks) ? nullptr : row;
}

void emit_clock(Decoder& d, const ClockRow& row, Type type, std::uint32_t to) {
  Op& op = d.emit(bits(type) == 64 ? read_clock<std::uint64_t> : read_clock<std::uint32_t>);
  op.d = to;
  op.flags = row.flags;
  op.value = row.shift;
}

// The source of a mov, a clock too.
std::uint32_t moved_source(Decoder& d, Type type) {
  const ClockRow* const clock = find_clock(d.operand(1));
  if (!clock) return d.source(1, type);
  const std::uint32_t to = d.scratch(bits(type));
  emit_clock(d, *clock, type, to);
  return to;
}

// mov.b64 {lo, hi}, x;
void decode_unpack(Decoder& d, Type type) {
  const auto parts = d.children(d.operand(0));
  const int width = bits(type) / static_cast<int>(parts.size());
  const std::uint32_t from = moved_source(d, type);
  for (std::size_t i = 0; i < parts.size() && !d.failed(); ++i) {
    if (parts[i].kind == ptx::OperandKind::Name && parts[i].text == "_") continue;
    const std::uint32_t to = d.destination(parts[i], plain(width));
    const int shift = width * static_cast<int>(i);
    if (bits(type) == 128)
      emit_move(d, width == 64 ? move<std::uint64_t> : unpack<std::uint32_t, std::uint64_t>, to,
                from + (shift >= 64 ? 256 : 0), static_cast<std::uint8_t>(shift & 63), ones(width));
    else if (bits(type) == 64)
      emit_move(d, unpack<std::uint32_t, std::uint64_t>, to, from, static_cast<std::uint8_t>(shift),
                ones(width));
    else
      emit_move(d, unpack<std::uint32_t, std::uint32_t>, to, from, static_cast<std::uint8_t>(shift),
                ones(width));
  }
}

// mov.b64 x, {lo, hi};
void decode_pack(Decoder& d, Type type) {
  const auto parts = d.children(d.operand(1));
  const int width = bits(type) / static_cast<int>(parts.size());
  const std::uint32_t to = d.destination(0, type);
  // Through a register of its own: x may be among the parts.
  const std::uint32_t whole = d.scratch(bits(type));
  for (std::size_t i = 0; i < parts.size() && !d.failed(); ++i) {
    const std::uint32_t from = d.source(parts[i], plain(width));
    const int shift = width * static_cast<int>(i);
    if (bits(type) == 128)
      emit_move(d, width == 64 ? move<std::uint64_t> : pack<std::uint64_t, std::uint32_t>,
                whole + (shift >= 64 ? 256 : 0), from, static_cast<std::uint8_t>(shift & 63),
                ones(width));
    else if (bits(type) == 64)
      emit_move(d, pack<std::uint64_t, std::uint32_t>, whole, from,
                static_cast<std::uint8_t>(shift), ones(width));
    else
      emit_move(d, pack<std::uint32_t, std::uint32_t>, whole, from,
                static_cast<std::uint8_t>(shift), ones(width));
  }
  emit_move(d, move_handler(type), to, whole);
}

// {c, d}, or %tid as a whole, whose fourth element is zero.
std::vector<std::uint32_t> vector_sources(Decoder& d, Type type) {
  std::vector<std::uint32_t> out;
  const ptx::Operand& from = d.operand(1);
  for (const ptx::Operand& element : d.children(from)) out.push_back(d.source(element, type));
  const isa::SpecialRegisterRow* special =
      from.kind == ptx::OperandKind::Name ? isa::find_special_register(from.text) : nullptr;
  if (!special || !special->vector) return out;
  for (int i = 0; i < 3; ++i)
    out.push_back(
        d.special(static_cast<isa::SpecialRegister>(static_cast<int>(special->first) + i), 32));
  out.push_back(d.constant(0, 32));
  return out;
}

// mov.v2.b32 {a, b}, {c, d}; through registers of their own, as a and b may be among c and d.
void decode_vector_move(Decoder& d, Type type, std::size_t count) {
  const auto to = d.children(d.operand(0));
  const std::vector<std::uint32_t> from = vector_sources(d, type);
  if (to.size() != count || from.size() != count)
    return d.error("register-count"_rule,
                   fmt::format("{} requires vectors of {} registers", d.spelling.text(), count));
  std::vector<std::uint32_t> between;
  for (const std::uint32_t source : from) {
    between.push_back(d.scratch(std::max(bits(type), 32)));
    emit_move(d, move_handler(type), between.back(), source);
  }
  for (std::size_t i = 0; i < count && !d.failed(); ++i)
    emit_move(d, move_handler(type), d.destination(to[i], type), between[i]);
}

void decode_mov(Decoder& d) {
  const int count = d.spelling.vector_length();
  const Type type = d.spelling.type();
  if (!d.expect_operands(2, 2)) return;
  if (type == Type::none) return d.unsupported();
  const bool from_vector = d.operand(1).kind == ptx::OperandKind::Vector,
             to_vector = d.operand(0).kind == ptx::OperandKind::Vector;
  if (count > 1) return decode_vector_move(d, type, static_cast<std::size_t>(count));
  const auto fits = [&](const ptx::Operand& vector) {
    return vector.count > 0 && bits(type) >= 16 && bits(type) % (8 * vector.count) == 0;
  };
  if (to_vector) return fits(d.operand(0)) ? decode_unpack(d, type) : d.unsupported();
  if (from_vector) return fits(d.operand(1)) ? decode_pack(d, type) : d.unsupported();
  const std::uint32_t to = d.destination(0, type);
  if (const ClockRow* const clock = find_clock(d.operand(1)))
    return emit_clock(d, *clock, type, to);
  const std::uint32_t from = d.source(1, type);
  emit_move(d, move_handler(type), to, from);
}

// ---- Generic addresses.

template <typename R>
void add_constant(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  const auto* a = lanes<R>(warp, op.a);
  const R value = static_cast<R>(op.value);
  each_lane(warp.mask, [=](int i) { d[i] = a[i] + value; });
}

void decode_cvta(Decoder& d) {
  const bool back = d.spelling.has("to");
  const StateSpace space = d.spelling.space();
  const Type type = d.spelling.type();
  if (space == StateSpace::none || space == StateSpace::param_func) return d.unsupported();
  if (!d.expect_operands(2, 2)) return;
  Window window = window_of(space, d.in_kernel());
  if (type != Type::u64) return d.unsupported("the emulator's generic addresses need 64 bits");
  const std::uint32_t to = d.destination(0, type);
  std::uint32_t from = 0;
  if (const auto symbol =
          d.operand(1).kind == ptx::OperandKind::Name ? d.symbol(d.operand(1).text) : std::nullopt)
    window = symbol->window;
  from = d.source(1, type);
  emit_move(d, add_constant<std::uint64_t>, to, from, 0,
            back ? 0 - window_base(window) : window_base(window));
}

void is_space(Warp& warp, const Op& op) {
  const auto* a = lanes<std::uint64_t>(warp, op.a);
  const Window window = op.window == Window::cluster ? Window::shared : op.window;
  const std::uint64_t own = warp.block->own_place();
  set_predicate(warp, op.d, lanes_where(warp.mask, [&](int i) {
                  return window_of(a[i]) == window && !is_constant(a[i]) &&
                         (op.window != Window::shared ||
                          a[i] - shared_window < shared_offset_mask ||
                          ((a[i] - shared_window) & ~shared_offset_mask) == own);
                }));
}

// Parameters are global memory, too.
void is_global_space(Warp& warp, const Op& op) {
  const auto* a = lanes<std::uint64_t>(warp, op.a);
  set_predicate(warp, op.d, lanes_where(warp.mask, [&](int i) {
                  const Window window = window_of(a[i]);
                  return (window == Window::global && !is_constant(a[i])) ||
                         window == Window::param;
                }));
}

void is_constant_space(Warp& warp, const Op& op) {
  const auto* a = lanes<std::uint64_t>(warp, op.a);
  set_predicate(warp, op.d, lanes_where(warp.mask, [&](int i) { return is_constant(a[i]); }));
}

void decode_isspacep(Decoder& d) {
  const StateSpace space = d.spelling.space();
  if (space == StateSpace::none || space == StateSpace::param_func) return d.unsupported();
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t to = d.destination(0, Type::pred), from = d.source(1, Type::u64);
  const Handler handler = space == StateSpace::constant ? is_constant_space
                          : space == StateSpace::global ? is_global_space
                                                        : is_space;
  Op& op = d.emit(handler);
  op.d = to;
  op.a = from;
  op.window = window_of(space);
}

// op.list: first and last address of each variable of the type, op.value of them.
void is_opaque(Warp& warp, const Op& op) {
  const auto* a = lanes<std::uint64_t>(warp, op.a);
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  std::uint32_t found = 0;
  for (std::uint64_t i = 0; i < op.value; ++i, slots += 2) {
    const auto *first = lanes<std::uint64_t>(warp, slots[0]),
               *last = lanes<std::uint64_t>(warp, slots[1]);
    found |= lanes_where(warp.mask, [&](int l) { return a[l] >= first[l] && a[l] <= last[l]; });
  }
  set_predicate(warp, op.d, found);
}

void decode_istypep(Decoder& d) {
  const std::string_view type = d.spelling.has("texref")       ? ".texref"
                                : d.spelling.has("surfref")    ? ".surfref"
                                : d.spelling.has("samplerref") ? ".samplerref"
                                                               : "";
  if (type.empty()) return d.unsupported();
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t to = d.destination(0, Type::pred), from = d.source(1, Type::u64);
  const std::vector<Symbol> variables = d.opaque_variables(type);
  std::vector<std::uint32_t> slots;
  for (const Symbol& variable : variables) {
    slots.push_back(d.constant(variable.address, 64));
    slots.push_back(d.constant(variable.address + variable.bytes - 1, 64));
  }
  const std::uint32_t list = d.append(slots);
  Op& op = d.emit(is_opaque);
  op.d = to;
  op.a = from;
  op.list = list;
  op.value = variables.size();
}

// op.a: addresses, in the window or (op.value its base) generic; op.b: ranks.
template <typename Address>
void map_address(Warp& warp, const Op& op) {
  auto* d = lanes<Address>(warp, op.d);
  const auto* a = lanes<Address>(warp, op.a);
  const auto* ranks = lanes<std::uint32_t>(warp, op.b);
  const std::uint32_t blocks = warp.block->cluster().size();
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (ranks[lane] >= blocks)
      return warp.fail("memory-fault"_rule,
                       fmt::format("mapa to CTA rank {} in a cluster of {}", ranks[lane], blocks),
                       lane);
    d[lane] = static_cast<Address>(in_block(a[lane], ranks[lane]) + op.value);
  }
}

template <typename Address>
void rank_of(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto* a = lanes<Address>(warp, op.a);
  const std::uint32_t own = warp.block->rank();
  each_lane(warp.mask, [=](int i) { d[i] = rank_at(static_cast<std::uint32_t>(a[i]), own); });
}

void decode_mapa(Decoder& d) {
  const bool generic = !d.spelling.has("shared::cluster");
  const Type type = d.spelling.type();
  if (bits(type) != 32 && bits(type) != 64) return d.unsupported();
  if (!d.expect_operands(3, 3)) return;
  const std::uint32_t to = d.destination(0, type), from = d.source(1, type),
                      rank = d.source(2, Type::u32);
  Op& op = d.emit(bits(type) == 64 ? map_address<std::uint64_t> : map_address<std::uint32_t>);
  op.d = to;
  op.a = from;
  op.b = rank;
  op.value = generic ? shared_window : 0;
}

void decode_getctarank(Decoder& d) {
  d.spelling.ignore("shared::cluster");
  const Type type = d.spelling.type();
  if (bits(type) != 32 && bits(type) != 64) return d.unsupported();
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t to = d.destination(0, Type::u32), from = d.source(1, type);
  Op& op = d.emit(bits(type) == 64 ? rank_of<std::uint64_t> : rank_of<std::uint32_t>);
  op.d = to;
  op.a = from;
}

}  // namespace

constexpr EmulatedRow move_rows[] = {
    computation(Opcode::mov, decode_mov, Flow::Copies, Meaning::Moves),
    computation(Opcode::cvta, decode_cvta, Flow::Spreads, Meaning::Bits),
    computation(Opcode::isspacep, decode_isspacep, Flow::Spreads, Meaning::Bits),
    computation(Opcode::istypep, decode_istypep, Flow::Spreads, Meaning::Bits),
    computation(Opcode::mapa, decode_mapa, Flow::Spreads, Meaning::Bits),
    computation(Opcode::getctarank, decode_getctarank, Flow::Spreads, Meaning::Bits),
};
static_assert(are_rows_of(move_rows, topics::move));

}  // namespace tartan::TARTAN_ABI::emulator
