// SPDX-License-Identifier: Apache-2.0
// The attention kernel on a GPU beside the ceiling of mma.sync: see --help, and gpu/measure.h for
// how it measures. attention_peer.py measures it beside cuDNN and FlashAttention.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <numeric>
#include <tuple>

#include "bench/gpu/attention_problem.h"
#include "bench/gpu/elements.h"
#include "bench/gpu/measure.h"
#include "bench/gpu/words.h"

using namespace tartan;

namespace {

struct Words {
  std::vector<int> lengths{4096, 16384}, head_dims{64, 128}, packed;
  std::vector<std::string> configs{"hopper", "default"};
  std::string type = "bf16", device = "cuda", json, svg;
  int tokens = 16384, width = 2048, share = 1, rounds = 5;
};

// One problem: its matrices, and the contestants.
class Contest {
 public:
  Contest(gpu::Session& session, const gpu::AttentionProblem& problem)
      : session_(session), problem_(problem) {
    const auto bytes = static_cast<std::size_t>(bits(problem.type) / 8);
    for (const auto& [name, elements, seed] : {std::tuple{"Q", problem.elements(), 1u},
                                               {"K", problem.kv_elements(), 2u},
                                               {"V", problem.kv_elements(), 3u}}) {
      Buffer& buffer = buffers_[name] = gpu::must(session.device.allocate(elements * bytes));
      gpu::must(buffer.write(gpu::random_elements(problem.type, elements, seed)));
    }
    buffers_["O"] = gpu::must(session.device.allocate(problem.elements() * bytes));
    buffers_["LSE"] = gpu::must(session.device.allocate(problem.rows() * 4));
    Buffer& sinks = buffers_["sinks"] = gpu::must(
        session.device.allocate(std::max(4 * static_cast<std::size_t>(problem.heads), 16UL)));
    gpu::must(sinks.fill(0));
    const std::vector<int> starts = problem.starts();
    Buffer& buffer = buffers_["starts"] =
        gpu::must(session.device.allocate(std::max(4 * starts.size(), std::size_t{16})));
    gpu::must(buffer.write(starts));
  }

  void run(const std::vector<gpu::AttentionConfig>& configs, int rounds) {
    fmt::print("\n{}\n", problem_.text());
    for (const gpu::AttentionConfig& config : configs) add(config);
    auto ceiling = gpu::Ceiling::make(
        session_,
        fmt::format("mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32", name(problem_.type)));
    if (ceiling) contestants_.push_back(ceiling->contestant(session_, "mma.sync"));
    gpu::measure(session_, contestants_, rounds);
    gpu::report(session_, "attention, " + problem_.text(), "a launch", contestants_);
  }

 private:
  Arguments arguments(const gpu::AttentionConfig& config) const {
    Arguments out;
    for (const gpu::AttentionArgument& each : gpu::arguments_of(config, problem_))
      if (!each.buffer.empty()) out.add(buffers_.at(each.buffer));
      else if (each.integer) out.add(*each.integer);
      else out.add(each.real);
    return out;
  }

  Result<gpu::Runner> make(const gpu::AttentionConfig& config) {
    auto out =
        gpu::Runner::make(session_.device, kernels::attention(gpu::options_of(config, problem_)),
                          gpu::grid_of(config, problem_, session_.driver.multiprocessors()));
    if (!out) return out;
    if (auto status = out->add(arguments(config)); !status) return status.diags();
    return out;
  }

  // Skips configurations that do not compile or start.
  void add(const gpu::AttentionConfig& config) {
    const auto refuse = [&](const Diags& diags) {
      std::cout.flush();
      std::cerr << config.text << ":\n" << diags.text();
    };
    auto made = make(config);
    if (!made) return refuse(made.diags());
    if (const auto status = made->launch(session_.stream); !status) return refuse(status.diags());
    gpu::Runner& runner = runners_.emplace_back(std::move(*made));
    fmt::print("{}: {:.1f} ms from description to PTX, {} KB shared\n", config.text,
               runner.compile_ms(), runner.shared_bytes() / 1024);
    std::cout.flush();
    gpu::Contestant& entry = contestants_.emplace_back();
    entry.figure.name = config.text;
    entry.figure.operations = problem_.operations(config.window);
    entry.figure.note = compared(config);
    entry.launch = [this, &runner] { gpu::must(runner.launch(session_.stream)); };
  }

  // Compares with the results of the first configuration that computes the same.
  std::string compared(const gpu::AttentionConfig& config) {
    gpu::must(session_.device.synchronize());
    auto result = gpu::must(buffers_["O"].read_all<std::uint8_t>());
    const kernels::Attention options = gpu::options_of(config, problem_);
    const bool capped = options.softcap != kernels::Softcap::none;
    auto& [name, bytes] = references_[{config.window, capped, options.sinks}];
    if (!bytes.empty()) return gpu::compare(problem_.type, result, bytes).text(name);
    bytes = std::move(result), name = config.text;
    return "";
  }

  gpu::Session& session_;
  const gpu::AttentionProblem problem_;
  std::map<std::string, Buffer> buffers_;
  std::list<gpu::Runner> runners_;
  std::vector<gpu::Contestant> contestants_;
  // By window, cap and sinks.
  std::map<std::tuple<int, bool, bool>, std::pair<std::string, std::vector<std::uint8_t>>>
      references_;
};

std::vector<gpu::AttentionProblem> problems(const Words& words) {
  const auto type = parse_type(words.type);
  if (type != f16 && type != bf16) gpu::refuse("--type", words.type, "f16 or bf16");
  std::vector<gpu::AttentionProblem> out;
  const int all = std::accumulate(words.packed.begin(), words.packed.end(), 0);
  for (const int head_dim : words.head_dims)
    for (const int length : words.packed.empty() ? words.lengths : std::vector{all})
      for (const bool causal : {false, true}) {
        if (head_dim < 1 || length < 1 || words.width % head_dim != 0)
          gpu::refuse("--head-dim", fmt::format("{}", head_dim), "a divisor of --width");
        const int heads = words.width / head_dim;
        if (words.share < 1 || heads % words.share != 0)
          gpu::refuse("--share", fmt::format("{}", words.share),
                      "a divisor of the number of heads");
        out.push_back({.batch = words.packed.empty() ? std::max(1, words.tokens / length) : 1,
                       .heads = heads,
                       .kv_heads = heads / words.share,
                       .length = length,
                       .head_dim = head_dim,
                       .type = *type,
                       .causal = causal,
                       .packed = words.packed});
      }
  return out;
}

std::vector<gpu::AttentionConfig> read_configs(const Words& words) {
  return gpu::read_all("--config", words.configs, gpu::read_attention_config,
                       "NAME=NUMBER[:NAME=NUMBER]... or default");
}

void add_options(CLI::App& app, Words& words) {
  app.add_option("--length", words.lengths, "Queries and keys of a sequence")
      ->capture_default_str();
  app.add_option("--packed", words.packed,
                 "Lengths of sequences that are packed, instead of --length and --tokens")
      ->check(CLI::PositiveNumber);
  app.add_option("--head-dim", words.head_dims, "Elements of a head")->capture_default_str();
  app.add_option("--tokens", words.tokens, "Queries in all: batch = tokens / length")
      ->capture_default_str();
  app.add_option("--width", words.width, "Elements of all heads: heads = width / head-dim")
      ->capture_default_str();
  app.add_option("--share", words.share, "Heads of queries that share one of keys and values")
      ->capture_default_str();
  app.add_option("--type", words.type, "f16 or bf16")->capture_default_str();
  app.add_option("--config", words.configs,
                 "default, or NAME=NUMBER[:NAME=NUMBER]... of\n" + gpu::attention_config_help());
  app.add_option("--rounds", words.rounds, "Rounds of the race")->capture_default_str();
  app.add_option("--device", words.device, "cuda or emulator")->capture_default_str();
  app.add_option("--json", words.json, "Write all figures into this file");
  app.add_option("--svg", words.svg, "Draw them into this one");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Attention on a GPU"};
  Words words;
  add_options(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto configs = read_configs(words);
  const auto all = problems(words);
  gpu::Session session(argc, argv, words.device);
  bool written = true;
  for (const gpu::AttentionProblem& problem : all) {
    Contest(session, problem).run(configs, words.rounds);
    written = gpu::write(session.run, words.json, words.svg);
  }
  return written ? 0 : 1;
}
