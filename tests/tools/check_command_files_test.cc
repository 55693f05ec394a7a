// SPDX-License-Identifier: Apache-2.0
// write_file(): links, permissions, devices, concurrent writers.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tartan/support/source.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;
using test::read_file;

class WriteFile : public testing::Test {
 protected:
  WriteFile() : folder(fs::temp_directory_path() / fmt::format("tartan_write_{}", getpid())) {
    fs::create_directories(folder);
  }
  ~WriteFile() override { fs::remove_all(folder); }

  fs::path folder;
};

TEST_F(WriteFile, LinksAreFollowed) {
  ASSERT_TRUE(write_file((folder / "file").string(), "one"));
  fs::create_symlink("file", folder / "link");
  fs::create_symlink("later", folder / "ahead");
  ASSERT_TRUE(write_file((folder / "link").string(), "two"));
  ASSERT_TRUE(write_file((folder / "ahead").string(), "three"));
  EXPECT_TRUE(fs::is_symlink(folder / "link") && fs::is_symlink(folder / "ahead"));
  EXPECT_EQ(read_file(folder / "file"), "two");
  EXPECT_EQ(read_file(folder / "later"), "three");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 4);
}

TEST_F(WriteFile, PermissionsStay) {
  const fs::path file = folder / "file";
  const auto mode = [&] { return static_cast<unsigned>(fs::status(file).permissions()); };
  const ::mode_t mask = ::umask(027);
  ASSERT_TRUE(write_file(file.string(), "one"));
  ::umask(mask);
  EXPECT_EQ(mode(), 0640u);  // a new file's
  for (const unsigned wanted : {0600u, 0755u, 0644u}) {
    fs::permissions(file, static_cast<fs::perms>(wanted));
    ASSERT_TRUE(write_file(file.string(), "two"));
    EXPECT_EQ(mode(), wanted);
  }
}

// An existing file with the name of a temporary file is not opened.
TEST_F(WriteFile, PlantedLinksAreNotFollowed) {
  std::ofstream(folder / "victim") << "mine";
  for (const std::string& name : {fmt::format("file.tmp-{}", getpid()), std::string("file.tmp")})
    fs::create_symlink("victim", folder / name);
  ASSERT_TRUE(write_file((folder / "file").string(), "text"));
  EXPECT_EQ(read_file(folder / "victim"), "mine");
  EXPECT_EQ(read_file(folder / "file"), "text");
}

TEST_F(WriteFile, ManyThreadsOnePath) {
  const std::string path = (folder / "file").string();
  std::atomic<int> failed = 0;
  std::vector<std::string> texts;
  for (char c = 'a'; c < 'i'; ++c) texts.emplace_back(100'000, c);
  {
    std::vector<std::jthread> threads;
    for (const std::string& text : texts)
      threads.emplace_back([&, &text = text] {
        for (int i = 0; i < 200; ++i) failed += !write_file(path, text);
      });
  }
  EXPECT_EQ(failed, 0);
  EXPECT_NE(std::ranges::find(texts, read_file(path)), texts.end()) << "torn";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(WriteFile, DevicesAndPipes) {
  EXPECT_TRUE(write_file("/dev/null", "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::jthread reader([&] {
    if (const auto source = read_source(pipe)) got = source->text();
  });
  EXPECT_TRUE(write_file(pipe, "through"));
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_FALSE(write_file(folder.string(), "text"));
  EXPECT_FALSE(write_file((folder / "none" / "file").string(), "text"));
}

}  // namespace
}  // namespace tartan
