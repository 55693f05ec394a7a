// SPDX-License-Identifier: Apache-2.0
// Writes PTX of decoding with latent attention and launches.json, which describes problems and
// launches, for mla_peer.py to measure beside the GPU's read bandwidth. See --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/gpu/launch_json.h"
#include "bench/gpu/named_options.h"
#include "tartan/kernels/mla_decode.h"

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;

struct Words {
  std::vector<std::string> shapes{"128x4096", "128x8192"}, configs{"tuned"};
  std::vector<int> heads{16, 64, 128}, queries{1};
  std::string type = "bf16", target = "sm_90a", gpu, folder;
  int page = 64;
};

struct Problem {
  int batch = 0, length = 0, heads = 0, queries = 0;
};

// A new option of the kernel needs a new row.
constexpr gpu::NamedOption<kernels::MlaDecode> options[] = {
    {"stages", [](kernels::MlaDecode& a, int value) { a.stages = value; }, "stages of the ring"},
    {"keys", [](kernels::MlaDecode& a, int value) { a.keys_per_step = value; }, "keys of a step"},
    {"producers", [](kernels::MlaDecode& a, int value) { a.producers = value; },
     "warps that copy for the others"},
    {"whole", [](kernels::MlaDecode& a, int value) { a.whole_steps = value; },
     "steps more of a CTA that may have whole sequences; 0: equal shares"},
};

kernels::MlaDecode options_of(const Words& words, const Problem& problem, const std::string& config,
                              const kernels::Gpu& gpu) {
  const kernels::MlaDecode out{.type = *parse_type(words.type),
                               .queries = problem.queries,
                               .heads = problem.heads,
                               .page = words.page};
  return gpu::configured(out, config, options, gpu);
}

class Emitter {
 public:
  Emitter(const Words& words, const kernels::Gpu& gpu) : words_(words), gpu_(gpu) {}

  // Configurations that do not compile are reported and skipped.
  bool add(const Problem& problem, const std::string& config, Json& launches) const {
    const kernels::MlaDecode with = options_of(words_, problem, config, gpu_);
    const auto compiled = compile(kernels::mla_decode(with), gpu_.target());
    const auto refuse = [&](const Diags& diags) {
      std::cerr << config << ":\n" << diags.text();
      return true;
    };
    if (!compiled) return refuse(compiled.diags());
    if (compiled->warnings.size()) std::cerr << compiled->warnings.text();
    const float scale = 1 / std::sqrt(192.0F);  // of DeepSeek's models: of the heads before
    const auto arguments = gpu::arguments_json(
        *compiled, {problem.batch, (problem.length + words_.page - 1) / words_.page}, scale,
        {"Q", "KV", "table", "lengths", "O", "P", "L", "counters"});
    if (!arguments) return refuse(arguments.diags());
    const std::string file =
        gpu::file_of(config, fmt::format("h{}_q{}", problem.heads, problem.queries));
    const unsigned blocks = with.blocks(gpu_.multiprocessors());
    launches.push_back({{"name", config},
                        {"ptx", file},
                        {"kernel", compiled->name},
                        {"grid", {blocks, 1, 1}},
                        {"block", compiled->block},
                        {"dynamic_shared", compiled->dynamic_shared},
                        {"partials", {with.partial_elements(blocks), with.weight_elements(blocks)}},
                        {"tiles", with.row_tiles()},
                        {"arguments", *arguments}});
    return gpu::write_file(words_.folder, file, compiled->ptx);
  }

 private:
  const Words& words_;
  kernels::Gpu gpu_;
};

bool emit(const Words& words, const kernels::Gpu& gpu) {
  std::error_code error;
  std::filesystem::create_directories(words.folder, error);
  const Emitter emitter(words, gpu);
  Json all{{"target", gpu.target().text()}, {"cases", Json::array()}};
  for (const std::string& shape : words.shapes) {
    const auto parts = gpu::split(shape, 'x');
    Problem problem;
    if (parts.size() != 2 || !gpu::read_number(parts[0], problem.batch) ||
        !gpu::read_number(parts[1], problem.length))
      gpu::refuse("--shape", shape, "BATCHxKEYS");
    for (const int heads : words.heads)
      for (const int queries : words.queries) {
        problem.heads = heads, problem.queries = queries;
        Json each{{"title",
                   fmt::format("{} sequences of {} keys, {} heads, {} query token{}", problem.batch,
                               problem.length, heads, queries, queries > 1 ? "s" : "")},
                  {"type", words.type},
                  {"batch", problem.batch},
                  {"length", problem.length},
                  {"queries", queries},
                  {"page", words.page},
                  {"heads", heads},
                  {"launches", Json::array()}};
        for (const std::string& config : words.configs)
          if (!emitter.add(problem, config, each["launches"])) return false;
        all["cases"].push_back(std::move(each));
      }
  }
  return gpu::write_file(words.folder, "launches.json", all.dump(1) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"PTX of decoding with latent attention, to be measured by mla_peer.py"};
  Words words;
  app.add_option("--emit", words.folder, "Write PTX and launches.json into this folder")
      ->required();
  app.add_option("--shape", words.shapes, "BATCHxKEYS")->capture_default_str();
  app.add_option("--heads", words.heads, "Query heads")->capture_default_str();
  app.add_option("--queries", words.queries, "New tokens of a sequence")->capture_default_str();
  app.add_option("--page", words.page, "Keys of a page")->capture_default_str();
  app.add_option("--type", words.type, "f16 or bf16")->capture_default_str();
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
