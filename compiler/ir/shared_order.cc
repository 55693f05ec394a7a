// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/shared_order.h"

#include <map>
#include <ranges>
#include <utility>

#include "compiler/ir/shared_accesses.h"
#include "compiler/ir/shared_facts.h"
#include "compiler/ir/shared_parts.h"
#include "compiler/ir/thread_values.h"

namespace tartan::TARTAN_ABI::ir {
namespace {

// Whether two values are computed alike from the same ones, of which nothing needs to be known.
class Likeness {
 public:
  Likeness(const Function& function, const std::vector<const Operation*>& makers)
      : function_(function), makers_(makers) {}

  bool operator()(int x, int y, int depth = 24) const {
    if (x < 0 || y < 0 || depth == 0) return false;
    if (x == y) return true;
    const Operation *const a = makers_[static_cast<std::size_t>(x)],
                           *const b = makers_[static_cast<std::size_t>(y)];
    if (!a || !b || a->kind != b->kind || a->type != b->type) return false;
    if (row_of(a->kind).effect != Effect::none || a->results.count != 1) return false;
    if (!std::ranges::equal(Function::part(function_.numbers, a->numbers),
                            Function::part(function_.numbers, b->numbers)) ||
        !std::ranges::equal(Function::part(function_.texts, a->texts),
                            Function::part(function_.texts, b->texts)))
      return false;
    return std::ranges::equal(Function::part(function_.operands, a->operands),
                              Function::part(function_.operands, b->operands),
                              [&](const Operand& p, const Operand& q) {
                                return (p.id < 0 && q.id < 0) || (*this)(p.id, q.id, depth - 1);
                              });
  }

 private:
  const Function& function_;
  const std::vector<const Operation*>& makers_;
};

class Walk {
 public:
  Walk(const Function& function, const OrderOptions& options, const SharedFacts& facts,
       const std::vector<const Operation*>& makers)
      : function_(function),
        options_(options),
        facts_(facts),
        makers_(makers),
        values_(function, makers, options.threads),
        all_(Threads::range(0, options.threads)) {}

  void run(int sample) {
    values_.begin(sample);
    variables_.clear();
    pending_ = {};
    here_ = {all_, all_, true, 0};
    universe_ = all_;
    walk(Function::body);
    for (const Missed& each : std::exchange(missed_, {})) miss(each);
  }

  bool has_made_up() const { return values_.has_made_up(); }

  OrderFindings finish() {
    for (const auto& [id, each] : named_)
      if (each.threads.count() < each.expected && !facts_.has_waiting_texts())
        miss({place(each.place), {}, each.expected, each.threads.count()});
    return std::move(findings_);
  }

 private:
  // Who executes the operations that are walked over.
  struct Here {
    Threads threads;          // at most
    Threads always;           // in each iteration
    bool exactly;             // these are all of `threads`
    std::uint32_t condition;  // the place of the innermost one of the threads' indices
  };
  struct Named {
    Threads threads;
    int expected;
    std::uint32_t place;
  };

  std::span<const Operand> operands(const Operation& op) const {
    return Function::part(function_.operands, op.operands);
  }
  std::int64_t number(const Operation& op, std::size_t which = 0) const {
    return Function::part(function_.numbers, op.numbers)[which];
  }
  const std::source_location& place(std::uint32_t which) const { return function_.places[which]; }

  void walk(std::uint32_t region) {
    for (const std::uint32_t each : function_.regions[region].operations)
      if (facts_.matters(each)) visit(each);
  }

  void visit(std::uint32_t which) {
    const Operation& op = function_.operations[which];
    switch (op.kind) {
      using enum OperationKind;
      case set: return assign(op);
      case get: {
        const auto found = variables_.find(operands(op)[0].id);
        if (found == variables_.end()) return;
        return values_.set(function_.results[op.results.first].id, found->second);
      }
      case if_then: return walk_if(op);
      case if_else: return walk_if_else(op);
      case for_range: return walk_for(which, op);
      case while_loop: return walk_while(which, op);
      case barrier: return meet(op, universe_.count());
      case barrier_of_some: return meet_some(op);
      case cluster_barrier: return meet(op, universe_.count());
      case cluster_mbarrier_wait: return pending_.sync_all();
      case warp_sync: return pending_.sync_warps(here_.threads);
      case mbarrier_wait:
        if (is_turn(operands(op)[0].id)) pending_.take_turn(here_.threads);
        return;
      case warpgroup_wait: return pending_.land(here_.threads, warpgroup_threads, groups(op));
      case bulk_commit: ++bulk_group_; return;
      case bulk_wait_read: return pending_.land(here_.threads, 1, groups(op));
      case statement:
        if (facts_.waits(op)) pending_.await_others(here_.threads);
        if (facts_.syncs_warp(op)) pending_.sync_warps(here_.threads);
        break;
      default:
        for (std::uint32_t i = 0; i < op.regions.count; ++i) walk(op.regions.first + i);
        break;
    }
    products_ += op.kind == OperationKind::warpgroup_product;
    for (const Touch& each : facts_.touches(op))
      if (facts_.suspects()[static_cast<std::size_t>(each.memory)]) access(op, each);
  }

  std::size_t groups(const Operation& op) const { return static_cast<std::size_t>(number(op)); }

  // An address is computed from that of declared memory.
  bool is_turn(int id) const {
    while (id >= 0) {
      if (std::ranges::find(options_.turns, id) != options_.turns.end()) return true;
      const Operation* const maker = makers_[static_cast<std::size_t>(id)];
      if (!maker || maker->operands.count == 0) return false;
      id = operands(*maker)[0].id;
    }
    return false;
  }

  // ---- Variables.

  static bool is_number(Type type) { return !info(type).floating && bits(type) <= 64; }

  void assign(const Operation& op) {
    const Operand variable = operands(op)[0];
    if (!is_number(op.type)) return;
    InThreads now = values_.of(operands(op)[1].id);
    changed_.push_back(variable.id);
    InThreads& before = variables_[variable.id];
    if (!before.numbers.empty() && !here_.threads.covers(universe_)) {
      InThreads both{{}, std::max(now.known, before.known)};
      for (int t = 0; t < options_.threads; ++t)
        both.numbers.push_back(here_.threads.has(t) ? now.in(t) : before.in(t));
      now = std::move(both);
    }
    before = std::move(now);
  }

  // What a body that may run more often, or not at all, has changed is not known behind it.
  void blur(std::size_t from) {
    for (std::size_t i = from; i < changed_.size(); ++i) {
      InThreads& value = variables_[changed_[i]];
      value.known = std::max(value.known, Known::made_up);
    }
  }

  // ---- Conditions and loops.

  // Whoever of those here finds the condition to be `holds`.
  Here among(const InThreads& condition, bool holds, std::uint32_t at) const {
    Here out = here_;
    if (condition.known == Known::nowhere) {
      out.exactly = false;
      return out;
    }
    if (condition.is_same()) {
      if (condition.known == Known::exactly && (condition.in(0) != 0) != holds)
        out.threads = out.always = {};
      return out;
    }
    for (int t = 0; t < options_.threads; ++t)
      if ((condition.in(t) != 0) != holds) {
        const std::uint32_t bit = 1U << t % 32;
        out.threads.warps[static_cast<std::size_t>(t / 32)] &= ~bit;
        out.always.warps[static_cast<std::size_t>(t / 32)] &= ~bit;
      }
    out.exactly &= condition.known == Known::exactly;
    out.condition = at;
    return out;
  }

  void walk_as(const Here& here, std::uint32_t region) {
    walk_part(here, region, 0, function_.regions[region].operations.size());
  }

  void walk_if(const Operation& op) {
    const InThreads condition = values_.of(operands(op)[0].id);
    const std::size_t changed = changed_.size();
    walk_as(among(condition, true, op.place), op.regions.first);
    if (condition.known != Known::exactly) blur(changed);
  }

  void walk_if_else(const Operation& op) {
    const InThreads condition = values_.of(operands(op)[0].id);
    const Here first = among(condition, true, op.place), second = among(condition, false, op.place);
    const std::size_t changed = changed_.size(), missed = missed_.size();
    const bool roles = facts_.divides_roles(op);
    // Either the one or the other: all threads find the same, or mbarriers order the roles.
    const bool one = roles || (condition.is_same() && condition.known == Known::made_up);
    if (!one && walk_in_step(op, first, second)) {
      if (condition.known != Known::exactly) blur(changed);
      return;
    }
    // Barriers in both bodies may order what these do.
    const bool apart = one || (meets(op.regions.first) && meets(op.regions.first + 1));
    const Threads all = universe_;
    Pending before;
    if (apart) before = pending_;
    if (roles) universe_ = first.threads;
    walk_as(first, op.regions.first);
    const std::size_t between = missed_.size();
    if (apart) std::swap(before, pending_);
    if (roles) universe_ = second.threads;
    walk_as(second, op.regions.first + 1);
    universe_ = all;
    if (apart) pending_.merge(before);
    if (!one) pair_barriers(missed, between);
    if (condition.known != Known::exactly) blur(changed);
  }

  bool meets(std::uint32_t region) const {
    return std::ranges::any_of(function_.regions[region].operations, [&](std::uint32_t each) {
      const Operation& op = function_.operations[each];
      if (op.kind == OperationKind::barrier || op.kind == OperationKind::barrier_of_some)
        return true;
      for (std::uint32_t i = 0; i < op.regions.count; ++i)
        if (meets(op.regions.first + i)) return true;
      return false;
    });
  }

  // The barriers of all threads among a region's operations; none, if there are others deeper.
  std::vector<std::size_t> barriers_of(std::uint32_t region) const {
    std::vector<std::size_t> out;
    const auto& operations = function_.regions[region].operations;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Operation& op = function_.operations[operations[i]];
      const bool some = op.kind == OperationKind::barrier_of_some;
      if (op.kind == OperationKind::barrier ||
          (some && number(op) == options_.consumers_barrier && number(op, 1) == universe_.count()))
        out.push_back(i);
      else if (some || std::ranges::any_of(std::views::iota(0U, op.regions.count), [&](auto each) {
                 return meets(op.regions.first + each);
               }))
        return {};
    }
    return out;
  }

  void walk_part(const Here& here, std::uint32_t region, std::size_t begin, std::size_t end) {
    if (!here.threads.any()) return;
    const Here before = std::exchange(here_, here);
    for (std::size_t i = begin; i < end; ++i)
      if (const std::uint32_t each = function_.regions[region].operations[i]; facts_.matters(each))
        visit(each);
    here_ = before;
  }

  // Two bodies with as many barriers: the threads of both come to each together.
  bool walk_in_step(const Operation& op, const Here& first, const Here& second) {
    const std::uint32_t a = op.regions.first, b = a + 1;
    const auto in_a = barriers_of(a), in_b = barriers_of(b);
    if (in_a.empty() || in_a.size() != in_b.size()) return false;
    std::size_t from_a = 0, from_b = 0;
    for (std::size_t i = 0; i <= in_a.size(); ++i) {
      const bool last = i == in_a.size();
      walk_part(first, a, from_a, last ? function_.regions[a].operations.size() : in_a[i]);
      walk_part(second, b, from_b, last ? function_.regions[b].operations.size() : in_b[i]);
      if (last) break;
      pending_.sync_all();
      from_a = in_a[i] + 1, from_b = in_b[i] + 1;
    }
    return true;
  }

  // Where both sides have as many barriers, all threads come to each.
  void pair_barriers(std::size_t first, std::size_t second) {
    if (second == first || missed_.size() - second != second - first) return;
    missed_.resize(first);
    pending_.sync_all();
  }

  void walk_for(std::uint32_t which, const Operation& op) {
    const auto taken = operands(op);
    const std::uint32_t region = op.regions.first;
    const Operand argument = function_.regions[region].arguments[0];
    const auto found = variables_.find(taken[0].id);
    InThreads index = found != variables_.end() ? found->second : values_.of(taken[0].id);
    const InThreads end = values_.of(taken[1].id), step = values_.of(taken[2].id);
    const bool known = std::max({index.known, end.known, step.known}) == Known::exactly;
    const std::size_t mark = values_.mark(), changed = changed_.size();
    const Here outside = here_;
    if (known) leave_uneven(index, end, step, op.place);
    // Of a made-up count, one that ends; of a made-up begin, nothing tells.
    const bool made_up = !known && index.known == Known::exactly && index.is_same() &&
                         end.is_same() && step.known == Known::exactly;
    bool ends = false;
    const int times = !loops_.empty() ? 2 : known ? most_walked : 3;
    for (int time = 0; time < times && !ends; ++time) {
      if (made_up && time > 0 && !is_below(index.in(0), end.in(0), argument.type)) break;
      values_.forget(mark);
      Here inside = here_;
      if (known) {
        InThreads goes_on{{}};
        for (int t = 0; t < (index.is_same() && end.is_same() ? 1 : options_.threads); ++t)
          goes_on.numbers.push_back(is_below(index.in(t), end.in(t), argument.type));
        inside = among(goes_on, true, op.place);
      }
      ends = !inside.threads.any();
      values_.set(argument.id, index);
      loops_.emplace_back(which, time);
      walk_as(inside, region);
      loops_.pop_back();
      index = values_.sum(index, step, argument.type);
    }
    here_ = outside;
    values_.forget(mark);
    if (!ends) blur(changed);
  }

  static constexpr int most_walked = 8;  // iterations of a loop whose count is known

  static bool is_below(std::int64_t x, std::int64_t y, Type type) {
    return info(type).is_signed ? x < y
                                : static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(y);
  }

  // Threads that go around a loop less often than others miss the last barriers in it.
  void leave_uneven(const InThreads& begin, const InThreads& end, const InThreads& step,
                    std::uint32_t at) {
    if (begin.is_same() && end.is_same() && step.is_same()) return;
    const auto times = [&](int t) {
      const std::int64_t by = std::max<std::int64_t>(step.in(t), 1);
      return std::max<std::int64_t>(0, (end.in(t)-begin.in(t) + by - 1) / by);
    };
    std::int64_t most = 0;
    for (int t = 0; t < options_.threads; ++t)
      if (here_.threads.has(t)) most = std::max(most, times(t));
    Threads always;
    for (int t = 0; t < options_.threads; ++t)
      if (here_.always.has(t) && times(t) == most) always.add(t);
    if (always == here_.always) return;
    here_.always = always, here_.condition = at;
  }

  void walk_while(std::uint32_t which, const Operation& op) {
    const std::size_t mark = values_.mark(), changed = changed_.size();
    const Region& test = function_.regions[op.regions.first];
    const int times = loops_.empty() ? 3 : 2;
    for (int time = 0; time < times; ++time) {
      values_.forget(mark);
      loops_.emplace_back(which, time);
      walk(op.regions.first);
      const InThreads condition = values_.of(test.result.id);
      walk_as(among(condition, true, op.place), op.regions.first + 1);
      loops_.pop_back();
    }
    values_.forget(mark);
    blur(changed);
  }

  // ---- Barriers.

  void meet(const Operation& op, int expected) {
    if (here_.exactly && !here_.always.covers(universe_))
      missed_.push_back({place(op.place), place(here_.condition), expected, here_.always.count()});
    pending_.sync(here_.threads, universe_);
  }

  void meet_some(const Operation& op) {
    const int id = static_cast<int>(number(op)), expected = static_cast<int>(number(op, 1));
    if (options_.consumers && universe_.count() == expected && id == options_.consumers_barrier)
      return meet(op, expected);
    Named& named = named_.try_emplace(id, Named{{}, expected, op.place}).first->second;
    named.threads |= here_.threads;
    const int here = here_.threads.count();
    if (here > expected && here_.exactly) miss({place(op.place), {}, expected, here});
    // Others may wait at the same barrier elsewhere.
    if (expected > here) pending_.await_others(here_.threads);
    else pending_.sync(here_.threads, universe_);
  }

  void miss(const Missed& missed) {
    for (const Missed& each : findings_.missed)
      if (each.barrier.line() == missed.barrier.line() &&
          each.barrier.column() == missed.barrier.column())
        return;
    findings_.missed.push_back(missed);
  }

  // ---- Accesses.

  void access(const Operation& op, const Touch& touch) {
    Access now{.memory = touch.memory,
               .place = op.place,
               .reads = touch.reads,
               .writes = touch.writes,
               .atomic = touch.atomic,
               .flying = touch.flying,
               .loops = loops_,
               .serial = serial_};
    now.group = op.kind == OperationKind::tensor_store ? bulk_group_ : products_;
    ++serial_;
    if (values_.of(touch.address->id).known == Known::nowhere) now.address = touch.address->id;
    add_parts(now, function_, op, touch,
              options_.memories[static_cast<std::size_t>(touch.memory)].stage, here_.threads,
              values_);
    if (const auto met = pending_.find(now, Likeness(function_, makers_))) report(*met, now);
    if (!touch.ordered) pending_.add(std::move(now));
  }

  void report(const Pending::Meeting& met, const Access& now) {
    Disorder out{.memory = options_.memories[static_cast<std::size_t>(now.memory)].base,
                 .before = place(met.before.place),
                 .behind = place(now.place),
                 .writes_before = met.before.writes,
                 .writes_behind = now.writes,
                 .within_warp = met.within_warp,
                 .in_flight = met.before.flying};
    for (std::size_t i = 0; i < std::min(now.loops.size(), met.before.loops.size()); ++i)
      out.carried |= now.loops[i].first == met.before.loops[i].first &&
                     now.loops[i].second != met.before.loops[i].second;
    for (const Disorder& each : findings_.disorders)
      if (each.memory == out.memory && each.behind.line() == out.behind.line() &&
          each.writes_behind == out.writes_behind)
        return;
    findings_.disorders.push_back(out);
  }

  const Function& function_;
  const OrderOptions& options_;
  const SharedFacts& facts_;
  const std::vector<const Operation*>& makers_;
  ThreadValues values_;
  Threads all_, universe_;  // of the block; of the role
  Here here_;
  Pending pending_;
  std::map<int, InThreads> variables_;                // by id
  std::vector<int> changed_;                          // variables
  std::vector<std::pair<std::uint32_t, int>> loops_;  // around
  std::map<int, Named> named_;                        // barriers, by number
  std::vector<Missed> missed_;
  OrderFindings findings_;
  int serial_ = 0, products_ = 0, bulk_group_ = 0;
};

}  // namespace

OrderFindings check_order(const Function& function, const OrderOptions& options) {
  const std::vector<const Operation*> makers = makers_of(function);
  const SharedFacts facts(function, options, makers);
  if (std::ranges::find(facts.suspects(), true) == facts.suspects().end() &&
      !facts.has_divided_barriers())
    return {};
  Walk walk(function, options, facts, makers);
  int sample = 0;
  do walk.run(sample);
  while (walk.has_made_up() && ++sample < ThreadValues::samples);
  return walk.finish();
}

}  // namespace tartan::TARTAN_ABI::ir
