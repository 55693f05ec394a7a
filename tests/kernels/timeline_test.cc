// SPDX-License-Identifier: Apache-2.0
// Timelines of the built-in kernels, beside the reports of the same runs.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/outcome.h"
#include "tests/kernels/attention_run.h"
#include "tests/paths.h"
#include "tests/support/shell.h"
#include "tests/support/timeline_checks.h"

namespace tartan::test {
namespace {

struct Traced {
  std::shared_ptr<Timeline> timeline;
  Outcome outcome;
};

// Runs what `tartan emit` makes of those words.
Traced trace(const std::string& words, DeviceOptions options = {},
             TimelineLimits limits = {.ctas = 1000, .events = 10'000'000}) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("tartan_timeline_{}", getpid());
  std::filesystem::create_directories(folder);
  const Ran made = shell(fmt::format("cd {} && {} emit {} -o k.ptx --manifest k.json 2>&1",
                                     folder.string(), TARTAN_COMMAND, words));
  EXPECT_EQ(made.code, 0) << made.out;
  const auto manifest = read_manifest((folder / "k.json").string());
  std::filesystem::remove_all(folder);
  if (!manifest) {
    ADD_FAILURE() << manifest.diags().text();
    return {};
  }
  options.profile = true;
  options.timeline = std::make_shared<Timeline>(limits);
  Outcome outcome = run(*manifest, "emulator", options);
  EXPECT_TRUE(outcome.findings.empty()) << outcome.complaints(false);
  return {options.timeline, std::move(outcome)};
}

std::uint64_t count(const Timeline& timeline, Kind kind) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      timeline.events(), [&](const TimelineEvent& each) { return each.kind == kind; }));
}

std::set<std::string> roles(const Timeline& timeline) {
  std::set<std::string> out;
  for (const TimelineCta& cta : timeline.ctas()) out.insert(cta.roles.begin(), cta.roles.end());
  return out;
}

constexpr const char* kernels[] = {
    "one_mma --target sm_80",
    "gemm --target sm_80 --m 128 --n 128 --k 128 --tile 64x64x32",
    "gemm --target sm_75 --m 64 --n 64 --k 64",
    "gemm --target sm_90a --m 128 --n 64 --k 256 --tile 128x64x64 --warps 4x1 --producers 4",
    "gemm --target sm_90a --m 256 --n 64 --k 256 --tile 128x64x64 --warps 4x1 --producers 4 "
    "--cluster 2",
    "gemm --target sm_90a --m 128 --n 128 --k 256 --tile 64x64x64 --warps 4x1 --producers 4 "
    "--persistent",
    "gemm --target sm_80 --m 128 --n 128 --k 256 --tile 64x64x32 --stream-blocks 3",
};

TEST(TimelineOfBuiltins, CountsWhatTheReportCounts) {
  for (const char* words : kernels) {
    SCOPED_TRACE(words);
    const Traced traced = trace(words);
    ASSERT_TRUE(traced.timeline);
    expect_consistent(*traced.timeline);
    expect_as_reported(*traced.timeline, traced.outcome.report);
    expect_whole_json(*traced.timeline);
    EXPECT_GT(count(*traced.timeline, Kind::product), 0u);
    for (const TimelineEvent& event : traced.timeline->events()) EXPECT_TRUE(event.ended) << words;
  }
}

TEST(TimelineOfBuiltins, OfAttention) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    SCOPED_TRACE(arch);
    const auto timeline =
        std::make_shared<Timeline>(TimelineLimits{.ctas = 1000, .events = 1'000'000});
    Device device = *Device::open("emulator", {.profile = true, .timeline = timeline});
    const kernels::Attention options;
    const testing_attention::Lengths size{.queries = 64, .keys = 96};
    testing_attention::run(device, *Target::parse(arch), options, size, {options, size});
    expect_consistent(*timeline);
    expect_as_reported(*timeline, device.report());
    expect_whole_json(*timeline);
    EXPECT_GT(count(*timeline, Kind::product), 0u);
  }
}

TEST(TimelineOfBuiltins, IsTheSameUnderTheSameSeed) {
  constexpr const char* words =
      "gemm --target sm_90a --m 128 --n 64 --k 128 --tile 128x64x64 --warps 4x1 --producers 4";
  std::set<std::string> texts;
  for (const char* seed : {"", "1", "2"}) {
    SCOPED_TRACE(seed);
    const Traced first = trace(words, {.schedule = seed}),
                 second = trace(words, {.schedule = seed});
    EXPECT_EQ(first.timeline->json(), second.timeline->json());
    expect_consistent(*first.timeline);
    expect_as_reported(*first.timeline, first.outcome.report);
    expect_whole_json(*first.timeline);
    texts.insert(first.timeline->json());
  }
  EXPECT_EQ(texts.size(), 3u);
}

TEST(TimelineOfBuiltins, NamesRoles) {
  const std::string gemm = "gemm --m 128 --n 64 --k 128 --tile 128x64x64 --warps 4x1 ";
  EXPECT_EQ(roles(*trace(gemm + "--target sm_90a --producers 4").timeline),
            (std::set<std::string>{"", "consumer", "producer"}));
  EXPECT_EQ(roles(*trace(gemm + "--target sm_80").timeline), std::set<std::string>{""});
}

// The consumers' first wait is for the mbarrier that the producer's copies complete.
TEST(TimelineOfBuiltins, LeadsFromTheCopyToTheProduct) {
  const Traced traced = trace(
      "gemm --target sm_90a --m 128 --n 64 --k 256 --tile 128x64x64 --warps 4x1 --producers 4",
      {.schedule = "3"});
  const auto& events = traced.timeline->events();
  std::size_t led = 0;
  for (const TimelineEvent& wait : events) {
    if (wait.kind != Kind::wait || wait.cause < 0) continue;
    if (traced.timeline->ctas()[wait.cta].roles[static_cast<std::size_t>(wait.warp)] != "consumer")
      continue;
    const TimelineEvent& done = events[static_cast<std::size_t>(wait.cause)];
    if (done.kind != Kind::completion) continue;
    const TimelineEvent& copy = events[static_cast<std::size_t>(done.cause)];
    EXPECT_EQ(copy.kind, Kind::copy);
    EXPECT_LT(copy.begin, done.end);
    EXPECT_EQ(traced.timeline->ctas()[copy.cta].roles[static_cast<std::size_t>(copy.warp)],
              "producer");
    ++led;
  }
  EXPECT_GE(led, 4u);  // one for each k-tile at least
}

TEST(TimelineOfBuiltins, SaysWhatItLeavesOut) {
  constexpr const char* words = "gemm --target sm_80 --m 128 --n 128 --k 128 --tile 64x64x32";
  const Traced all = trace(words);
  ASSERT_EQ(all.timeline->ctas().size(), 4u);
  const Traced one = trace(words, {}, {.ctas = 1, .events = 10'000});
  EXPECT_EQ(one.timeline->ctas().size(), 1u);
  EXPECT_EQ(one.timeline->launches()[0].ctas, 4u);
  EXPECT_EQ(one.timeline->launches()[0].left_out, 0u);
  const Traced few = trace(words, {}, {.ctas = 4, .events = 100});
  const std::uint64_t left_out = few.timeline->launches()[0].left_out;
  EXPECT_GT(left_out, 0u);
  EXPECT_NE(few.timeline->summary().find(fmt::format("{} more were left out", left_out)),
            std::string::npos)
      << few.timeline->summary();
  EXPECT_EQ(count(*few.timeline, Kind::warp), count(*all.timeline, Kind::warp));
  EXPECT_LE(few.timeline->events().size(), 100u + count(*all.timeline, Kind::warp));
  expect_whole_json(*few.timeline);
}

}  // namespace
}  // namespace tartan::test
