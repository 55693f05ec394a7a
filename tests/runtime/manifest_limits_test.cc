// SPDX-License-Identifier: Apache-2.0
// Manifests and recordings beyond the host's memory: an error that names the file, and no crash.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/emulator/matrix/recording.h"
#include "tests/paths.h"
#include "tests/runtime/manifest_folder.h"
#include "tests/support/sanitizer.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

class ManifestLimits : public ManifestTest {
 protected:
  // `tartan run` on the manifest, with a limit of address space in KiB.
  test::Ran run_within(const std::string& limits, const std::string& words = "") {
    return test::shell(fmt::format("{} && {} run --device emulator {} {} 2>&1", limits,
                                   TARTAN_COMMAND, words, (folder / "manifest.json").string()));
  }
};

std::string repeated(std::string_view piece, int count = 300'000) {
  std::string out;
  for (int i = 0; i < count; ++i) out += piece;
  return out;
}

TEST_F(ManifestLimits, DeepNestingIsRefused) {
  const std::string why = "nested too deep: expected at most 100 brackets [manifest]";
  EXPECT_EQ(complaints(repeated("[")), Texts{why});
  EXPECT_EQ(complaints(repeated("[") + repeated("]")), Texts{why});
  EXPECT_EQ(complaints("{\"ptx\": " + repeated("{\"a\": [") + "1" + repeated("]}") + "}"),
            Texts{why});
  EXPECT_EQ(complaints("{\"ptx\":\n" + repeated("[", 100) + "1" + repeated("]", 100) + "}"),
            Texts{why});
  // Brackets in strings do not count.
  EXPECT_NE(complaints("{\"kernel\": \"" + repeated("[") + "\"}"), Texts{why});
  const auto read = read_manifest((folder / "manifest.json").string());
  EXPECT_FALSE(read);
}

TEST_F(ManifestLimits, DeepNestingOfRecordings) {
  for (const std::string& text : {repeated("["), repeated("{\"entries\":["),
                                  "[" + repeated("{\"a\":") + "1" + repeated("}") + "]"}) {
    const auto recording =
        emulator::Recording::read(write("index.json", text), write("data.bin", "data"));
    ASSERT_FALSE(recording);
    const Diag& diag = recording.diags()[0];
    EXPECT_EQ(diag.id, "recording");
    EXPECT_EQ(diag.place.file, (folder / "index.json").string());
    EXPECT_NE(diag.message.find("nested too deep: expected at most 100 brackets"),
              std::string::npos)
        << diag.message;
  }
}

TEST_F(ManifestLimits, FilesLargerThanMemory) {
  if (test::sanitized()) GTEST_SKIP() << "the sanitizer takes more address space";
  write("sparse.bin", "x");
  std::filesystem::resize_file(folder / "sparse.bin", std::uintmax_t{60} << 30);
  manifest(R"({"buffer": "b", "file": "sparse.bin"}, {"u32": 7})");
  const test::Ran file = run_within("ulimit -v 4000000");
  EXPECT_EQ(file.code, 2) << file.out;
  EXPECT_NE(file.out.find("params[0].file: cannot read"), std::string::npos) << file.out;
  EXPECT_NE(file.out.find("sparse.bin: its 64424509440 bytes do not fit in memory"),
            std::string::npos)
      << file.out;
  // The file fits in memory, the device's copy of it does not.
  std::filesystem::resize_file(folder / "sparse.bin", std::uintmax_t{1} << 29);
  const test::Ran buffer = run_within("ulimit -v 1000000");
  EXPECT_EQ(buffer.code, 2) << buffer.out;
  EXPECT_NE(buffer.out.find("manifest.json: error: out of host memory: cannot allocate a buffer of "
                            "536870912 bytes [out-of-memory]"),
            std::string::npos)
      << buffer.out;
}

TEST_F(ManifestLimits, OtherCommandsWithoutMemory) {
  if (test::sanitized()) GTEST_SKIP() << "the sanitizer takes more address space";
  write("index.json", "[]");
  write("data.bin", "x");
  std::filesystem::resize_file(folder / "data.bin", std::uintmax_t{60} << 30);
  write("large.ptx", ".version 7.8\n.target sm_80\n.visible .entry k()\n{\n" +
                         repeated("mov.u32 %r1, 1;\n", 2'000'000) + "ret;\n}\n");
  for (const std::string words :
       {"replay index.json data.bin", "check large.ptx", "print large.ptx"}) {
    const test::Ran ran = test::shell(fmt::format("cd {} && ulimit -v 400000 && {} {} 2>&1",
                                                  folder.string(), TARTAN_COMMAND, words));
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_NE(ran.out.find("[out-of-memory]"), std::string::npos) << words << ran.out;
  }
}

TEST_F(ManifestLimits, VariablesLargerThanMemory) {
  write("small.ptx",
        ".version 7.8\n.target sm_80\n.global .b8 large[281474976710656];\n"
        ".visible .entry store(.param .u64 out, .param .u32 value)\n{\n  ret;\n}\n");
  const Outcome outcome = run_text(R"({"buffer": "b", "bytes": 4}, {"u32": 7})");
  EXPECT_EQ(outcome.exit_code(), 2);
  ASSERT_EQ(outcome.refused.size(), 1u);
  EXPECT_EQ(outcome.refused[0].id, "out-of-memory");
}

// A module whose tree alone exceeds the memory.
TEST_F(ManifestLimits, ModulesLargerThanMemory) {
  if (test::sanitized()) GTEST_SKIP() << "the sanitizer takes more address space";
  write("small.ptx",
        ".version 7.8\n.target sm_80\n.visible .entry store(.param .u64 out, .param .u32 value)\n"
        "{\n.reg .b32 %r<4>;\n" +
            repeated("mov.u32 %r1, 1;\n", 2'000'000) + "ret;\n}\n");
  manifest(R"({"buffer": "b", "bytes": 4}, {"u32": 7})");
  const test::Ran ran = run_within("ulimit -v 400000");
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_NE(ran.out.find("[out-of-memory]"), std::string::npos) << ran.out;
}

// No thread can be started if a stack exceeds the address space: the launch runs nevertheless.
TEST_F(ManifestLimits, HostsWithoutThreads) {
  if (test::sanitized()) GTEST_SKIP() << "the sanitizer takes more address space";
  write("manifest.json",
        R"({"ptx": "small.ptx", "kernel": "store", "grid": [64], "block": [1], "params": [
            {"buffer": "b", "bytes": 4, "expect": "seven.bin"}, {"u32": 7}]})");
  const test::Ran ran = run_within("ulimit -s 16000000 && ulimit -v 8000000");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find("as expected"), std::string::npos) << ran.out;
}

// ---- Messages name their file.

TEST_F(ManifestLimits, ErrorsNameTheFile) {
  manifest(R"({"buffer": "b", "bytes": 4}, {"u32": 7})", "fault");
  const std::string ptx = (folder / "small.ptx").string();
  const test::Ran fault = run_within("true");
  EXPECT_EQ(fault.code, 3);
  EXPECT_TRUE(fault.out.starts_with(ptx + ":21: error: ")) << fault.out;
  const auto json = nlohmann::json::parse(run_within("true", "--json").out);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["ptx"], ptx);
  const auto& finding = json["findings"][0];
  EXPECT_EQ(finding["address_hex"], fmt::format("0x{:x}", finding["address"].get<std::uint64_t>()));
  EXPECT_GT(finding["address"], 0u);
  // The launch is the manifest's.
  manifest(R"({"buffer": "b", "bytes": 4})");
  const test::Ran fewer = run_within("true");
  EXPECT_EQ(fewer.code, 2);
  EXPECT_TRUE(fewer.out.starts_with((folder / "manifest.json").string() + ": error: "))
      << fewer.out;
  // The text is wrong.
  write("small.ptx", ".version 7.8\n.target sm_80\n.visible .entry store()\n{\n  bra $none;\n}\n");
  const test::Ran text = run_within("true");
  EXPECT_EQ(text.code, 2);
  EXPECT_TRUE(text.out.starts_with(ptx + ":5:7: error: label $none")) << text.out;
}

TEST_F(ManifestLimits, NamesArePrintable) {
  write("manifest.json",
        R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [1], "params": [
            {"buffer": "b\u001b[2J", "bytes": 4, "expect": "seven.bin"}, {"u32": 7}]})");
  const test::Ran ran = run_within("true");
  EXPECT_EQ(ran.out, "b\\x1b[2J: 4 bytes as expected, bit for bit\n");
}

}  // namespace
}  // namespace tartan
