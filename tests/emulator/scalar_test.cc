// SPDX-License-Identifier: Apache-2.0
// The emulator's instructions against an H100: exact results bit for bit, approximations within the
// manual's error bound.
#include "tests/emulator/scalar.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace tartan {
namespace {

using test::ScalarCase;

const std::string list_path = std::string(TEST_DATA) + "/emulator/scalar.txt";
const std::string recording_path = std::string(TEST_DATA) + "/emulator/scalar_sm_90.bin";

std::vector<std::vector<std::uint64_t>> read_recording(const std::vector<ScalarCase>& cases) {
  std::ifstream file(recording_path, std::ios::binary);
  std::vector<std::vector<std::uint64_t>> out;
  for (const ScalarCase& one : cases) {
    out.emplace_back(test::scalar_lanes);
    for (std::uint64_t& word : out.back()) file.read(reinterpret_cast<char*>(&word), one.d / 8);
  }
  EXPECT_TRUE(file.good());
  EXPECT_EQ(file.peek(), std::ifstream::traits_type::eof());
  return out;
}

double value_of(std::uint64_t bits, const ScalarCase& one) {
  if (one.text.find(".f64") != std::string::npos) return std::bit_cast<double>(bits);
  if (one.text.find(".f32") != std::string::npos)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (one.text.find(".bf16") != std::string::npos)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double mantissa = static_cast<double>(bits & 1023);
  const double magnitude = exponent == 31 ? (mantissa ? NAN : HUGE_VAL)
                           : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                          : std::ldexp(mantissa, -24);
  return bits >> 15 & 1 ? -magnitude : magnitude;
}

// The manual's relative error bound of the hardware's table.
double allowed_error(const ScalarCase& one) {
  if (one.d == 16) return one.text.find("bf16") != std::string::npos ? 0x1p-7 : 0x1p-9;
  if (one.text.starts_with("tanh")) return 0x1p-10;
  if (one.d == 64) return 0x1p-19;
  return 0x1p-21;
}

bool near(std::uint64_t expected, std::uint64_t got, const ScalarCase& one) {
  const double x = value_of(expected, one), y = value_of(got, one);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y || std::fabs(x - y) <= allowed_error(one) * std::fabs(x);
}

std::string inputs_text(const ScalarCase& one, int lane) {
  std::string out;
  char buffer[32];
  for (std::size_t s = 0; s < one.sources.size(); ++s) {
    std::snprintf(buffer, sizeof buffer, " %c=0x%llx", static_cast<char>('a' + s),
                  static_cast<unsigned long long>(
                      test::scalar_input(one.sources[s], static_cast<int>(s), lane)));
    out += buffer;
  }
  return out;
}

TEST(EmulatorScalar, ComputesWhatAnH100Recorded) {
  const auto cases = test::read_scalar_cases(list_path);
  ASSERT_GE(cases.size(), 900u);
  const auto recorded = read_recording(cases);
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto got = test::run_scalar_cases(**engine, cases);
  ASSERT_EQ(got.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (int lane = 0; lane < test::scalar_lanes; ++lane) {
      const std::uint64_t want = recorded[i][static_cast<std::size_t>(lane)],
                          is = got[i][static_cast<std::size_t>(lane)];
      const bool good = cases[i].approximate ? near(want, is, cases[i]) : want == is;
      ASSERT_TRUE(good) << cases[i].text << " lane " << lane << inputs_text(cases[i], lane)
                        << std::hex << ": expected 0x" << want << ", got 0x" << is;
    }
}

TEST(EmulatorScalar, DoesNotDependOnTheNumberOfHostThreads) {
  const auto cases = test::read_scalar_cases(list_path);
  auto one = emulator::make_engine({.threads = 1}), many = emulator::make_engine({.threads = 4});
  ASSERT_TRUE(one && many);
  EXPECT_EQ(test::run_scalar_cases(**one, cases), test::run_scalar_cases(**many, cases));
}

// On an H100: the recording equals today's results. Elsewhere there is nothing to compare.
TEST(EmulatorScalar, TheRecordingIsCurrent) {
  auto gpu = cuda::make_engine(0);
  if (!gpu || (*gpu)->arch().sm != 90) GTEST_SKIP() << "no H100 here";
  const auto cases = test::read_scalar_cases(list_path);
  const auto got = test::run_scalar_cases(**gpu, cases);
  if (const char* path = std::getenv("TARTAN_RECORD")) {
    std::ofstream file(path, std::ios::binary);
    for (std::size_t i = 0; i < cases.size(); ++i)
      for (std::uint64_t word : got[i])
        file.write(reinterpret_cast<const char*>(&word), cases[i].d / 8);
  }
  EXPECT_EQ(got, read_recording(cases));
}

}  // namespace
}  // namespace tartan
