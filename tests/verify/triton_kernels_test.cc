// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by Triton (tests/data/triton): they check clean, print to a fixed point, and
// match an H100's results, bit for bit except for those that use ex2.approx (their manifests have
// tolerances).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <set>

#include "runtime/outcome.h"
#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"
#include "tests/emulator/compiled_kernels.h"
#include "tests/support/printed.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

const fs::path data = fs::path(TEST_DATA) / "triton";

const std::vector<std::string>& kernels() {
  static const auto names = test::compiled_kernels(data);
  return names;
}

// Registers of products are accessed without a wait in between (also in the next iteration of a
// loop), which the assembler repairs.
const std::set<std::string> lack_a_wait = {"matmul_dequant", "matmul_e4m3_precise"};

void expect_results(const std::string& device) {
  for (const std::string& kernel : kernels()) {
    const auto manifest = read_manifest((data / kernel / "manifest.json").string());
    ASSERT_TRUE(manifest) << manifest.diags().text();
    const Outcome outcome = run(*manifest, device);
    ASSERT_FALSE(outcome.expectations.empty()) << kernel << "\n" << outcome.complaints(false);
    EXPECT_EQ(outcome.exit_code(), lack_a_wait.contains(kernel) ? 3 : 0)
        << kernel << "\n"
        << outcome.complaints(false) << outcome.text(false);
    for (const Expectation& each : outcome.expectations)
      EXPECT_TRUE(each.ok()) << kernel << ": " << outcome.text(false);
    // Triton fences neither mbarrier.init nor loads in front of TMA.
    for (const Finding& finding : outcome.findings)
      EXPECT_TRUE(finding.id == "wgmma-wait" || finding.id == "mbarrier-init-fence" ||
                  finding.id == "proxy-fence-read")
          << kernel << ": " << finding.id << ": " << finding.message;
  }
}

TEST(TritonKernels, MatchTheRecordedResults) {
  EXPECT_GE(kernels().size(), 23u);
  expect_results("emulator");
}

TEST(TritonKernels, MatchTheRecordedResultsOnAGpu) {
  if (const std::string reason = test::no_hopper(); !reason.empty()) GTEST_SKIP() << reason;
  expect_results("cuda");
}

// Only kernels with ex2.approx have tolerances.
TEST(TritonKernels, AllOthersAreComparedBitForBit) {
  int exact = 0, within = 0;
  for (const std::string& kernel : kernels()) {
    const auto manifest = read_manifest((data / kernel / "manifest.json").string());
    ASSERT_TRUE(manifest) << manifest.diags().text();
    const bool approximate = manifest->ptx.text().find("ex2.approx") != std::string_view::npos;
    const auto look = [&](const ManifestBuffer& buffer) {
      if (!buffer.expect) return;
      const bool tolerant = buffer.comparison.max_rel != 0 || buffer.comparison.max_abs != 0;
      EXPECT_EQ(tolerant, approximate) << kernel << " " << buffer.name;
      ++(tolerant ? within : exact);
    };
    for (const ManifestParam& param : manifest->params)
      if (param.buffer) look(*param.buffer);
    for (const ManifestBuffer& buffer : manifest->buffers) look(buffer);
  }
  EXPECT_GE(exact, 20);
  EXPECT_EQ(within, 7);
}

std::string text_of(const std::string& kernel) {
  return test::read_file(data / kernel / "kernel.ptx");
}

TEST(TritonKernels, CheckCleanAndPrintToAFixedPoint) {
  for (const std::string& kernel : kernels()) {
    Diags diags;
    const auto module = test::parsed(kernel, text_of(kernel), diags);
    diags.append(verify::verify(module));
    EXPECT_EQ(module.kernels().size(), 1u);
    const bool lacks = lack_a_wait.contains(kernel);
    EXPECT_EQ(diags.count(Level::Warning) > 0, lacks) << kernel << "\n" << diags.text();
    for (const Diag& diag : diags) {
      if (diag.level == Level::Note) continue;
      EXPECT_EQ(diag.id, "wgmma-wait") << to_string(diag);
    }
    EXPECT_TRUE(diags.ok()) << diags.text();
    test::expect_fixed_point(kernel, module);
  }
}

TEST(TritonKernels, PrintedTextAssemblesToTheSameCode) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const std::string& kernel : kernels())
    if (kernel != "with_lines")  // its lines are others when printed
      test::expect_same_code(kernel, text_of(kernel));
}

// ---- The same products, computed here, to validate the recordings.

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double magnitude =
      exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

std::vector<double> halves(const fs::path& file) {
  const std::string bytes = test::read_file(file.string());
  std::vector<double> out;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    std::uint16_t each;
    std::memcpy(&each, bytes.data() + i, 2);
    out.push_back(half(each));
  }
  return out;
}

TEST(TritonKernels, ProductsAreProducts) {
  const std::vector<double> in = halves(data / "halves.bin");
  struct Product {
    std::string file;
    std::size_t m, n, k, b;  // where B begins
    bool b_col_major;
  };
  for (const Product& p : {Product{"matmul_f16/c_ptr.bin", 128, 256, 256, 32768, false},
                           Product{"matmul_f16_columns/c_ptr.bin", 128, 128, 256, 32768, true},
                           Product{"matmul_described/c.bin", 256, 128, 256, 16384, true},
                           Product{"matmul_described_ragged/c.bin", 200, 72, 136, 16384, true},
                           Product{"matmul_describing/c_ptr.bin", 256, 128, 256, 16384, true}}) {
    const std::vector<double> got = halves(data / p.file);
    ASSERT_EQ(got.size(), p.m * p.n) << p.file;
    for (std::size_t row = 0; row < p.m; ++row)
      for (std::size_t column = 0; column < p.n; ++column) {
        double sum = 0, size = 0;
        for (std::size_t i = 0; i < p.k; ++i) {
          const double a = in[row * p.k + i],
                       b = in[p.b + (p.b_col_major ? column * p.k + i : i * p.n + column)];
          sum += a * b;
          size += std::fabs(a * b);
        }
        ASSERT_NEAR(got[row * p.n + column], sum, 5e-4 * std::fabs(sum) + 1e-6 * size)
            << p.file << " " << row << ", " << column;
      }
  }
  EXPECT_EQ(test::read_file((data / "matmul_described/c.bin").string()),
            test::read_file((data / "matmul_describing/c_ptr.bin").string()));
}

}  // namespace
}  // namespace tartan
