// SPDX-License-Identifier: Apache-2.0
// Writes PTX of the backward kernels of attention and launches.json, which describes problems and
// launches, for attention_backward_peer.py to measure beside cuDNN and FlashAttention. See --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/gpu/named_options.h"
#include "tartan/kernels/attention_backward.h"
#include "tartan/launch.h"

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;

struct Words {
  std::vector<int> lengths{4096, 16384}, head_dims{128};
  std::vector<std::string> configs{"tuned"};
  std::string type = "bf16", target = "sm_90a", folder;
  int tokens = 16384, width = 2048, share = 1;
};

struct Problem {
  int batch, heads, kv_heads, length, head_dim;
  bool causal;
  std::string text(const std::string& type) const {
    return fmt::format("{}, {} queries and keys, {} heads of {}{}, batch {}{}", type, length, heads,
                       head_dim, kv_heads == heads ? "" : fmt::format(" ({} of keys)", kv_heads),
                       batch, causal ? ", causal" : "");
  }
};

// A new option of the kernel needs a new row.
constexpr gpu::NamedOption<kernels::AttentionBackward> options[] = {
    {"queries", [](kernels::AttentionBackward& a, int value) { a.queries_per_step = value; },
     "queries of a step"},
    {"keys", [](kernels::AttentionBackward& a, int value) { a.keys_per_block = value; },
     "keys of a CTA"},
    {"warps", [](kernels::AttentionBackward& a, int value) { a.warps = value; }, "that compute"},
    {"stages", [](kernels::AttentionBackward& a, int value) { a.stages = value; },
     "stages of the rings"},
    {"producers", [](kernels::AttentionBackward& a, int value) { a.producers = value; },
     "warps that copy for the others"},
    {"deterministic",
     [](kernels::AttentionBackward& a, int value) { a.deterministic = value != 0; },
     "1: sums in the order of the keys"},
};

kernels::AttentionBackward options_of(const Words& words, const Problem& problem,
                                      const std::string& config, const Target& target) {
  const kernels::AttentionBackward out{
      .head_dim = problem.head_dim, .type = *parse_type(words.type), .causal = problem.causal};
  return gpu::configured(out, config, options, target);
}

std::string hexadecimal(const std::vector<std::byte>& bytes) {
  std::string out;
  for (const std::byte each : bytes) out += fmt::format("{:02x}", std::to_integer<int>(each));
  return out;
}

// A kernel's arguments: numbers, then buffers by name, then tensor maps, each as its 128 bytes with
// address 0 in its first 8 instead of the buffer's.
struct Launch {
  Kernel kernel;
  Dim3 grid;
  std::vector<int> integers;
  bool scale;
  std::vector<std::string> buffers;
};

class Emitter {
 public:
  Emitter(const Words& words, const Target& target) : words_(words), target_(target) {}

  // Configurations that do not compile are reported and skipped.
  bool add(const Problem& problem, const std::string& config, Json& launches) const {
    const kernels::AttentionBackward with = options_of(words_, problem, config, target_);
    const unsigned rows = with.row_blocks(problem.length),
                   heads = static_cast<unsigned>(problem.heads),
                   batch = static_cast<unsigned>(problem.batch);
    Launch all[] = {{attention_backward_rows(with),
                     {rows, heads, batch},
                     {problem.length, problem.heads},
                     false,
                     {"O", "dO", "LSE", "stats", "sums"}},
                    {attention_backward(with),
                     {with.blocks(problem.length), static_cast<unsigned>(problem.kv_heads), batch},
                     {problem.length, problem.length, problem.heads, problem.kv_heads},
                     true,
                     {"Q", "K", "V", "dO", "stats", "sums", "dK", "dV"}},
                    {attention_backward_queries(with),
                     {rows, heads, batch},
                     {problem.length, problem.heads},
                     true,
                     {"sums", "dQ"}}};
    if (with.deterministic)
      for (int i = 0; i < 2; ++i) all[i].buffers.push_back("turns");
    Json kernels = Json::array();
    std::string texts[3];
    for (int i = 0; i < 3; ++i) {
      const auto launch = json_of(problem, all[i], texts[i]);
      if (!launch) {
        std::cerr << config << ":\n" << launch.diags().text();
        return true;
      }
      const std::string file = gpu::file_of(
          config, fmt::format("{}_{}{}", i, problem.head_dim, problem.causal ? "_causal" : ""));
      kernels.push_back(*launch);
      kernels.back()["ptx"] = file;
      if (!gpu::write_file(words_.folder, file, texts[i])) return false;
    }
    launches.push_back(
        {{"name", config},
         {"elements",
          {{"stats", problem.batch * problem.heads * with.stat_elements(problem.length)},
           {"sums", problem.batch * problem.heads * with.sum_elements(problem.length)},
           {"turns", with.turn_elements(problem.length, problem.batch * problem.heads)}}},
         {"kernels", kernels}});
    return true;
  }

 private:
  Result<Json> json_of(const Problem& problem, const Launch& launch, std::string& ptx) const {
    const auto compiled = compile(launch.kernel, target_.arch);
    if (!compiled) return compiled.diags();
    Json arguments = Json::array();
    Arguments values;
    for (const int each : launch.integers) arguments.push_back({{"s32", each}}), values.add(each);
    if (launch.scale) {
      const float scale = 1 / std::sqrt(static_cast<float>(problem.head_dim));
      arguments.push_back({{"f32", scale}}), values.add(scale);
    }
    const std::size_t numbers = arguments.size();
    for (const std::string& each : launch.buffers)
      arguments.push_back({{"buffer", each}}), values.add(std::uint64_t{0});
    const auto all = arguments_of(*compiled, values);
    if (!all) return all.diags();
    for (std::size_t i = 0; i < compiled->maps.size(); ++i)
      arguments.push_back(
          {{"map", hexadecimal((*all)[numbers + launch.buffers.size() + i])},
           {"buffer", launch.buffers[static_cast<std::size_t>(compiled->maps[i].of) - numbers]}});
    ptx = compiled->ptx;
    return Json{{"kernel", compiled->name},
                {"grid", {launch.grid.x, launch.grid.y, launch.grid.z}},
                {"block", compiled->block},
                {"dynamic_shared", compiled->dynamic_shared},
                {"arguments", arguments}};
  }

  const Words& words_;
  Target target_;
};

bool emit(const Words& words, const Target& target) {
  std::error_code error;
  std::filesystem::create_directories(words.folder, error);
  const Emitter emitter(words, target);
  Json all{{"target", target.text()}, {"cases", Json::array()}};
  for (const int head_dim : words.head_dims)
    for (const int length : words.lengths)
      for (const bool causal : {false, true}) {
        if (head_dim < 1 || words.width % head_dim || length < 1)
          gpu::refuse("--head-dim", fmt::format("{}", head_dim), "a divisor of --width");
        const int heads = words.width / head_dim;
        if (words.share < 1 || heads % words.share != 0)
          gpu::refuse("--share", fmt::format("{}", words.share),
                      "a divisor of the number of heads");
        const Problem problem{std::max(1, words.tokens / length),
                              heads,
                              heads / words.share,
                              length,
                              head_dim,
                              causal};
        // Five products; half of them are masked.
        const double operations = 10.0 * problem.batch * heads * head_dim * length *
                                  static_cast<double>(length) / (causal ? 2 : 1);
        Json each{{"title", problem.text(words.type)},
                  {"type", words.type},
                  {"batch", problem.batch},
                  {"length", length},
                  {"heads", heads},
                  {"kv_heads", problem.kv_heads},
                  {"head_dim", head_dim},
                  {"causal", causal},
                  {"operations", operations},
                  {"launches", Json::array()}};
        for (const std::string& config : words.configs)
          if (!emitter.add(problem, config, each["launches"])) return false;
        all["cases"].push_back(std::move(each));
      }
  return gpu::write_file(words.folder, "launches.json", all.dump(1) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"PTX of the gradients of attention, to be measured by attention_backward_peer.py"};
  Words words;
  app.add_option("--emit", words.folder, "Write PTX and launches.json into this folder")
      ->required();
  app.add_option("--length", words.lengths, "Queries and keys of a sequence")
      ->capture_default_str();
  app.add_option("--head-dim", words.head_dims, "Elements of a head")->capture_default_str();
  app.add_option("--tokens", words.tokens, "Queries in all: batch = tokens / length")
      ->capture_default_str();
  app.add_option("--width", words.width, "Elements of all heads: heads = width / head-dim")
      ->capture_default_str();
  app.add_option("--share", words.share, "Heads of queries that share one of keys and values")
      ->capture_default_str();
  app.add_option("--type", words.type, "f16 or bf16")->capture_default_str();
  app.add_option("--target", words.target, "What to compile for")->capture_default_str();
  app.add_option("--config", words.configs,
                 "Parts joined by colons:\n" + gpu::config_help(options));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Target target = gpu::target_of(words.target);
  gpu::expect_16_bits(words.type);
  return emit(words, target) ? 0 : 1;
}
