// SPDX-License-Identifier: Apache-2.0
// What compile() predicts of registers, against what the assembler said of the same kernels
// (tests/data/registers.txt): no false error, no error missed, no false warning, most spills warned
// of. A sample; TARTAN_REGISTERS=all takes them all and asks the assembler, if it is installed,
// whether they still fit as recorded; TARTAN_REBASE=1 records what it says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/dsl/register_sweep.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using test::RegisterRow;

struct Prediction {
  bool refused = false, spills = false;
  std::string message;
  std::string ptx;
};

// The text of a kernel that is refused: compiled with a limit that is large enough, without it.
std::string text_without_limit(const Kernel& of, Arch arch) {
  const auto options = [of](const Target& target) {
    KernelOptions out = of.options(target);
    out.max_registers = 255;
    return out;
  };
  const auto compiled = compile(kernel(of.name(), options, of.body()), arch);
  std::string out = compiled ? compiled->ptx : "";
  const std::size_t limit = out.find(".maxnreg");
  EXPECT_NE(limit, std::string::npos);
  return limit == std::string::npos ? out : out.erase(limit, out.find('\n', limit) - limit);
}

// `asks`: with the text that the assembler gets.
Prediction predict(const RegisterRow& row, bool asks) {
  const Arch arch = *Arch::parse(row.target);
  const auto compiled = compile(row.kernel, arch);
  Prediction out;
  const Diags& diags = compiled ? compiled->warnings : compiled.diags();
  for (const Diag& diag : diags)
    if (diag.id == "register-pressure") out.message = diag.message;
  out.refused = !compiled && !out.message.empty();
  out.spills = compiled && !out.message.empty();
  EXPECT_TRUE(compiled || out.refused) << diags.text();
  if (asks) out.ptx = compiled ? compiled->ptx : text_without_limit(row.kernel, arch);
  return out;
}

// "168 registers, 0 bytes" or "refused".
std::string assembler_says(const RegisterRow& row, const std::string& ptx) {
  const std::string at = testing::TempDir() + std::to_string(getpid()) + "_tartan_registers";
  std::ofstream(at + ".ptx") << ptx;
  const std::string command =
      fmt::format("ptxas -v -arch {0} -o /dev/null {1}.ptx > {1}.txt 2>&1", row.target, at);
  const bool good = std::system(command.c_str()) == 0;
  const std::string report = test::read_file(at + ".txt");
  for (const char* end : {".ptx", ".txt"}) std::remove((at + end).c_str());
  if (!good) {
    EXPECT_NE(report.find("C7602"), std::string::npos) << row.configuration << "\n" << report;
    return "refused";
  }
  const auto before = [&](std::string_view words) {
    const std::size_t end = report.find(words);
    EXPECT_NE(end, std::string::npos) << report;
    return end == std::string::npos ? 0 : std::atoi(report.c_str() + report.rfind(' ', end - 1));
  };
  return fmt::format("{} registers, {} bytes", before(" registers"), before(" bytes spill stores"));
}

TEST(RegisterSweep, PredictsWhatTheAssemblerDoes) {
  const std::string path = TEST_DATA "/registers.txt";
  const char* wish = std::getenv("TARTAN_REGISTERS");
  const bool all = wish && std::string_view(wish) == "all";
  const bool asks = all && test::has_assembler();
  const std::size_t step = all ? 1 : 7;
  const std::vector<RegisterRow> rows = test::register_rows(path);
  ASSERT_GE(rows.size(), 500u);
  int refused = 0, fits = 0, spills = 0, warned = 0;
  std::string recording;
  for (std::size_t i = 0; i < rows.size(); i += step) {
    const RegisterRow& row = rows[i];
    const Prediction said = predict(row, asks);
    if (asks) {
      const std::string says = assembler_says(row, said.ptx);
      if (test::rebases()) recording += fmt::format("{} -> {}\n", row.configuration, says);
      else
        EXPECT_EQ(says == "refused" || says.ends_with(", 0 bytes"),
                  row.recorded.refused || row.recorded.spilled == 0)
            << row.configuration << ": " << says << "; TARTAN_REBASE=1 records it";
    }
    EXPECT_EQ(said.refused, row.recorded.refused) << row.configuration << "\n" << said.message;
    refused += row.recorded.refused;
    if (row.recorded.refused) continue;
    (row.recorded.spilled > 0 ? spills : fits) += 1;
    if (row.recorded.spilled > 0) warned += said.spills;
    else EXPECT_FALSE(said.spills) << row.configuration << "\n" << said.message;
  }
  EXPECT_GE(warned, all ? spills * 3 / 4 : spills * 3 / 5);  // a sample's share varies
  EXPECT_GT(fits, 0);
  EXPECT_GT(refused, 0);
  fmt::print("{} of {} spills, {} refused, {} that fit\n", warned, spills, refused, fits);
  if (recording.empty()) return;
  std::string head;
  for (const std::string& line : test::split(test::read_file(path), "\n"))
    if (line.starts_with("#")) head += line + "\n";
  std::ofstream(path) << head << recording;
}

}  // namespace
}  // namespace tartan
