// SPDX-License-Identifier: Apache-2.0
// Writes PTX of fp8 products grouped along k and launches.json, which describes problems and
// launches, for k_grouped_peer.py to measure beside DeepGEMM's. See --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "bench/gpu/launch_json.h"
#include "bench/gpu/named_options.h"
#include "tartan/kernels/k_grouped_gemm.h"

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;

struct Words {
  std::vector<std::string> shapes{"4x4096x7168x8192", "4x7168x2048x8192",  "8x4096x7168x4096",
                                  "8x7168x2048x4096", "16x4096x7168x2048", "16x7168x2048x2048"},
      configs{"tuned"};
  std::string target = "sm_90a", gpu, folder;
  bool overwrite = false;
};

struct Problem {
  int m = 0, n = 0;
  std::vector<int> depths;
  int k() const { return std::accumulate(depths.begin(), depths.end(), 0); }
  int groups() const { return static_cast<int>(depths.size()); }
};

// A new option of the kernel needs a new row.
constexpr gpu::NamedOption<kernels::KGroupedGemm> options[] = {
    {"m", [](kernels::KGroupedGemm& a, int value) { a.tile.m = value; }, "rows of the tile"},
    {"n", [](kernels::KGroupedGemm& a, int value) { a.tile.n = value; }, "columns of the tile"},
    {"warps", [](kernels::KGroupedGemm& a, int value) { a.tile.warps_m = value; },
     "warps that multiply"},
    {"stages", [](kernels::KGroupedGemm& a, int value) { a.stages = value; }, "stages of the ring"},
    {"group", [](kernels::KGroupedGemm& a, int value) { a.group = value; },
     "rows of tiles visited together"},
    {"cluster", [](kernels::KGroupedGemm& a, int value) { a.cluster = value; },
     "CTAs of a cluster"},
    {"share_a", [](kernels::KGroupedGemm& a, int value) { a.share_a = value != 0; },
     "1: they share A, 0: B"},
};

// Depths from 0.7 to 1.3 times that, multiples of 128: the same in each run.
std::vector<int> drawn(int groups, int depth) {
  std::mt19937 random(static_cast<unsigned>(groups));
  std::vector<int> out;
  for (int g = 0; g < groups; ++g) {
    const double part = 0.7 + 0.6 * static_cast<double>(random() % 1000) / 1000;
    out.push_back((static_cast<int>(depth * part) + 127) / 128 * 128);
  }
  return out;
}

// Configurations that do not compile are reported and skipped.
bool add(const Words& words, const kernels::Gpu& gpu, const Problem& problem,
         const std::string& config, Json& launches) {
  kernels::KGroupedGemm with{
      .m = problem.m, .n = problem.n, .k = problem.k(), .accumulate = !words.overwrite};
  const std::string first = config.substr(0, config.find(':'));
  if (first == "tuned") with = tuned(with, gpu, problem.groups());
  if (first.size() < config.size() || first != "tuned")
    with = gpu::configured(with, first == "tuned" ? config.substr(first.size() + 1) : config,
                           options, gpu);
  const auto compiled = compile(kernels::k_grouped_gemm(with), gpu.target().arch);
  const auto refuse = [&](const Diags& diags) {
    std::cerr << config << ":\n" << diags.text();
    return true;
  };
  if (!compiled) return refuse(compiled.diags());
  if (compiled->warnings.size()) std::cerr << compiled->warnings.text();
  const auto arguments = gpu::arguments_json(*compiled, {problem.groups()}, std::nullopt,
                                             {"A", "SA", "B", "SB", "C", "depths"});
  if (!arguments) return refuse(arguments.diags());
  const std::string file = gpu::file_of(
      config, fmt::format("{}x{}x{}x{}", problem.groups(), problem.m, problem.n, problem.k()));
  const unsigned grid = with.grid_x(problem.m, problem.n, problem.groups(), gpu.multiprocessors());
  launches.push_back({{"name", config},
                      {"ptx", file},
                      {"kernel", compiled->name},
                      {"grid", {grid, 1, 1}},
                      {"block", compiled->block},
                      {"dynamic_shared", compiled->dynamic_shared},
                      {"arguments", *arguments}});
  return gpu::write_file(words.folder, file, compiled->ptx);
}

bool emit(const Words& words, const kernels::Gpu& gpu) {
  std::error_code error;
  std::filesystem::create_directories(words.folder, error);
  Json all{{"target", gpu.target().text()}, {"cases", Json::array()}};
  for (const std::string& shape : words.shapes) {
    const auto parts = gpu::split(shape, 'x');
    Problem problem;
    int groups = 0, depth = 0;
    if (parts.size() != 4 || !gpu::read_number(parts[0], groups) ||
        !gpu::read_number(parts[1], problem.m) || !gpu::read_number(parts[2], problem.n) ||
        !gpu::read_number(parts[3], depth) || problem.m % 4 || problem.n % 4)
      gpu::refuse("--shape", shape, "GROUPSxMxNxDEPTH, M and N multiples of 4");
    problem.depths = drawn(groups, depth);
    Json each{{"title", fmt::format("{} groups of {} x {} x ~{}{}", groups, problem.m, problem.n,
                                    depth, words.overwrite ? "" : ", added to C")},
              {"m", problem.m},
              {"n", problem.n},
              {"depths", problem.depths},
              {"accumulate", !words.overwrite},
              {"launches", Json::array()}};
    for (const std::string& config : words.configs)
      if (!add(words, gpu, problem, config, each["launches"])) return false;
    all["cases"].push_back(std::move(each));
  }
  return gpu::write_file(words.folder, "launches.json", all.dump(1) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"PTX of fp8 products grouped along k, to be measured by k_grouped_peer.py"};
  Words words;
  app.add_option("--emit", words.folder, "Write PTX and launches.json into this folder")
      ->required();
  app.add_option("--shape", words.shapes,
                 "GROUPSxMxNxDEPTH; depths are drawn from 0.7 to 1.3 times that")
      ->capture_default_str();
  app.add_flag("--overwrite", words.overwrite, "C is overwritten, not added to");
  app.add_option("--gpu", words.gpu,
                 "For which tuned() chooses, and grids are: H200; default: the target's usual one");
  app.add_option("--target", words.target, "What to compile for")->capture_default_str();
  app.add_option("--config", words.configs,
                 "Parts joined by colons:\n" + gpu::config_help(options));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return emit(words, gpu::gpu_of(words.gpu, words.target)) ? 0 : 1;
}
