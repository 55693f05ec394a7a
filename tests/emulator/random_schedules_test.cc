// SPDX-License-Identifier: Apache-2.0
// The explorer against brute force: tiny programs of two or three threads, each with a few accesses
// to two words of shared memory and to an mbarrier. A naive interpreter goes through all orders of
// their steps, with vector clocks of its own; the explorer has to come to the same: a race, a
// deadlock, or the same set of results. TARTAN_RANDOM_SCHEDULES is the number of programs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>

#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/schedules/explorer.h"
#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

enum class What : std::uint8_t { store, load, weak_store, weak_load, add, reduce, arrive, wait };

struct Step {
  What what = What::load;
  int word = 0;             // of two
  std::uint32_t value = 0;  // stored or added
};

struct Random {
  std::vector<std::vector<Step>> threads;
  std::uint32_t count = 1;  // arrivals of a phase
};

using Results = std::vector<std::uint32_t>;  // the words, then what each step has read

/// What can come of a program.
struct Verdict {
  bool races = false, deadlocks = false;
  std::set<Results> results;
};

bool reads(What what) { return what == What::load || what == What::weak_load || what == What::add; }
bool writes(What what) {
  return what == What::store || what == What::weak_store || what == What::add ||
         what == What::reduce;
}
bool weak(What what) { return what == What::weak_store || what == What::weak_load; }

Random draw(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Random out;
  out.threads.resize(2 + below(2));
  const std::uint32_t longest = out.threads.size() == 2 ? 4 : 3;
  // Few programs with many weak accesses have no race.
  const bool mostly_strong = below(4) != 0;
  std::uint32_t arrivals = 0, value = 1;
  for (auto& thread : out.threads) {
    const std::uint32_t steps = 1 + below(longest);
    for (std::uint32_t i = 0; i < steps; ++i) {
      auto what = static_cast<What>(below(8));
      if (mostly_strong && weak(what) && below(4) != 0)
        what = what == What::weak_load ? What::load : What::store;
      arrivals += what == What::arrive;
      thread.push_back({what, static_cast<int>(below(2)), value++});
    }
  }
  out.count = arrivals > 1 && below(4) == 0 ? 1 : std::max(arrivals, 1u);
  return out;
}

// ---- Brute force.

constexpr std::size_t most_threads = 3;
using Clock = std::array<int, most_threads>;

class Interpreter {
 public:
  explicit Interpreter(const Random& program) : program_(program) {
    State first;
    first.pending = program.count;
    for (const auto& thread : program.threads) first.read.emplace_back(thread.size(), 0);
    go(first);
  }
  const Verdict& verdict() const { return verdict_; }

 private:
  struct Access {
    std::size_t thread;
    int time, word;
    bool writes, weak;
  };
  struct State {
    std::array<std::uint32_t, 2> words = {};
    std::array<std::size_t, most_threads> next = {};
    std::vector<Results> read;
    std::uint32_t pending = 0;
    bool phase = false;
    std::array<Clock, most_threads> knows = {};
    Clock arriving = {}, arrived = {};
    std::vector<Access> accesses;
  };

  static void join(Clock& to, const Clock& from) {
    for (std::size_t i = 0; i < most_threads; ++i) to[i] = std::max(to[i], from[i]);
  }

  void go(const State& state) {
    bool any = false, left = false;
    for (std::size_t t = 0; t < program_.threads.size(); ++t) {
      if (state.next[t] == program_.threads[t].size()) continue;
      left = true;
      const Step& step = program_.threads[t][state.next[t]];
      if (step.what == What::wait && !state.phase) continue;
      any = true;
      State after = state;
      take(after, t, step);
      go(after);
    }
    if (left && !any) verdict_.deadlocks = true;
    if (left) return;
    Results out(state.words.begin(), state.words.end());
    for (const Results& each : state.read) out.insert(out.end(), each.begin(), each.end());
    verdict_.results.insert(out);
  }

  void take(State& state, std::size_t t, const Step& step) {
    Clock& mine = state.knows[t];
    const std::size_t at = state.next[t]++;
    ++mine[t];
    if (reads(step.what) || writes(step.what)) {
      const Access now{t, mine[t], step.word, writes(step.what), weak(step.what)};
      for (const Access& each : state.accesses)
        verdict_.races |= each.word == now.word && (each.writes || now.writes) &&
                          (each.weak || now.weak) && mine[each.thread] < each.time;
      state.accesses.push_back(now);
      std::uint32_t& word = state.words[static_cast<std::size_t>(step.word)];
      if (reads(step.what)) state.read[t][at] = word;
      if (step.what == What::store || step.what == What::weak_store) word = step.value;
      if (step.what == What::add || step.what == What::reduce) word += step.value;
    } else if (step.what == What::arrive) {
      join(state.arriving, mine);
      if (--state.pending == 0) {
        state.pending = program_.count;
        state.phase = !state.phase;
        join(state.arrived, state.arriving);
        state.arriving = {};
      }
    } else {
      join(mine, state.arrived);
    }
  }

  const Random& program_;
  Verdict verdict_;
};

// ---- The same program in PTX: a thread is lane 0 of a warp.

std::string text_of(const Step& step, const std::string& label) {
  const std::string word = fmt::format("[words+{}]", 4 * step.word);
  switch (step.what) {
    case What::store: return fmt::format("st.relaxed.cta.shared.u32 {}, {};\n", word, step.value);
    case What::load: return fmt::format("ld.relaxed.cta.shared.u32 r5, {};\n", word);
    case What::weak_store: return fmt::format("st.shared.u32 {}, {};\n", word, step.value);
    case What::weak_load: return fmt::format("ld.shared.u32 r5, {};\n", word);
    case What::add:
      return fmt::format("atom.relaxed.cta.shared.add.u32 r5, {}, {};\n", word, step.value);
    case What::reduce:
      return fmt::format("red.relaxed.cta.shared.add.u32 {}, {};\n", word, step.value);
    case What::arrive: return "mbarrier.arrive.shared::cta.b64 _, [bar];\n";
    case What::wait: return wait("bar", label);
  }
  return "";
}

const std::string declarations = ".shared .align 8 .u32 words[2];\n.shared .align 8 .b64 bar;\n";

std::string body_of(const Random& program) {
  std::string out = fmt::format(R"(
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [bar], {};
st.shared.u32 [words], 0;
st.shared.u32 [words+4], 0;
READY:
bar.sync 0;
and.b32 r1, r0, 31;
setp.ne.u32 q, r1, 0;
@q bra END;
)",
                                program.count);
  std::size_t at = 2;
  for (std::size_t t = 0; t < program.threads.size(); ++t) {
    out += fmt::format("setp.ne.u32 q, r0, {};\n@q bra NOT_{};\n", 32 * t, t);
    for (std::size_t i = 0; i < program.threads[t].size(); ++i, ++at) {
      const Step& step = program.threads[t][i];
      out += text_of(step, fmt::format("WAIT_{}_{}", t, i));
      if (reads(step.what)) out += fmt::format("st.global.u32 [rd0+{}], r5;\n", 4 * at);
    }
    out += fmt::format("NOT_{}:\n", t);
  }
  out += R"(
bar.sync 1;
setp.ne.u32 q, r0, 0;
@q bra END;
ld.shared.v2.u32 {r5, r6}, [words];
st.global.u32 [rd0], r5;
st.global.u32 [rd0+4], r6;
END:
)";
  return out;
}

/// What the explorer finds; it stops at the first finding.
Verdict explored(const Random& program, std::size_t& runs) {
  std::size_t size = 2;
  for (const auto& thread : program.threads) size += thread.size();
  emulator::Explorer explorer;
  const auto exploration = std::make_shared<detail::Exploration>();
  exploration->schedule = &explorer;
  const Launch launch{.block = {static_cast<std::uint32_t>(32 * program.threads.size())}};
  Verdict out;
  for (; explorer.again(); ++runs) {
    const KernelRun run = run_body(
        body_of(program), launch, size,
        {.max_steps = 100'000, .exploration = exploration, .checks = Checks::all}, declarations);
    EXPECT_EQ(run.complaint, "");
    for (const Finding& each : run.findings) {
      const bool deadlock = each.id.find("deadlock") != std::string::npos;
      EXPECT_TRUE(deadlock || each.id == "livelock" || each.id == "memory-race" ||
                  each.id == "same-value-race" || each.id == "converged-exchange")
          << each.message;
      (deadlock ? out.deadlocks : out.races) = true;
    }
    if (out.races || out.deadlocks) break;
    out.results.insert(run.out);
  }
  return out;
}

std::size_t programs() {
  const char* text = std::getenv("TARTAN_RANDOM_SCHEDULES");
  return text ? static_cast<std::size_t>(std::atoi(text)) : 400;
}

TEST(RandomSchedules, TheExplorerAgreesWithBruteForce) {
  std::size_t races = 0, deadlocks = 0, clean = 0, runs = 0, several = 0;
  for (std::size_t seed = 0; seed < programs(); ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const Random program = draw(random);
    const Verdict expected = Interpreter(program).verdict();
    const Verdict found = explored(program, runs);
    SCOPED_TRACE(fmt::format("program {}\n{}", seed, body_of(program)));
    if (expected.races || expected.deadlocks) {
      EXPECT_TRUE((found.races && expected.races) || (found.deadlocks && expected.deadlocks))
          << "expected " << (expected.races ? "a race " : "")
          << (expected.deadlocks ? "a deadlock" : "");
    } else {
      EXPECT_FALSE(found.races || found.deadlocks);
      EXPECT_EQ(found.results, expected.results);
      several += expected.results.size() > 1;
    }
    races += expected.races;
    deadlocks += expected.deadlocks && !expected.races;
    clean += !expected.races && !expected.deadlocks;
    if (HasFailure()) break;
  }
  fmt::print("{} with races, {} with deadlocks, {} clean ({} with several results), {} runs\n",
             races, deadlocks, clean, several, runs);
  EXPECT_GT(std::min({races, deadlocks, clean, several}), programs() / 50);
}

}  // namespace
}  // namespace tartan::test
