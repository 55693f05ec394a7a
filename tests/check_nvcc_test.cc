// SPDX-License-Identifier: Apache-2.0
// Compiled kernels (tests/data/cuda), where nvcc and ptxas are installed: they check clean, and
// their text, parsed and printed, assembles to the same machine code.
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "compiler/ptx/parser.h"
#include "compiler/verify/verify.h"

namespace tartan {
namespace {

std::string read_file(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// Code and initialised data of a cubin, by section.
std::map<std::string, std::string> sections(const std::string& cubin) {
  std::map<std::string, std::string> out;
  Elf64_Ehdr header;
  if (cubin.size() < sizeof header) return out;
  std::memcpy(&header, cubin.data(), sizeof header);
  const auto section = [&](int i) {
    Elf64_Shdr row;
    std::memcpy(&row, cubin.data() + header.e_shoff + static_cast<std::size_t>(i) * sizeof row,
                sizeof row);
    return row;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (int i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr row = section(i);
    const std::string name = cubin.data() + names.sh_offset + row.sh_name;
    if (row.sh_type == SHT_PROGBITS &&
        (name.starts_with(".text") || name.starts_with(".nv.constant") ||
         name.starts_with(".nv.global")))
      out[name] = cubin.substr(row.sh_offset, row.sh_size);
  }
  return out;
}

class CheckNvcc : public ::testing::TestWithParam<const char*> {};

TEST_P(CheckNvcc, ChecksCleanAndComesBack) {
  if (std::system("nvcc --version > /dev/null 2>&1") != 0 ||
      std::system("ptxas --version > /dev/null 2>&1") != 0)
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
    const auto assemble = [&](const std::string& from) {
      const int code = std::system(
          fmt::format("ptxas -arch {} {}.ptx -o {}.cubin > {}.log 2>&1", arch, from, from, base)
              .c_str());
      EXPECT_EQ(code, 0) << from << "\n" << read_file(base + ".log");
      return sections(read_file(from + ".cubin"));
    };
    const auto before = assemble(base), after = assemble(base + "_printed");
    EXPECT_GT(before.size(), 5u);
    EXPECT_TRUE(before == after) << name << ".cu on " << arch
                                 << " assembles to something else after printing";
  }
  for (const char* end : {".ptx", ".log", ".cubin", "_printed.ptx", "_printed.cubin"})
    std::remove((base + end).c_str());
}

INSTANTIATE_TEST_SUITE_P(Slow, CheckNvcc,
                         ::testing::Values("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a",
                                           "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tartan
