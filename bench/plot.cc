// SPDX-License-Identifier: Apache-2.0
// Draws the --json files of gpu_gemm, gpu_attention and attention_peer.py:
//
//   bench_plot FIGURES.json... -o PICTURE.svg      # the races of all files, in their order
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "bench/gpu/figures.h"

namespace {

std::optional<gpu::Run> read(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::cerr << path << ": cannot be read\n";
    return {};
  }
  try {
    return gpu::from_json(nlohmann::json::parse(file));
  } catch (const nlohmann::json::exception& error) {
    std::cerr << path << ": " << error.what() << '\n';
    return {};
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Draws the figures of GPU benchmarks"};
  std::vector<std::string> files;
  std::string picture;
  bool as_table = false;
  app.add_option("FILE", files, "What --json wrote; the first one's machine is the title")
      ->required();
  app.add_option("-o,--output", picture, "The picture (SVG)");
  app.add_flag("--table", as_table, "Print the tables again");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::optional<gpu::Run> all;
  for (const std::string& path : files) {
    auto run = read(path);
    if (!run) return 1;
    if (!all) all = std::move(run);
    else all->add(std::move(*run));
  }
  if (as_table)
    for (const gpu::Race& race : all->races) std::cout << gpu::table(race);
  return gpu::write(*all, "", picture) ? 0 : 1;
}
