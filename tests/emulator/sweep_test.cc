// SPDX-License-Identifier: Apache-2.0
// The emulator against a Hopper GPU's results for every form of the sweep, bit for bit.
//
// On such a GPU, TARTAN_RECORD=FILE writes a new recording:
//   TARTAN_RECORD=FILE emulator_sweep_test --gtest_filter='*RecordingIsCurrent'
// The file has for each form its key (key_of) and its results, each with the size of the form's d,
// little endian.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "runtime/emulator/numbers/small_float.h"
#include "tests/emulator/scalar_sweep.h"

namespace tartan {
namespace {

using scalar_sweep::Form;
using scalar_sweep::Kind;
using scalar_sweep::row_count;
using scalar_sweep::Run;

const std::string recording_path = std::string(TEST_DATA) + "/emulator/sweep_sm_90.bin";

using Results = std::vector<std::uint64_t>;

void write_recording(const std::string& path, const std::vector<Form>& forms,
                     const std::vector<Run>& runs) {
  std::ofstream file(path, std::ios::binary);
  const auto put = [&](std::uint64_t word, int bytes) {
    file.write(reinterpret_cast<const char*>(&word), bytes);
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (runs[i].results.empty()) continue;
    put(scalar_sweep::key_of(forms[i]), 8);
    for (const std::uint64_t word : runs[i].results) put(word, forms[i].d / 8);
  }
}

// The recorded results of these forms, by index; forms without a recording are missing.
std::map<std::size_t, Results> read_recording(const std::vector<Form>& forms) {
  std::map<std::uint64_t, std::size_t> by_key;
  for (std::size_t i = 0; i < forms.size(); ++i) by_key.emplace(scalar_sweep::key_of(forms[i]), i);
  std::map<std::size_t, Results> out;
  std::ifstream file(recording_path, std::ios::binary);
  EXPECT_TRUE(file.good()) << recording_path;
  std::uint64_t key = 0;
  while (file.read(reinterpret_cast<char*>(&key), sizeof key)) {
    const auto form = by_key.find(key);
    if (form == by_key.end()) {
      ADD_FAILURE() << "the recording has a form that the sweep has not: record it anew";
      return out;
    }
    Results& results = out[form->second];
    results.resize(row_count);
    for (std::uint64_t& word : results)
      file.read(reinterpret_cast<char*>(&word), forms[form->second].d / 8);
    EXPECT_TRUE(file.good());
  }
  return out;
}

TEST(EmulatorSweep, CoversTheInstructions) {
  const auto forms = scalar_sweep::all_forms();
  EXPECT_GE(forms.size(), 2800u);
  std::set<std::uint64_t> keys;
  for (const Form& form : forms) keys.insert(scalar_sweep::key_of(form));
  EXPECT_EQ(keys.size(), forms.size()) << "a form is there twice";
}

TEST(EmulatorSweep, EveryFormRuns) {
  const auto forms = scalar_sweep::all_forms();
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto runs = scalar_sweep::run_forms(**engine, forms);
  for (std::size_t i = 0; i < forms.size(); ++i)
    EXPECT_FALSE(runs[i].results.empty()) << forms[i].text << ": " << runs[i].complaint;
}

double value(std::uint64_t bits, Kind kind) {
  switch (kind) {
    case Kind::f64: return std::bit_cast<double>(bits);
    case Kind::f32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case Kind::bf16: return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
    default:
      return emulator::widen(emulator::format_f16, static_cast<std::uint32_t>(bits & 0xFFFF));
  }
}

// The manual's error bound of approximations, relative; for sine, cosine and logarithm also
// absolute. `source`: the argument; beyond [-pi, pi] sine and cosine have no bound.
bool near(std::uint64_t expected, std::uint64_t got, const Form& form, std::uint64_t source) {
  const Kind kind = form.sources[0];
  if (kind == Kind::f16x2 || kind == Kind::bf16x2) {
    const Form half{form.text, 16, {kind == Kind::f16x2 ? Kind::f16 : Kind::bf16}, true};
    return near(expected & 0xFFFF, got & 0xFFFF, half, 0) &&
           near(expected >> 16, got >> 16, half, 0);
  }
  const double x = value(expected, kind), y = value(got, kind);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  const bool periodic = form.text.starts_with("sin") || form.text.starts_with("cos");
  double relative = 0x1p-21, absolute = kind == Kind::f16 ? 0x1p-24 : 0x1p-126;
  if (kind == Kind::f16) relative = 0x1p-9;
  if (kind == Kind::bf16) relative = 0x1p-7;
  if (kind == Kind::f64) relative = 0x1p-19;
  if (form.text.starts_with("tanh") && kind == Kind::f32) relative = 0x1p-10;
  if (form.text.starts_with("lg2")) absolute = 0x1p-21;
  if (periodic) absolute = std::fabs(value(source, kind)) > 3.15 ? 2 : 0x1p-20;
  return std::fabs(x - y) <= std::max(relative * std::fabs(x), absolute);
}

// Forms with known differences: lines "cause | form" of sweep_differences.txt.
std::map<std::string, std::string> read_differences() {
  std::map<std::string, std::string> out;
  std::ifstream file(std::string(TEST_DATA) + "/emulator/sweep_differences.txt");
  for (std::string line; std::getline(file, line);)
    if (const std::size_t bar = line.find(" | "); bar != std::string::npos)
      out[line.substr(bar + 3)] = line.substr(0, bar);
  return out;
}

std::string row_text(const Form& form, const std::vector<std::uint64_t>& inputs, int row) {
  std::string out = fmt::format("{} row {}", form.text, row);
  for (std::size_t s = 0; s < form.sources.size(); ++s)
    out +=
        fmt::format(" {}=0x{:x}", "abce"[s], inputs[s * row_count + static_cast<std::size_t>(row)]);
  return out;
}

TEST(EmulatorSweep, ComputesWhatAHopperGpuRecorded) {
  const auto forms = scalar_sweep::all_forms();
  const auto recorded = read_recording(forms);
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto runs = scalar_sweep::run_forms(**engine, forms);
  auto differences = read_differences();
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const Form& form = forms[i];
    const auto want = recorded.find(i);
    if (want == recorded.end()) {
      ADD_FAILURE() << form.text << ": not recorded";
      continue;
    }
    if (runs[i].results.empty()) {
      ADD_FAILURE() << form.text << ": " << runs[i].complaint;
      continue;
    }
    const auto inputs = scalar_sweep::inputs_of(form);
    int rows = 0;
    std::string first;
    for (int row = 0; row < row_count; ++row) {
      const std::uint64_t x = want->second[static_cast<std::size_t>(row)],
                          y = runs[i].results[static_cast<std::size_t>(row)];
      if (form.approximate ? near(x, y, form, inputs[static_cast<std::size_t>(row)]) : x == y)
        continue;
      if (rows++ < 3)
        first +=
            fmt::format("\n  {}: expected 0x{:x}, got 0x{:x}", row_text(form, inputs, row), x, y);
    }
    EXPECT_EQ(differences.erase(form.text) != 0, rows != 0)
        << form.text << ": " << rows << " of " << row_count << " rows differ" << first;
  }
  for (const auto& [text, cause] : differences) ADD_FAILURE() << "no such form: " << text;
}

TEST(EmulatorSweep, RecordingIsCurrent) {
  auto gpu = cuda::make_engine(0);
  if (!gpu || (*gpu)->arch().sm != 90) GTEST_SKIP() << "no Hopper GPU here";
  const auto forms = scalar_sweep::all_forms();
  const auto runs = scalar_sweep::run_forms(**gpu, forms);
  for (std::size_t i = 0; i < forms.size(); ++i)
    EXPECT_FALSE(runs[i].results.empty()) << forms[i].text << ": " << runs[i].complaint;
  if (const char* path = std::getenv("TARTAN_RECORD")) return write_recording(path, forms, runs);
  const auto recorded = read_recording(forms);
  EXPECT_EQ(recorded.size(), forms.size());
  for (const auto& [i, results] : recorded) EXPECT_EQ(runs[i].results, results) << forms[i].text;
}

}  // namespace
}  // namespace tartan
