// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/thread_values.h"

#include <algorithm>
#include <utility>

#include "compiler/isa/special_registers.h"

namespace tartan::TARTAN_ABI::ir {
namespace {

// Each as a register of that type holds it.
void hold(std::vector<std::int64_t>& numbers, Type type) {
  const int width = type == Type::none || info(type).floating ? 64 : bits(type);
  if (type == Type::pred) {
    for (std::int64_t& each : numbers) each = each != 0;
  } else if (width < 64 && info(type).is_signed) {
    const int above = 64 - width;
    for (std::int64_t& each : numbers)
      each = static_cast<std::int64_t>(static_cast<std::uint64_t>(each) << above) >> above;
  } else if (width < 64) {
    const std::int64_t mask = (std::int64_t{1} << width) - 1;
    for (std::int64_t& each : numbers) each &= mask;
  }
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
      values_(static_cast<std::size_t>(function.values)),
      fixed_(values_.size()) {}

void ThreadValues::begin(int sample) {
  forget(0);
  sample_ = sample;
}

void ThreadValues::forget(std::size_t mark) {
  for (; computed_.size() > mark; computed_.pop_back())
    values_[static_cast<std::size_t>(computed_.back())].numbers.clear();
  ++instance_;
}

void ThreadValues::set(int id, const InThreads& value) {
  InThreads& to = values_[static_cast<std::size_t>(id)];
  if (to.numbers.empty()) computed_.push_back(id);
  to = value;
}

const InThreads& ThreadValues::of(int id) {
  const auto which = static_cast<std::size_t>(id);
  InThreads& value = values_[which];
  if (value.numbers.empty()) {
    if (makers_[which]) compute(value, *makers_[which], id);
    else make_up(value, id, Known::nowhere);
    if (is_fixed(which)) fixed_[which] = true;
    else computed_.push_back(id);
  }
  return value;
}

// Whether it follows from constants and the threads' indices, and so is never computed anew.
bool ThreadValues::is_fixed(std::size_t which) const {
  const Operation* const maker = makers_[which];
  return maker && values_[which].known == Known::exactly &&
         std::ranges::all_of(operands(*maker), [&](const Operand& each) {
           return fixed_[static_cast<std::size_t>(each.id)];
         });
}

void ThreadValues::make_up(InThreads& out, int id, Known known) {
  made_up_ = true;
  const std::int64_t numbers[samples] = {1, std::int64_t{1} << 20,
                                         (id * 7919 + instance_ * 104729) % 1013 + 1};
  out.be(numbers[sample_], known);
}

// Of operands that are the same in all threads, the same in all threads; unless it is of memory
// that is different for each.
void ThreadValues::compute_unknown(InThreads& out, const Operation& op, int id) {
  bool same = row_of(op.kind).effect != Effect::acts && op.kind != OperationKind::variable &&
              op.kind != OperationKind::get;
  for (const Operand& each : operands(op)) {
    if (!same) break;
    if (each.id < 0) continue;
    const InThreads& value = of(each.id);
    same = value.is_same() && value.known != Known::nowhere;
  }
  make_up(out, id, same ? Known::made_up : Known::nowhere);
  const Operand& result = function_.results[op.results.first];
  if (result.type == Type::pred) out.numbers[0] = sample_ != 0;
}

template <typename Fold>
void ThreadValues::fold(InThreads& out, const Operation& op, Type type, const Fold& by) {
  const auto taken = operands(op);
  const InThreads* from[3] = {&of(taken[0].id)};
  from[1] = from[2] = from[0];
  for (std::size_t i = 1; i < taken.size(); ++i) from[i] = &of(taken[i].id);
  out.known = std::max({from[0]->known, from[1]->known, from[2]->known});
  const bool same = from[0]->is_same() && from[1]->is_same() && from[2]->is_same();
  const auto count = static_cast<std::size_t>(same ? 1 : threads_);
  const std::int64_t* numbers[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const bool spreads = from[i]->is_same() && !same;
    if (spreads) spread_[i].assign(count, from[i]->numbers[0]);
    numbers[i] = (spreads ? spread_[i] : from[i]->numbers).data();
  }
  out.numbers.resize(count);
  for (std::size_t t = 0; t < count; ++t)
    out.numbers[t] = by(numbers[0][t], numbers[1][t], numbers[2][t]);
  hold(out.numbers, type);
}

InThreads ThreadValues::sum(const InThreads& x, const InThreads& y, Type type) const {
  InThreads out{{}, std::max(x.known, y.known)};
  const int count = x.is_same() && y.is_same() ? 1 : threads_;
  for (int t = 0; t < count; ++t) out.numbers.push_back(x.in(t) + y.in(t));
  hold(out.numbers, type);
  return out;
}

// Between the lanes of a warp.
void ThreadValues::exchange(InThreads& out, const Operation& op) {
  const InThreads& x = of(operands(op)[0].id);
  const bool by_mask = op.kind == OperationKind::shuffle_xor;
  const InThreads lane = by_mask ? InThreads{{number(op)}} : of(operands(op)[1].id);
  out.known = std::max(x.known, lane.known);
  for (int t = 0; t < threads_; ++t) {
    const int from = static_cast<int>((by_mask ? t ^ lane.in(t) : lane.in(t)) & 31);
    out.numbers.push_back(x.in(std::min(t / 32 * 32 + from, threads_ - 1)));
  }
}

void ThreadValues::compute(InThreads& out, const Operation& op, int id) {
  const Type type = function_.results[op.results.first].type;
  // Of floats nothing is known; whether they are the same in all threads matters little.
  if (type != Type::none && info(type).floating)
    return make_up(out, id,
                   row_of(op.kind).effect == Effect::frame ? Known::made_up : Known::nowhere);
  const auto of_integers = [&] {
    return std::ranges::none_of(operands(op), [](const Operand& each) {
      return each.type != Type::none && info(each.type).floating;
    });
  };
  if (type != Type::none && bits(type) > 64) return compute_unknown(out, op, id);
  const auto taken = operands(op);
  const Type operand = taken.empty() ? Type::none : taken[0].type;
  const bool is_signed = operand != Type::none && info(operand).is_signed;
  const auto fold = [&](const auto& by) {
    if (of_integers()) this->fold(out, op, type, by);
    else compute_unknown(out, op, id);
  };
  const auto each = [&](const auto& number_of) {
    out.known = Known::exactly;
    for (int t = 0; t < threads_; ++t) out.numbers.push_back(number_of(t));
  };
  using Number = std::int64_t;
  switch (op.kind) {
    using enum OperationKind;
    case constant: out.be(number(op), Known::exactly); return hold(out.numbers, type);
    case undefined:
    case shared:
    case dynamic_shared: return out.be(0, Known::exactly);
    case special: {
      const auto which = static_cast<isa::SpecialRegister>(number(op));
      if (which == isa::SpecialRegister::ntid_x) return out.be(threads_, Known::exactly);
      if (which == isa::SpecialRegister::tid_y || which == isa::SpecialRegister::tid_z)
        return out.be(0, Known::exactly);
      const bool lane = which == isa::SpecialRegister::laneid;
      if (!lane && which != isa::SpecialRegister::tid_x)
        return make_up(out, id, isa::is_of_block(which) ? Known::made_up : Known::nowhere);
      return each([&](int t) { return lane ? t % 32 : t; });
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
    case signum: return fold([](Number x, Number, Number) { return Number{x > 0} - (x < 0); });
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
    case shuffle_xor: return exchange(out, op);
    case elect: return each([](int t) { return t % 32 == 0; });
    default: return compute_unknown(out, op, id);
  }
}

}  // namespace tartan::TARTAN_ABI::ir
