// SPDX-License-Identifier: Apache-2.0
// Texts that the producers of autumn 2026 write (nvcc 13.5, Triton, CuTe DSL, TileLang, warp,
// numba, CCCL): read from $TARTAN_SHARED/foreign3 if that exists. They check clean, print to the
// same machine code where the assembler of CUDA 13.5 is in the PATH, and run as numpy says.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "runtime/outcome.h"
#include "runtime/references.h"
#include "tartan/verify/verify.h"
#include "tests/support/printed.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

// Unpacked once; empty without the archives.
const fs::path& unpacked() {
  static const fs::path folder = [] {
    const char* const given = std::getenv("TARTAN_SHARED");
    const fs::path from =
        (given ? fs::path(given) : fs::path(SOURCE_ROOT) / "../shared") / "foreign3";
    if (!fs::exists(from / "corpus.tar.xz")) return fs::path();
    const fs::path out = fs::path(testing::TempDir()) / fmt::format("tartan_foreign_{}", getpid());
    fs::create_directories(out);
    for (const char* each : {"corpus", "runs"}) {
      const std::string archive = (from / each).string() + ".tar.xz";
      if (test::shell(fmt::format("tar -xJf '{}' -C '{}'", archive, out.string())).code != 0)
        return fs::path();
    }
    return out;
  }();
  return folder;
}

class ForeignTexts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (unpacked().empty()) GTEST_SKIP() << "no $TARTAN_SHARED/foreign3";
  }
  static void TearDownTestSuite() {
    if (!unpacked().empty()) fs::remove_all(unpacked());
  }
};

std::vector<fs::path> files(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> out;
  for (const auto& each : fs::recursive_directory_iterator(folder))
    if (each.path().extension() == extension) out.push_back(each.path());
  std::sort(out.begin(), out.end());
  return out;
}

// Warnings that are right: setmaxnreg that the assembler ignores, as one of these says on purpose;
// accumulators that are written between two products without wgmma.fence.
const std::map<std::string, std::string> justified = {
    {"ex_geforce_dense_gemm.sm_120a.ptx", "register-bounds"},
    {"setmaxnreg_no_wgmma.ptx", "register-bounds"},
    {"ex_hopper_grouped.sm_90a.ptx", "wgmma-fence"},
};

TEST_F(ForeignTexts, CheckClean) {
  const auto texts = files(unpacked() / "corpus", ".ptx");
  EXPECT_GE(texts.size(), 204u);
  for (const fs::path& path : texts) {
    const std::string name = path.filename().string();
    const auto known = justified.find(name);
    for (const Diag& diag :
         verify::check(std::make_shared<const Source>(name, test::read_file(path)))) {
      if (diag.level == Level::Note) continue;
      EXPECT_TRUE(diag.level == Level::Warning && known != justified.end() &&
                  diag.id == known->second)
          << to_string(diag);
    }
  }
}

// TARTAN_FOREIGN=all: each text, which takes minutes; else one in 24.
TEST_F(ForeignTexts, PrintToTheSameMachineCode) {
  if (test::assembler_version() < 1305) GTEST_SKIP() << "no ptxas of CUDA 13.5 in the PATH";
  const bool all = std::getenv("TARTAN_FOREIGN") != nullptr;
  std::size_t i = 0;
  const std::set<std::string> always = {"matmul_debug.sm_90.ptx", "new_tcgen05_ld.sm_107a.ptx"};
  for (const fs::path& path : files(unpacked() / "corpus", ".ptx")) {
    const std::string name = path.filename().string();
    if (!all && i++ % 24 != 0 && !always.contains(name)) continue;
    const std::string text = test::read_file(path);
    Diags diags;
    test::expect_fixed_point(name, test::parsed(name, text, diags));
    test::expect_same_code(name, text);
  }
}

// Nothing is found but warnings, and buffers hold what is expected.
void expect_right(const std::string& name, const Outcome& outcome) {
  for (const Finding& finding : outcome.findings)
    EXPECT_TRUE(outcome.level(finding) != Level::Error)
        << name << ": " << finding.id << ": " << finding.message;
  EXPECT_TRUE(outcome.refused.empty()) << name << "\n" << outcome.complaints(false);
  EXPECT_FALSE(outcome.expectations.empty()) << name;
  for (const Expectation& each : outcome.expectations)
    EXPECT_TRUE(each.ok()) << name << ": " << outcome.text(false);
}

TEST_F(ForeignTexts, RunRight) {
  const auto manifests = files(unpacked() / "runs", ".json");
  EXPECT_GE(manifests.size(), 53u);
  DeviceOptions options;
  options.checks = Checks::all;
  for (const fs::path& path : manifests) {
    const std::string name = path.parent_path().filename().string();
    const auto manifest = read_manifest(path.string());
    ASSERT_TRUE(manifest) << manifest.diags().text();
    const Outcome outcome = run(*manifest, "emulator", options);
    expect_right(name, outcome);
  }
}

// ---- Kernels of tcgen05, whose manifests are in tests/data/foreign: what the formulas of
// manifests do not know is drawn and computed here.

class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {}
  std::vector<std::uint8_t> bytes(std::size_t count, unsigned low, unsigned high) {
    std::vector<std::uint8_t> out(count);
    for (std::uint8_t& each : out) each = static_cast<std::uint8_t>(low + random_() % (high - low));
    return out;
  }

 private:
  std::mt19937 random_;
};

template <typename T>
void write(const std::string& name, const std::vector<T>& values) {
  std::ofstream(unpacked() / "corpus" / name, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
}

double e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const double size = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
  return bits & 0x80 ? -size : size;
}
double e2m1(std::uint8_t bits) {
  constexpr double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return bits & 8 ? -sizes[bits & 7] : sizes[bits & 7];
}

// C = A * B' of 128 x 1024, with a scale for 32 elements.
void draw_scaled_product(const std::string& name, bool four_bits, std::size_t k) {
  constexpr std::size_t m = 128, n = 1024;
  Drawn drawn(1);
  const std::size_t row = four_bits ? k / 2 : k;
  const unsigned most = four_bits ? 256 : 0x60;
  const auto a = drawn.bytes(m * row, 0, most), b = drawn.bytes(n * row, 0, most);
  const auto sa = drawn.bytes(m * k / 32, 122, 130), sb = drawn.bytes(n * k / 32, 122, 130);
  const auto numbers = [&](const auto& bits, const auto& scales) {
    std::vector<double> out;
    for (std::size_t i = 0; i < bits.size() / row * k; ++i) {
      const auto byte =
          four_bits ? static_cast<std::uint8_t>(bits[i / 2] >> 4 * (i % 2) & 15) : bits[i];
      out.push_back(std::ldexp(four_bits ? e2m1(byte) : e4m3(byte), scales[i / 32] - 127));
    }
    return out;
  };
  const auto left = numbers(a, sa), right = numbers(b, sb);
  std::vector<float> c(m * n);
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = static_cast<float>(
        std::inner_product(&left[i / n * k], &left[i / n * k] + k, &right[i % n * k], 0.0));
  write(name + "_a.bin", a);
  write(name + "_b.bin", b);
  write(name + "_sa.bin", sa);
  write(name + "_sb.bin", sb);
  write(name + "_c.bin", c);
}

// Causal attention of 192 queries: 8 heads of 128, of which 4 share their keys.
void draw_grouped_attention() {
  constexpr std::size_t length = 192, dim = 128, heads = 8, group = 4;
  std::mt19937 random(2);
  const auto draw = [&](std::size_t count) {
    std::vector<std::uint16_t> out(count);
    for (std::uint16_t& each : out) {
      const float value = static_cast<float>(random() % 4096) / 2048 - 1;
      each = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    }
    return out;
  };
  const auto number = [](std::uint16_t bits) {
    return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)};
  };
  const auto q = draw(heads * length * dim), k = draw(heads / group * length * dim),
             v = draw(heads / group * length * dim);
  std::vector<std::uint16_t> o(q.size());
  for (std::size_t row = 0; row < heads * length; ++row) {
    const std::size_t first = row / length / group * length, keys = row % length + 1;
    std::vector<double> weights(keys), sums(dim);
    double total = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      double score = 0;
      for (std::size_t i = 0; i < dim; ++i)
        score += number(q[row * dim + i]) * number(k[(first + j) * dim + i]);
      weights[j] = std::exp(score / std::sqrt(double{dim}));
      total += weights[j];
    }
    for (std::size_t j = 0; j < keys; ++j)
      for (std::size_t i = 0; i < dim; ++i)
        sums[i] += weights[j] / total * number(v[(first + j) * dim + i]);
    for (std::size_t i = 0; i < dim; ++i)
      o[row * dim + i] = static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(static_cast<float>(sums[i])) >> 16);
  }
  write("fa4_q.bin", q);
  write("fa4_k.bin", k);
  write("fa4_v.bin", v);
  write("fa4_o.bin", o);
}

// These give accumulators back without tcgen05.wait::ld: rightly found.
const std::set<std::string> without_wait = {"cute_gemm_tf32.sm_103", "cute_pair_gemm_tf32.sm_100",
                                            "fa4_forward.sm_100"};

TEST_F(ForeignTexts, RunOnTensorMemory) {
  draw_scaled_product("mxfp8", false, 384);
  draw_scaled_product("mxfp4", true, 512);
  draw_grouped_attention();
  DeviceOptions options;
  options.checks = Checks::all;
  const auto manifests = files(fs::path(TEST_DATA) / "foreign", ".json");
  EXPECT_GE(manifests.size(), 24u);
  for (const fs::path& path : manifests) {
    const std::string name = path.stem().string();
    const fs::path beside = unpacked() / "corpus" / path.filename();
    fs::copy_file(path, beside, fs::copy_options::overwrite_existing);
    auto manifest = read_manifest(beside.string());
    ASSERT_TRUE(manifest) << manifest.diags().text();
    const Diags formulas = expect_references(*manifest);
    ASSERT_TRUE(formulas.ok()) << formulas.text();
    RuleLevels levels;
    if (without_wait.contains(name)) levels.set("asynchronous-race", Level::Warning);
    const Outcome outcome = run(*manifest, "emulator", options, levels);
    expect_right(name, outcome);
    int races = 0;
    for (const Finding& each : outcome.findings) {
      if (each.id != "asynchronous-race") continue;
      ++races;
      EXPECT_NE(each.message.find("expected tcgen05.wait::ld in its warp"), std::string::npos)
          << name << ": " << each.message;
    }
    EXPECT_EQ(races > 0, without_wait.contains(name)) << name;
  }
}

}  // namespace
}  // namespace tartan
