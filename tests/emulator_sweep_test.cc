// SPDX-License-Identifier: Apache-2.0
// The emulator against what a Hopper GPU computed for every form of the sweep, bit for bit.
//
// On a machine with such a GPU, TARTAN_RECORD=FILE writes the recording anew:
//   TARTAN_RECORD=FILE emulator_sweep_test --gtest_filter='*RecordingIsCurrent'
// The file: for each form its key (key_of), whether it could be run, and its results, as many
// bytes each as the form's d has; little endian.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "runtime/emulator/small_float.h"
#include "tests/scalar_sweep.h"

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

// What is recorded of these forms, by index; a form that the recording lacks is not there.
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
