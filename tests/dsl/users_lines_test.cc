// SPDX-License-Identifier: Apache-2.0
// Which lines a kernel's PTX and messages name: the user's. What the library computes on the way is
// named by the call that asked for it.
#include <gtest/gtest.h>

#include <filesystem>

#include "dsl/state/scalars.h"

namespace tartan::test {
namespace {

namespace fs = std::filesystem;

// Of a folder of the tree, with all below: as the compiler names its sources.
std::vector<std::string> sources(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& file : fs::recursive_directory_iterator(fs::path(SOURCE_ROOT) / folder))
    if (file.path().extension() == ".cc")
      out.push_back("tartan/" + fs::relative(file.path(), SOURCE_ROOT).string());
  return out;
}

TEST(UsersLines, AreNotThoseOfAnyRoomOfTheDsl) {
  const auto all = sources("dsl");
  EXPECT_GT(all.size(), 60u);
  for (const std::string& file : all) EXPECT_FALSE(detail::is_users(file)) << file;
}

TEST(UsersLines, AreThoseOfTheLibrarysKernels) {
  const auto all = sources("kernels");
  EXPECT_GT(all.size(), 50u);
  for (const std::string& file : all) EXPECT_TRUE(detail::is_users(file)) << file;
}

TEST(UsersLines, AreThoseOfAProgram) {
  EXPECT_TRUE(detail::is_users("/home/someone/kernel.cc"));
  EXPECT_TRUE(detail::is_users("/home/someone/dsl/state/kernel.cc"));
  EXPECT_TRUE(detail::is_users("kernel.h"));
  EXPECT_FALSE(detail::is_users("/usr/include/tartan/dsl/math.h"));
  EXPECT_FALSE(detail::is_users("/usr/include/tartan/kernels/gemm.h"));
  EXPECT_FALSE(detail::is_users("/usr/include/c++/12/functional"));
}

}  // namespace
}  // namespace tartan::test
