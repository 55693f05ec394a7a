// SPDX-License-Identifier: Apache-2.0
// Kernels of tests/data/defects, each a mistake that was once called right or a right kernel that
// was once called wrong: what a run says of them, and what all schedules do.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "runtime/schedules.h"

namespace tartan {
namespace {

struct Case {
  const char* what;
  const char* manifest;
  /// The finding of a run: "" none, "~id" a warning, "id" an error; and with --schedules all, where
  /// "undecided" is no finding.
  const char* plain;
  const char* all;
};

constexpr Case cases[] = {
    {"a store and a load with a membar each, and no flag", "01/wrong", "memory-race",
     "memory-race"},
    {"the same with a flag", "01/right", "", ""},
    {"a last block whose fence is behind its atomic", "03/wrong", "memory-race", "memory-race"},
    {"a last block", "03/right", "", ""},
    {"overlapping tiles between fences", "04/wrong", "memory-race", "memory-race"},
    {"tiles apart", "04/right", "", ""},
    {"atom.acq_rel whose result nobody reads", "05/wrong", "", "memory-race"},
    {"the same with a flag", "05/right", "", ""},
    {"red and a fence as an acquire pattern", "06/wrong", "memory-race", "memory-race"},
    {"atom and a fence", "06/right", "", ""},
    {"an acquiring fence of scope .cta", "07/wrong", "memory-race", "memory-race"},
    {"of scope .gpu", "07/right", "", ""},
    {"a last block that resets its counter by a plain store", "09/k1_reduce", "", ""},
    {"a lock taken by the lanes of a warp", "10/right", "", nullptr},
    {"ldmatrix.x1 with undefined addresses that it does not use", "11/right", "", ""},
    {"with invalid ones", "11/garbage", "", ""},
    {"loads of a stage, then TMA without a proxy fence", "13/wrong", "~proxy-fence-read",
     "~proxy-fence-read"},
    {"with the fence", "13/right", "", ""},
    {"cp.async.mbarrier.arrive behind ordinary stores", "15/wrong", "memory-race", "memory-race"},
    {"mbarrier.arrive", "15/right", "", ""},
    {"a vote by lanes that its mask does not name", "16/wrong", "divergent-collective",
     "divergent-collective"},
    {"a mask of all", "16/right", "", ""},
    {"setmaxnreg that differs within a warpgroup", "18/wrong", "divergent-collective",
     "divergent-collective"},
    {"one count", "18/right", "", ""},
    {"atomics of 8 and of 4 bytes", "19/wrong", "memory-race", "memory-race"},
    {"of 8 bytes", "19/right", "", ""},
    {"message passing by volatile accesses: weak memory is not explored", "20/wrong", "", ""},
    {"by release and acquire", "20/right", "", ""},
    {"a wait that polls a thousand times", "22/wrong", "", "undecided"},
    {"one that polls until it is done", "22/right", "", "undecided"},
    {"TMA stores of two CTAs that overlap", "25/wrong", "asynchronous-race", "asynchronous-race"},
    {"tiles apart", "25/right", "", ""},
    {"two groups of warps that share a barrier", "27/wrong", "", "memory-race"},
    {"a barrier each", "27/right", "", ""},
    {"a split-K semaphore of 48 CTAs", "33/k11p", "", nullptr},
};

Manifest manifest_of(const Case& each) {
  auto manifest = read_manifest(TEST_DATA "/defects/" + std::string(each.manifest) + ".json");
  EXPECT_TRUE(manifest) << (manifest ? "" : manifest.diags().text());
  return manifest ? *std::move(manifest) : Manifest{};
}

void expect(const Case& each, std::string wanted, const Outcome& outcome) {
  const std::string said = each.manifest + (": " + std::string(each.what)) + '\n' +
                           outcome.schedules + '\n' + outcome.complaints(false);
  const bool undecided = wanted == "undecided";
  const bool warning = wanted.starts_with("~");
  if (warning) wanted.erase(0, 1);
  const int code = undecided ? 4 : wanted.empty() || warning ? 0 : 3;
  EXPECT_EQ(outcome.exit_code(), code) << said;
  if (wanted.empty())
    EXPECT_TRUE(std::ranges::all_of(outcome.findings, [](const Finding& finding) {
      return finding.id == "schedule-dependent";
    })) << said;
  else
    EXPECT_TRUE(std::ranges::any_of(outcome.findings, [&](const Finding& finding) {
      return finding.id == wanted;
    })) << said;
}

TEST(Defects, ARun) {
  for (const Case& each : cases)
    expect(each, each.plain,
           run(manifest_of(each), "emulator", {.timeout = 60, .checks = Checks::all}));
}

TEST(Defects, AllSchedules) {
  for (const Case& each : cases)
    if (each.all)
      expect(each, each.all,
             decide_schedules(manifest_of(each), {.timeout = 60, .checks = Checks::all}, 2000));
}

// Locks and semaphores end whoever comes first.
TEST(Defects, Seeds) {
  for (const Case& each : cases)
    if (!each.all)
      expect(each, "", run_seeds(manifest_of(each), {.timeout = 60, .checks = Checks::all}, 20));
}

}  // namespace
}  // namespace tartan
