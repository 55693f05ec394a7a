// SPDX-License-Identifier: Apache-2.0
// Warp-collective instructions in loops that the lanes of a warp leave in different iterations:
// where a branch out of the loop, or back to its start, compares a counter that differs between the
// lanes. Counters from constants to constants are counted out: lanes that go as often are fine.
// Where a bound is not known, lanes that are less than a step apart may be.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/verify/lane_shapes.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Control;
using isa::Opcode;
using isa::operator""_q;
using Kind = LaneShape::Kind;

constexpr int deepest = 24;                              // operands followed back
constexpr int most_rounds = 1 << 16;                     // of a loop that is counted out
constexpr std::size_t most_work = std::size_t{1} << 24;  // statements times loops

// A register that each iteration adds a constant to, as the comparison finds it.
struct Counter {
  LaneShape first;        // in the first iteration
  std::int64_t step = 0;  // 0: it is not known
};

enum class Leaving : std::uint8_t { together, apart, unknown };

class LoopChecker {
 public:
  LoopChecker(Context& context, const FunctionView& view,
              std::unordered_set<const ptx::Instruction*>& reported)
      : context_(context), view_(view), reported_(reported) {}

  void run() {
    if (!find_loops()) return;
    shapes_.emplace(context_.module, view_.function, view_.definitions, guards());
    // Each loop is followed through the function: of very many, in a long one, the first.
    std::size_t work = 0;
    for (const std::size_t first : loops_)
      if ((work += view_.function.statements.size()) <= most_work) loop(first);
  }

 private:
  const isa::Spelling& spelling(const ptx::Instruction& instruction) const {
    return context_.module.spelling(instruction);
  }

  const ptx::Statement& statement(std::size_t i) const { return view_.function.statements[i]; }

  const ptx::Instruction* at(std::size_t i) const {
    const ptx::Statement& found = statement(i);
    return found.kind == ptx::StatementKind::Instruction
               ? &context_.module.instructions[found.index]
               : nullptr;
  }

  bool is_collective(std::size_t i) const {
    const ptx::Instruction* const instruction = at(i);
    return instruction && isa::needs_all_lanes(spelling(*instruction));
  }

  // Whether there are loops, and collectives that may be in one.
  bool find_loops() {
    const auto& statements = view_.function.statements;
    std::unordered_map<std::uint32_t, std::size_t> labels;
    for (std::size_t i = 0; i < statements.size(); ++i) {
      if (statements[i].kind == ptx::StatementKind::Label) labels[statements[i].index] = i;
      if (statements[i].kind == ptx::StatementKind::Instruction) places_.push_back(i);
    }
    view_.scopes.restart();
    for (std::size_t i = 0; i < statements.size(); ++i) {
      view_.scopes.enter(statements[i]);
      const ptx::Instruction* const branch = at(i);
      if (!branch || spelling(*branch).opcode != Opcode::bra || branch->count != 1) continue;
      const auto to = view_.scopes.label(context_.module.operands[branch->first].text);
      if (!to) continue;
      targets_[i] = labels.at(*to);
      branches_[labels.at(*to)].push_back(i);
      if (labels.at(*to) < i) loops_.insert(labels.at(*to));
    }
    if (loops_.empty()) return false;
    for (std::size_t i = *loops_.begin(); i < statements.size(); ++i)
      if (is_collective(i)) return true;
    return false;
  }

  // The predicates by which lanes may leave loops.
  std::vector<std::string_view> guards() const {
    std::vector<std::string_view> out;
    for (const std::size_t i : places_)
      if (may_leave(*at(i), i)) out.push_back(at(i)->guard);
    return out;
  }

  // Whether lanes may go elsewhere, or end, where others go on.
  bool may_leave(const ptx::Instruction& branch, std::size_t i) const {
    return !branch.guard.empty() && !spelling(branch).has("uni"_q) &&
           (targets_.contains(i) || exits(branch));
  }

  void loop(std::size_t first) {
    const std::vector<bool> inside = statements_of(first);
    const auto is_inside = [&](std::size_t i) { return i < inside.size() && inside[i]; };
    for (std::size_t i = 0; i < inside.size(); ++i) {
      const ptx::Instruction* const branch = is_inside(i) ? at(i) : nullptr;
      if (!branch || !may_leave(*branch, i)) continue;
      const auto to = targets_.find(i);
      const bool taken_stays = to != targets_.end() && is_inside(to->second);
      if (taken_stays == is_inside(i + 1)) continue;
      // The predicate's value in the lanes that leave.
      const bool when = taken_stays == branch->guard_negated;
      if (decide(branch->guard, i, when, first, 0) != Leaving::apart) continue;
      for (std::size_t k = 0; k < inside.size(); ++k)
        if (is_inside(k) && is_collective(k)) report(*at(k), *branch);
    }
  }

  bool exits(const ptx::Instruction& instruction) const {
    const Control control = spelling(instruction).row().control;
    return control == Control::Returns || control == Control::Exits;
  }

  // Those from which a branch back to the label can be reached without passing it, wherever they
  // stand. None where the loop can be entered elsewhere: it is no loop of that label then.
  std::vector<bool> statements_of(std::size_t first) const {
    std::vector<bool> out(view_.function.statements.size());
    std::vector<std::size_t> open;
    const auto add = [&](std::size_t i) {
      if (!out[i] && i != first) out[i] = true, open.push_back(i);
    };
    for (const std::size_t branch : branches_.at(first))
      if (branch > first) add(branch);
    while (!open.empty()) {
      const std::size_t now = open.back();
      open.pop_back();
      if (now == 0) return {};
      if (goes_on(now - 1)) add(now - 1);
      if (const auto from = branches_.find(now); from != branches_.end())
        std::ranges::for_each(from->second, add);
    }
    out[first] = true;
    return out;
  }

  // Whether the statement behind it may follow.
  bool goes_on(std::size_t i) const {
    const ptx::Instruction* const instruction = at(i);
    return !instruction || !ends_way(context_.module, *instruction);
  }

  // Where it stands in the function.
  std::size_t place(const ptx::Instruction& instruction) const {
    const auto& all = context_.module.instructions;
    return *std::ranges::lower_bound(places_, &instruction, {},
                                     [&](std::size_t i) { return &all[statement(i).index]; });
  }

  // The instruction that gives a predicate its value: the last one before, in the loop, or the only
  // one.
  const ptx::Instruction* definition(std::string_view name, std::size_t before,
                                     std::size_t first) const {
    const auto& all = shapes_->writers(name);
    for (auto each = all.rbegin(); each != all.rend(); ++each)
      if (const std::size_t here = place(**each); here > first && here < before)
        return (*each)->guard.empty() ? *each : nullptr;
    return all.size() == 1 && all[0]->guard.empty() ? all[0] : nullptr;
  }

  // Whether lanes leave where the predicate is `when`.
  Leaving decide(std::string_view guard, std::size_t before, bool when, std::size_t first,
                 int depth) {
    const ptx::Instruction* const by = definition(guard, before, first);
    if (!by || depth > deepest) return Leaving::unknown;
    const auto operands = context_.module.operands_of(*by);
    const isa::Spelling& word = spelling(*by);
    if (word.opcode == Opcode::setp && operands.size() == 3)
      return compare(*by, operands[1], operands[2], when, first);
    if (word.opcode == Opcode::not_ && operands.size() == 2)
      return decide(operands[1].text, place(*by), !when, first, depth + 1);
    if ((word.opcode != Opcode::and_ && word.opcode != Opcode::or_) || operands.size() != 3)
      return Leaving::unknown;
    const Leaving one = decide(operands[1].text, place(*by), when, first, depth + 1),
                  other = decide(operands[2].text, place(*by), when, first, depth + 1);
    if (one == Leaving::unknown || other == Leaving::unknown) return Leaving::unknown;
    return one == Leaving::apart ? one : other;
  }

  Leaving compare(const ptx::Instruction& by, const ptx::Operand& x, const ptx::Operand& y,
                  bool when, std::size_t first) {
    const LaneShape a = shapes_->of(x), b = shapes_->of(y);
    if (!a.known() || !b.known() || info(spelling(by).type()).floating) return Leaving::unknown;
    std::int64_t least = 0, most = 0;  // of what lanes are apart
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const std::int64_t apart = a.values[i] - a.values[0] - (b.values[i] - b.values[0]);
      least = std::min(least, apart), most = std::max(most, apart);
    }
    if (least == most) return Leaving::together;
    const auto counted = counter(x, by, first), other = counter(y, by, first);
    if (a.kind == Kind::exact && b.kind == Kind::exact) return count(by, {a}, {b}, when);
    if (counted.has_value() == other.has_value()) return Leaving::unknown;
    const Counter& counts = counted ? *counted : *other;
    if (const LaneShape& bound = counted ? b : a;
        counts.first.kind == Kind::exact && bound.kind == Kind::exact)
      return counted ? count(by, counts, {bound}, when) : count(by, {bound}, counts, when);
    // Lanes that are a step or more apart do not pass the bound in the same iteration. Others may:
    // where the number of elements is a multiple of 32, say.
    return counts.step != 0 && most - least >= std::abs(counts.step) ? Leaving::apart
                                                                     : Leaving::unknown;
  }

  // What each lane does, iteration by iteration.
  Leaving count(const ptx::Instruction& by, const Counter& x, const Counter& y, bool when) const {
    const bool constant = x.step == 0 && y.step == 0;
    for (std::int64_t round = 0; round < (constant ? 1 : most_rounds); ++round) {
      int leave = 0;
      for (std::size_t lane = 0; lane < x.first.values.size(); ++lane) {
        const auto holds = compare_values(spelling(by), x.first.values[lane] + round * x.step,
                                          y.first.values[lane] + round * y.step);
        if (!holds) return Leaving::unknown;
        leave += *holds == when;
      }
      if (leave == static_cast<int>(x.first.values.size())) return Leaving::together;
      if (leave) return Leaving::apart;
    }
    return constant ? Leaving::together : Leaving::unknown;
  }

  // What is added; nothing: it is not known, but the same in all lanes.
  using Added = std::optional<std::int64_t>;

  struct Walk {
    std::string_view name;
    Added added = 0;
    const ptx::Instruction* reader;
  };

  // Follows a register back over moves and additions, to one that several instructions write, or to
  // `end`.
  std::optional<Walk> walk(const ptx::Operand& from, const ptx::Instruction& reader,
                           std::string_view end = {}) {
    if (from.kind != ptx::OperandKind::Name) return std::nullopt;
    Walk now{from.text, 0, &reader};
    for (int steps = 0; steps < deepest && now.name != end; ++steps) {
      const ptx::Instruction* const by = view_.definitions.of(now.name);
      if (!by) return shapes_->writers(now.name).size() > 1 ? std::optional(now) : std::nullopt;
      const auto next = before(*by);
      if (!next) return std::nullopt;
      now = {next->name, sum(now.added, next->added), by};
    }
    return now.name == end ? std::optional(now) : std::nullopt;
  }

  static Added sum(Added x, Added y) { return x && y ? Added(*x + *y) : std::nullopt; }

  // The register that a move or an addition reads, and what it adds.
  std::optional<Walk> before(const ptx::Instruction& by) {
    const auto operands = context_.module.operands_of(by);
    const Opcode opcode = spelling(by).opcode;
    if (operands.size() < 2 || operands[1].kind != ptx::OperandKind::Name) return std::nullopt;
    const Walk same{operands[1].text, 0, &by};
    if ((opcode == Opcode::mov || opcode == Opcode::cvt) && operands.size() == 2) return same;
    if ((opcode != Opcode::add && opcode != Opcode::sub) || operands.size() != 3)
      return std::nullopt;
    const LaneShape what = shapes_->of(operands[2]);
    if (!what.uniform()) return std::nullopt;
    if (what.kind != Kind::exact) return Walk{same.name, std::nullopt, &by};
    return Walk{same.name, opcode == Opcode::add ? what.values[0] : -what.values[0], &by};
  }

  std::optional<Counter> counter(const ptx::Operand& operand, const ptx::Instruction& by,
                                 std::size_t first) {
    const auto found = walk(operand, by);
    if (!found) return std::nullopt;
    const auto& writers = shapes_->writers(found->name);
    if (writers.size() != 2) return std::nullopt;
    for (const std::size_t i : {0u, 1u}) {
      const ptx::Instruction &next = *writers[i], &start = *writers[1 - i];
      if (place(next) < first || !next.guard.empty() || !start.guard.empty()) continue;
      const auto last = before(next);
      const auto back =
          last ? walk(context_.module.operands_of(next)[1], next, found->name) : std::nullopt;
      const Added step = back ? sum(last->added, back->added) : Added(0);
      if (step == 0) continue;
      const auto begins = context_.module.operands_of(start);
      const LaneShape from = spelling(start).opcode == Opcode::mov && begins.size() == 2
                                 ? shapes_->of(begins[1])
                                 : LaneShape{};
      if (!step || !found->added || from.kind != Kind::exact)
        return Counter{.first = {.kind = Kind::offset}, .step = step.value_or(0)};
      const bool stepped = place(next) < place(*found->reader);
      Counter out{.first = from, .step = *step};
      for (std::int64_t& value : out.first.values) value += *found->added + (stepped ? *step : 0);
      return out;
    }
    return std::nullopt;
  }

  void report(const ptx::Instruction& instruction, const ptx::Instruction& branch) {
    if (!reported_.insert(&instruction).second) return;
    context_.report(
        "maybe-divergent"_rule, instruction.opcode,
        fmt::format("{} must be executed by all lanes of the warp, but lanes leave its "
                    "loop in different iterations: {} (line {}) is lane-varying",
                    instruction.opcode, branch.guard, context_.module.source->line(branch.offset)));
  }

  Context& context_;
  const FunctionView& view_;
  std::unordered_set<const ptx::Instruction*>& reported_;
  std::optional<LaneShapes> shapes_;
  std::vector<std::size_t> places_;                       // of instructions, ascending
  std::unordered_map<std::size_t, std::size_t> targets_;  // of branches, statements
  std::unordered_map<std::size_t, std::vector<std::size_t>> branches_;  // to a label, statements
  std::set<std::size_t> loops_;  // labels that a branch behind them leads to
};

}  // namespace

void check_divergent_loops(Context& context, const FunctionView& view,
                           std::unordered_set<const ptx::Instruction*>& reported) {
  LoopChecker(context, view, reported).run();
}

}  // namespace tartan::TARTAN_ABI::verify
