// SPDX-License-Identifier: Apache-2.0
// An H100's recordings (data/golden) against the emulator: every form, every kind of input, every
// path, every bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/emulator/matrix/recording.h"
#include "tartan/isa/instruction.h"

namespace tartan::emulator {
namespace {

const std::string golden = TEST_DATA "/golden/";

Recording read(const std::string& name) {
  auto recording = Recording::read(golden + name + ".json", golden + name + ".bin");
  EXPECT_TRUE(recording) << recording.diags().text();
  return recording ? std::move(*recording) : Recording{};
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, EveryPathReproducesEveryBit) {
  const Recording recording = read(GetParam());
  for (const Path path : {Path::reference, Path::portable, Path::avx2, Path::avx512, Path::best}) {
    const Replay result = replay(recording, Hardware::sm_90, path);
    EXPECT_GT(result.words, 10000u);
    EXPECT_EQ(result.skipped, 0) << result.text();
    EXPECT_EQ(result.mismatched, 0u) << "path " << static_cast<int>(path) << '\n' << result.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Recordings, Golden,
                         testing::Values("sm_90", "sm_90_edges", "sm_90_wgmma"));

// The recording contains every product that an H100 executes.
TEST(GoldenSelection, HasEveryFormOfSm90) {
  std::set<std::string> recorded;
  for (const RecordedEntry& entry : read("sm_90").entries)
    recorded.insert(isa::spell(isa::parse_form(entry.mnemonic).form));
  int products = 0;
  for (const isa::Form& form : isa::forms()) {
    if (form.opcode != isa::Opcode::mma && form.opcode != isa::Opcode::wmma_mma) continue;
    if (!isa::find(form)->since.has(Target({90, 'a'}, {8, 7}))) continue;
    // mma on f64 was recorded in two of the four roundings; wmma.mma, on the same unit, in all.
    if (form.opcode == isa::Opcode::mma &&
        (form.rounding == isa::Rounding::rm || form.rounding == isa::Rounding::rp))
      continue;
    ++products;
    EXPECT_TRUE(recorded.contains(isa::spell(form))) << isa::spell(form);
  }
  EXPECT_GT(products, 300);
}

TEST(GoldenSelection, SeesOtherArithmetic) {
  const Recording recording = read("sm_90");
  for (const Hardware hardware :
       {Hardware::sm_70, Hardware::sm_75, Hardware::sm_80, Hardware::sm_89, Hardware::sm_120})
    EXPECT_GT(replay(recording, hardware).mismatched, 500u) << name(hardware);
}

TEST(GoldenSelection, SeesOneWrongBit) {
  Recording recording = read("sm_90");
  const RecordedEntry& entry = recording.entries.back();
  recording.words[(entry.offset + entry.bytes_per_test()) / 4 - 1] ^= 1;
  const Replay result = replay(recording, Hardware::sm_90);
  EXPECT_EQ(result.mismatched, 1u);
  EXPECT_NE(result.text().find(entry.mnemonic), std::string::npos);
}

// ---- Damaged files

class DamagedRecording : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + std::to_string(getpid()) + "_recording_" + name;
    std::ofstream(path, std::ios::binary) << text;
    files_.push_back(path);
    return path;
  }
  void TearDown() override {
    for (const std::string& each : files_) std::filesystem::remove(each);
  }
  std::string message(const std::string& index, const std::string& data) {
    const auto recording = Recording::read(index, data);
    return recording ? "" : recording.diags().text();
  }

 private:
  std::vector<std::string> files_;
};

TEST_F(DamagedRecording, IsAnError) {
  const std::string entry =
      R"([{"mnemonic":"movmatrix.sync.aligned.m8n8.trans.b16","tests":1,"in_words":1,"out_words":1,"mem_bytes":0,"offset":0}])";
  const std::string index = file("index.json", entry),
                    data = file("data.bin", std::string(256, '\0'));
  EXPECT_EQ(message(index, data), "");
  EXPECT_NE(message(index, file("short.bin", std::string(255, '\0'))).find("is truncated"),
            std::string::npos);
  EXPECT_NE(message(file("text.json", "not json"), data).find("is not valid JSON"),
            std::string::npos);
  EXPECT_NE(message(file("object.json", "{}"), data).find("no list of entries"), std::string::npos);
  EXPECT_NE(message(file("entry.json", R"([{"mnemonic":1}])"), data).find("entry 0"),
            std::string::npos);
  EXPECT_NE(
      message(
          file(
              "negative.json",
              R"([{"mnemonic":"a","tests":-1,"in_words":1,"out_words":1,"mem_bytes":0,"offset":0}])"),
          data)
          .find("tests: expected 0 to "),
      std::string::npos);
  EXPECT_NE(message(index, testing::TempDir() + "no_such_file").find("cannot read"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan::emulator
