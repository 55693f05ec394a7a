// SPDX-License-Identifier: Apache-2.0
// Reads what gpu_regret recorded, and prints what the choice of the cost model (dsl/kernels/
// gemm_cost.h) costs: its time over that of the best configuration, and over the better of cuBLAS
// and cuBLASLt. With --fit also searches the model's constants. Needs no GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/gpu/gemm_config.h"
#include "dsl/kernels/gemm_candidates.h"

using namespace tartan;
using detail::GemmConstants;
using detail::GpuRow;

namespace {

struct Timed {
  std::string name;
  kernels::Gemm options;
  double us = 0;
  bool partial = false, rough = false;
};

struct Problem {
  gpu::Product product;
  std::string group;
  std::vector<Timed> all;
  double best = 0, best_whole = 0;  // us, of all and of those with one launch
  double peer = 0;                  // us; 0: no library takes it
};

std::vector<Problem> read(const std::string& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  std::vector<Problem> out;
  for (const auto& each : json.at("problems")) {
    Problem& problem = out.emplace_back();
    problem.product.m = each.at("m"), problem.product.n = each.at("n");
    problem.product.k = each.at("k"), problem.group = each.at("group");
    problem.product.a = problem.product.b = *parse_type(each.at("a").get<std::string>());
    problem.product.c = *parse_type(each.at("c").get<std::string>());
    std::map<std::string, bool> rough;
    for (const auto& name : each.at("rough")) rough[name.get<std::string>()] = true;
    for (const auto& [name, us] : each.at("us").items()) {
      if (name.starts_with("cuBLAS")) {
        if (problem.peer == 0 || us < problem.peer) problem.peer = us;
        continue;
      }
      const auto config = gpu::read_config(name);
      Timed timed{name, gpu::options_of(*config, problem.product), us};
      timed.partial = timed.options.splits > 1 || timed.options.stream_blocks > 0;
      timed.rough = rough.contains(name);
      if (problem.best == 0 || timed.us < problem.best) problem.best = timed.us;
      if (!timed.partial && (problem.best_whole == 0 || timed.us < problem.best_whole))
        problem.best_whole = timed.us;
      problem.all.push_back(std::move(timed));
    }
    if (problem.all.empty()) out.pop_back();
  }
  return out;
}

struct Model {
  GpuRow gpu;
  GemmConstants constants;
  Target target;
  double cycles(const Timed& timed) const {
    return detail::gemm_cost(timed.options, target, gpu, constants).cycles;
  }
};

// The cheapest in the model.
const Timed* picked(const Problem& problem, const Model& model, bool partial) {
  const Timed* out = nullptr;
  double least = 0;
  for (const Timed& each : problem.all) {
    if (each.partial && !partial) continue;
    const double cycles = model.cycles(each);
    if (!out || cycles < least) out = &each, least = cycles;
  }
  return out;
}

struct Mean {
  double sum = 0, worst = 0;
  int count = 0;
  void add(double ratio, bool high_is_bad) {
    sum += std::log(ratio);
    if (count++ == 0 || (high_is_bad ? ratio > worst : ratio < worst)) worst = ratio;
  }
  std::string text() const {
    return count ? fmt::format("{:.3f} ({:.2f})", std::exp(sum / count), worst) : "-";
  }
};

struct Row {
  int count = 0;
  Mean regret, whole, pick, whole_pick, oracle;
};

constexpr double most_ratio = 1.25;  // of speeds; above that the library is not a measure

void table(const std::vector<Problem>& problems, const Model& model) {
  std::map<std::string, Row> rows;
  for (const Problem& each : problems) {
    const Timed *pick = picked(each, model, true), *whole = picked(each, model, false);
    if (!pick || !whole) continue;
    for (const std::string& key :
         {"group " + each.group, "type " + std::string(name(each.product.a)),
          std::string("~all")}) {
      Row& row = rows[key];
      ++row.count;
      row.regret.add(pick->us / each.best, true);
      row.whole.add(whole->us / each.best_whole, true);
      if (each.peer == 0) continue;
      row.pick.add(std::min(each.peer / pick->us, most_ratio), false);
      row.whole_pick.add(std::min(each.peer / whole->us, most_ratio), false);
      row.oracle.add(std::min(each.peer / each.best, most_ratio), false);
    }
  }
  fmt::print(
      "geometric mean (worst); regret: time over the best's; speed: over the best library's, at "
      "most {}\n{:<12} {:>4} {:>15} {:>15} {:>15} {:>15} {:>15}\n",
      most_ratio, "", "", "regret", "one launch", "speed", "one launch", "of the best");
  for (const auto& [key, row] : rows)
    fmt::print("{:<12} {:>4} {:>15} {:>15} {:>15} {:>15} {:>15}\n", key, row.count,
               row.regret.text(), row.whole.text(), row.pick.text(), row.whole_pick.text(),
               row.oracle.text());
}

void details(const std::vector<Problem>& problems, const Model& model, double from) {
  for (const Problem& each : problems) {
    const Timed* pick = picked(each, model, true);
    if (!pick || pick->us < from * each.best) continue;
    const auto best = std::min_element(each.all.begin(), each.all.end(),
                                       [](const Timed& a, const Timed& b) { return a.us < b.us; });
    const auto parts = [&](const Timed& timed) {
      const auto cost = detail::gemm_cost(timed.options, model.target, model.gpu, model.constants);
      const double us = 1 / (model.gpu.clock * 1000);
      return fmt::format(
          "{}: {:.1f} us, model {:.1f} (SM {:.1f}, cache {:.1f}, memory {:.1f}, "
          "fixed {:.1f})",
          timed.name, timed.us, cost.cycles * us, cost.multiprocessor * us, cost.cache * us,
          cost.memory * us, cost.fixed * us);
    };
    fmt::print("{:.2f} {} [{}], library {:.1f} us\n   pick {}\n   best {}\n", pick->us / each.best,
               each.product.text(), each.group, each.peer, parts(*pick), parts(*best));
  }
}

// How bad a model is: the regret that is expected if the choice has some noise, and how far times
// near the best are from the model's.
double badness(const std::vector<Problem>& problems, const Model& model) {
  constexpr double sharp = 40, of_times = 0.15;
  double out = 0;
  for (const Problem& each : problems) {
    std::vector<double> cycles;
    for (const Timed& timed : each.all) cycles.push_back(model.cycles(timed));
    const double least = *std::min_element(cycles.begin(), cycles.end());
    double weights = 0, regret = 0, apart = 0, pairs = 0;
    for (std::size_t i = 0; i < cycles.size(); ++i) {
      const double weight = std::exp(-sharp * std::log(cycles[i] / least));
      const double over = std::log(each.all[i].us / each.best);
      weights += weight, regret += weight * std::min(over, 1.5) * (1 + over);
      if (over > 0.7) continue;
      const double us = cycles[i] / (model.gpu.clock * 1000);
      apart += std::pow(std::log(us / each.all[i].us), 2), ++pairs;
    }
    out += regret / weights + of_times * std::sqrt(apart / std::max(pairs, 1.0));
  }
  return out / static_cast<double>(problems.size());
}

struct Knob {
  const char* name;
  std::function<double&(Model&)> at;
};

#define CONSTANT(field)                                            \
  {                                                                \
#field, [](Model & m) -> double& { return m.constants.field; } \
  }
#define RATE(field)                                                \
  {                                                                \
    "gpu." #field, [](Model& m) -> double& { return m.gpu.field; } \
  }
const Knob knobs[] = {CONSTANT(launch),       CONSTANT(second_launch),
                      CONSTANT(prologue),     CONSTANT(epilogue),
                      CONSTANT(store),        CONSTANT(store_lanes),
                      CONSTANT(between),      CONSTANT(wgmma_wait),
                      CONSTANT(mma_wait),     CONSTANT(producer_wait),
                      CONSTANT(wgmma_share),  CONSTANT(mma_share),
                      CONSTANT(shared),       CONSTANT(straddle),
                      CONSTANT(copy),         CONSTANT(copy_elements),
                      CONSTANT(cluster_wait), CONSTANT(memory_share),
                      CONSTANT(cache_share),  CONSTANT(reuse),
                      CONSTANT(norm),         RATE(loads),
                      RATE(latency)};
#undef CONSTANT
#undef RATE

// Multiplies one or two constants at a time, and keeps what is better.
Model fitted(const std::vector<Problem>& problems, Model model, int tries, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  double least = badness(problems, model);
  for (int i = 0; i < tries; ++i) {
    Model other = model;
    const double width = i < tries / 2 ? 0.3 : 0.08;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
      knobs[random() % std::size(knobs)].at(other) *= std::exp(width * normal(random));
    other.constants.wgmma_share = std::min(other.constants.wgmma_share, 1.0);
    const double now = badness(problems, other);
    if (now < least) least = now, model = other;
  }
  fmt::print("badness {:.4f}\n", least);
  for (const Knob& each : knobs) fmt::print("  {} = {:.4g}\n", each.name, each.at(model));
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What the choice of the GEMM cost model costs, by a recording of gpu_regret"};
  std::string path, target = "sm_90a";
  int tries = 0;
  unsigned seed = 1;
  double from = 1.1;
  app.add_option("recording", path, "The JSON of gpu_regret")->required();
  app.add_option("--target", target, "Of the recording")->capture_default_str();
  app.add_option("--fit", tries, "Steps of a search for better constants");
  app.add_option("--seed", seed, "Of that search")->capture_default_str();
  app.add_option("--from", from, "Lists problems of so much regret")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto parsed = Target::parse(target);
  const GpuRow* gpu = parsed ? detail::find_gpu(parsed->arch) : nullptr;
  if (!gpu) return std::cerr << "--target " << target << ": expected sm_80 or later\n", 2;
  const auto problems = read(path);
  Model model{*gpu, detail::gemm_constants(), *parsed};
  table(problems, model);
  if (tries > 0) {
    model = fitted(problems, model, tries, seed);
    table(problems, model);
  }
  details(problems, model, from);
  return 0;
}
