// SPDX-License-Identifier: Apache-2.0
// Writes PTX of mixed-input GEMM and launches.json, which describes problems and launches, for
// mixed_peer.py to measure beside the GPU's read bandwidth and cuBLAS. See --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/gpu/launch_json.h"
#include "bench/gpu/named_options.h"
#include "tartan/kernels/mixed_gemm.h"

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;
using kernels::MixedGemm;

struct Words {
  std::vector<std::string> shapes, configs{"tuned"};
  std::string type = "bf16", weight = "u4", target = "sm_90a", gpu, folder;
  int group = 128;
  bool zeros = false;
};

// A new option of the kernel needs a new row.
constexpr gpu::NamedOption<MixedGemm> options[] = {
    {"tm", [](MixedGemm& a, int value) { a.tile_m = value; }, "rows of a tile"},
    {"tn", [](MixedGemm& a, int value) { a.tile_n = value; }, "columns of a tile"},
    {"tk", [](MixedGemm& a, int value) { a.tile_k = value; }, "k of a stage"},
    {"warps_n", [](MixedGemm& a, int value) { a.warps_n = value; }, "warps that divide columns"},
    {"warps_k", [](MixedGemm& a, int value) { a.warps_k = value; }, "warps that divide k"},
    {"stages", [](MixedGemm& a, int value) { a.stages = value; }, "stages of the ring"},
    {"producers", [](MixedGemm& a, int value) { a.producers = value; },
     "warps that copy for the others"},
    {"blocks", [](MixedGemm& a, int value) { a.min_blocks = value; }, "CTAs of a multiprocessor"},
    {"sums", [](MixedGemm& a, int value) { a.scale_sums = value != 0; },
     "1: scales multiply sums, 0: weights"},
    {"split", [](MixedGemm& a, int value) { a.split = value != 0; },
     "1: k-tiles are divided evenly among CTAs"},
    {"even", [](MixedGemm& a, int value) { a.even = value != 0; },
     "1: columns are divided evenly among CTAs"},
    {"cluster", [](MixedGemm& a, int value) { a.cluster = value; },
     "CTAs that share rows of X, by multicast, or with split divide k"},
    {"overlap", [](MixedGemm& a, int value) { a.overlap = value != 0; },
     "1: made for programmatic dependent launches, which mixed_peer.py then makes"},
    {"wgmma", [](MixedGemm& a, int value) { a.warpgroups = value != 0; }, "1: wgmma"},
};

class Emitter {
 public:
  Emitter(const Words& words, const kernels::Gpu& gpu) : words_(words), gpu_(gpu) {}

  // Configurations that do not compile are reported and skipped.
  bool add(const MixedGemm& problem, const std::string& config, Json& launches) const {
    const MixedGemm with = gpu::configured(problem, config, options, gpu_);
    const auto compiled = compile(kernels::mixed_gemm(with), gpu_.target());
    const auto refuse = [&](const Diags& diags) {
      std::cerr << config << ":\n" << diags.text();
      return true;
    };
    if (!compiled) return refuse(compiled.diags());
    if (compiled->warnings.size()) std::cerr << compiled->warnings.text();
    std::vector<std::string> buffers{"X", "W", "S"};
    if (with.zeros) buffers.emplace_back("Z");
    buffers.emplace_back("Y");
    if (with.sums_in_memory()) buffers.insert(buffers.end(), {"P", "counters"});
    const auto arguments = gpu::arguments_json(*compiled, {}, {}, buffers);
    if (!arguments) return refuse(arguments.diags());
    const std::string file = gpu::file_of(config, fmt::format("{}x{}x{}", with.m, with.n, with.k));
    const unsigned blocks = with.blocks(with.m, with.n, gpu_.multiprocessors());
    launches.push_back({{"name", config},
                        {"ptx", file},
                        {"kernel", compiled->name},
                        {"grid", {blocks, 1, 1}},
                        {"block", compiled->block},
                        {"dynamic_shared", compiled->dynamic_shared},
                        {"programmatic", with.overlap},
                        {"partials", with.partial_elements(blocks)},
                        {"counters", with.counter_elements(with.m, with.n)},
                        {"arguments", *arguments}});
    return gpu::write_file(words_.folder, file, compiled->ptx);
  }

 private:
  const Words& words_;
  kernels::Gpu gpu_;
};

MixedGemm problem_of(const Words& words, const std::string& shape) {
  MixedGemm out{.type = *parse_type(words.type), .weight = *parse_type(words.weight)};
  out.group = words.group, out.zeros = words.zeros;
  const auto parts = gpu::split(shape, 'x');
  if (parts.size() != 3 || !gpu::read_number(parts[0], out.m) ||
      !gpu::read_number(parts[1], out.n) || !gpu::read_number(parts[2], out.k) || out.n % 16 ||
      out.k % words.group)
    gpu::refuse("--shape", shape,
                fmt::format("ROWSxCOLUMNSxK, columns a multiple of 16 and k of {}", words.group));
  return out;
}

bool emit(const Words& words, const kernels::Gpu& gpu) {
  std::error_code error;
  std::filesystem::create_directories(words.folder, error);
  const Emitter emitter(words, gpu);
  Json all{{"target", gpu.target().text()}, {"cases", Json::array()}};
  for (const std::string& shape : words.shapes) {
    const MixedGemm problem = problem_of(words, shape);
    Json each{{"title", fmt::format("{} {}, {}, group {}{}", shape, words.weight, words.type,
                                    words.group, words.zeros ? ", zeros" : "")},
              {"type", words.type},
              {"bits", words.weight == "u4" ? 4 : 8},
              {"m", problem.m},
              {"n", problem.n},
              {"k", problem.k},
              {"group", problem.group},
              {"zeros", problem.zeros},
              {"launches", Json::array()}};
    for (const std::string& config : words.configs)
      if (!emitter.add(problem, config, each["launches"])) return false;
    all["cases"].push_back(std::move(each));
  }
  return gpu::write_file(words.folder, "launches.json", all.dump(1) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"PTX of mixed-input GEMM, to be measured by mixed_peer.py"};
  Words words;
  for (const char* matrix : {"8192x8192", "14336x4096", "4096x14336"})
    for (const int m : {1, 4, 8, 16, 64, 4096})
      words.shapes.push_back(fmt::format("{}x{}", m, matrix));
  app.add_option("--emit", words.folder, "Write PTX and launches.json into this folder")
      ->required();
  app.add_option("--shape", words.shapes, "ROWSxCOLUMNSxK")->capture_default_str();
  app.add_option("--type", words.type, "f16 or bf16")->capture_default_str();
  app.add_option("--weight", words.weight, "u4 or u8")
      ->check(CLI::IsMember({"u4", "u8"}))
      ->capture_default_str();
  app.add_option("--scale-group", words.group, "Weights that share a scale")
      ->check(CLI::IsMember({64, 128}))
      ->capture_default_str();
  app.add_flag("--zeros", words.zeros, "With zero points");
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
  const kernels::Gpu gpu = gpu::gpu_of(words.gpu, words.target);
  gpu::expect_16_bits(words.type);
  return emit(words, gpu) ? 0 : 1;
}
