// SPDX-License-Identifier: Apache-2.0
// The emulator against an H200, on sweeps of 1,600 hand-picked instructions: edge cases, and former
// defects of the emulator. Excluded are results that depend on the assembler: a product and a sum
// that it may fuse, neg of neg, products with 1, min of a register and itself (a NaN stays
// unchanged); and rcp and rsqrt of f64, whose last bits come from a table.
// table's.
// audit.txt: "case rows widths of the sources a, b, c, e", then its instructions, "width of d |
// text". audit_sm_90.bin: for each case the sources' values, then each instruction's results,
// little endian. collect_audit.py wrote both.
// endian. collect_audit.py wrote both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/emulator/scalar_sweep.h"

namespace tartan {
namespace {

using scalar_sweep::Form;
using scalar_sweep::Kind;
using Words = std::vector<std::uint64_t>;

const std::string folder = std::string(TEST_DATA) + "/emulator/";

struct Recorded {
  Form form;
  Words results;
};

Words read_words(std::ifstream& file, std::size_t count, int width) {
  Words out(count);
  for (std::uint64_t& word : out) file.read(reinterpret_cast<char*>(&word), width / 8);
  return out;
}

std::vector<Recorded> read_recording() {
  std::ifstream text(folder + "audit.txt"), values(folder + "audit_sm_90.bin", std::ios::binary);
  std::vector<Recorded> out;
  Form sources;
  std::size_t rows = 0;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    if (const std::size_t bar = line.find(" | "); bar != std::string::npos) {
      Recorded& one = out.emplace_back(Recorded{sources, {}});
      words >> one.form.d;
      one.form.text = "{ .reg .b16 u, v; " + line.substr(bar + 3) + " }";
      one.results = read_words(values, rows, one.form.d);
      continue;
    }
    std::string name;
    words >> name >> rows;
    sources = {};
    for (int width = 0; words >> width;) {
      sources.sources.push_back(width == 64 ? Kind::b64 : width == 32 ? Kind::b32 : Kind::b16);
      const Words column = read_words(values, rows, width);
      sources.values.insert(sources.values.end(), column.begin(), column.end());
    }
  }
  EXPECT_TRUE(values.good());
  EXPECT_EQ(values.peek(), std::ifstream::traits_type::eof());
  return out;
}

TEST(EmulatorAudit, ComputesWhatAnH200Computed) {
  const auto recorded = read_recording();
  ASSERT_GE(recorded.size(), 1600u);
  std::vector<Form> forms;
  for (const Recorded& each : recorded) forms.push_back(each.form);
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto runs = scalar_sweep::run_forms(**engine, forms);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const Recorded& want = recorded[i];
    ASSERT_FALSE(runs[i].results.empty()) << want.form.text << ": " << runs[i].complaint;
    const std::size_t rows = want.results.size();
    for (std::size_t row = 0; row < rows; ++row) {
      if (want.results[row] == runs[i].results[row]) continue;
      std::string inputs;
      for (std::size_t s = 0; s < want.form.sources.size(); ++s)
        inputs += fmt::format(" {}=0x{:x}", "abce"[s], want.form.values[s * rows + row]);
      ADD_FAILURE() << want.form.text << inputs
                    << fmt::format(": expected 0x{:x}, got 0x{:x}", want.results[row],
                                   runs[i].results[row]);
      break;
    }
  }
}

}  // namespace
}  // namespace tartan
