// SPDX-License-Identifier: Apache-2.0
// The verifier's verdict on single wgmma instructions against the assembler's: legal forms and
// their illegal neighbours in N, K, types, registers, immediates, targets and PTX versions, as
// recorded in tests/data/isa/wgmma.txt and, if it is installed, current.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "tartan/verify/verify.h"

namespace tartan {
namespace {

struct Case {
  bool legal;
  std::string arch, version, instruction;
};

// {b32:4} -> {%b32_0, %b32_1, %b32_2, %b32_3}
std::string written_out(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t colon = text.find(':', at), close = text.find('}', at);
    if (text[at] != '{' || colon > close) {
      out += text[at];
      continue;
    }
    const std::string type = text.substr(at + 1, colon - at - 1);
    out += '{';
    for (int i = 0, count = std::stoi(text.substr(colon + 1)); i < count; ++i)
      out += fmt::format("{}%{}_{}", i ? ", " : "", type, i);
    out += '}';
    at = close;
  }
  return out;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> out;
    std::ifstream in(TEST_DATA "/isa/wgmma.txt");
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      const std::size_t space = line.find(' '), bar = line.find('|', 2);
      out.push_back({line[0] == '1', line.substr(2, space - 2),
                     line.substr(space + 1, bar - space - 1), written_out(line.substr(bar + 1))});
    }
    return out;
  }();
  return all;
}

std::string module_text(const std::string& arch, const std::string& version,
                        const std::string& instructions) {
  return fmt::format(
      ".version {}\n.target {}\n.address_size 64\n.visible .entry k()\n{{\n"
      ".reg .pred %pred_<8>;\n.reg .b16 %b16_<8>;\n.reg .b32 %b32_<160>;\n"
      ".reg .f32 %f32_<160>;\n.reg .b64 %b64_<8>;\n.reg .f64 %f64_<8>;\n{}\nret;\n}}\n",
      version, arch, instructions);
}

TEST(CheckWgmma, AgreesWithTheRecording) {
  ASSERT_GE(cases().size(), 1200u);
  int legal = 0;
  for (const Case& one : cases()) {
    const Diags diags = verify::check(std::make_shared<const Source>(
        "wgmma.ptx", module_text(one.arch, one.version, one.instruction)));
    legal += one.legal;
    EXPECT_EQ(diags.ok(), one.legal)
        << one.arch << " PTX " << one.version << ": " << one.instruction << "\n"
        << diags.text();
  }
  EXPECT_GE(legal, 300);
}

bool assembles(const std::string& arch, const std::string& version,
               const std::string& instructions) {
  const std::string base =
      ::testing::TempDir() + "tartan_check_wgmma_" + std::to_string(::getpid()) + ".ptx";
  std::ofstream(base) << module_text(arch, version, instructions);
  const bool good =
      std::system(
          fmt::format("ptxas -arch {} {} -o /dev/null > /dev/null 2>&1", arch, base).c_str()) == 0;
  std::remove(base.c_str());
  return good;
}

// All legal instructions of a target in one module; every thirtieth illegal one in its own module.
TEST(CheckWgmma, AgreesWithTheAssembler) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no ptxas";
  std::map<std::pair<std::string, std::string>, std::string> legal;
  int illegal = 0;
  for (const Case& one : cases()) {
    if (one.legal) {
      legal[{one.arch, one.version}] += one.instruction + "\n";
    } else if (++illegal % 30 == 0) {
      EXPECT_FALSE(assembles(one.arch, one.version, one.instruction)) << one.instruction;
    }
  }
  ASSERT_GE(legal.size(), 4u);
  for (const auto& [target, instructions] : legal)
    EXPECT_TRUE(assembles(target.first, target.second, instructions))
        << target.first << " PTX " << target.second;
}

}  // namespace
}  // namespace tartan
