// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/warp.h"

#include <functional>

#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/ptx/assembly.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::KernelState;
using ir::Value;

// The kernel that the operands belong to, which a call on this line begins; otherwise nothing.
std::shared_ptr<KernelState> begun(std::initializer_list<const Scalar*> operands, Here at) {
  if (auto* const current = detail::Description::current()) current->at(at);
  return detail::common_state(operands);
}

// Moves a value of any type between lanes by `move`, which takes 32 bits.
Value moved(ir::FunctionBuilder& f, Value x, const std::function<Value(Value)>& move) {
  if (x.type == Type::pred) {
    const Value word = f.select(x, f.constant(u32, 1), f.constant(u32, 0));
    return f.compare(ir::Compare::ne, move(word), f.constant(u32, 0));
  }
  if (bits(x.type) == 32) return move(x);
  if (bits(x.type) == 64) {
    const Value word = f.bitcast(x, u64), by = f.constant(u64, 32);
    const Value low = f.convert(move(f.convert(word, u32)), u64),
                high = f.convert(move(f.convert(f.shift_right(word, by), u32)), u64);
    return f.bitcast(f.bit_or(low, f.shift_left(high, by)), x.type);
  }
  const Type narrow = bits(x.type) == 16 ? u16 : u8;
  return f.bitcast(f.convert(move(f.convert(f.bitcast(x, narrow), u32)), narrow), x.type);
}

// shfl.sync.MODE of all lanes.
Scalar shuffled(const Scalar& x, const Scalar& by, std::string_view mode, int clamp, Here at) {
  const auto state = begun({&x, &by}, at);
  if (!state) return detail::bad_scalar();
  const auto constant = by.constant();
  if (constant && (*constant < 0 || *constant > 31)) {
    state->log.report("immediate-range"_rule,
                      fmt::format("shuffle: expected a lane from 0 to 31, found {}", *constant));
    return detail::bad_scalar();
  }
  if (!constant && bits(by.type()) != 32) {
    state->log.report(
        "scalar-type"_rule,
        fmt::format("shuffle: expected a lane of 32 bits, found {}", detail::text(by)));
    return detail::bad_scalar();
  }
  if (!state->is_index(by, "a shuffle's lane") || !by_all_lanes(*state, "shuffle()"))
    return detail::bad_scalar();
  if (detail::is_constant(x)) return x;
  const std::string text = fmt::format("shfl.sync.{}.b32 %0, %1, %2, {}, 0xffffffff;", mode, clamp);
  const Scalar out = state->scalar(moved(state->f(), state->value(x), [&](Value word) {
    // LLVM moves its own shuffles more freely than a statement.
    if (mode == "bfly") return state->f().shuffle_xor(word, static_cast<int>(constant.value_or(0)));
    if (mode == "idx") return state->f().shuffle(word, state->value(by, u32));
    const Type type = b32;
    const Scalar operands[] = {state->scalar(state->f().bitcast(word, b32)), by};
    const Scalar out =
        detail::assembled(*state, text, {&type, 1}, operands, detail::Effect::any)[0];
    return detail::is_bad(out) ? word : state->f().bitcast(state->value(out), word.type);
  }));
  return detail::one_of(*state, out, {&x});
}

Scalar voted(const Scalar& condition, std::string_view mode, Type result, Here at) {
  const auto state = begun({&condition}, at);
  if (!state) return detail::bad_scalar();
  Scalar holds = condition;
  if (const auto constant = condition.constant())
    holds = state->scalar(state->f().constant(Type::pred, std::int64_t{*constant != 0}));
  if (!state->is_condition(holds) || !by_all_lanes(*state, "vote()")) return detail::bad_scalar();
  Scalar out = detail::assembled(*state, fmt::format("vote.sync.{} %0, %1, 0xffffffff;", mode),
                                 {&result, 1}, {&holds, 1}, detail::Effect::any)[0];
  if (!detail::is_bad(out)) state->tensor_sums.votes.insert(detail::HandleParts::value(out).id);
  return out;
}

// Operands of 32 bits; constants become those of `type`. Nothing, and reported, for others.
std::optional<std::vector<Scalar>> words(KernelState& state, std::string_view what,
                                         std::initializer_list<const Scalar*> operands) {
  std::vector<Scalar> out;
  for (const Scalar* const each : operands) {
    if (each->constant()) {
      out.push_back(state.scalar(state.value(*each, u32)));
      continue;
    }
    if (bits(each->type()) != 32) {
      state.log.report("scalar-type"_rule, fmt::format("{}: expected operands of 32 bits, found {}",
                                                       what, detail::text(*each)));
      return std::nullopt;
    }
    out.push_back(*each);
  }
  return out;
}

// The bits of an operand.
Scalar word_of(KernelState& state, const Scalar& x) {
  return state.scalar(state.f().bitcast(state.value(x), b32));
}

}  // namespace

Scalar shuffle_xor(const Scalar& x, int mask, Here at) { return shuffled(x, mask, "bfly", 31, at); }
Scalar shuffle_up(const Scalar& x, const Scalar& by, Here at) {
  return shuffled(x, by, "up", 0, at);
}
Scalar shuffle_down(const Scalar& x, const Scalar& by, Here at) {
  return shuffled(x, by, "down", 31, at);
}
Scalar shuffle(const Scalar& x, const Scalar& lane, Here at) {
  return shuffled(x, lane, "idx", 31, at);
}

Scalar ballot(const Scalar& condition, Here at) { return voted(condition, "ballot.b32", u32, at); }
Scalar all_lanes(const Scalar& condition, Here at) {
  return voted(condition, "all.pred", Type::pred, at);
}
Scalar any_lane(const Scalar& condition, Here at) {
  return voted(condition, "any.pred", Type::pred, at);
}

Scalar lop3(const Scalar& a, const Scalar& b, const Scalar& c, int table, Here at) {
  const auto state = begun({&a, &b, &c}, at);
  if (!state) return detail::bad_scalar();
  if (table < 0 || table > 255) {
    state->log.report("immediate-range"_rule,
                      fmt::format("lop3: expected a table from 0 to 255, found {}", table));
    return detail::bad_scalar();
  }
  auto operands = words(*state, "lop3", {&a, &b, &c});
  if (!operands) return detail::bad_scalar();
  const Type type = !detail::is_constant(a)   ? a.type()
                    : !detail::is_constant(b) ? b.type()
                                              : c.type();
  for (Scalar& each : *operands) each = word_of(*state, each);
  const Type word = b32;
  const Scalar out = detail::assembled(*state, fmt::format("lop3.b32 %0, %1, %2, %3, {};", table),
                                       {&word, 1}, *operands, detail::Effect::none)[0];
  if (detail::is_bad(out)) return out;
  return state->scalar(state->f().bitcast(state->value(out), type == Type::none ? u32 : type));
}

Scalar prmt(const Scalar& a, const Scalar& b, const Scalar& selector, Here at) {
  const auto state = begun({&a, &b, &selector}, at);
  if (!state) return detail::bad_scalar();
  auto operands = words(*state, "prmt", {&a, &b, &selector});
  if (!operands) return detail::bad_scalar();
  for (Scalar& each : *operands) each = word_of(*state, each);
  const Type word = b32;
  return detail::assembled(*state, "prmt.b32 %0, %1, %2, %3;", {&word, 1}, *operands,
                           detail::Effect::none)[0];
}

Scalar dp4a(const Scalar& a, const Scalar& b, const Scalar& c, Here at) {
  const auto state = begun({&a, &b, &c}, at);
  if (!state) return detail::bad_scalar();
  const auto operands = words(*state, "dp4a", {&a, &b, &c});
  if (!operands) return detail::bad_scalar();
  const auto letter = [&](const Scalar& x) { return info(x.type()).is_signed ? "s32" : "u32"; };
  for (const Scalar& each : *operands)
    if (info(each.type()).floating) {
      state->log.report("scalar-type"_rule,
                        fmt::format("dp4a: expected integers, found {}", detail::text(each)));
      return detail::bad_scalar();
    }
  const Type result = info((*operands)[2].type()).is_signed ? s32 : u32;
  return detail::assembled(
      *state,
      fmt::format("dp4a.{}.{} %0, %1, %2, %3;", letter((*operands)[0]), letter((*operands)[1])),
      {&result, 1}, *operands, detail::Effect::none)[0];
}

}  // namespace tartan::TARTAN_ABI
