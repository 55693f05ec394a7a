// SPDX-License-Identifier: Apache-2.0
// Texts that the producers of autumn 2026 write (nvcc 13.5, Triton, CuTe DSL, TileLang, warp,
// numba, CCCL): read from $TARTAN_SHARED/foreign3 if that exists. They check clean, print to the
// same machine code where the assembler of CUDA 13.5 is in the PATH, and run as numpy says.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "runtime/outcome.h"
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
    for (const Finding& finding : outcome.findings)
      EXPECT_NE(finding.level, Level::Error)
          << name << ": " << finding.id << ": " << finding.message;
    EXPECT_TRUE(outcome.refused.empty()) << name << "\n" << outcome.complaints(false);
    for (const Expectation& each : outcome.expectations)
      EXPECT_TRUE(each.ok()) << name << ": " << outcome.text(false);
  }
}

}  // namespace
}  // namespace tartan
