// SPDX-License-Identifier: Apache-2.0
// Compiled kernels (tests/data/cuda), where nvcc and ptxas are installed: they check clean, and
// their text, parsed and printed, assembles to the same machine code.
#include <unistd.h>

#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using test::read_file;

class CheckNvcc : public ::testing::TestWithParam<const char*> {};

TEST_P(CheckNvcc, ChecksCleanAndRoundTrips) {
  if (std::system("nvcc --version > /dev/null 2>&1") != 0 || !test::has_assembler())
    GTEST_SKIP() << "no nvcc";
  const std::string arch = GetParam();
  const std::string base =
      ::testing::TempDir() + "tartan_nvcc_" + arch + "_" + std::to_string(::getpid());
  for (const char* name : {"matrix", "general"}) {
    const std::string flags = std::string(name) == "general" ? "-lineinfo" : "";
    ASSERT_EQ(std::system(
                  fmt::format("nvcc -std=c++17 -arch={} {} -ptx {}/cuda/{}.cu -o {}.ptx 2> {}.log",
                              arch, flags, TEST_DATA, name, base, base)
                      .c_str()),
              0)
        << read_file(base + ".log");
    const auto source = std::make_shared<const Source>(fmt::format("{}.cu ({})", name, arch),
                                                       read_file(base + ".ptx"));
    Diags diags;
    const ptx::Module module = ptx::parse(source, diags);
    diags.append(verify::verify(module));
    EXPECT_FALSE(module.kernels().empty());
    for (const Diag& diag : diags) EXPECT_EQ(diag.level, Level::Note) << to_string(diag);
    std::ofstream(base + "_printed.ptx") << ptx::print(module);
    const auto before = test::assemble(base, arch), after = test::assemble(base + "_printed", arch);
    EXPECT_GT(before.size(), 5u);
    EXPECT_TRUE(before == after) << name << ".cu on " << arch
                                 << " assembles to something else after printing";
  }
  for (const char* end : {".ptx", ".log", "_printed.ptx"}) std::remove((base + end).c_str());
}

INSTANTIATE_TEST_SUITE_P(Slow, CheckNvcc,
                         ::testing::Values("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a",
                                           "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tartan
