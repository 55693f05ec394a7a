// SPDX-License-Identifier: Apache-2.0
// `tartan check` as a user meets it: wrong words, files that are none, places where nothing can be
// written.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "compiler/support/source.h"
#include "tests/paths.h"
#include "tests/shell.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

using test::Ran;

Ran tartan_command(const std::string& words) {
  return test::shell(fmt::format("({} {}) 2>&1", TARTAN_COMMAND, words));
}

void refuses(const std::string& words, const std::string& text) {
  const Ran ran = tartan_command(words);
  EXPECT_EQ(ran.code, 2) << words;
  EXPECT_NE(ran.out.find(text), std::string::npos) << words << "\n" << ran.out;
  EXPECT_LT(ran.out.size(), 500u) << ran.out;
}

TEST(CheckCommand, WrongWords) {
  refuses("chekc x.ptx", "there is no command chekc; there are check, ");
  refuses("check", "FILE is required");
  refuses("check - - < /dev/null", "- stands twice");
  refuses("check --target compute_90a x", "the nearest is sm_90a");
  refuses("check --target sm_90x x", "the nearest is sm_90 ");
  refuses("check --ptx 99.9 x", "--ptx 99.9: there is no such version; the nearest is 9.0");
  refuses("check --ptx 7.9 x", "the nearest is 7.8");
  refuses("check --max-errors -1 x", "not in range");
  refuses("run --max-steps 0 x", "not in range");
}

TEST(CheckCommand, FilesThatAreNone) {
  refuses("check no_such_file", "no_such_file: error: cannot read the file: No such file");
  refuses("check /dev/zero", "not a regular file");
  refuses("check /tmp", "Is a directory");
  for (const char* words :
       {"check --json no_such_file", "check --json --target sm_99 no_such_file"})
    EXPECT_TRUE(nlohmann::json::accept(tartan_command(words).out)) << words;
  const auto json = nlohmann::json::parse(tartan_command("check --json no_such_file").out);
  EXPECT_EQ(json["diagnostics"][0]["file"], "no_such_file");
}

TEST(CheckCommand, FullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const char* words : {"check --rules", "isa", "--help", "check --json no_such_file"}) {
    const Ran ran = tartan_command(fmt::format("{} 2>&1 > /dev/full", words));
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_NE(ran.out.find("cannot write standard output: "), std::string::npos) << ran.out;
  }
}

class WriteFile : public testing::Test {
 protected:
  WriteFile() : folder(fs::temp_directory_path() / fmt::format("tartan_write_{}", getpid())) {
    fs::create_directories(folder);
  }
  ~WriteFile() override { fs::remove_all(folder); }

  static std::string read(const fs::path& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }

  fs::path folder;
};

TEST_F(WriteFile, LinksAreFollowed) {
  ASSERT_TRUE(write_file((folder / "file").string(), "one"));
  fs::create_symlink("file", folder / "link");
  fs::create_symlink("later", folder / "ahead");
  ASSERT_TRUE(write_file((folder / "link").string(), "two"));
  ASSERT_TRUE(write_file((folder / "ahead").string(), "three"));
  EXPECT_TRUE(fs::is_symlink(folder / "link") && fs::is_symlink(folder / "ahead"));
  EXPECT_EQ(read(folder / "file"), "two");
  EXPECT_EQ(read(folder / "later"), "three");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 4);
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
