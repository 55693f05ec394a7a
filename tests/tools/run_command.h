// SPDX-License-Identifier: Apache-2.0
// tests/tools/run_command.h - `tartan run` on manifests in a folder of their own, for the tests of
// the command.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/paths.h"
#include "tests/support/shell.h"

namespace tartan::run_command_test {

namespace fs = std::filesystem;

inline constexpr const char* module_text = R"(.version 7.8
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry copy(.param .u64 in, .param .u64 out, .param .u32 offset)
{
  .reg .b64 %a, %b, %c;
  .reg .b32 %r<5>;
  ld.param.u64 %a, [in];
  ld.param.u64 %b, [out];
  ld.param.u32 %r4, [offset];
  cvt.u64.u32 %c, %r4;
  add.s64 %a, %a, %c;
  ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%a];
  st.global.v4.u32 [%b], {%r0, %r1, %r2, %r3};
  ret;
}
.visible .entry forever(.param .u64 in, .param .u64 out, .param .u32 offset)
{
$again:
  bra $again;
}
.visible .entry racy(.param .u64 in, .param .u64 out, .param .u32 offset)
{
  .reg .b64 %a;
  .reg .b32 %r;
  ld.param.u64 %a, [out];
  mov.u32 %r, %tid.x;
  st.global.u32 [%a], %r;
  ret;
}
.visible .entry root(.param .u64 in, .param .u64 out, .param .u32 offset)
{
  .reg .b64 %a, %b;
  .reg .f32 %f;
  ld.param.u64 %a, [in];
  ld.param.u64 %b, [out];
  ld.global.f32 %f, [%a];
  sqrt.approx.f32 %f, %f;
  st.global.f32 [%b], %f;
  ret;
}
)";

using test::Ran;

class RunCommand : public testing::Test {
 protected:
  RunCommand() : folder(fs::temp_directory_path() / fmt::format("tartan_run_{}", getpid())) {
    fs::create_directories(folder);
    write("small.ptx", module_text);
    write("in.bin", std::string(32, '\1'));
    write("ones.bin", std::string(16, '\1'));
    write("short.bin", std::string(15, '\1'));
  }
  ~RunCommand() override { fs::remove_all(folder); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  }

  nlohmann::ordered_json manifest() const {
    return nlohmann::ordered_json::parse(
        R"({"ptx": "small.ptx", "kernel": "copy", "grid": [1], "block": [1], "params": [
            {"buffer": "in", "file": "in.bin"}, {"buffer": "out", "bytes": 16, "expect": "ones.bin"},
            {"u32": 0}]})");
  }

  std::string command(const nlohmann::ordered_json& json, const std::string& words) {
    write("manifest.json", json.dump());
    return fmt::format("cd {} && exec {} run manifest.json --device emulator {}", folder.string(),
                       TARTAN_COMMAND, words);
  }

  Ran run(const nlohmann::ordered_json& json, const std::string& words = "") {
    return shell(command(json, words));
  }

  static Ran shell(const std::string& command) {
    return test::shell(fmt::format("({}) 2>&1", command));
  }

  void expect(const nlohmann::ordered_json& json, int code, const std::string& words) {
    const Ran ran = run(json);
    EXPECT_EQ(ran.code, code) << ran.out;
    EXPECT_NE(ran.out.find(words), std::string::npos) << ran.out << "\nexpected: " << words;
  }

  fs::path folder;
};

}  // namespace tartan::run_command_test
