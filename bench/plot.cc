// SPDX-License-Identifier: Apache-2.0
// Draws the --json files of gpu_gemm, gpu_attention, attention_peer.py and gpu_tuned:
//
//   bench_plot FIGURES.json... -o PICTURE.svg      # the races of all files, in their order
//   bench_plot TUNED.json -o PICTURE.svg           # of gpu_tuned: the ratio of each problem
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "bench/gpu/figures.h"
#include "bench/gpu/ratios_svg.h"

namespace {

// What `use` makes of a file; nothing if it cannot be read or lacks a member.
template <typename Use>
auto read(const std::string& path, const Use& use)
    -> std::optional<decltype(use(nlohmann::json()))> {
  std::ifstream file(path);
  if (!file) {
    std::cerr << path << ": cannot be read\n";
    return {};
  }
  try {
    return use(nlohmann::json::parse(file));
  } catch (const nlohmann::json::exception& error) {
    std::cerr << path << ": " << error.what() << '\n';
    return {};
  }
}

bool is_of_gpu_tuned(const nlohmann::json& run) { return run.contains("problems"); }

int draw_ratios(const std::string& path, const std::string& picture) {
  const auto svg = read(path, gpu::ratios_svg);
  if (!svg) return 1;
  std::ofstream file(picture);
  if (file << *svg << std::flush) return 0;
  std::cerr << picture << ": cannot be written\n";
  return 1;
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
  const auto tuned = read(files[0], is_of_gpu_tuned);
  if (!tuned) return 1;
  if (*tuned && files.size() == 1 && !picture.empty() && !as_table)
    return draw_ratios(files[0], picture);
  if (*tuned) {
    std::cerr << files[0]
              << " is gpu_tuned's: expected -o and no other file; its table is that of "
                 "gpu_tuned --table\n";
    return 2;
  }
  std::optional<gpu::Run> all;
  for (const std::string& path : files) {
    auto run = read(path, gpu::from_json);
    if (!run) return 1;
    if (!all) all = std::move(run);
    else all->add(std::move(*run));
  }
  if (as_table)
    for (const gpu::Race& race : all->races) std::cout << gpu::table(race);
  return gpu::write(*all, "", picture) ? 0 : 1;
}
