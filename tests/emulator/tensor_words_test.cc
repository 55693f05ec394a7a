// SPDX-License-Identifier: Apache-2.0
// Published words of a B200's tcgen05.mma, and published examples of four-bit sums, each as row 0
// of A and column 0 of B of a kernel. The files are not in the repository; the test is left out
// where they are absent.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/emulator/tensor_gemm.h"

namespace tartan::test::tensor {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  const char* given = std::getenv("TARTAN_SHARED");
  return fs::path(given ? given : SOURCE_ROOT "/../shared") / "golden/public/b200";
}

Words list(const std::string& text) {
  Words out;
  std::istringstream stream(text);
  for (std::string each; text != "-" && std::getline(stream, each, ',');)
    out.push_back(static_cast<std::uint32_t>(std::stoul(each, nullptr, 16)));
  return out;
}

// Fields of a line: name kind a b d scale_type scale_vec saturation a b c scale_a scale_b metadata
// d
using Fields = std::vector<std::string>;

std::vector<Fields> read(const fs::path& path) {
  std::vector<Fields> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.empty()) continue;
    std::istringstream stream(line);
    out.emplace_back(std::istream_iterator<std::string>(stream),
                     std::istream_iterator<std::string>());
  }
  return out;
}

// A is given for all of k, with the codes of row 0.
void store_sparse(Gemm& g, const Words& a, const Words& metadata) {
  const auto codes = static_cast<std::size_t>(g.codes());
  g.metadata.assign(static_cast<std::size_t>(g.m) * codes, 4);
  const std::size_t each = g.fours() ? 2 : 1;
  for (std::size_t j = 0; j < codes; ++j) {
    const std::uint32_t code = metadata.at(j / 8) >> 4 * (j % 8) & 15;
    g.metadata[j] = code;
    if (g.a == "tf32") {
      g.a_bits[j] = a[2 * j + (code == 4 ? 0 : 1)];
      continue;
    }
    for (std::size_t i = 0; i < 2 * each; ++i)
      g.a_bits[2 * each * j + i] = a[4 * each * j + each * (code >> 2 * (i / each) & 3) + i % each];
  }
}

Gemm gemm_of(const Fields& f) {
  const bool sparse = f[1].ends_with(".sp");
  Gemm g{.kind = f[1].substr(0, f[1].find('.')),
         .a = f[2],
         .b = f[3],
         .d = f[4],
         .n = 16,
         .accumulates = true};
  g.saturates = f[7] == "sat";
  if (g.scaled()) {
    g.scales = std::stoi(f[6]);
    g.ue4m3 = f[5] == "ue4m3";
    g.vector = ".scale_vec::" + f[6] + "X";
  }
  const Words a = list(f[8]), b = list(f[9]), scale_a = list(f[11]), scale_b = list(f[12]);
  g.sparse = sparse;
  EXPECT_EQ(static_cast<int>(a.size()), g.k_of_b()) << f[0];
  g.a_bits.resize(static_cast<std::size_t>(g.m * g.k()));
  g.b_bits.resize(static_cast<std::size_t>(g.n * g.k_of_b()));
  g.c_bits.resize(static_cast<std::size_t>(g.m * g.n));
  g.a_scales.resize(static_cast<std::size_t>(g.m * g.scales));
  g.b_scales.resize(static_cast<std::size_t>(g.n * g.scales));
  const int cut = g.a == "bf16" ? 16 : 0;  // given as f32
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!sparse) g.a_bits[k] = a[k] >> cut;
    g.b_bits[k] = b[k] >> cut;
  }
  if (sparse) store_sparse(g, a, list(f[13]));
  g.c_bits[0] = list(f[10]).at(0);
  std::copy(scale_a.begin(), scale_a.end(), g.a_scales.begin());
  std::copy(scale_b.begin(), scale_b.end(), g.b_scales.begin());
  return g;
}

int check(const fs::path& path) {
  int checked = 0;
  for (const Fields& f : read(path)) {
    const Gemm g = gemm_of(f);
    const Plan made = plan(g);
    const KernelRun run = run_tensor(made.text, static_cast<std::size_t>(128 * g.n), made.in, {});
    EXPECT_EQ(findings_text(run), "") << f[0];
    EXPECT_EQ(run.out.at(0), list(f[14]).at(0)) << f[0];
    EXPECT_EQ(model(g).at(0), list(f[14]).at(0)) << "the model: " << f[0];
    ++checked;
  }
  return checked;
}

TEST(EmulatorTensorWords, AreThoseOfAB200) {
  const fs::path path = folder() / "words.txt";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is absent";
  EXPECT_EQ(check(path), 78);
}

TEST(EmulatorTensorWords, AreThoseOfPublishedExamples) {
  const fs::path path = folder() / "fp4_examples.txt";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is absent";
  EXPECT_EQ(check(path), 7);
}

}  // namespace
}  // namespace tartan::test::tensor
