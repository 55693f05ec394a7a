// SPDX-License-Identifier: Apache-2.0
// Kernels written in CUDA C++ (tests/data/kernels), compiled for sm_75 to sm_90: they check clean,
// print to a fixed point, and match an H100's results. TARTAN_TEST_DATA names another data folder.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "runtime/outcome.h"
#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"
#include "tests/emulator/compiled_kernels.h"
#include "tests/support/printed.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

fs::path data_folder() {
  const char* chosen = std::getenv("TARTAN_TEST_DATA");
  return fs::path(chosen ? chosen : TEST_DATA) / "kernels";
}

const std::vector<std::string>& kernels() {
  static const auto names = test::compiled_kernels(data_folder());
  return names;
}

std::vector<fs::path> modules() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(data_folder()))
    if (entry.path().extension() == ".ptx") out.push_back(entry.path());
  return out;
}

// Compares the results of `device` with the expected ones, kernel by kernel.
void expect_results(const std::string& device) {
  for (const std::string& kernel : kernels()) {
    const auto manifest = read_manifest((data_folder() / kernel / "manifest.json").string());
    ASSERT_TRUE(manifest) << manifest.diags().text();
    EXPECT_EQ(manifest->hardware, "sm_90") << kernel;
    const Outcome outcome = run(*manifest, device);
    EXPECT_EQ(outcome.exit_code(), 0) << kernel << "\n"
                                      << outcome.complaints(false) << outcome.text(false);
    EXPECT_FALSE(outcome.expectations.empty()) << kernel;
  }
}

TEST(CompiledKernels, MatchTheRecordedResults) {
  EXPECT_GE(kernels().size(), 30u);
  expect_results("emulator");
}

// tests/data/cuda/pipeline: the destructor of libcu++'s cuda::pipeline lets one thread invalidate
// the mbarriers that all have used.
TEST(CompiledKernels, PipelinesOfLibcuxxAreRight) {
  for (const std::string name : {"unified", "roles"}) {
    const auto manifest = read_manifest(TEST_DATA "/cuda/pipeline/" + name + ".json");
    ASSERT_TRUE(manifest) << manifest.diags().text();
    const Outcome outcome = run(*manifest, "emulator", {.checks = Checks::all});
    EXPECT_EQ(outcome.exit_code(), 0) << name << outcome.complaints(false) << outcome.text(false);
    EXPECT_TRUE(outcome.findings.empty()) << name << outcome.findings[0].message;
    EXPECT_FALSE(outcome.expectations.empty()) << name;
  }
}

TEST(CompiledKernels, MatchTheRecordedResultsOnAGpu) {
  if (const std::string reason = test::no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
  expect_results("cuda");
}

TEST(CompiledKernels, CheckCleanAndPrintToAFixedPoint) {
  EXPECT_GE(modules().size(), 5u);
  for (const fs::path& path : modules()) {
    Diags diags;
    const auto module = test::parsed(path.string(), test::read_file(path), diags);
    diags.append(verify::verify(module));
    EXPECT_GE(module.kernels().size(), 5u);
    for (const Diag& diag : diags) EXPECT_EQ(diag.level, Level::Note) << to_string(diag);
    test::expect_fixed_point(path.string(), module);
  }
}

TEST(CompiledKernels, PrintedTextAssemblesToTheSameCode) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const fs::path& path : modules())
    test::expect_same_code(path.string(), test::read_file(path));
}

// ---- The same results, computed here.

template <typename T>
std::vector<T> values(const std::string& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}
template <typename T>
std::vector<T> input(const std::string& file) {
  return values<T>(test::read_file((data_folder() / (file + ".bin")).string()));
}
template <typename T>
std::vector<T> expected(const std::string& kernel, const std::string& file = "out") {
  return values<T>(test::read_file((data_folder() / kernel / (file + ".bin")).string()));
}

TEST(CompiledKernelsReference, Sums) {
  const auto words = input<std::int32_t>("words");
  const auto unsigned_words = input<std::uint32_t>("words");
  std::vector<std::uint32_t> sums(4);
  for (std::size_t i = 0; i < 4000; ++i) sums[i / 128 % 4] += unsigned_words[i];
  EXPECT_EQ(expected<std::uint32_t>("block_sum"), sums);

  std::vector<std::uint32_t> scan(1024);
  for (std::size_t i = 0; i < 1024; ++i) scan[i] = unsigned_words[i] + (i % 256 ? scan[i - 1] : 0);
  EXPECT_EQ(expected<std::uint32_t>("inclusive_scan"), scan);

  std::vector<std::uint32_t> bins(256);
  const auto bytes = input<std::uint8_t>("words");
  for (std::size_t i = 0; i < 16000; ++i) ++bins[bytes[i]];
  EXPECT_EQ(expected<std::uint32_t>("histogram", "bins"), bins);

  std::vector<std::int32_t> sorted(words.begin(), words.begin() + 512);
  std::sort(sorted.begin(), sorted.begin() + 256);
  std::sort(sorted.begin() + 256, sorted.end());
  EXPECT_EQ(expected<std::int32_t>("bitonic_sort"), sorted);
}

TEST(CompiledKernelsReference, Moves) {
  const auto floats = input<float>("floats");
  const auto turned = expected<float>("transpose");
  ASSERT_EQ(turned.size(), 3600u);
  for (std::size_t i = 0; i < 3600; ++i) ASSERT_EQ(turned[i % 60 * 60 + i / 60], floats[i]);

  const auto words = input<std::uint32_t>("words");
  const auto kept = expected<std::uint32_t>("compact");
  const auto counts = expected<std::int32_t>("compact", "counts");
  for (std::size_t warp = 0; warp < 8; ++warp) {
    std::vector<std::uint32_t> odd(32);
    std::int32_t count = 0;
    for (std::size_t i = 0; i < 32; ++i)
      if (words[32 * warp + i] & 1) odd[static_cast<std::size_t>(count++)] = words[32 * warp + i];
    EXPECT_EQ(counts[warp], count);
    EXPECT_TRUE(std::equal(odd.begin(), odd.end(), kept.begin() + static_cast<long>(32 * warp)));
  }
}

TEST(CompiledKernelsReference, Rows) {
  const auto in = input<float>("floats");
  const auto softmax = expected<float>("softmax"), normal = expected<float>("layer_norm");
  for (std::size_t row = 0; row < 8; ++row) {
    double sum = 0, mean = 0, squares = 0;
    for (std::size_t i = 0; i < 100; ++i) {
      sum += std::exp(double{in[100 * row + i]});
      mean += in[100 * row + i] / 100.0;
    }
    for (std::size_t i = 0; i < 100; ++i) squares += std::pow(in[100 * row + i] - mean, 2) / 100;
    for (std::size_t i = 0; i < 100; ++i) {
      const double x = in[100 * row + i];
      EXPECT_NEAR(softmax[100 * row + i], std::exp(x) / sum, 1e-6);
      EXPECT_NEAR(normal[100 * row + i], (x - mean) / std::sqrt(squares + 1e-5) * in[i], 1e-4);
    }
  }
}

TEST(CompiledKernelsReference, Integers) {
  const auto out = expected<std::uint32_t>("collatz");
  for (std::uint32_t i = 0; i < 250; ++i) {
    std::uint32_t x = i + 1, steps = 0, largest = x;
    for (; x != 1; ++steps) largest = std::max(largest, x = x % 2 ? 3 * x + 1 : x / 2);
    EXPECT_EQ(out[2 * i], steps);
    EXPECT_EQ(out[2 * i + 1], largest);
  }
  const auto drawn = expected<std::uint8_t>("tickets", "drawn");
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 1), 384);
  const auto in = input<std::uint64_t>("words");
  const auto atomics = expected<std::uint64_t>("wide_atomics");
  const std::uint64_t fill = 0x7F7F7F7F7F7F7F7F;
  std::uint64_t sum = fill, most = fill, least = fill, odd = fill, rest = fill;
  for (std::size_t i = 0; i < 1000; ++i) {
    sum += in[i];
    most = std::max(most, in[i]);
    least = std::min(least, in[i]);
    odd ^= in[i];
    rest = (rest + in[i] % 1000003) % 1000003;
  }
  EXPECT_EQ(atomics, (std::vector<std::uint64_t>{sum, most, least, odd, rest}));
}

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double magnitude =
      exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

// Checks an m x n C against A (rows) times B (columns).
template <typename Get, typename Got>
void expect_product(int m, int n, int k, const Get& get, const Got& got, double tolerance) {
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0, size = 0;
      for (int i = 0; i < k; ++i) {
        sum += get(row * k + i) * get(column * k + i);
        size += std::fabs(get(row * k + i) * get(column * k + i));
      }
      ASSERT_NEAR(got(row * n + column), sum, tolerance * size) << row << ", " << column;
    }
}

TEST(CompiledKernelsReference, Products) {
  const auto halves = input<std::uint16_t>("halves");
  const auto floats = input<float>("floats");
  const auto doubles = input<double>("doubles");
  const auto bytes = input<std::int8_t>("words");
  const auto at = [](const auto& list) {
    return [&list](int i) { return static_cast<double>(list[static_cast<std::size_t>(i)]); };
  };
  const auto half_at = [](const auto& list) {
    return [&list](int i) { return half(list[static_cast<std::size_t>(i)]); };
  };
  const auto c = expected<float>("wmma_half"), staged = expected<float>("staged_gemm"),
             tf32 = expected<float>("wmma_tf32");
  const auto wide = expected<std::uint16_t>("wmma_half_wide");
  const auto whole = expected<std::int32_t>("wmma_bytes");
  const auto exact = expected<double>("wmma_double");
  expect_product(32, 48, 64, half_at(halves), at(c), 1e-6);
  expect_product(48, 32, 80, half_at(halves), at(staged), 1e-6);
  expect_product(24, 64, 48, half_at(halves), half_at(wide), 2e-3);
  expect_product(64, 32, 128, at(bytes), at(whole), 0);
  expect_product(32, 32, 40, at(floats), at(tf32), 2e-3);
  expect_product(24, 16, 20, at(doubles), at(exact), 1e-14);
}

}  // namespace
}  // namespace tartan
