// SPDX-License-Identifier: Apache-2.0
// Measures about a hundred configurations of the GEMM kernel, cuBLAS and cuBLASLt on many problems:
// what a choice of configuration costs. gemm_regret reads the result; see --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

#include "bench/gpu/regret_race.h"
#include "bench/gpu/words.h"
#include "kernels/tuner/gemm_candidates.h"

using namespace tartan;

namespace {

struct Words {
  std::string device = "cuda", json = "regret.json", only_load, target;
  std::vector<std::string> sizes, types, configs;
  unsigned seed = 1;
  int drawn = 132, ranked = 0;
  bool one_launch = false;
  std::size_t megabytes = 2048;
  double seconds = 150;
  gpu::RaceOptions race;
};

std::vector<gpu::Drawn> problems(const Words& words) {
  auto out = gpu::given_problems(words.sizes, words.types);
  if (!out.empty()) return out;
  out = gpu::model_problems();
  const auto drawn = gpu::drawn_problems(words.seed, words.drawn);
  out.insert(out.end(), drawn.begin(), drawn.end());
  return out;
}

// What runs a configuration: apart from those of other kinds, of which some are measured too even
// if the model expects nothing of them.
std::string kind_of(const kernels::Gemm& each, const Target& target) {
  if (each.splits > 1)
    return fmt::format("splits {} {}x{}", each.swap, each.cluster, each.cluster_columns);
  if (each.direct) return "direct";
  if (each.cluster_splits > 1)
    return fmt::format("cluster splits {}{}", each.cluster_splits, each.swap ? ", swap" : "");
  const bool wgmma = kernels::detail::by_wgmma(each, target);
  return fmt::format("{} {} {}x{} {}", wgmma ? "wgmma" : "mma.sync", each.swap, each.cluster,
                     each.cluster_columns, each.tile.products);
}

// The best of the model's candidates, one of each tile, kind and number of splits, at most a third
// of one kind.
std::vector<kernels::Gemm> best_of_model(const gpu::Product& product, const kernels::Gpu& gpu,
                                         const Words& words) {
  const int count = words.ranked;
  const auto all = kernels::detail::ranked(gpu::options_of({}, product), gpu.target(),
                                           *kernels::detail::row_of(gpu), !words.one_launch, 4096);
  std::map<std::string, int> kinds, tiles;
  std::vector<kernels::Gemm> out;
  for (const auto& [options, cycles] : all) {
    const std::string kind = kind_of(options, gpu.target());
    const std::string tile =
        fmt::format("{} {}x{} {}", kind, options.tile.m, options.tile.n, options.splits);
    if (static_cast<int>(out.size()) == count) break;
    if (kinds[kind] >= (count + 2) / 3 || tiles[tile] > 0) continue;
    ++kinds[kind], ++tiles[tile], out.push_back(options);
  }
  return out;
}

// A given configuration for a product, if it can have it: in elements of any type, since its k is
// one of 16-bit elements.
std::optional<kernels::Gemm> given(const std::string& word, const gpu::Product& product,
                                   const Target& target) {
  auto config = gpu::read_config(word);
  if (!config || config->tuned || config->blocks) gpu::refuse("--config", word, gpu::config_help());
  config->gemm.tile.k = config->gemm.tile.k * 16 / bits(product.a);
  kernels::Gemm out = gpu::options_of(*config, product);
  if (!gpu::sensible(*config, product) || !kernels::detail::runs(out, target)) return std::nullopt;
  return out;
}

std::vector<kernels::Gemm> measured_on(const Words& words, const gpu::Product& product,
                                       const kernels::Gpu& gpu) {
  std::vector<kernels::Gemm> out = best_of_model(product, gpu, words);
  const auto text = [](const kernels::Gemm& of) { return gpu::config_text(of); };
  for (const std::string& word : words.configs) {
    const auto options = given(word, product, gpu.target());
    if (options && std::none_of(out.begin(), out.end(), [&](const kernels::Gemm& each) {
          return text(each) == text(*options);
        }))
      out.push_back(*options);
  }
  return out;
}

// Configurations that no problem can have are a mistake.
void check_configs(const Words& words, const std::vector<gpu::Drawn>& all, const Target& target) {
  for (const std::string& word : words.configs)
    if (std::none_of(all.begin(), all.end(), [&](const gpu::Drawn& each) {
          return given(word, each.product, target).has_value();
        }))
      gpu::refuse("--config", word, "one that runs for a problem's types and sizes");
}

nlohmann::json described(const gpu::Drawn& problem) {
  const gpu::Product& product = problem.product;
  return {{"m", product.m},       {"n", product.n},       {"k", product.k},
          {"a", name(product.a)}, {"c", name(product.c)}, {"group", problem.group}};
}

void add_options(CLI::App& app, Words& words) {
  app.add_option("--seconds", words.seconds, "No further problem is begun after that time")
      ->capture_default_str();
  app.add_option("--seed", words.seed, "Of the drawn problems")->capture_default_str();
  app.add_option("--drawn", words.drawn, "How many; beside those of language models")
      ->capture_default_str();
  app.add_option("--size", words.sizes,
                 "N (a cube) or MxNxK instead, :TYPE for its own type; several");
  app.add_option("--type", words.types, "Types of those: bf16, f16, e4m3, s8");
  app.add_option("--ranked", words.ranked,
                 "Instead of the usual configurations, so many of the model's best, one of each "
                 "tile and kind, for the problem's sizes");
  app.add_flag("--one-launch", words.one_launch,
               "With --ranked: without split-K and stream-K, as if there were no workspace");
  app.add_option(
         "--config", words.configs,
         "With --ranked: configurations beside those, where they run; several. Of 8-bit "
         "elements, a tile has twice the given k. MxNxK:WMxWN:STAGES[:PRODUCERS][:OPTION]..")
      ->type_name("TEXT");
  app.add_option("--rounds", words.race.rounds, "Rounds in which the best race")
      ->capture_default_str();
  app.add_option("--megabytes", words.megabytes, "Of each pool of matrices")->capture_default_str();
  app.add_option("--only-load", words.only_load,
                 "I/N: load every N-th kernel, which fills the caches, and end; run N of "
                 "these at the same time");
  app.add_option("--target", words.target,
                 "Compiles for it, such as sm_80 for cp.async and mma.sync; default: the device's");
  app.add_flag("--alone", words.race.alone,
               "Kernels begin when the launch in front has ended, not beside its end");
  app.add_option("--device", words.device, "cuda or emulator")->capture_default_str();
  app.add_option("--json", words.json, "The file of the results")->capture_default_str();
}

kernels::Gpu gpu_of(const Words& words, const Device& device) {
  Target out = gpu::target_of(device);
  if (words.target.empty()) return kernels::Gpu::of(device, out);
  const auto given = Target::parse(words.target);
  if (!given || given->arch.sm < 80) gpu::refuse("--target", words.target, "sm_80 or later");
  return kernels::Gpu::of(device, {given->arch, out.ptx});
}

gpu::RegretKernels kernels_for(const Words& words, const std::vector<gpu::Drawn>& all,
                               const kernels::Gpu& gpu, int share = 0, int shares = 1) {
  const Target& target = gpu.target();
  if (words.ranked == 0) return {target, all, share, shares};
  check_configs(words, all, target);
  std::vector<kernels::Gemm> wanted;
  for (const gpu::Drawn& each : all) {
    const auto best = measured_on(words, each.product, gpu);
    wanted.insert(wanted.end(), best.begin(), best.end());
  }
  return {target, wanted, share, shares};
}

std::vector<gpu::RegretKernel*> kernels_of(const Words& words, const gpu::RegretKernels& kernels,
                                           const gpu::Product& product, const kernels::Gpu& gpu) {
  if (words.ranked == 0) return kernels.of(product);
  std::vector<gpu::RegretKernel*> out;
  for (const kernels::Gemm& each : measured_on(words, product, gpu))
    out.push_back(kernels.of(each));
  return out;
}

int only_load(const Words& words, const std::vector<gpu::Drawn>& all) {
  const auto parts = gpu::split(words.only_load, '/');
  int share = 0, shares = 0;
  if (parts.size() != 2 || !gpu::read_number(parts[0], share) ||
      !gpu::read_number(parts[1], shares) || share >= shares)
    gpu::refuse("--only-load", words.only_load, "I/N, I below N");
  Device device = gpu::must(Device::open(words.device));
  auto kernels = kernels_for(words, all, gpu_of(words, device), share, shares);
  fmt::print("{} kernels\n", kernels.size());
  kernels.load_all(Loader(device, gpu::must(Cache::open())));
  return 0;
}

bool write(const std::string& path, const nlohmann::json& all) {
  std::ofstream file(path);
  file << all.dump() << '\n';
  file.close();
  if (!file) std::cerr << "cannot write " << path << '\n';
  return bool(file);
}

int record(const Words& words, const std::vector<gpu::Drawn>& all, gpu::Session& session) {
  const gpu::Clock clock;
  const kernels::Gpu gpu = gpu_of(words, session.device);
  const auto kernels = kernels_for(words, all, gpu);
  fmt::print("{} kernels in {:.1f} s\n", kernels.size(), clock.seconds());
  const Loader loader(session.device, gpu::must(Cache::open()));
  const gpu::Peers peers(session);
  gpu::Pools pools(session, words.megabytes << 20);
  nlohmann::json out{{"program", session.run.program},     {"command", session.run.command},
                     {"date", session.run.date},           {"device", session.run.device},
                     {"driver", session.run.driver},       {"libraries", session.run.libraries},
                     {"problems", nlohmann::json::array()}};
  for (const gpu::Drawn& each : all) {
    if (clock.seconds() > words.seconds) break;
    const auto measured = gpu::RegretRace(session, peers, pools, each.product, words.race)
                              .run(kernels_of(words, kernels, each.product, gpu), loader);
    nlohmann::json problem = described(each);
    problem.update(gpu::to_json(measured));
    out["problems"].push_back(std::move(problem));
    fmt::print("{:.1f} s: {}, {} contestants\n", clock.seconds(), each.product.text(),
               measured.size());
    std::cout.flush();
    constexpr std::size_t between = 8;  // problems, of which a run that is stopped loses the last
    if (out["problems"].size() % between == 0 && !write(words.json, out)) return 1;
  }
  return write(words.json, out) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Times of configurations of GEMM on many problems, for gemm_regret"};
  Words words;
  add_options(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!words.configs.empty() && words.ranked == 0)
    gpu::refuse("--config", words.configs[0], "--ranked N beside it");
  if (words.one_launch && words.ranked == 0)
    gpu::refuse("--one-launch", "alone", "--ranked N beside it");
  if (words.types.empty()) words.types = {"bf16"};
  const auto all = problems(words);
  if (!words.only_load.empty()) return only_load(words, all);
  gpu::Session session(argc, argv, words.device);
  return record(words, all, session);
}
