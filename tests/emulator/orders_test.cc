// SPDX-License-Identifier: Apache-2.0
// Ordering bugs that the usual order hides: each kernel of tests/emulator/orders is silent there
// under all checks, and its results are right; other schedules show the bug. The right twin has in
// place of the lines that end in //- those behind //+.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Orders, OtherSchedulesShowThem) {
  for (const Pair& each : pairs()) {
    const Outcome all = decide_schedules(each.wrong, options, most);
    if (shows(all)) continue;
    EXPECT_TRUE(all.undecided) << each.name << " is said to be right: " << text(all);
    const Outcome some = run_seeds(each.wrong, options, seeds);
    EXPECT_TRUE(shows(some)) << each.name << ": " << text(all) << "\n" << text(some);
  }
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
