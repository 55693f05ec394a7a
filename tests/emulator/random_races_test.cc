// SPDX-License-Identifier: Apache-2.0
// The race detector beside a slow one: random programs of accesses and barriers, judged by a vector
// clock for each thread and a list of all accesses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>
#include <utility>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

constexpr int threads = 64, warp_lanes = 32;

// What each thread knows of the others, and all that was accessed.
class SlowDetector {
 public:
  SlowDetector() {
    for (auto& clock : clocks_) clock.fill(0);
    times_.fill(1);
  }

  void access(int thread, int first, int bytes, bool writes, bool strong, int step) {
    for (const Access& before : all_) {
      if ((!writes && !before.writes) || (strong && before.strong)) continue;
      if (before.first >= first + bytes || first >= before.first + before.bytes) continue;
      if (before.thread == thread || clocks_[at(thread)][at(before.thread)] >= before.time)
        continue;
      racing_.insert(step);
      const bool mixed = before.strong != strong && (strong ? writes : before.writes);
      certain_ |= !mixed || !is_loaded(std::max(first, before.first),
                                       std::min(first + bytes, before.first + before.bytes));
    }
    all_.push_back({thread, times_[at(thread)], first, bytes, writes, strong});
  }
  // Those of `from` tell what they know to those of `to`.
  void meet(const std::vector<int>& from, const std::vector<int>& to) {
    Clock known{};
    for (const int thread : from) {
      clocks_[at(thread)][at(thread)] = times_[at(thread)]++;
      join(known, clocks_[at(thread)]);
    }
    for (const int thread : to) join(clocks_[at(thread)], known);
  }
  // Steps that race with an earlier one.
  const std::set<int>& racing() const { return racing_; }
  // Whether one of them does in each order. What a strong load finds is ordered in front of what
  // comes behind it (observation order, PTX ISA 9.0, 8.9.2), and nobody says whether it finds a
  // strong write.
  bool certain() const { return certain_; }
  // Where the whole program loads strongly, from the first byte to the one behind the last.
  void set_loaded(const std::set<std::pair<int, int>>& loaded) { loaded_ = loaded; }

 private:
  using Clock = std::array<int, threads>;
  struct Access {
    int thread, time, first, bytes;
    bool writes, strong;
  };
  bool is_loaded(int first, int end) const {
    return std::ranges::any_of(
        loaded_, [&](const auto& each) { return each.first < end && first < each.second; });
  }
  static std::size_t at(int thread) { return static_cast<std::size_t>(thread); }
  static void join(Clock& to, const Clock& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
  }

  std::array<Clock, threads> clocks_;
  Clock times_{};
  std::vector<Access> all_;
  std::set<int> racing_;
  std::set<std::pair<int, int>> loaded_;
  bool certain_ = false;
};

std::vector<int> some(int first, int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(first + i);
  return out;
}

// A program, its text and what the slow detector says of it, step by step.
class RandomRaces {
 public:
  using Places = std::set<std::pair<int, int>>;

  // `loaded`: what loaded() says of the same seed.
  explicit RandomRaces(unsigned seed, const Places& loaded = {}) : random_(seed) {
    slow_.set_loaded(loaded);
    text_ = "and.b32 r3, r0, 31;\nshr.u32 r4, r0, 5;\n";
    const int steps = 2 + pick(12);
    // Programs with few barriers race, those with many do not.
    const int barriers = 1 + pick(5);
    for (step_ = 0; step_ < steps; ++step_)
      if (pick(6) < barriers) barrier();
      else access();
  }
  const std::string& text() const { return text_; }
  const std::set<int>& racing() const { return slow_.racing(); }
  bool certain() const { return slow_.certain(); }
  const Places& loaded() const { return loaded_; }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  void add(const std::string& text) { text_ += text; }

  void access() {
    const bool writes = pick(2) == 0, strong = pick(3) == 0;
    const int size = strong ? 4 : 1 << pick(3), first = pick(16 / size) * size;
    const std::string move = strong ? strong_move(writes, first) : weak_move(writes, size, first);
    if (strong && !writes) loaded_.insert({first, first + size});
    const int warp = pick(2);
    if ((!writes || strong) && pick(3) == 0) {  // a whole warp
      add(fmt::format("setp.eq.u32 p, r4, {};\n@p {}", warp, move));
      for (const int thread : some(warp * warp_lanes, warp_lanes))
        slow_.access(thread, first, size, writes, strong, step_);
      return;
    }
    const int thread = warp * warp_lanes + pick(3);
    add(fmt::format("setp.eq.u32 p, r0, {};\n@p {}", thread, move));
    slow_.access(thread, first, size, writes, strong, step_);
  }

  static std::string weak_move(bool writes, int size, int first) {
    return writes ? fmt::format("st.shared.u{} [tile+{}], r0;\n", 8 * size, first)
                  : fmt::format("ld.shared.u{} r6, [tile+{}];\n", 8 * size, first);
  }
  // None of them orders anything. All threads are of one CTA, so every scope reaches them.
  std::string strong_move(bool writes, int first) {
    constexpr std::array stores{
        "red.shared.add.u32 [tile+{}], r0;\n", "red.relaxed.cta.shared.add.u32 [tile+{}], r0;\n",
        "st.relaxed.cta.shared.u32 [tile+{}], r0;\n", "st.volatile.shared.u32 [tile+{}], r0;\n"};
    constexpr std::array loads{"ld.relaxed.cta.shared.u32 r6, [tile+{}];\n",
                               "ld.volatile.shared.u32 r6, [tile+{}];\n"};
    return writes ? fmt::format(fmt::runtime(stores[at(pick(4))]), first)
                  : fmt::format(fmt::runtime(loads[at(pick(2))]), first);
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void barrier() {
    const std::vector<int> all = some(0, threads), low = some(0, warp_lanes),
                           high = some(warp_lanes, warp_lanes);
    switch (pick(4)) {
      case 0: add("bar.sync 0;\n"); return slow_.meet(all, all);
      case 1:
        add("bar.warp.sync -1;\n");
        slow_.meet(low, low);
        return slow_.meet(high, high);
      case 2: {
        const int lanes = 1 + pick(3);
        add(fmt::format("setp.lt.u32 p, r3, {};\n@p bar.warp.sync {};\n", lanes, (1 << lanes) - 1));
        slow_.meet(some(0, lanes), some(0, lanes));
        return slow_.meet(some(warp_lanes, lanes), some(warp_lanes, lanes));
      }
      default: {
        const int waiting = pick(2);
        add(fmt::format("setp.eq.u32 p, r4, {0};\n@p bar.sync {1}, 64;\n@!p bar.arrive {1}, 64;\n",
                        waiting, 1 + step_));
        return slow_.meet(all, waiting ? high : low);
      }
    }
  }

  std::mt19937 random_;
  std::string text_;
  SlowDetector slow_;
  Places loaded_;
  int step_ = 0;
};

TEST(RandomRaces, AsASlowDetectorSays) {
  const std::string shared = ".shared .align 16 .b8 tile[64];\n";
  DeviceOptions options;
  options.checks = Checks::memory;
  int racing = 0, silent = 0;
  const char* const wish = std::getenv("TARTAN_RACES");
  const auto programs = static_cast<unsigned>(wish ? std::atoi(wish) : 3000);
  for (unsigned seed = 0; seed < programs && !testing::Test::HasFailure(); ++seed) {
    const RandomRaces program(seed, RandomRaces(seed).loaded());
    if (!program.racing().empty() && !program.certain()) continue;  // in some orders alone
    const KernelRun run =
        run_body(program.text(), {.grid = {1}, .block = {threads}}, 64, options, shared);
    ASSERT_EQ(run.complaint, "") << program.text();
    const auto race = std::ranges::find_if(run.findings, [](const Finding& each) {
      // What lanes exchange by volatile accesses is no race.
      const auto has = [&](const char* text) {
        return each.message.find(text) != each.message.npos;
      };
      if (each.id == "converged-exchange") return !has("ld.volatile") || !has("st.volatile");
      return each.id.ends_with("-race");
    });
    EXPECT_EQ(race == run.findings.end(), program.racing().empty())
        << "seed " << seed << '\n'
        << kernel_text(program.text(), shared) << (race == run.findings.end() ? "" : race->message);
    (program.racing().empty() ? silent : racing)++;
  }
  EXPECT_GT(racing, programs / 4);
  EXPECT_GT(silent, programs / 4);
}

}  // namespace
}  // namespace tartan::test
