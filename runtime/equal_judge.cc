// SPDX-License-Identifier: Apache-2.0
#include "runtime/equal_judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/equal_compare.h"
#include "runtime/equal_draws.h"
#include "runtime/equal_explain.h"
#include "runtime/equal_paths.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// Magnitudes of wide draws are from 2^-e to 2^e: the first of these with which nothing overflows.
constexpr int exponents[] = {20, 9, 6, 3, 1};

// So many elements are drawn with both signs and magnitudes of all parts of the range.
constexpr std::size_t enough_elements = 64;
constexpr std::size_t most_strata = 8;

constexpr int most_rounds = 6;  // of learning what elements there are
constexpr int most_steps = 10;  // of halving the range of a bound

struct Both {
  EqualRun a, b;
  bool good() const { return a.good() && b.algebra && b.good(); }
};

class Judge {
 public:
  Judge(EqualSides& sides, const EqualOptions& options, Equality& out)
      : sides_(sides),
        buffers_(sides.buffers),
        options_(options),
        out_(out),
        inputs_(sides.buffers) {}

  void operator()() {
    Both both;
    run(both);
    if (!both.a.good() || (sides_.b && !both.b.good())) return fail(both);
    keep_fills(both);
    inputs_.start();
    inputs_.learn(both.a, both.b);
    // Integers decide where threads meet: those that the manifest has, and those that are drawn.
    if (!inputs_.integers().empty() && !passes_checks()) return;
    steps_ = 100'000 + 16 * std::max(both.a.steps, both.b.steps);
    if ((inputs_.any() || settle(both) || !both.good()) && !run_bounded({}, both))
      return unbounded_.empty() ? fail(both) : undecided(unbounded_);
    if (!passes_checks() || !agrees(both)) return;
    paths_of(both);
    usual_ = {both.a.algebra->values.extremes + both.b.algebra->values.extremes,
              both.a.algebra->overflows + both.b.algebra->overflows};
    if (may_differ(both) && !agrees_on_wide_draws()) return;
    conclude();
  }

 private:
  // ---- Runs.

  EqualRun run_first(const Replaced& replaced = {}) {
    return run_under_algebra(sides_.a, buffers_, sides_.names_a, bounded_options(), replaced);
  }
  EqualRun run_second(EqualRun& first, const Replaced& replaced = {}) {
    if (sides_.b)
      return run_under_algebra(*sides_.b, buffers_, sides_.names_b, bounded_options(), replaced);
    return evaluate_formula(*sides_.formula, buffers_, first, replaced);
  }
  // A drawn length must not keep a loop busy for ever.
  EqualOptions bounded_options() const {
    EqualOptions out = options_;
    if (bounded_) out.max_steps = std::min(out.max_steps, steps_);
    return out;
  }

  bool run(Both& both) {
    both.a = run_first();
    both.b = both.a.good() ? run_second(both.a) : EqualRun{};
    return both.good();
  }

  // Both on that draw. What they find out about the inputs is drawn too, and bits that count in one
  // count in both.
  bool run_draw(const Draw& draw, Both& both) {
    bounded_ = draw.number > 0 || !inputs_.integers().empty();
    for (int round = 0; round < most_rounds; ++round) {
      inputs_.fill(draw);
      const bool ran = run(both);
      if (!ran && (sides_.b || !both.a.good())) return false;
      const bool learnt = inputs_.learn(both.a, both.b), settled = settle(both);
      if (!learnt && !settled) return ran;
    }
    return both.good();
  }

  // The same, with integers below what they index.
  bool run_bounded(const Draw& draw, Both& both) {
    while (!run_draw(draw, both))
      if (inputs_.integers().empty() || !bound_integers(draw)) return false;
    return true;
  }

  // Finds the buffers whose integers, with zeros in the others, make a kernel fail, and a bound
  // with which they do not.
  bool bound_integers(const Draw& draw) {
    const std::vector<std::size_t> all = inputs_.integers();
    std::vector<std::uint64_t> limits;
    for (const std::size_t each : all) limits.push_back(inputs_.bound(each));
    const auto zero = [&] {
      for (const std::size_t each : all) inputs_.bound(each, 1);
    };
    Both both;
    zero();
    const bool by_integers = run_draw(draw, both);
    bool lowered = false;
    for (std::size_t i = 0; by_integers && i < all.size() && unbounded_.empty(); ++i) {
      zero();
      inputs_.bound(all[i], limits[i]);
      if (run_draw(draw, both)) continue;
      lowered = true;
      limits[i] = bound_alone(draw, all[i], both);
    }
    if (by_integers && !lowered && unbounded_.empty()) lower_together(all, limits, both);
    for (std::size_t i = 0; i < all.size(); ++i) inputs_.bound(all[i], limits[i]);
    return by_integers && unbounded_.empty();
  }

  // The largest bound, if it lies between the numbers of elements that it was looked for among.
  std::uint64_t bound_alone(Draw draw, std::size_t buffer, Both& both) {
    draw.edge = true;
    const auto runs = [&](std::uint64_t limit) {
      inputs_.bound(buffer, limit);
      return run_draw(draw, both);
    };
    std::uint64_t least = 1, failed = 0;
    for (const std::uint64_t limit : inputs_.bounds(buffer)) {
      if (runs(limit)) {
        least = limit;
        break;
      }
      failed = limit;
    }
    if (least == 1) return give_up_on(buffer, both), 1;
    for (int steps = 0; steps < most_steps && failed > least + 1; ++steps) {
      const std::uint64_t middle = std::midpoint(least, failed);
      (runs(middle) ? least : failed) = middle;
    }
    return least;
  }

  // Each is harmless alone: their sums are not.
  void lower_together(const std::vector<std::size_t>& all, std::vector<std::uint64_t>& limits,
                      const Both& both) {
    bool lower = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      inputs_.bound(all[i], limits[i]);
      const auto bounds = inputs_.bounds(all[i]);
      if (bounds.empty()) continue;
      limits[i] = bounds.front();
      lower = true;
    }
    if (!lower) give_up_on(all.front(), both);
  }

  void give_up_on(std::size_t buffer, const Both& both) {
    const EqualRun& failed = both.a.good() ? both.b : both.a;
    const std::string why = failed.findings.empty() ? "" : ": " + failed.findings.front().message;
    unbounded_ = fmt::format(
        "no integers but zeros were found for {} with which both kernels run{}; give its contents "
        "by a file, or --exact {}",
        buffers_[buffer].name, why, buffers_[buffer].name);
  }

  // ---- Inputs.

  // A fill is the start of what a kernel adds to. Of what is only read it says nothing.
  void keep_fills(const Both& both) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      EqualBuffer& buffer = buffers_[i];
      if (!buffer.filled || buffer.given) continue;
      buffer.given =
          buffer.exact || writes(both.a, buffers_, i) || (sides_.b && writes(both.b, buffers_, i));
    }
  }

  // Buffers of which one takes bits where the other takes values: their bits count for both.
  bool settle(const Both& both) {
    const emulator::Algebra &a = *both.a.algebra, &b = *both.b.algebra;
    bool changed = false;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      EqualBuffer& buffer = buffers_[i];
      const std::uint32_t first = a.inputs()[i].first;
      for (std::uint32_t at = 0; at < buffer.bytes && !buffer.exact; ++at) {
        const auto use = static_cast<std::uint8_t>(a.use(first + at) | b.use(first + at));
        const bool both_ways = use & emulator::by_value && use & emulator::by_bits;
        const Type x = a.type(first + at), y = b.type(first + at);
        const bool types = sides_.b && x != y && x != Type::none && y != Type::none;
        if (types && !both_ways) {
          note(fmt::format("{} is read as {} and as {}", buffer.name, name(x), name(y)));
          break;
        }
        if (!both_ways) continue;
        buffer.exact = changed = settled_ = true;
        note(
            fmt::format("{}: the verdict holds for these elements only: integer instructions take "
                        "their bits",
                        buffer.name));
      }
    }
    return changed;
  }

  void note(std::string text) {
    if (std::ranges::find(out_.notes, text) == out_.notes.end())
      out_.notes.push_back(std::move(text));
  }

  // ---- What runs say.

  void fail(const Both& both) {
    const bool first = !both.a.good();
    const EqualRun& failed = first ? both.a : both.b;
    out_.ptx = first ? sides_.a.ptx.name() : sides_.b ? sides_.b->ptx.name() : std::string();
    out_.findings = failed.findings;
    out_.verdict = failed.refused.ok() ? Equality::Verdict::trapped : Equality::Verdict::refused;
    out_.refused.append(failed.refused);
  }

  bool passes_checks() {
    for (const auto& [manifest, names] :
         {std::pair{&sides_.a, &sides_.names_a}, std::pair{sides_.b, &sides_.names_b}}) {
      if (!manifest) continue;
      const RunErrors errors = errors_of_run(*manifest, buffers_, *names, options_);
      if (errors.findings.empty() && errors.refused.ok()) continue;
      out_.findings = errors.findings;
      out_.refused.append(errors.refused);
      out_.verdict = errors.refused.ok() ? Equality::Verdict::trapped : Equality::Verdict::refused;
      out_.ptx = manifest->ptx.name();
      note(fmt::format("{}: tartan run rejects this kernel", manifest->name));
      return false;
    }
    return true;
  }

  std::vector<std::string> outputs() const {
    if (sides_.formula) return {sides_.formula->output};
    return options_.outputs;
  }
  Comparing compare(Both& both, bool wide = false) {
    return compare_runs(both.a, both.b, buffers_, outputs(), wide);
  }

  // Whether both came to the same, on contents that are not wide.
  bool agrees(Both& both) {
    const Comparing compared = compare(both);
    for (const auto& [run, of_b] : {std::pair{&both.a, false}, std::pair{&both.b, true}})
      if (!run->algebra->given_up().empty()) {
        const emulator::Reason& reason = run->algebra->given_up().front();
        return undecided(reason.text, reason.line, of_b), false;
      }
    if (compared.unequal) return conclude(both, compared), false;
    out_.elements = compared.elements;
    if (compared.elements == 0)
      return undecided("neither kernel wrote anything into a buffer that both have"), false;
    return true;
  }

  // Where numbers decided nothing, other numbers have the same images.
  bool may_differ(const Both& both) const {
    if (!inputs_.any()) return false;
    return settled_ || !inputs_.integers().empty() || both.a.algebra->values.steered ||
           both.b.algebra->values.steered;
  }

  bool agrees_on_wide_draws() {
    const auto strata = static_cast<unsigned>(std::clamp<std::size_t>(
        enough_elements / std::max<std::size_t>(inputs_.elements(), 1), 1, most_strata));
    for (unsigned number = 1; number <= 2 * strata; ++number)
      if (!agrees_on_wide_draw(number, strata)) return false;
    return true;
  }

  // A draw with which exponentials or bits overflow says nothing: magnitudes shrink until none do.
  bool agrees_on_wide_draw(unsigned number, unsigned strata) {
    for (; level_ < std::size(exponents); ++level_) {
      Both both;
      if (!run_bounded({number, exponents[level_], strata}, both)) {
        if (!unbounded_.empty()) return undecided(unbounded_), false;
        continue;
      }
      if (overflows(both)) continue;
      const Comparing compared = compare(both, true);
      if (compared.overflowed && !compared.different && !compared.close && !compared.undecided)
        continue;
      paths_of(both);
      if (!compared.unequal) return true;
      conclude(both, compared);
      if (out_.verdict == Equality::Verdict::undecided)
        out_.reason += fmt::format("; magnitudes of the inputs are up to 2^{}", exponents[level_]);
      return false;
    }
    note("the verdict holds for inputs in (-1, 1) only: larger ones overflow, or end a kernel");
    return true;
  }

  bool overflows(const Both& both) const {
    const emulator::Algebra &a = *both.a.algebra, &b = *both.b.algebra;
    return a.values.extremes + b.values.extremes > usual_.extremes ||
           a.overflows + b.overflows > usual_.overflows || !a.given_up().empty() ||
           !b.given_up().empty();
  }

  void paths_of(const Both& both) {
    paths_.add(both.a, sides_.a.ptx);
    if (sides_.b) paths_.add(both.b, sides_.b->ptx);
  }

  // ---- Verdicts.

  void conclude() {
    out_.verdict = Equality::Verdict::same;
    out_.paths = paths_.one_way();
    for (const std::string& name : inputs_.signals())
      note(
          fmt::format("{} starts as the manifest says: threads wait for its integers, or count "
                      "with them",
                      name));
  }

  void conclude(Both& both, const Comparing& compared) {
    out_.elements = compared.elements;
    out_.unequal = compared.unequal;
    if (compared.different) return different(both, *compared.different);
    if (compared.overflowed) return different(both, *compared.overflowed);
    if (compared.undecided) {
      show(*compared.undecided);
      return undecided(compared.undecided->reason, compared.undecided->line,
                       compared.undecided->of_b);
    }
    show(*compared.close);
    undecided(reason_of(both, *compared.close));
  }

  std::string reason_of(const Both& both, const ComparedElement& close) {
    if (const std::string names = exact_that_decide(both); !names.empty())
      return fmt::format(
          "the results agree as numbers, not as functions: {0} counts as variables although its "
          "contents are given; with --exact {0} the results are the same",
          names);
    if (!close.a.interpreted || !close.b.interpreted)
      return "the results agree as numbers, not as functions: they rest on functions of which "
             "nothing is known (lg2, tanh, sin, cos)";
    return "the results agree as numbers, not as functions: constants that were rounded at "
           "different places, or exponentials of exponentials";
  }

  bool is_value(const Both& both, std::size_t buffer) const {
    const std::uint32_t first = both.a.algebra->inputs()[buffer].first;
    for (std::uint32_t at = first; at < first + buffers_[buffer].bytes; ++at)
      if ((both.a.algebra->use(at) | both.b.algebra->use(at)) & emulator::by_value) return true;
    return false;
  }

  // Buffers whose contents are given, one or all of them, that make the results the same where they
  // are no variables: "C", "C --exact D".
  std::string exact_that_decide(const Both& both) {
    std::vector<std::vector<std::size_t>> sets(1);
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i].given && !buffers_[i].exact && is_value(both, i)) sets[0].push_back(i);
    if (sets[0].empty() || sets[0].size() > 4) return {};
    if (sets[0].size() > 1)
      for (const std::size_t each : sets[0]) sets.push_back({each});
    for (auto set = sets.rbegin(); set != sets.rend(); ++set) {
      for (const std::size_t each : *set) buffers_[each].exact = true;
      Both again;
      const bool same = run(again) && compare(again).same();
      for (const std::size_t each : *set) buffers_[each].exact = false;
      if (!same) continue;
      std::vector<std::string> names;
      for (const std::size_t each : *set) names.push_back(buffers_[each].name);
      return fmt::format("{}", fmt::join(names, " --exact "));
    }
    return {};
  }

  void undecided(const std::string& reason, int line = 0, bool of_b = false) {
    out_.verdict = Equality::Verdict::undecided;
    out_.reason = reason;
    out_.line = line;
    if (line) out_.ptx = of_b ? sides_.b->ptx.name() : sides_.a.ptx.name();
  }

  void show(const ComparedElement& one) {
    out_.first = UnequalElement{.buffer = buffers_[one.buffer].name,
                                .index = one.offset / one.bytes,
                                .offset = one.offset,
                                .type = std::string(name(one.type)),
                                .a = image_text(one.a),
                                .b = image_text(one.b),
                                .real_a = real_text(one.a),
                                .real_b = real_text(one.b)};
    if (one.type == Type::none) out_.first->type = "b8";
  }

  void different(Both& both, const ComparedElement& first) {
    out_.verdict = Equality::Verdict::different;
    show(first);
    for (const std::size_t each : inputs_.integers())
      if (buffers_[each].filled)
        note(
            fmt::format("{0} is only read, and its integers were drawn in place of its fill: "
                        "--exact {0} keeps that",
                        buffers_[each].name));
    if (first.type == Type::none || options_.explain <= 0) return;
    out_.term = find_term(
        both.a, both.b, buffers_, first,
        [&](const Replaced& replaced) {
          auto one = std::make_pair(run_first(replaced), EqualRun{});
          one.second = run_second(one.first, replaced);
          return one;
        },
        options_.explain);
  }

  struct Overflows {
    std::uint64_t extremes = 0, overflows = 0;
  };

  EqualSides& sides_;
  std::vector<EqualBuffer>& buffers_;
  const EqualOptions& options_;
  Equality& out_;
  DrawnInputs inputs_;
  TakenPaths paths_;
  Overflows usual_;          // of the usual draw
  std::uint64_t steps_ = 0;  // that a bounded launch may take
  bool bounded_ = false;
  bool settled_ = false;   // some buffer's bits count
  std::size_t level_ = 0;  // of `exponents`
  std::string unbounded_;  // why no integers were found
};

}  // namespace

void judge(EqualSides& sides, const EqualOptions& options, Equality& out) {
  Judge(sides, options, out)();
}

}  // namespace tartan::TARTAN_ABI::detail
