// SPDX-License-Identifier: Apache-2.0
// `tartan cache`: what is in a folder, and how it is emptied.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tartan/cache.h"
#include "tests/paths.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

class CacheCommand : public testing::Test {
 protected:
  CacheCommand() {
    std::string name = (fs::temp_directory_path() / "tartan-cache-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    folder_ = root_ + "/cache";
  }
  ~CacheCommand() override { fs::remove_all(root_); }

  // A cubin of 100 bytes and two kernels of 10 and 20, and a file that is neither.
  void fill() const {
    const auto cache = Cache::open({.folder = folder_});
    ASSERT_TRUE(cache);
    ASSERT_TRUE(cache->store(CacheKey("cubin"), std::string(100, 'x')));
    ASSERT_TRUE(cache->store(CacheKey("kernel").add("name", "a"), std::string(10, 'x')));
    ASSERT_TRUE(cache->store(CacheKey("kernel").add("name", "b"), std::string(20, 'x')));
    std::ofstream(folder_ + "/notes.kernel.tartan") << "mine";
  }
  test::Ran cache(const std::string& words, const std::string& environment = "") const {
    return test::shell(environment + " " TARTAN_COMMAND " cache " + words + " 2>&1");
  }

  std::string root_, folder_;
};

constexpr int header = 56;  // bytes of each entry's file

TEST_F(CacheCommand, StatsCountEntriesByKind) {
  fill();
  const test::Ran text = cache("--stats --folder " + folder_);
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.out, folder_ + ": 3 entries, " + std::to_string(130 + 3 * header) +
                          " bytes\n     cubin: 1 entry, " + std::to_string(100 + header) +
                          " bytes\n    kernel: 2 entries, " + std::to_string(30 + 2 * header) +
                          " bytes\n");
  const test::Ran json = cache("--stats --json --folder " + folder_);
  EXPECT_EQ(json.code, 0);
  EXPECT_EQ(json.out, "{\"schema_version\":1,\"folder\":\"" + folder_ +
                          "\",\"entries\":3,\"bytes\":298,\"kinds\":{\"cubin\":{\"entries\":1,"
                          "\"bytes\":156},\"kernel\":{\"entries\":2,\"bytes\":142}}}\n");
}

TEST_F(CacheCommand, ClearDeletesEntriesAndNothingElse) {
  fill();
  const test::Ran cleared = cache("--clear --folder " + folder_);
  EXPECT_EQ(cleared.code, 0);
  EXPECT_TRUE(cleared.out.starts_with("deleted " + folder_ + ": 3 entries, 298 bytes\n"))
      << cleared.out;
  EXPECT_EQ(cache("--stats --folder " + folder_).out, folder_ + ": 0 entries, 0 bytes\n");
  EXPECT_TRUE(fs::exists(folder_ + "/notes.kernel.tartan"));
}

TEST_F(CacheCommand, TheEnvironmentNamesTheFolderAndNothingIsMade) {
  const std::string named = "TARTAN_CACHE_DIR=" + folder_;
  EXPECT_EQ(cache("--stats", named).out, folder_ + ": 0 entries, 0 bytes\n");
  EXPECT_EQ(cache("--clear", named).code, 0);
  EXPECT_FALSE(fs::exists(folder_));
  fill();
  EXPECT_TRUE(cache("--stats", named).out.starts_with(folder_ + ": 3 entries"));
}

TEST_F(CacheCommand, RefusesAFolderThatCannotBeACache) {
  test::Ran out = cache("--stats --folder " + folder_);
  EXPECT_EQ(out.code, 2);
  EXPECT_EQ(out.out, "error: there is no cache folder " + folder_ + " [file]\n");
  fs::create_directory(folder_);
  ::chmod(folder_.c_str(), 0777);
  out = cache("--clear --folder " + folder_);
  EXPECT_EQ(out.code, 2);
  EXPECT_NE(out.out.find("others may write to it"), std::string::npos) << out.out;
  out = cache("--stats", "env -u HOME -u XDG_CACHE_HOME -u TARTAN_CACHE_DIR");
  EXPECT_EQ(out.code, 2);
  EXPECT_NE(out.out.find("set TARTAN_CACHE_DIR"), std::string::npos) << out.out;
}

TEST_F(CacheCommand, WantsOneOfStatsAndClear) {
  for (const char* words : {"", "--stats --clear"}) {
    const test::Ran out = cache(words);
    EXPECT_EQ(out.code, 2);
    EXPECT_EQ(out.out, "error: cache: expected one of --stats and --clear [usage]\n");
  }
}

}  // namespace
}  // namespace tartan
