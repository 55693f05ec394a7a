// SPDX-License-Identifier: Apache-2.0
// Collectives of a warp (PTX ISA 9.0, 9.7.9, 9.7.13): shfl, vote, match, activemask, redux, elect.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/instructions/shuffle.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Waits for the lanes of the member mask in slot op.e. True when the executing lanes are complete
// and share one mask.
bool gather_members(Warp& warp, const Op& op) {
  return warp.gather_members(lanes<std::uint32_t>(warp, op.e));
}

// False where a lane reads another one that its member mask names and that is not there: it has
// exited, or never was. A launch with checks reports it, because what it reads is undefined.
bool sources_take_part(Warp& warp, const Op& op, const std::uint32_t (&from)[32]) {
  if (warp.mask == all_lanes || !warp.block->context().checked) return true;
  const std::uint32_t absent =
      lanes<std::uint32_t>(warp, op.e)[std::countr_zero(warp.mask)] & ~warp.mask;
  const std::uint32_t lost =
      lanes_where(warp.mask, [&](int i) { return from[i] < 32 && (absent >> from[i] & 1) != 0; });
  if (lost == 0) return true;
  const int lane = std::countr_zero(lost);
  warp.fail("divergent-collective"_rule,
            fmt::format("shfl.sync: lane {} reads lane {}, which the member mask names but which "
                        "does not exist or has exited: the value is undefined; lanes there: "
                        "0x{:08x}",
                        lane, from[lane], warp.mask),
            lane);
  return false;
}

// op.b: lane or delta, op.c: clamp and segment mask; flags 1: the predicate op.list is written.
template <Shuffle S>
void shuffle(Warp& warp, const Op& op) {
  if (!gather_members(warp, op)) return;
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  std::uint32_t from[32], out[32];
  for (std::uint32_t i = 0; i < 32; ++i) from[i] = shuffle_source<S>(i, b[i], c[i]);
  if (!sources_take_part(warp, op, from)) return;
  tell(warp, &ValueEvents::shuffle, op, from);
  for (int i = 0; i < 32; ++i) out[i] = a[from[i] & 31];
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [&](int i) { d[i] = out[i]; });
  if (op.flags & 1)
    set_predicate(warp, op.list, lanes_where(warp.mask, [&](int i) { return from[i] < 32; }));
}

Handler shuffle_handler(Shuffle mode) {
  switch (mode) {
    case Shuffle::up: return for_machine<shuffle<Shuffle::up>>();
    case Shuffle::down: return for_machine<shuffle<Shuffle::down>>();
    case Shuffle::bfly: return for_machine<shuffle<Shuffle::bfly>>();
    case Shuffle::idx: return for_machine<shuffle<Shuffle::idx>>();
  }
  return nullptr;
}

void decode_shfl(Decoder& d) {
  if (!d.spelling.has("sync")) return d.unsupported("only shfl.sync is supported");
  constexpr isa::Qualifier modes[] = {"up"_q, "down"_q, "bfly"_q, "idx"_q};
  std::optional<std::uint8_t> mode;
  for (std::uint8_t i = 0; i < 4; ++i)
    if (d.spelling.has(modes[i])) mode = i;
  const Type type = d.spelling.type();
  if (!mode || bits(type) != 32) return d.unsupported();
  if (!d.expect_operands(5, 5)) return;
  const bool pair = d.operand(0).kind == ptx::OperandKind::Pair;
  const std::uint32_t to =
      d.destination(pair ? d.children(d.operand(0))[0] : d.operand(0), Type::b32);
  const std::uint32_t p = pair ? d.destination(d.children(d.operand(0))[1], Type::pred) : 0;
  const std::uint32_t a = d.source(1, Type::b32), b = d.source(2, Type::b32),
                      c = d.source(3, Type::b32), members = d.source(4, Type::b32);
  Op& op = d.emit(shuffle_handler(static_cast<Shuffle>(*mode)));
  op.d = to;
  op.list = p;
  op.a = a;
  op.b = b;
  op.c = c;
  op.e = members;
  op.flags = pair ? 1 : 0;
  d.gather_anywhere(op, {.a = 32, .b = 32, .c = 32, .d = 32, .list = pair ? 1u : 0u});
}

// flags: 0 all, 1 any, 2 uni, 3 ballot.
void vote(Warp& warp, const Op& op) {
  if (!gather_members(warp, op)) return;
  const std::uint32_t yes = predicate(warp, op.a) & warp.mask;
  if (op.flags == 3) {
    auto* d = lanes<std::uint32_t>(warp, op.d);
    each_lane(warp.mask, [=](int i) { d[i] = yes; });
    return;
  }
  const bool all = yes == warp.mask, any = yes != 0;
  const bool result = op.flags == 0 ? all : op.flags == 1 ? any : all || !any;
  set_predicate(warp, op.d, result ? all_lanes : 0);
}

void decode_vote(Decoder& d) {
  if (!d.spelling.has("sync")) return d.unsupported("only vote.sync is supported");
  const std::string_view mode = d.spelling.any("all any uni ballot");
  const Type type = d.spelling.type();
  const bool ballot = mode == "ballot";
  if (mode.empty() || type != (ballot ? Type::b32 : Type::pred)) return d.unsupported();
  if (!d.expect_operands(3, 3)) return;
  const std::uint32_t to = d.destination(0, type), a = d.predicate_source(d.operand(1)),
                      members = d.source(2, Type::b32);
  Op& op = d.emit(vote);
  op.d = to;
  op.a = a;
  op.e = members;
  op.flags = ballot ? 3 : mode == "uni" ? 2 : mode == "any" ? 1 : 0;
  d.gather_anywhere(op, {.a = 1, .d = ballot ? 32u : 1u});
}

// match.any: lanes with the same value. flags: 1 all, 2 the predicate op.list is written.
template <typename R>
void match(Warp& warp, const Op& op) {
  if (!gather_members(warp, op)) return;
  const auto* a = lanes<R>(warp, op.a);
  std::uint32_t out[32];
  each_lane(warp.mask,
            [&](int i) { out[i] = lanes_where(warp.mask, [&](int j) { return a[j] == a[i]; }); });
  const bool all = out[std::countr_zero(warp.mask)] == warp.mask;
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [&](int i) { d[i] = op.flags & 1 ? (all ? warp.mask : 0) : out[i]; });
  if (op.flags & 2) set_predicate(warp, op.list, all ? all_lanes : 0);
}

void decode_match(Decoder& d) {
  d.spelling.ignore("sync");
  const std::string_view mode = d.spelling.any("any all");
  const Type type = d.spelling.type();
  if (mode.empty() || bits(type) < 32) return d.unsupported();
  if (!d.expect_operands(3, 3)) return;
  const bool pair = d.operand(0).kind == ptx::OperandKind::Pair;
  const std::uint32_t to =
      d.destination(pair ? d.children(d.operand(0))[0] : d.operand(0), Type::b32);
  const std::uint32_t p = pair ? d.destination(d.children(d.operand(0))[1], Type::pred) : 0;
  const std::uint32_t a = d.source(1, type), members = d.source(2, Type::b32);
  Op& op = d.emit(bits(type) == 64 ? match<std::uint64_t> : match<std::uint32_t>);
  op.d = to;
  op.list = p;
  op.a = a;
  op.e = members;
  op.flags = static_cast<std::uint8_t>((mode == "all" ? 1 : 0) | (pair ? 2 : 0));
  d.gather_anywhere(op,
                    {.a = static_cast<std::uint64_t>(bits(type)), .d = 32, .list = pair ? 1u : 0u});
}

void active_mask(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const std::uint32_t mask = warp.mask;
  each_lane(mask, [=](int i) { d[i] = mask; });
}

void decode_activemask(Decoder& d) {
  d.spelling.type();
  if (!d.expect_operands(1, 1)) return;
  const std::uint32_t to = d.destination(0, Type::b32);
  d.emit(active_mask).d = to;
}

enum class Reduce : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor };

template <Reduce R, typename T>
T reduce_two(T a, T b) {
  switch (R) {
    case Reduce::add:
      return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    case Reduce::min: return std::min(a, b);
    case Reduce::max: return std::max(a, b);
    case Reduce::bit_and: return a & b;
    case Reduce::bit_or: return a | b;
    case Reduce::bit_xor: return a ^ b;
  }
}

template <Reduce R, typename T>
void reduce(Warp& warp, const Op& op) {
  if (!gather_members(warp, op)) return;
  const auto* a = lanes<std::uint32_t>(warp, op.a);
  T total = static_cast<T>(a[std::countr_zero(warp.mask)]);
  if (warp.mask == all_lanes) {
    for (int i = 1; i < 32; ++i) total = reduce_two<R, T>(total, static_cast<T>(a[i]));
  } else {
    for (std::uint32_t m = warp.mask & (warp.mask - 1); m; m &= m - 1)
      total = reduce_two<R, T>(total, static_cast<T>(a[std::countr_zero(m)]));
  }
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [=](int i) { d[i] = static_cast<std::uint32_t>(total); });
}

// redux on f32: flags 1 .abs, 2 .NaN.
template <bool Max>
void reduce_float(Warp& warp, const Op& op) {
  if (!gather_members(warp, op)) return;
  const auto* a = lanes<std::uint32_t>(warp, op.a);
  bool any = false, nan = false;
  float best = 0;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    std::uint32_t raw = a[std::countr_zero(m)];
    if (op.flags & 1) raw &= 0x7FFFFFFF;
    const float x = std::bit_cast<float>(raw);
    if (x != x) {
      nan = true;
      continue;
    }
    const bool less =
        x < best || (x == best && (raw >> 31) > (std::bit_cast<std::uint32_t>(best) >> 31));
    const bool more =
        x > best || (x == best && (raw >> 31) < (std::bit_cast<std::uint32_t>(best) >> 31));
    if (!any || (Max ? more : less)) best = x;
    any = true;
  }
  const std::uint32_t result =
      !any || (nan && (op.flags & 2)) ? nan_f32 : std::bit_cast<std::uint32_t>(best);
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [=](int i) { d[i] = result; });
}

void decode_redux(Decoder& d) {
  d.spelling.ignore("sync");
  const std::string_view name = d.spelling.any("add min max and or xor");
  const Type type = d.spelling.type();
  Handler handler = nullptr;
  std::uint8_t flags = 0;
  if (type == Type::f32) {
    flags = static_cast<std::uint8_t>((d.spelling.has("abs") ? 1 : 0) |
                                      (d.spelling.has("NaN") ? 2 : 0));
    handler = name == "min" ? reduce_float<false> : name == "max" ? reduce_float<true> : nullptr;
  } else if (bits(type) == 32) {
    const bool is_signed = type == Type::s32;
    if (name == "add") handler = reduce<Reduce::add, std::uint32_t>;
    else if (name == "min")
      handler = is_signed ? reduce<Reduce::min, std::int32_t> : reduce<Reduce::min, std::uint32_t>;
    else if (name == "max")
      handler = is_signed ? reduce<Reduce::max, std::int32_t> : reduce<Reduce::max, std::uint32_t>;
    else if (name == "and") handler = reduce<Reduce::bit_and, std::uint32_t>;
    else if (name == "or") handler = reduce<Reduce::bit_or, std::uint32_t>;
    else if (name == "xor") handler = reduce<Reduce::bit_xor, std::uint32_t>;
  }
  if (!handler) return d.unsupported();
  if (!d.expect_operands(3, 3)) return;
  const std::uint32_t to = d.destination(0, Type::b32), a = d.source(1, Type::b32),
                      members = d.source(2, Type::b32);
  Op& op = d.emit(handler);
  op.d = to;
  op.a = a;
  op.e = members;
  op.flags = flags;
  d.gather_anywhere(op, {.a = 32, .d = 32});
}

void elect(Warp& warp, const Op& op) {
  if (!gather_members(warp, op)) return;
  const int leader = std::countr_zero(warp.mask);
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [=](int i) { d[i] = static_cast<std::uint32_t>(leader); });
  set_predicate(warp, op.list, std::uint32_t{1} << leader);
}

void decode_elect(Decoder& d) {
  d.spelling.ignore("sync");
  if (!d.expect_operands(2, 2) || d.operand(0).kind != ptx::OperandKind::Pair)
    return d.unsupported();
  const auto pair = d.children(d.operand(0));
  const std::uint32_t to = d.destination(pair[0], Type::b32),
                      p = d.destination(pair[1], Type::pred), members = d.source(1, Type::b32);
  Op& op = d.emit(elect);
  op.d = to;
  op.list = p;
  op.e = members;
  d.gather_anywhere(op, {.d = 32, .list = 1});
}

}  // namespace

constexpr EmulatedRow collectives_rows[] = {
    {Opcode::shfl, decode_shfl, Flow::ByHandler, ValueSources::Source, Meaning::Shuffles,
     AccessKind::None, Idle::No, nothing},
    {Opcode::vote, decode_vote, Flow::Collects, ValueSources::Source, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::match, decode_match, Flow::Collects, ValueSources::Source, Meaning::LanesBits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::activemask, decode_activemask, Flow::Spreads, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, "activemask tells which lanes run together"},
    {Opcode::redux, decode_redux, Flow::Collects, ValueSources::Source, Meaning::LanesBits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::elect, decode_elect, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
};
static_assert(are_rows_of(collectives_rows, topics::collectives));

}  // namespace tartan::TARTAN_ABI::emulator
