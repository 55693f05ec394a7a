// SPDX-License-Identifier: Apache-2.0
// Writes PTX of the decoding kernel and launches.json, which describes problems and launches, for
// decode_peer.py to measure beside cuDNN and FlashAttention. See --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/gpu/launch_json.h"
#include "bench/gpu/named_options.h"
#include "tartan/kernels/decode.h"

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;

struct Words {
  std::vector<std::string> shapes{"128x8192", "16x8192", "4x32768"}, configs{"tuned"};
  std::vector<int> queries{1, 8}, pages{64, 16};
  std::string type = "bf16", target = "sm_90a", gpu, folder;
  int heads = 64, kv_heads = 8, head_dim = 128;
  bool in_order = false;
};

struct Problem {
  int batch, length, queries, page;
  std::string text(const Words& words) const {
    return fmt::format(
        "{} sequences of {} keys, {} query token{}, {} heads on {}, d {}, pages of {}{}", batch,
        length, queries, queries > 1 ? "s" : "", words.heads, words.kv_heads, words.head_dim, page,
        words.in_order ? " in order" : "");
  }
  int most_pages() const { return (length + page - 1) / page; }
};

// A new option of the kernel needs a new row.
constexpr gpu::NamedOption<kernels::Decode> options[] = {
    {"keys", [](kernels::Decode& a, int value) { a.keys_per_step = value; }, "keys of a step"},
    {"groups", [](kernels::Decode& a, int value) { a.key_groups = value; },
     "groups of warps that divide them"},
    {"stages", [](kernels::Decode& a, int value) { a.stages = value; }, "stages of the rings"},
    {"producers", [](kernels::Decode& a, int value) { a.producers = value; },
     "warps that copy for the others"},
    {"blocks", [](kernels::Decode& a, int value) { a.blocks_per_multiprocessor = value; },
     "CTAs of a multiprocessor"},
    {"whole", [](kernels::Decode& a, int value) { a.whole_steps = value; },
     "steps more of a CTA that may have whole heads; 0: equal shares"},
};

kernels::Decode options_of(const Words& words, const Problem& problem, const std::string& config,
                           const kernels::Gpu& gpu) {
  const kernels::Decode out{.head_dim = words.head_dim,
                            .type = *parse_type(words.type),
                            .queries = problem.queries,
                            .group = words.heads / words.kv_heads,
                            .page = problem.page};
  return gpu::configured(out, config, options, gpu);
}

class Emitter {
 public:
  Emitter(const Words& words, const kernels::Gpu& gpu) : words_(words), gpu_(gpu) {}

  // Configurations that do not compile are reported and skipped.
  bool add(const Problem& problem, const std::string& config, Json& launches) const {
    const kernels::Decode with = options_of(words_, problem, config, gpu_);
    const auto compiled = compile(kernels::decode(with), gpu_.target());
    const auto refuse = [&](const Diags& diags) {
      std::cerr << config << ":\n" << diags.text();
      return true;
    };
    if (!compiled) return refuse(compiled.diags());
    const float scale = 1 / std::sqrt(static_cast<float>(words_.head_dim));
    const auto arguments =
        gpu::arguments_json(*compiled, {problem.batch, words_.kv_heads, problem.most_pages()},
                            scale, {"Q", "K", "V", "table", "lengths", "O", "P", "L", "counters"});
    if (!arguments) return refuse(arguments.diags());
    const std::string file =
        gpu::file_of(config, fmt::format("q{}_p{}", problem.queries, problem.page));
    const unsigned blocks =
        with.blocks(gpu_.multiprocessors(), problem.batch, words_.kv_heads, problem.length);
    launches.push_back({{"name", config},
                        {"ptx", file},
                        {"kernel", compiled->name},
                        {"grid", {blocks, 1, 1}},
                        {"block", compiled->block},
                        {"dynamic_shared", compiled->dynamic_shared},
                        {"partials", {with.partial_elements(blocks), with.weight_elements(blocks)}},
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
    Problem problem{};
    if (parts.size() != 2 || !gpu::read_number(parts[0], problem.batch) ||
        !gpu::read_number(parts[1], problem.length))
      gpu::refuse("--shape", shape, "BATCHxKEYS");
    for (const int queries : words.queries)
      for (const int page : words.pages) {
        problem.queries = queries, problem.page = page;
        Json each{{"title", problem.text(words)}, {"type", words.type},
                  {"batch", problem.batch},       {"length", problem.length},
                  {"queries", queries},           {"page", page},
                  {"heads", words.heads},         {"kv_heads", words.kv_heads},
                  {"head_dim", words.head_dim},   {"in_order", words.in_order},
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
  CLI::App app{"PTX of paged decoding, to be measured by decode_peer.py"};
  Words words;
  app.add_option("--emit", words.folder, "Write PTX and launches.json into this folder")
      ->required();
  app.add_option("--shape", words.shapes, "BATCHxKEYS")->capture_default_str();
  app.add_option("--queries", words.queries, "New tokens of a sequence")->capture_default_str();
  app.add_option("--page", words.pages, "Keys of a page")->capture_default_str();
  app.add_flag("--in-order", words.in_order,
               "Pages lie in memory in the order of their keys, not at random");
  app.add_option("--heads", words.heads, "Query heads")->capture_default_str();
  app.add_option("--kv-heads", words.kv_heads, "Heads of keys and values")->capture_default_str();
  app.add_option("--head-dim", words.head_dim, "Elements of a head")->capture_default_str();
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
