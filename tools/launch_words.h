// SPDX-License-Identifier: Apache-2.0
// tools/launch_words.h - a launch on the command line, as `tartan run` and `tartan manifest` take
// it:
//
//   k.ptx --kernel add --grid 4 --block 64 --arg a=in.npy --arg c=zeros:f32:256 --arg n=256
//         --save c=out.npy --print c[0:8] --reference "c = a + b"
//
// The words become the text of a manifest (runtime/manifest.h), which is then read like any other:
// what `manifest` writes is what `run` runs. Of a manifest in place of PTX the words name results
// only.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/manifest.h"

namespace tartan::tools {

struct LaunchWords {
  std::string file, kernel, grid, block, cluster;
  std::uint32_t dynamic_shared = 0;
  bool cooperative = false;
  std::vector<std::string> arguments, saves, prints, expects, references;
  std::optional<double> max_rel, max_abs;
  std::vector<std::string> nvcc;  // further options of the compiler
};

/// FILE and the options.
void add_launch_options(CLI::App& command, LaunchWords& words, const std::string& file_text);

/// The launch as a manifest, with its PTX.
struct LaunchText {
  std::string manifest;  // JSON
  std::optional<Source> ptx;
  bool compiled = false;  // by nvcc: no file has that PTX
  std::string name;       // of what was read
  /// Fields of the manifest, and the words that they come from: {"params[0].save", "--save y=..."}.
  std::vector<std::pair<std::string, std::string>> places;
};

/// `target`: that nvcc compiles for (sm_90a). `hardware`: a field of the manifest, if not empty.
/// `folder`: where the manifest will be, and `ptx` the PTX in it; without them file names stay as
/// they are given.
struct LaunchPlace {
  std::string target, hardware, folder, ptx;
  bool blanks = false;  // without --arg parameters are filled in, for a user to edit
};
Result<LaunchText> launch_text(const LaunchWords& words, const LaunchPlace& place);

/// The manifest of a launch, read. Diagnostics name the words that they are about.
Result<Manifest> read_launch(const LaunchWords& words, const LaunchPlace& place);

}  // namespace tartan::tools
