// SPDX-License-Identifier: Apache-2.0
// Doubts about generated kernels that wait for silicon (tile-ai/tilelang, issue 2644), as kernels
// with a verdict, where no other test has them; docs/blackwell.md lists all that can be read.
#include <gtest/gtest.h>

#include "tests/emulator/tensor_gemm.h"

namespace tartan::test::tensor {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string found_in(const Gemm& g, const std::string& from, const std::string& to) {
  const Plan made = plan(g);
  return findings_text(run_tensor(from.empty() ? made.text : replaced(made.text, from, to),
                                  static_cast<std::size_t>(128 * g.n), made.in));
}

// D of 64 rows is in 16 lanes of each 32; who takes all lanes for rows reads what nobody wrote.
TEST(EmulatorTensorCandidates, RowsOf64ReadAsThoseOf128) {
  std::mt19937 random(1);
  Gemm g{.m = 64, .n = 32};
  fill(g, random);
  EXPECT_EQ(found_in(g, "", ""), "");
  const std::string found = found_in(g, "setp.lt.u32 p, r3, 16;", "setp.lt.u32 p, r3, 32;");
  EXPECT_NE(found.find("[uninitialized-read]"), std::string::npos) << found;
}

// One CTA has four words of lanes that keep D, a pair has eight.
TEST(EmulatorTensorCandidates, WordsOfLanesThatKeepD) {
  std::mt19937 random(2);
  Gemm g{.n = 32, .accumulates = true, .disabled = {0, 0, 0, 0}};
  fill(g, random);
  const std::string four = "{r10, r11, r12, r13}";
  EXPECT_EQ(found_in(g, "", ""), "");
  for (const char* const words :
       {"{r10, r11, r12, r13, r10, r11, r12, r13}", "{r10, r11}", "{r10, r11, r12}"}) {
    const std::string found = found_in(g, four, words);
    EXPECT_NE(found.find("disabled lanes"), std::string::npos) << words << found;
  }
  // All lanes of a quarter keep what nobody wrote there.
  Gemm kept{.n = 32, .disabled = {~0u, 0, 0, 0}};
  fill(kept, random);
  const std::string found = found_in(kept, "", "");
  EXPECT_NE(found.find("[uninitialized-read]"), std::string::npos) << found;
}

// 32 bytes at a time, from an address that is a multiple of 16.
TEST(EmulatorTensorCandidates, WideAccessesOffTheirAlignment) {
  for (const int offset : {0, 16, 32})
    for (const bool wide : {false, true}) {
      const std::string ptx = tensor_text(
          fmt::format("mul.wide.u32 rd1, r0, 64;\nadd.s64 rd1, rd0, rd1;\nmov.u64 rd2, 5;\n"
                      "{} [rd1+{}], {};\n",
                      wide ? "st.global.v4.u64" : "st.global.v2.u64", offset,
                      wide ? "{rd2, rd2, rd2, rd2}" : "{rd2, rd2}"),
          0);
      const std::string found = findings_text(run_tensor(ptx, 128 * 32));
      if (wide && offset == 16)
        EXPECT_NE(found.find("[misaligned-access]"), std::string::npos) << found;
      else EXPECT_EQ(found, "") << wide << offset;
    }
}

}  // namespace
}  // namespace tartan::test::tensor
