// SPDX-License-Identifier: Apache-2.0
// Litmus tests of PTX's memory model (tests/emulator/litmus.h) under every schedule and in a plain
// run: what is racy is never called race-free, and nothing else is called a race or a deadlock.
// Their answers come from an enumeration of the executions that the axioms of the manual's chapter
// 8 allow, which was made without the emulator.
//
// TARTAN_LITMUS=all adds those made of other projects' tests, in litmus/ of the folder
// $TARTAN_SHARED (default: ../shared next to the sources), if that exists.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/schedules.h"
#include "tests/emulator/litmus.h"
#include "tests/support/shell.h"
#include "tests/support/text_files.h"

namespace tartan::test {
namespace {

namespace fs = std::filesystem;

// Steps, not seconds, limit a run: how busy the machine is decides nothing.
const DeviceOptions options{.max_steps = 10'000'000, .threads = 1, .checks = Checks::all};
constexpr std::uint64_t most = 2000;  // schedules

bool found(const Outcome& outcome, std::string_view id) {
  return std::ranges::any_of(outcome.findings, [&](const Finding& each) { return each.id == id; });
}

std::string text(const Outcome& outcome) {
  std::string out = outcome.schedules;
  for (const Finding& each : outcome.findings) out += "\n" + each.id + ": " + each.message;
  return out;
}

// What a finding is worth; those that begin with "false" are wrong.
std::string judge_finding(const LitmusTest& test, const Outcome& outcome) {
  if (found(outcome, "memory-race")) return test.racy ? "race" : "false race";
  if (found(outcome, "barrier-deadlock") || found(outcome, "deadlock"))
    return test.deadlock ? "deadlock" : "false deadlock";
  if (found(outcome, "livelock") || found(outcome, "step-limit"))
    return test.deadlock || test.endless ? "endless" : "false: endless";
  return "false: another finding";
}

std::string judge_plain(const LitmusTest& test, const Outcome& outcome) {
  if (outcome.exit_code() == 0) return "silent";
  return outcome.exit_code() == 3 ? judge_finding(test, outcome) : "false: it did not run";
}

std::string judge_all(const LitmusTest& test, const Outcome& outcome) {
  if (outcome.exit_code() == 4) return "undecided";
  if (outcome.exit_code() == 3) return judge_finding(test, outcome);
  if (outcome.exit_code() != 0) return "false: it did not run";
  if (test.racy) return found(outcome, "same-value-race") ? "race of equal values" : "false proof";
  return test.deadlock ? "false proof: a deadlock" : "proof";
}

/// The judgements of tests and how often each was made.
class Judgements {
 public:
  void add(const LitmusTest& test) {
    const Outcome plain = run(test.manifest, "emulator", options),
                  all = decide_schedules(test.manifest, options, most);
    count("plain run", test, judge_plain(test, plain), plain);
    count("all schedules", test, judge_all(test, all), all);
  }

  void print() const {
    for (const auto& [judgement, count] : counts_) fmt::print("{:5} {}\n", count, judgement);
  }

  /// All of the tests are decided, but so many at most.
  void expect_decided(std::size_t but) const {
    const auto undecided = counts_.find("all schedules: undecided");
    EXPECT_LE(undecided == counts_.end() ? 0 : undecided->second, but);
  }

 private:
  void count(const char* how, const LitmusTest& test, const std::string& judgement,
             const Outcome& outcome) {
    ++counts_[fmt::format("{}: {}", how, judgement)];
    EXPECT_FALSE(judgement.starts_with("false"))
        << test.name << ", " << how << ": " << judgement << "; " << text(outcome) << "\n"
        << outcome.complaints(false) << test.manifest.ptx.text();
  }

  std::map<std::string, std::size_t> counts_;
};

bool all_of_them() {
  const char* wish = std::getenv("TARTAN_LITMUS");
  return wish && std::string_view(wish) == "all";
}

void judge_family(const std::string& name) {
  Judgements judgements;
  for (const LitmusTest& each : read_litmus(TEST_DATA "/litmus/" + name + ".txt"))
    judgements.add(each);
  judgements.expect_decided(0);
  if (all_of_them()) judgements.print();
}

TEST(Litmus, TheSmallestExamples) { judge_family("minimal"); }
TEST(Litmus, MessagePassing) { judge_family("passing"); }
TEST(Litmus, RandomPrograms) { judge_family("random"); }
TEST(Litmus, AtomicsWithoutAResult) { judge_family("silent"); }

/// A folder that is gone when its owner is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "litmusXXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

fs::path shared_litmus() {
  const char* shared = std::getenv("TARTAN_SHARED");
  return fs::path(shared ? shared : SOURCE_ROOT "/../shared") / "litmus";
}

// Rows of a table whose first columns are name, family, source, placement, racy, deadlock and
// endless; none for our own families, which are in tests/data/litmus.
std::vector<LitmusTest> tests_of_others(const fs::path& table, const fs::path& kernels) {
  std::vector<LitmusTest> out;
  for (const std::string& line : split(read_file(table), "\n")) {
    const std::vector<std::string> row = split(line, ",");
    if (row.size() < 7 || (row[1] != "dat3m" && row[1] != "mutant")) continue;
    auto manifest = read_manifest((kernels / (row[0] + ".json")).string());
    EXPECT_TRUE(manifest) << (manifest ? "" : manifest.diags().text());
    if (!manifest) continue;
    out.push_back({row[0], row[4] == "yes", row[5] == "yes", row[6] == "yes", *manifest});
  }
  return out;
}

TEST(Litmus, OfOtherProjects) {
  const fs::path archive = shared_litmus() / "litmus.tar.xz";
  if (!all_of_them()) GTEST_SKIP() << "run with TARTAN_LITMUS=all";
  if (!fs::exists(archive)) GTEST_SKIP() << "there is no " << archive;
  const TemporaryFolder folder;
  const Ran tar =
      shell(fmt::format("tar xf '{}' -C '{}' 2>&1", archive.string(), folder.path().string()));
  ASSERT_EQ(tar.code, 0) << tar.out;
  Judgements judgements;
  const auto tests = tests_of_others(shared_litmus() / "table.csv", folder.path() / "kernels");
  EXPECT_FALSE(tests.empty());
  for (const LitmusTest& each : tests) judgements.add(each);
  judgements.expect_decided(20);
  judgements.print();
}

}  // namespace
}  // namespace tartan::test
