// SPDX-License-Identifier: Apache-2.0
// `tartan run` and `tartan replay` as a user meets them: messages and exit codes of bad inputs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/run_command.h"

namespace tartan::run_command_test {
namespace {

TEST_F(RunCommand, WritesATimeline) {
  const Ran ran = run(manifest(), "--timeline t.json");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find("timeline in t.json: copy: 1 of 1 CTA, 1 event\n"), std::string::npos)
      << ran.out;
  const auto trace = nlohmann::json::parse(std::ifstream(folder / "t.json"));
  EXPECT_EQ(trace.at("otherData").at("launches").at(0).at("kernel"), "copy");
  // With --json, standard output is one object still.
  EXPECT_FALSE(
      nlohmann::json::parse(run(manifest(), "--json --timeline t.json").out, nullptr, false)
          .is_discarded());
  // What is stopped has its timeline, too, and its own exit code.
  auto endless = manifest();
  endless["kernel"] = "forever";
  EXPECT_EQ(run(endless, "--timeline stopped.json --max-steps 1000").code, 3);
  const auto stopped = nlohmann::json::parse(std::ifstream(folder / "stopped.json"));
  EXPECT_NE(stopped.at("otherData").at("launches").at(0).at("stopped").dump().find("1000"),
            std::string::npos);
  EXPECT_EQ(run(manifest(), "--timeline no/such/folder/t.json").code, 2);
  EXPECT_EQ(run(manifest(), "--timeline t.json --schedules 3").code, 2);
  if (fs::exists("/dev/nvidiactl")) return;  // with a GPU it is measured there
  const Ran on_gpu =
      shell(fmt::format("cd {} && {} run manifest.json --device cuda --timeline g.json",
                        folder.string(), TARTAN_COMMAND));
  EXPECT_EQ(on_gpu.code, 2) << on_gpu.out;
  EXPECT_FALSE(fs::exists(folder / "g.json"));
}

TEST_F(RunCommand, WhatHolds) {
  const Ran ran = run(manifest());
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "out: 16 bytes as expected, bit for bit\n");
  const Ran with_report = run(manifest(), "--report");
  EXPECT_NE(with_report.out.find("warp instructions: 8\n"), std::string::npos) << with_report.out;
}

TEST_F(RunCommand, JsonIsOneObject) {
  const Ran ran = run(manifest(), "--json");
  EXPECT_EQ(ran.code, 0);
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["expectations"][0]["ok"], true);
  EXPECT_EQ(json["report"]["trust"]["level"], "");
  auto bad = manifest();
  bad["kernel"] = "cpoy";
  EXPECT_EQ(nlohmann::json::parse(run(bad, "--json").out)["findings"][0]["id"], "unknown-kernel");
}

TEST_F(RunCommand, LeastKnownArithmeticIsSaid) {
  auto json = manifest();
  json["kernel"] = "root";
  json["params"][1].erase("expect");
  const Ran ran = run(json);
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("note: the results depend on arithmetic that is only documented: sqrt"),
            std::string::npos)
      << ran.out;
  const auto trust = nlohmann::json::parse(run(json, "--json").out)["report"]["trust"];
  EXPECT_EQ(trust["level"], "documented");
  EXPECT_NE(trust["instruction"].get<std::string>().find("sqrt.approx"), std::string::npos);
}

TEST_F(RunCommand, MissingAndShortFiles) {
  auto json = manifest();
  json["params"][0]["file"] = "none.bin";
  json["params"][1]["expect"] = "short.bin";
  expect(json, 2, "params[0].file: cannot read none.bin: no such file");
  expect(json, 2, "params[1].expect: \"short.bin\" has 15 bytes, buffer out has 16");
  const Ran none = shell(fmt::format("{} run {}/none.json", TARTAN_COMMAND, folder.string()));
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.out.find("cannot read"), std::string::npos) << none.out;
}

TEST_F(RunCommand, ManifestThatDoesNotFitTheKernel) {
  auto fewer = manifest();
  fewer["params"].erase(2);
  expect(fewer, 2,
         "wrong number of arguments: kernel copy expects 3 arguments, found 2 [launch-arguments]");
  auto wider = manifest();
  wider["params"][2] = {{"u64", 0}};
  expect(wider, 2,
         "argument 2 (offset) of kernel copy: expected 4 bytes, found 8 [launch-arguments]");
  auto unknown = manifest();
  unknown["kernel"] = "cpoy";
  const Ran ran = run(unknown);
  EXPECT_EQ(ran.code, 2);
  for (const char* words : {"cpoy", "copy", "forever", "root", "[unknown-kernel]"})
    EXPECT_NE(ran.out.find(words), std::string::npos) << ran.out;
}

TEST_F(RunCommand, LaunchesThatDoNotExist) {
  auto empty = manifest();
  empty["grid"] = {0};
  expect(empty, 2, "grid[0]: expected a whole number from 1 to 2147483647, found 0");
  auto huge = manifest();
  huge["grid"] = {1, 65536};
  huge["block"] = {2048};
  expect(huge, 2, "grid[1]: expected a whole number from 1 to 65535, found 65536");
  expect(huge, 2, "block[0]: expected a whole number from 1 to 1024, found 2048");
  auto shared = manifest();
  shared["dynamic_shared"] = 300000;
  expect(shared, 2, "dynamic_shared: expected a whole number from 0 to 232448, found 300000");
  shared["dynamic_shared"] = 200000;
  expect(shared, 2,
         "kernel copy needs 200000 bytes of shared memory: a block of sm_80 has at most 166912");
}

TEST_F(RunCommand, UnalignedVectorAccess) {
  auto json = manifest();
  json["params"][2] = {{"u32", 4}};
  const Ran ran = run(json);
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.out.find("[misaligned-access]"), std::string::npos) << ran.out;
  EXPECT_TRUE(ran.out.starts_with("small.ptx:14: error: ")) << ran.out;
}

TEST_F(RunCommand, RacesAreLookedForUnlessToldOtherwise) {
  auto json = manifest();
  json["block"] = {2};
  json["kernel"] = "racy";
  const Ran racy = run(json);
  EXPECT_EQ(racy.code, 3);
  EXPECT_NE(racy.out.find("[memory-race]"), std::string::npos) << racy.out;
  EXPECT_EQ(run(json, "--checks none").code, 1);  // other bytes than expected, no more
  // Both threads copy the same.
  json["kernel"] = "copy";
  const Ran same = run(json);
  EXPECT_EQ(same.code, 0);
  EXPECT_NE(same.out.find("warning: race of stores of the same value"), std::string::npos)
      << same.out;
  EXPECT_EQ(run(json, "--checks none").out, "out: 16 bytes as expected, bit for bit\n");
}

TEST_F(RunCommand, LevelsOfRules) {
  auto json = manifest();
  json["kernel"] = "racy";
  json["block"] = {64};
  json["params"][1] = {{"buffer", "out"}, {"bytes", 16}};
  EXPECT_EQ(run(json).code, 3);
  const Ran warned = run(json, "--warn memory-race");
  EXPECT_EQ(warned.code, 0) << warned.out;
  EXPECT_NE(warned.out.find("warning: race: "), std::string::npos) << warned.out;
  const Ran ignored = run(json, "--ignore memory-race --ignore nothing-compared");
  EXPECT_EQ(ignored.code, 0) << ignored.out;
  EXPECT_EQ(ignored.out, "");
  const Ran unknown = run(json, "--ignore memory-races");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.out.find("unknown rule; the nearest is memory-race"), std::string::npos)
      << unknown.out;
}

TEST_F(RunCommand, EndlessLoopEnds) {
  auto json = manifest();
  json["kernel"] = "forever";
  const Ran ran = run(json, "--max-steps 1000");
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.out.find("1000"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("[step-limit]"), std::string::npos) << ran.out;
}

TEST_F(RunCommand, TimeIsLimited) {
  auto json = manifest();
  json["kernel"] = "forever";
  const auto begin = std::chrono::steady_clock::now();
  const Ran ran = run(json, "--timeout 0.2 --max-steps 1000000000000");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.out.find("[time-limit]"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("raise --timeout"), std::string::npos) << ran.out;
}

// All launches and schedules together.
TEST_F(RunCommand, TimeIsLimitedForAllSchedules) {
  const Ran ran = run(manifest(), "--timeout 0.5 --schedules 1000000000");
  EXPECT_EQ(ran.code, 4) << ran.out;
  EXPECT_NE(ran.out.find("not decided: the usual order and "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("of 1000000000 seeds ended within the time limit"), std::string::npos)
      << ran.out;
  EXPECT_EQ(ran.out.find("[time-limit]"), std::string::npos) << ran.out;
}

// Each block ends at once, but there is no end of blocks.
TEST_F(RunCommand, TimeIsLimitedForGridsWithoutEnd) {
  auto json = manifest();
  json["grid"] = {2147483647, 65535, 65535};
  const Ran ran = run(json, "--timeout 0.2");
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.out.find("[time-limit]"), std::string::npos) << ran.out;
}

TEST_F(RunCommand, ReplaySaysWhatIsWrong) {
  const auto replay = [&](const std::string& words) {
    return shell(fmt::format("cd {} && {} replay {}", folder.string(), TARTAN_COMMAND, words));
  };
  const Ran none = replay("none.json in.bin");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.out.find("none.json"), std::string::npos) << none.out;
  const Ran hardware = replay("none.json in.bin --hardware sm_1");
  EXPECT_EQ(hardware.code, 2);
  EXPECT_NE(hardware.out.find("--hardware"), std::string::npos) << hardware.out;
  const Ran good =
      shell(fmt::format("{0} replay {1}/golden/sm_90_wgmma.json {1}/golden/sm_90_wgmma.bin",
                        TARTAN_COMMAND, TEST_DATA));
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_NE(good.out.find("mismatched: 0"), std::string::npos) << good.out;
}

}  // namespace
}  // namespace tartan::run_command_test
