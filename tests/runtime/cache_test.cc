// SPDX-License-Identifier: Apache-2.0
// The cache's folder: what it keeps, what it survives.
#include "tartan/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/support/cache_folder.h"
#include "tartan/cache_value.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, deleted behind it.
class CacheFolder : public testing::Test {
 protected:
  CacheFolder() {
    std::string name = (fs::temp_directory_path() / "tartan-cache-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    folder_ = root_ + "/cache";
  }
  ~CacheFolder() override {
    ::chmod(folder_.c_str(), 0700);
    fs::remove_all(root_);
  }

  Cache open(std::uint64_t max_bytes = 1 << 20, std::size_t max_memory = 1 << 20) const {
    auto cache = Cache::open({.folder = folder_, .max_bytes = max_bytes, .max_memory = max_memory});
    EXPECT_TRUE(cache) << (cache ? "" : cache.diags().text());
    return *cache;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& each : fs::directory_iterator(folder_)) out.push_back(each.path());
    std::ranges::sort(out);
    return out;
  }

  std::string root_, folder_;
};

CacheKey key(int number) { return CacheKey("test").add("number", std::to_string(number)); }

std::string contents(int number, std::size_t bytes = 1000) {
  std::string out(bytes, static_cast<char>('a' + number % 26));
  return out + std::to_string(number);
}

TEST_F(CacheFolder, GivesBackWhatWasStored) {
  const Cache cache = open();
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  const std::string binary("\0\n\xff with zeros\0", 15);
  ASSERT_TRUE(cache.store(key(1), binary));
  EXPECT_EQ(cache.find(key(1)), binary);
  ASSERT_TRUE(cache.store(key(1), ""));
  EXPECT_EQ(cache.find(key(1)), "");
  const CacheStats stats = cache.stats();
  EXPECT_EQ(stats.entries, 1u);
  EXPECT_EQ(stats.hits, 2u);
  EXPECT_EQ(stats.misses, 1u);
}

TEST_F(CacheFolder, OutlivesTheProcess) {
  ASSERT_TRUE(open().store(key(1), contents(1)));
  EXPECT_EQ(open().find(key(1)), contents(1));
}

TEST_F(CacheFolder, KeysAreApart) {
  const auto digest = [](auto... parts) {
    CacheKey out("kind");
    (out.add(parts, "x"), ...);
    return out.digest();
  };
  EXPECT_NE(CacheKey("a").digest(), CacheKey("b").digest());
  EXPECT_NE(CacheKey("a").add("x", "yz").digest(), CacheKey("a").add("xy", "z").digest());
  EXPECT_NE(CacheKey("a").add("x", "1").add("y", "2").digest(),
            CacheKey("a").add("x", "11:1:y2").digest());
  EXPECT_NE(digest("a"), digest("a", "a"));
  EXPECT_EQ(digest("a", "b"), digest("a", "b"));
  EXPECT_EQ(digest("a").size(), 32u);
}

// Every byte of the file, changed: found, or (nothing of it is unused) deleted and missed.
TEST_F(CacheFolder, DamagedEntriesAreMissedAndDeleted) {
  ASSERT_TRUE(open().store(key(1), "contents"));
  const fs::path file = files().at(0);
  std::ifstream in(file, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  ASSERT_EQ(whole.size(), 56u + 8u);
  const auto written = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    return open();
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    const Cache cache = written(damaged);
    EXPECT_EQ(cache.find(key(1)), std::nullopt) << "byte " << i;
    EXPECT_FALSE(fs::exists(file)) << "byte " << i;
    EXPECT_EQ(cache.stats().damaged, 1u);
    EXPECT_EQ(cache.problems().count(Level::Warning), 1u);
  }
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(written(whole.substr(0, length)).find(key(1)), std::nullopt) << length;
  EXPECT_EQ(written(whole + "x").find(key(1)), std::nullopt);
  EXPECT_EQ(written(whole).find(key(1)), "contents");
}

TEST_F(CacheFolder, AnEntryUnderAnothersNameIsDamaged) {
  const Cache cache = open();
  ASSERT_TRUE(cache.store(key(1), "one"));
  const fs::path one = files().at(0);
  ASSERT_TRUE(cache.store(key(2), "two"));
  const fs::path two = files().at(0) == one ? files().at(1) : files().at(0);
  fs::copy_file(one, two, fs::copy_options::overwrite_existing);
  EXPECT_EQ(open().find(key(2)), std::nullopt);
}

TEST_F(CacheFolder, DeletesWhatWasUsedLongestAgo) {
  const std::size_t bytes = 10'000;
  const Cache cache = open(10 * (bytes + 200));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(cache.store(key(i), contents(i, bytes)));
    std::this_thread::sleep_for(std::chrono::milliseconds(12));  // times of files are coarse
  }
  EXPECT_EQ(cache.stats().entries, 10u);
  ASSERT_TRUE(open().find(key(0)));  // used again: 1 is the oldest now
  std::this_thread::sleep_for(std::chrono::milliseconds(12));
  ASSERT_TRUE(cache.store(key(10), contents(10, bytes)));
  const CacheStats stats = cache.stats();
  EXPECT_LE(stats.bytes, 10 * (bytes + 200));
  EXPECT_GE(stats.entries, 8u);
  EXPECT_GE(stats.evicted, 1u);
  const Cache other = open();
  EXPECT_TRUE(other.find(key(0)));
  EXPECT_FALSE(other.find(key(1)));
  EXPECT_TRUE(other.find(key(10)));
}

TEST_F(CacheFolder, MemoryIsBoundedToo) {
  const Cache cache = open(1 << 20, 3000);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cache.store(key(i), contents(i)));
  fs::remove_all(folder_);
  EXPECT_EQ(cache.find(key(4)), contents(4));  // still in memory
  EXPECT_EQ(cache.find(key(0)), std::nullopt);
}

TEST_F(CacheFolder, ClearLeavesOtherFilesAlone) {
  const Cache cache = open();
  ASSERT_TRUE(cache.store(key(1), "x"));
  std::ofstream(folder_ + "/notes.txt") << "mine";
  ASSERT_TRUE(cache.clear());
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(files()[0].filename(), "notes.txt");
}

TEST_F(CacheFolder, CountsEntriesByKind) {
  const Cache cache = open();
  ASSERT_TRUE(cache.store(key(1), "x") && cache.store(key(2), "x"));
  ASSERT_TRUE(cache.store(CacheKey("other"), "xyz"));
  const auto kinds = detail::kinds_of(folder_);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].name, "other");
  EXPECT_EQ(kinds[0].entries, 1u);
  EXPECT_EQ(kinds[1].name, "test");
  EXPECT_EQ(kinds[1].entries, 2u);
  EXPECT_EQ(kinds[1].bytes, 2u * 57);
}

// Names that are nearly those of entries.
TEST_F(CacheFolder, FilesOfOthersAreNotEntries) {
  const Cache cache = open();
  const std::string digest(32, 'a');
  for (const std::string& name : {std::string("notes.tartan"), digest + ".tartan",
                                  digest + "a.test.tartan", digest + ".test", digest})
    std::ofstream(folder_ + "/" + name) << "mine";
  EXPECT_EQ(cache.stats().entries, 0u);
  ASSERT_TRUE(cache.clear());
  EXPECT_EQ(files().size(), 5u);
}

TEST_F(CacheFolder, KeepsPlainValues) {
  struct Tile {
    int m = 0, n = 0;
    double seconds = 0;
  };
  const Cache cache = open();
  EXPECT_FALSE(find_value<Tile>(cache, key(1)));
  ASSERT_TRUE(store_value(cache, key(1), Tile{128, 256, 0.5}));
  const auto found = find_value<Tile>(open(), key(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->m, 128);
  EXPECT_EQ(found->n, 256);
  EXPECT_EQ(found->seconds, 0.5);
  EXPECT_FALSE(find_value<int>(open(), key(1))) << "another size";
  EXPECT_FALSE(open().find(key(1))) << "and deleted";
}

TEST_F(CacheFolder, AFolderThatVanishesIsAProblemAndNotAnError) {
  const Cache cache = open();
  ASSERT_TRUE(cache.store(key(1), "x"));
  fs::remove_all(folder_);
  EXPECT_FALSE(cache.store(key(2), "y"));
  EXPECT_EQ(cache.find(key(2)), "y");  // in this process
  EXPECT_EQ(cache.find(key(3)), std::nullopt);
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_NE(cache.problems().text().find("No such file"), std::string::npos);
}

TEST_F(CacheFolder, TemporariesOfKilledProcessesAreDeleted) {
  const Cache cache = open();
  const std::string abandoned = folder_ + "/.tartan-1-0-0", fresh = folder_ + "/.tartan-2-0-0";
  std::ofstream{abandoned} << "half";
  std::ofstream{fresh} << "half";
  fs::last_write_time(abandoned, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(cache.store(key(1), "x"));
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(fresh));  // its process may be alive
}

TEST_F(CacheFolder, AReadOnlyFolderIsReadAndSaysWhatItCannotKeep) {
  const bool root = ::geteuid() == 0;  // who may write everywhere
  constexpr uid_t nobody = 65534;
  if (root) {
    fs::create_directory(folder_);
    for (const std::string& each : {root_, folder_})
      ASSERT_EQ(::chown(each.c_str(), nobody, static_cast<gid_t>(-1)), 0);
    ASSERT_EQ(::seteuid(nobody), 0);
  }
  ASSERT_TRUE(open().store(key(1), "x"));
  ::chmod(folder_.c_str(), 0500);
  const Cache cache = open();
  EXPECT_EQ(cache.find(key(1)), "x");
  EXPECT_FALSE(cache.store(key(2), "y"));
  EXPECT_EQ(cache.find(key(2)), "y");  // in this process
  EXPECT_EQ(cache.stats().not_written, 1u);
  ASSERT_EQ(cache.problems().size(), 1u);
  EXPECT_NE(cache.problems()[0].message.find("Permission denied"), std::string::npos);
  if (root) {
    EXPECT_EQ(::seteuid(0), 0);
  }
}

TEST_F(CacheFolder, AFullDiskIsAProblemAndNotAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  const Cache cache = open();
  ASSERT_TRUE(cache.store(key(1), "x"));
  const fs::path file = files().at(0);
  fs::remove(file);
  fs::create_symlink("/dev/full", file);  // writing there ends with ENOSPC
  EXPECT_FALSE(cache.store(key(1), contents(1, 100'000)));
  EXPECT_EQ(cache.find(key(1)), contents(1, 100'000));
  ASSERT_EQ(cache.problems().size(), 1u);
  EXPECT_NE(cache.problems()[0].message.find("No space left"), std::string::npos)
      << cache.problems().text();
}

TEST_F(CacheFolder, AMissingFolderIsSaid) {
  const auto cache = Cache::open({.folder = "/proc/no/such/folder"});
  ASSERT_FALSE(cache);
  EXPECT_NE(cache.diags().text().find("cannot make the cache folder /proc/no/such/folder"),
            std::string::npos);
}

TEST_F(CacheFolder, AFolderThatOthersWriteToIsRefused) {
  fs::create_directory(folder_);
  ::chmod(folder_.c_str(), 0777);
  const auto cache = Cache::open({.folder = folder_});
  ASSERT_FALSE(cache);
  EXPECT_NE(cache.diags().text().find("others may write to it"), std::string::npos);
  std::ofstream(root_ + "/file") << "x";
  EXPECT_FALSE(Cache::open({.folder = root_ + "/file"}));
}

TEST_F(CacheFolder, TheEnvironmentNamesIt) {
  const auto opened = [](const char* name, const std::string& value) {
    for (const char* each : {"TARTAN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(each);
    if (*name) ::setenv(name, value.c_str(), 1);
    const auto cache = Cache::open();
    return cache ? cache->folder() : cache.diags().text();
  };
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "/";
  EXPECT_EQ(opened("TARTAN_CACHE_DIR", root_ + "/a"), root_ + "/a");
  EXPECT_EQ(opened("XDG_CACHE_HOME", root_ + "/b"), root_ + "/b/tartan");
  EXPECT_EQ(opened("HOME", root_ + "/c"), root_ + "/c/.cache/tartan");
  EXPECT_NE(opened("", "").find("set TARTAN_CACHE_DIR"), std::string::npos);
  ::setenv("HOME", home.c_str(), 1);
}

// Eight processes store and find the same few keys; one in four is killed half-way.
TEST_F(CacheFolder, ProcessesShareIt) {
  std::vector<pid_t> processes;
  for (int process = 0; process < 8; ++process) {
    const pid_t made = ::fork();
    ASSERT_GE(made, 0);
    if (made == 0) {
      int wrong = 0;
      for (int round = 0; round < 60; ++round) {
        const auto cache = Cache::open({.folder = folder_, .max_bytes = 200'000});
        if (!cache) ::_exit(1);
        const int which = (round * 7 + process) % 10;
        if (const auto found = cache->find(key(which))) wrong += *found != contents(which, 30'000);
        else if (!cache->store(key(which), contents(which, 30'000))) wrong += 1;
        if (process % 4 == 3 && round == 30) ::raise(SIGKILL);
      }
      ::_exit(wrong ? 1 : 0);
    }
    processes.push_back(made);
  }
  for (std::size_t i = 0; i < processes.size(); ++i) {
    int status = 0;
    ASSERT_EQ(::waitpid(processes[i], &status, 0), processes[i]);
    if (i % 4 == 3) EXPECT_TRUE(WIFSIGNALED(status));
    else EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process " << i;
  }
  EXPECT_LE(open().stats().bytes, 200'000u + 30'100u * 8);
  EXPECT_EQ(open().stats().damaged, 0u);
}

TEST_F(CacheFolder, ThreadsShareIt) {
  const Cache cache = open(1 << 20, 50'000);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 16; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 100; ++round) {
        const int which = (round * 5 + thread) % 20;
        if (const auto found = cache.find(key(which))) wrong += *found != contents(which, 5000);
        else if (!cache.store(key(which), contents(which, 5000))) ++wrong;
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tartan
