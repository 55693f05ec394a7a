// SPDX-License-Identifier: Apache-2.0
// tools/cuda_tools.h - programs of NVIDIA's CUDA toolkit, where it is installed.
//
//   const auto nvcc = find_tool("nvcc");
//   const TemporaryFolder folder;
//   const Printed printed = output_of({*nvcc, "-ptx", "k.cu"}, folder / "log", 300);
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tartan/support/source.h"

namespace tartan::tools {

/// In CUDA_HOME, else on PATH, else where CUDA installs itself.
std::optional<std::filesystem::path> find_tool(const std::string& name);

/// A folder for the tools' files, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  bool made() const { return !path_.empty(); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// What a program printed on both outputs, and whether it succeeded.
struct Printed {
  bool ok = false, late = false;
  std::string text;
};

/// Runs a program, its output to the file `log`; after so many seconds it is ended.
Printed output_of(std::vector<std::string> words, const std::filesystem::path& log, double seconds);

/// Whether nvcc compiles the file before anything is read of it: its name ends in .cu.
bool is_cuda_source(const std::string& path);

/// The PTX of a CUDA source for a target ("sm_90a"; empty: nvcc's own), with line numbers; further
/// `options` go to nvcc. What nvcc warns of goes to standard error.
Result<Source> compile_cuda(const std::string& path, const std::string& target,
                            const std::vector<std::string>& options);

}  // namespace tartan::tools
