// SPDX-License-Identifier: Apache-2.0
// Ordering bugs that the usual order hides: each kernel of tests/emulator/orders is silent there
// under all checks, and its results are right; other schedules show the bug. The right twin has in
// place of the lines that end in //- those behind //+.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <regex>

#include "runtime/schedules.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

const DeviceOptions options{.max_steps = 2'000'000, .threads = 1, .checks = Checks::all};
constexpr std::uint64_t most = 1000, seeds = 40;

struct Pair {
  std::string name;
  Manifest wrong, right;
};

std::string right_of(const std::string& text) {
  const std::string kept = std::regex_replace(text, std::regex("[^\n]*//-\n"), "");
  return std::regex_replace(kept, std::regex("//\\+ "), "");
}

const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all = [] {
    std::vector<Pair> out;
    for (const auto& entry : fs::directory_iterator(SOURCE_ROOT "/tests/emulator/orders")) {
      if (entry.path().extension() != ".json") continue;
      auto manifest = read_manifest(entry.path().string());
      EXPECT_TRUE(manifest) << (manifest ? "" : manifest.diags().text());
      if (!manifest) continue;
      Manifest right = *manifest;
      right.ptx = Source("right.ptx", right_of(std::string(manifest->ptx.text())));
      out.push_back({entry.path().stem().string(), std::move(*manifest), std::move(right)});
    }
    std::ranges::sort(out, {}, &Pair::name);
    return out;
  }();
  return all;
}

bool shows(const Outcome& outcome) {
  return std::ranges::any_of(outcome.findings,
                             [](const Finding& each) { return each.id != "undecided"; });
}

std::string text(const Outcome& outcome) {
  std::string out = outcome.schedules;
  for (const Finding& each : outcome.findings) out += "\n" + each.id + ": " + each.message;
  return out;
}

// The right twin's results are the expected ones: no schedule gives it others, see below.
TEST(Orders, TheUsualOrderHidesThem) {
  EXPECT_GE(pairs().size(), 20u);
  for (const Pair& each : pairs()) {
    const Outcome wrong = run(each.wrong, "emulator", options),
                  right = run(each.right, "emulator", options);
    EXPECT_EQ(wrong.exit_code(), 0) << each.name << ": " << text(wrong);
    EXPECT_TRUE(wrong.findings.empty()) << each.name << ": " << text(wrong);
    ASSERT_FALSE(wrong.results.empty()) << each.name;
    EXPECT_EQ(wrong.results, right.results) << each.name;
  }
}

// Where the explorer gives up, by a seed.
TEST(Orders, OtherSchedulesShowThem) {
  for (const Pair& each : pairs()) {
    const Outcome all = decide_schedules(each.wrong, options, most);
    EXPECT_TRUE(shows(all)) << each.name << ": " << text(all);
  }
}

const Pair& named_barrier() {
  const auto found = std::ranges::find(pairs(), "one-named-barrier-for-two-pairs", &Pair::name);
  EXPECT_NE(found, pairs().end());
  return *found;
}

TEST(Orders, SeedsShowWhatTheExplorerCannotDecide) {
  const Outcome wrong = decide_schedules(named_barrier().wrong, options, most);
  EXPECT_EQ(wrong.exit_code(), 3) << text(wrong);
  EXPECT_NE(wrong.schedules.find("but seed "), std::string::npos) << wrong.schedules;
  EXPECT_NE(wrong.schedules.find("--schedule "), std::string::npos) << wrong.schedules;
}

// Results that are not those expected say that something is wrong, a seed says what.
TEST(Orders, SeedsShowWhyResultsAreWrong) {
  for (const bool right : {false, true}) {
    Manifest manifest = right ? named_barrier().right : named_barrier().wrong;
    ManifestBuffer& buffer = *manifest.params[0].buffer;
    buffer.expect.emplace(buffer.size, std::byte{0xEE});
    const Outcome usual = run(manifest, "emulator", options);
    EXPECT_EQ(usual.exit_code(), usual.findings.empty() ? 1 : 3) << text(usual);
    const Outcome some = run_seeds(manifest, options, seeds),
                  all = decide_schedules(manifest, options, most);
    EXPECT_EQ(some.exit_code(), right ? 1 : 3) << text(some);
    EXPECT_EQ(all.exit_code(), right ? 1 : 3) << text(all);
    for (const Outcome* each : {&some, &all})
      EXPECT_EQ(each->schedules.find("not those expected either") == std::string::npos, right)
          << text(*each);
  }
}

// Of all runs together: the kernel has far more orders than there is time for.
TEST(Orders, TheTimeLimitBoundsAllRuns) {
  DeviceOptions hurried = options;
  hurried.timeout = 1;
  const Pair& pair = named_barrier();
  const auto begin = std::chrono::steady_clock::now();
  const Outcome some = run_seeds(pair.right, hurried, 100'000'000);
  EXPECT_EQ(some.exit_code(), 4) << text(some);
  EXPECT_NE(some.schedules.find("of 100000000 seeds ended within the time limit"),
            std::string::npos)
      << some.schedules;
  EXPECT_EQ(text(some).find("time-limit"), std::string::npos) << text(some);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(Orders, NoScheduleShowsAnythingOfTheRightTwins) {
  for (const Pair& each : pairs()) {
    const Outcome all = decide_schedules(each.right, options, most);
    EXPECT_FALSE(shows(all)) << each.name << ": " << text(all);
    EXPECT_EQ(all.exit_code(), 0) << each.name << ": " << text(all);
  }
}

}  // namespace
}  // namespace tartan
