// SPDX-License-Identifier: Apache-2.0
// tests/support/text_files.h - reads test files, and compares with expected ones:
//
//   test::expect_file(TEST_DATA "/help/emit.txt", out.text);
//
// TARTAN_REBASE=1 in the environment writes the expectations; then read the diff.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tartan::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

/// Whether to write expectations in addition to comparing.
inline bool rebases() { return std::getenv("TARTAN_REBASE") != nullptr; }

/// Checks that the file contains `text`, byte for byte.
inline void expect_file(const std::filesystem::path& path, const std::string& text) {
  if (rebases()) std::ofstream(path, std::ios::binary) << text;
  EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(read_file(path), text) << path << ": TARTAN_REBASE=1 rewrites it";
}

/// The parts of `text` between the separators, including empty ones.
inline std::vector<std::string> split(const std::string& text, const std::string& by = " ") {
  std::vector<std::string> out;
  std::size_t from = 0;
  for (std::size_t at = text.find(by); at != std::string::npos;
       from = at + by.size(), at = text.find(by, from))
    out.push_back(text.substr(from, at - from));
  out.push_back(text.substr(from));
  return out;
}

}  // namespace tartan::test
