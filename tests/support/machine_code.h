// SPDX-License-Identifier: Apache-2.0
// tests/support/machine_code.h - runs NVIDIA's assembler on PTX text, if it is installed.
#pragma once

#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tartan/isa/target.h"
#include "tests/support/shell.h"
#include "tests/support/text_files.h"

namespace tartan::test {

inline bool has_assembler() { return std::system("ptxas --version > /dev/null 2>&1") == 0; }

/// 1305 of the assembler of CUDA 13.5; 0 without one.
inline int assembler_version() {
  const Ran said = shell("ptxas --version 2> /dev/null");
  const std::size_t at = said.out.find("release ");
  int major = 0, minor = 0;
  if (at == std::string::npos ||
      std::sscanf(said.out.c_str() + at, "release %d.%d", &major, &minor) != 2)
    return 0;
  return 100 * major + minor;
}

/// Whether there is one that takes this version: that of CUDA 13.0 takes up to 9.0, that of 13.5 up
/// to 9.5.
inline bool assembler_takes(Version version) {
  static const int own = assembler_version();
  if (own == 0) return false;
  return version.major < own / 100 - 4 ||
         (version.major == own / 100 - 4 && version.minor <= own % 100);
}

/// The -arch for a .target: the assembler of CUDA 13 has none older than sm_75, and names sm_101
/// sm_110.
inline std::string arch_of(const std::string& target) {
  if (target.starts_with("sm_") && std::atoi(target.c_str() + 3) < 75) return "sm_75";
  if (target.starts_with("sm_101")) return "sm_110" + target.substr(6);
  return target;
}

/// The bytes that the assembler spills to local memory; fails if it rejects the text. `at`: the
/// test's own path, without extension.
inline int spilled_bytes(const std::string& ptx, const std::string& arch, const std::string& at) {
  std::ofstream(at + ".ptx") << ptx;
  const std::string command =
      fmt::format("ptxas -v -arch {0} -o /dev/null {1}.ptx > {1}.txt 2>&1", arch_of(arch), at);
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string report = read_file(at + ".txt");
  for (const char* end : {".ptx", ".txt"}) std::remove((at + end).c_str());
  const std::size_t words = report.find(" bytes spill stores");
  EXPECT_NE(words, std::string::npos) << report;
  if (words == std::string::npos) return -1;
  return std::atoi(report.c_str() + report.rfind(' ', words - 1));
}

/// Fails if the assembler rejects the text, spills registers, or serializes wgmma (its infos
/// C75xx). `at`: the test's own path, without extension.
inline void expect_good_registers(const std::string& ptx, const std::string& arch,
                                  const std::string& at) {
  std::ofstream(at + ".ptx") << ptx;
  const std::string command =
      fmt::format("ptxas -v -arch {0} -o /dev/null {1}.ptx > {1}.txt 2>&1", arch_of(arch), at);
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string report = read_file(at + ".txt");
  EXPECT_NE(report.find("0 bytes spill stores, 0 bytes spill loads"), std::string::npos) << report;
  EXPECT_EQ(report.find("(C75"), std::string::npos) << report;
  for (const char* end : {".ptx", ".txt"}) std::remove((at + end).c_str());
}

/// Code and initialised data of a cubin, by section.
inline std::map<std::string, std::string> sections(const std::string& cubin) {
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

/// Assembles FILE.ptx for a .target into FILE.cubin, and returns its sections; the test fails if it
/// cannot.
inline std::map<std::string, std::string> assemble(const std::string& file,
                                                   const std::string& target) {
  const int code = std::system(fmt::format("ptxas -arch {} {}.ptx -o {}.cubin > {}.log 2>&1",
                                           arch_of(target), file, file, file)
                                   .c_str());
  EXPECT_EQ(code, 0) << file << "\n" << read_file(file + ".log");
  auto out = sections(read_file(file + ".cubin"));
  for (const char* end : {".log", ".cubin"}) std::remove((file + end).c_str());
  return out;
}

}  // namespace tartan::test
