// SPDX-License-Identifier: Apache-2.0
// tests/runtime/manifest_folder.h - a folder with a small module and data, for tests that write
// manifests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/outcome.h"

namespace tartan {

using Texts = std::vector<std::string>;

inline constexpr const char* small_ptx = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry fault(.param .u64 out, .param .u32 value)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2+1073741824], %r1;
  ret;
}
.visible .entry stop(.param .u64 out, .param .u32 value)
{
  trap;
  ret;
}
.visible .entry forever(.param .u64 out, .param .u32 value)
{
$again:
  bra $again;
}
)";

// A folder with a module and data.
class ManifestTest : public testing::Test {
 protected:
  ManifestTest()
      : folder(std::filesystem::temp_directory_path() /
               ("tartan_manifest_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder);
    write("small.ptx", small_ptx);
    write("zero.bin", std::string(4, '\0'));
    write("seven.bin", std::string("\7\0\0\0", 4));
    write("long.bin", std::string(6, '\0'));
    write("empty.bin", "");
  }
  ~ManifestTest() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return (folder / name).string();
  }

  std::string manifest(const std::string& params, const std::string& kernel = "store") {
    return write("manifest.json", R"({"ptx": "small.ptx", "kernel": ")" + kernel +
                                      R"(", "grid": [1, 1, 1], "block": [1, 1, 1], "params": [)" +
                                      params + "]}");
  }

  // The messages and ids for a manifest's text.
  std::vector<std::string> complaints(const std::string& text) {
    std::vector<std::string> out;
    const auto read = read_manifest(write("manifest.json", text));
    if (read) return out;
    for (const Diag& diag : read.diags()) {
      EXPECT_EQ(diag.place.file, (folder / "manifest.json").string());
      out.push_back(diag.message + " [" + std::string(diag.id) + "]");
    }
    return out;
  }

  // The same for params in an otherwise valid manifest.
  std::vector<std::string> param_complaints(const std::string& params) {
    return complaints(
        R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [1], "params": [)" +
        params + "]}");
  }

  Outcome run_text(const std::string& params, const std::string& kernel = "store",
                   const std::string& device = "emulator", DeviceOptions options = {}) {
    const auto read = read_manifest(manifest(params, kernel));
    if (!read) return refused(read.diags());
    return run(*read, device, options);
  }

  std::filesystem::path folder;
};

}  // namespace tartan
