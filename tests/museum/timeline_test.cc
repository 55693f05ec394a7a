// SPDX-License-Identifier: Apache-2.0
// Timelines of the museum's pieces, wrong and right: races, deadlocks and traps do not break them.
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/outcome.h"
#include "tests/support/timeline_checks.h"

namespace tartan::test {
namespace {

void expect_timeline(const std::string& path, const std::string& schedule, int& stopped) {
  SCOPED_TRACE(path + " " + schedule);
  const auto manifest = read_manifest(path);
  ASSERT_TRUE(manifest);
  const auto timeline =
      std::make_shared<Timeline>(TimelineLimits{.ctas = 1000, .events = 1'000'000});
  const Outcome outcome =
      run(*manifest, "emulator",
          {.schedule = schedule, .checks = Checks::all, .profile = true, .timeline = timeline});
  if (timeline->launches().empty()) return;  // the checker has refused it
  const bool finished =
      std::ranges::all_of(timeline->launches(), &std::string::empty, &TimelineLaunch::stopped);
  stopped += !finished;
  expect_consistent(*timeline, finished);
  expect_whole_json(*timeline);
  if (finished) expect_as_reported(*timeline, outcome.report);
}

TEST(Museum, TimelinesAreWhole) {
  int stopped = 0, pieces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SOURCE_ROOT "/tests/museum")) {
    if (!entry.is_directory()) continue;
    ++pieces;
    for (const char* twin : {"/wrong.json", "/right.json"})
      for (const char* schedule : {"", "3"})
        expect_timeline(entry.path().string() + twin, schedule, stopped);
  }
  EXPECT_GE(pieces, 50);
  EXPECT_GE(stopped, 20);
}

}  // namespace
}  // namespace tartan::test
