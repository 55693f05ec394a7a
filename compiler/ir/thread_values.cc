// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/thread_values.h"

#include <algorithm>
#include <utility>

#include "compiler/isa/special_registers.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

// As a register of that type holds it.
std::int64_t held(std::int64_t value, Type type) {
  if (type == Type::pred) return value != 0;
  const int width = type == Type::none || info(type).floating ? 64 : bits(type);
  if (width >= 64) return value;
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  const std::uint64_t low = static_cast<std::uint64_t>(value) & mask;
  const bool negative = info(type).is_signed && (low >> (width - 1) & 1);
  return static_cast<std::int64_t>(negative ? low | ~mask : low);
}

bool holds(Compare how, std::int64_t x, std::int64_t y, bool is_signed) {
  const auto a = static_cast<std::uint64_t>(x), b = static_cast<std::uint64_t>(y);
  const bool less = is_signed ? x < y : a < b;
  switch (how) {
    case Compare::eq: return x == y;
    case Compare::ne: return x != y;
    case Compare::lt: return less;
    case Compare::le: return less || x == y;
    case Compare::gt: return !less && x != y;
    case Compare::ge: return !less;
  }
  return false;
}

std::int64_t divided(std::int64_t x, std::int64_t y, bool is_signed, bool remainder) {
  if (y == 0) return 0;
  if (is_signed) return y == -1 ? (remainder ? 0 : -x) : remainder ? x % y : x / y;
  const auto a = static_cast<std::uint64_t>(x), b = static_cast<std::uint64_t>(y);
  return static_cast<std::int64_t>(remainder ? a % b : a / b);
}

std::int64_t shifted(std::int64_t x, std::int64_t by, bool left, bool is_signed) {
  if (by < 0 || by > 63) return 0;
  if (left) return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) << by);
  return is_signed ? x >> by : static_cast<std::int64_t>(static_cast<std::uint64_t>(x) >> by);
}

}  // namespace

std::vector<const Operation*> makers_of(const Function& function) {
  std::vector<const Operation*> out(static_cast<std::size_t>(function.values), nullptr);
  for (const Operation& op : function.operations)
    for (const Operand& result : Function::part(function.results, op.results))
      out[static_cast<std::size_t>(result.id)] = &op;
  return out;
}

ThreadValues::ThreadValues(const Function& function, const std::vector<const Operation*>& makers,
                           int threads)
    : function_(function),
      makers_(makers),
      threads_(threads),
      values_(static_cast<std::size_t>(function.values)) {}

void ThreadValues::begin(int sample) {
  forget(0);
  sample_ = sample;
}

void ThreadValues::forget(std::size_t mark) {
  for (; computed_.size() > mark; computed_.pop_back())
    values_[static_cast<std::size_t>(computed_.back())].numbers.clear();
  ++instance_;
}

void ThreadValues::set(int id, InThreads value) {
  InThreads& to = values_[static_cast<std::size_t>(id)];
  if (to.numbers.empty()) computed_.push_back(id);
  to = std::move(value);
}

const InThreads& ThreadValues::of(int id) {
  const auto which = static_cast<std::size_t>(id);
  if (values_[which].numbers.empty()) {
    const Operation* const maker = makers_[which];
    set(id, maker ? compute(*maker, id) : made_up(id, Known::nowhere));
  }
  return values_[which];
}

InThreads ThreadValues::made_up(int id, Known known) {
  made_up_ = true;
  const std::int64_t numbers[samples] = {0, std::int64_t{1} << 20,
                                         (id * 7919 + instance_ * 104729) % 1013 + 1};
  return {{numbers[sample_]}, known};
}

// Of operands that are the same in all threads, the same in all threads; unless it is of memory
// that is different for each.
InThreads ThreadValues::unknown(const Operation& op, int id) {
  bool same = row_of(op.kind).effect != Effect::acts && op.kind != OperationKind::variable &&
              op.kind != OperationKind::get;
  for (const Operand& each : operands(op)) {
    if (!same) break;
    if (each.id < 0) continue;
    const InThreads& value = of(each.id);
    same = value.is_same() && value.known != Known::nowhere;
  }
  InThreads out = made_up(id, same ? Known::made_up : Known::nowhere);
  const Operand& result = function_.results[op.results.first];
  if (result.type == Type::pred) out.numbers[0] = out.numbers[0] != 0;
  return out;
}

template <typename Fold>
InThreads ThreadValues::folded(const Operation& op, Type type, const Fold& fold) {
  const auto taken = operands(op);
  for (const Operand& each : taken) (void)of(each.id);
  const InThreads& first = values_[static_cast<std::size_t>(taken[0].id)];
  const InThreads* from[3] = {&first, &first, &first};
  InThreads out;
  bool same = true;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    from[i] = &values_[static_cast<std::size_t>(taken[i].id)];
    out.known = std::max(out.known, from[i]->known);
    same &= from[i]->is_same();
  }
  const int count = same ? 1 : threads_;
  out.numbers.resize(static_cast<std::size_t>(count));
  for (int t = 0; t < count; ++t)
    out.numbers[static_cast<std::size_t>(t)] =
        held(fold(from[0]->in(t), from[1]->in(t), from[2]->in(t)), type);
  return out;
}

InThreads ThreadValues::sum(const InThreads& x, const InThreads& y, Type type) const {
  InThreads out{{}, std::max(x.known, y.known)};
  const int count = x.is_same() && y.is_same() ? 1 : threads_;
  for (int t = 0; t < count; ++t) out.numbers.push_back(held(x.in(t) + y.in(t), type));
  return out;
}

// Between the lanes of a warp.
InThreads ThreadValues::exchanged(const Operation& op) {
  const InThreads x = of(operands(op)[0].id);
  const bool by_mask = op.kind == OperationKind::shuffle_xor;
  const InThreads lane = by_mask ? constant(number(op)) : of(operands(op)[1].id);
  InThreads out{{}, std::max(x.known, lane.known)};
  for (int t = 0; t < threads_; ++t) {
    const int from = static_cast<int>((by_mask ? t ^ lane.in(t) : lane.in(t)) & 31);
    out.numbers.push_back(x.in(std::min(t / 32 * 32 + from, threads_ - 1)));
  }
  return out;
}

InThreads ThreadValues::compute(const Operation& op, int id) {
  const Type type = function_.results[op.results.first].type;
  // Of floats nothing is known; whether they are the same in all threads matters little.
  if (type != Type::none && info(type).floating)
    return made_up(id, row_of(op.kind).effect == Effect::frame ? Known::made_up : Known::nowhere);
  const auto of_integers = [&] {
    return std::ranges::none_of(operands(op), [](const Operand& each) {
      return each.type != Type::none && info(each.type).floating;
    });
  };
  if (type != Type::none && bits(type) > 64) return unknown(op, id);
  const auto taken = operands(op);
  const Type operand = taken.empty() ? Type::none : taken[0].type;
  const bool is_signed = operand != Type::none && info(operand).is_signed;
  const auto fold = [&](const auto& by) {
    return of_integers() ? folded(op, type, by) : unknown(op, id);
  };
  using Number = std::int64_t;
  switch (op.kind) {
    using enum OperationKind;
    case constant: return {{held(number(op), type)}};
    case undefined:
    case shared:
    case dynamic_shared: return {{0}};
    case special: {
      const auto which = static_cast<isa::SpecialRegister>(number(op));
      if (which == isa::SpecialRegister::ntid_x) return {{threads_}};
      if (which == isa::SpecialRegister::tid_y || which == isa::SpecialRegister::tid_z)
        return {{0}};
      const bool lane = which == isa::SpecialRegister::laneid;
      if (!lane && which != isa::SpecialRegister::tid_x)
        return made_up(id, isa::is_of_block(which) ? Known::made_up : Known::nowhere);
      InThreads out;
      for (int t = 0; t < threads_; ++t) out.numbers.push_back(lane ? t % 32 : t);
      return out;
    }
    case add:
    case offset: return fold([](Number x, Number y, Number) { return x + y; });
    case constant_offset:
      return fold([by = number(op)](Number x, Number, Number) { return x + by; });
    case subtract: return fold([](Number x, Number y, Number) { return x - y; });
    case multiply: return fold([](Number x, Number y, Number) { return x * y; });
    case fma: return fold([](Number x, Number y, Number z) { return x * y + z; });
    case divide:
    case remainder:
      return fold([&](Number x, Number y, Number) {
        return divided(x, y, is_signed, op.kind == remainder);
      });
    case bit_and: return fold([](Number x, Number y, Number) { return x & y; });
    case bit_or: return fold([](Number x, Number y, Number) { return x | y; });
    case bit_xor: return fold([](Number x, Number y, Number) { return x ^ y; });
    case shift_left:
    case shift_right:
      return fold([&](Number x, Number y, Number) {
        return shifted(x, y, op.kind == shift_left, is_signed);
      });
    case minimum: return fold([](Number x, Number y, Number) { return std::min(x, y); });
    case maximum: return fold([](Number x, Number y, Number) { return std::max(x, y); });
    case negate: return fold([](Number x, Number, Number) { return -x; });
    case absolute: return fold([](Number x, Number, Number) { return x < 0 ? -x : x; });
    case compare: {
      const auto how = static_cast<Compare>(number(op));
      return fold([&](Number x, Number y, Number) { return holds(how, x, y, is_signed); });
    }
    case select: return fold([](Number c, Number x, Number y) { return c ? x : y; });
    case convert:
    case bitcast:
    case shared_address:
    case shared_pointer: return fold([](Number x, Number, Number) { return x; });
    case shuffle:
    case shuffle_xor: return exchanged(op);
    case elect: {
      InThreads out;
      for (int t = 0; t < threads_; ++t) out.numbers.push_back(t % 32 == 0);
      return out;
    }
    default: return unknown(op, id);
  }
}

}  // namespace tartan::TARTAN_ABI::codegen
