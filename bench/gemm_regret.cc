// SPDX-License-Identifier: Apache-2.0
// Reads what gpu_regret recorded, and prints what the choice of the cost model
// (kernels/tuner/gemm_cost.h) costs: its time over that of the best configuration, and over the
// better of cuBLAS and cuBLASLt. With --fit also searches the model's constants. Needs no GPU.
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
#include <set>
#include <stdexcept>

#include "bench/gpu/gemm_config.h"
#include "kernels/tuner/gemm_candidates.h"

using namespace tartan;
using isa::GpuRow;
using kernels::detail::GemmConstants;

namespace {

struct Timed {
  std::string name;
  kernels::Gemm options;
  double us = 0;
  bool partial = false;
  bool candidate = true;  // among candidates(), of today's code
  double memory = 1;      // times the bandwidth of the model's GPU
};

struct Problem {
  gpu::Product product;
  std::string group;
  std::vector<Timed> all;
  double best = 0, best_whole = 0;  // us, of all and of those with one launch
  double peer = 0;                  // us; 0: no library takes it
};

// The text of a configuration without the order of its tiles, which has little influence on most,
// and without the number of its stages: what older candidates had fewer of.
std::string outline(kernels::Gemm options) {
  options.group = kernels::Gemm{}.group, options.stages = 0;
  return gpu::config_text(options);
}

// The texts of today's candidates by their outlines.
std::map<std::string, std::set<std::string>> candidates_of(const gpu::Product& product,
                                                           const Target& target,
                                                           const GpuRow& gpu) {
  std::map<std::string, std::set<std::string>> out;
  for (const kernels::Gemm& each :
       kernels::detail::candidates(gpu::options_of({}, product), target, gpu, true))
    out[outline(each)].insert(gpu::config_text(each));
  return out;
}

// Whether a configuration stands for one of today's candidates, which was not recorded itself.
bool stands_for(const kernels::Gemm& options, const std::set<std::string>& candidates,
                const nlohmann::json& recorded) {
  return candidates.contains(gpu::config_text(options)) ||
         std::none_of(candidates.begin(), candidates.end(),
                      [&](const std::string& each) { return recorded.contains(each); });
}

// Of long products, a GPU is cooler in a single measurement than in the race: what was measured
// once, and was slower there than what raced, counts as slow as the median of that.
double in_race(double us, std::vector<double> raced) {
  constexpr double short_us = 50;
  if (raced.empty() || us < short_us) return us;
  std::sort(raced.begin(), raced.end());
  return std::max(us, raced[raced.size() / 2]);
}

// Times the memory bandwidth of the model's GPU, by the table: of a GPU that a recording names.
double more_memory(const std::string& device, const GpuRow& gpu) {
  if (device.empty()) return 1;
  const GpuRow* const row = isa::gpu_named(device, gpu.sm);
  if (!row)
    throw std::runtime_error(
        fmt::format("the recording's GPU {}: expected a name of compiler/isa/gpus.cc with sm_{}",
                    device, gpu.sm));
  return row->memory / gpu.memory;
}

// `words`: without problems whose rows are copied element by element. A recording of several GPUs
// names that of each problem.
std::vector<Problem> read(const std::string& path, bool words, const Target& target,
                          const GpuRow& gpu) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  std::vector<Problem> out;
  const auto device = [](const nlohmann::json& of) {
    const auto at = of.find("device");
    return at == of.end() ? std::string() : at->get<std::string>();
  };
  for (const auto& each : json.at("problems")) {
    const double memory = more_memory(device(each.contains("device") ? each : json), gpu);
    Problem& problem = out.emplace_back();
    problem.product.m = each.at("m"), problem.product.n = each.at("n");
    problem.product.k = each.at("k"), problem.group = each.at("group");
    problem.product.a = problem.product.b = *parse_type(each.at("a").get<std::string>());
    problem.product.c = *parse_type(each.at("c").get<std::string>());
    if (words && std::int64_t{problem.product.k} * bits(problem.product.a) % 32 != 0) {
      out.pop_back();
      continue;
    }
    std::map<std::string, bool> rough;
    for (const auto& name : each.at("rough")) rough[name.get<std::string>()] = true;
    std::set<std::string> raced;
    std::vector<double> of_raced;
    for (const auto& name : each.value("raced", nlohmann::json::array())) {
      raced.insert(name.get<std::string>());
      if (!name.get<std::string>().starts_with("cuBLAS"))
        of_raced.push_back(each.at("us").at(name.get<std::string>()));
    }
    const auto candidates = candidates_of(problem.product, target, gpu);
    for (const auto& [name, measured] : each.at("us").items()) {
      double us = measured;
      if (name.starts_with("cuBLAS")) {
        if (!raced.empty() && !raced.contains(name)) continue;
        if (problem.peer == 0 || us < problem.peer) problem.peer = us;
        continue;
      }
      if (!raced.contains(name)) us = in_race(us, of_raced);
      if (rough.contains(name)) continue;  // one launch, which something may have delayed
      const auto config = gpu::read_config(name);
      Timed timed{name, gpu::options_of(*config, problem.product), us};
      timed.memory = memory;
      timed.partial = timed.options.splits > 1 || timed.options.stream_blocks > 0;
      const auto found = candidates.find(outline(timed.options));
      timed.candidate =
          found != candidates.end() && stands_for(timed.options, found->second, each.at("us"));
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
  double cycles(const Timed& timed) const { return cost(timed).cycles; }
  kernels::detail::GemmCost cost(const Timed& timed) const {
    GpuRow row = gpu;
    row.memory *= timed.memory;
    return kernels::detail::gemm_cost(timed.options, target, row, constants);
  }
};

// The cheapest in the model.
const Timed* picked(const Problem& problem, const Model& model, bool partial) {
  const Timed* out = nullptr;
  double least = 0;
  for (const Timed& each : problem.all) {
    if ((each.partial && !partial) || !each.candidate) continue;
    const double cycles = model.cycles(each);
    if (!out || cycles < least) out = &each, least = cycles;
  }
  return out;
}

// How unlike two configurations are; 0: they are the same.
double apart(const kernels::Gemm& a, const kernels::Gemm& b) {
  const auto octaves = [](int x, int y) { return std::abs(std::log2(double(x) / y)); };
  const Tile &x = a.tile, &y = b.tile;
  return 2 * octaves(x.m, y.m) + 2 * octaves(x.n, y.n) + octaves(x.k, y.k) +
         octaves(x.warps_m, y.warps_m) + octaves(x.warps_n, y.warps_n) +
         octaves(x.warps_k, y.warps_k) + octaves(a.stages, b.stages) / 2 +
         4 * std::abs((a.producers > 0) - (b.producers > 0)) +
         octaves(std::max(a.producers, 1), std::max(b.producers, 1)) / 4 +
         4 * std::abs(a.persistent - b.persistent) + octaves(a.group, b.group) / 16 +
         octaves(a.cluster, b.cluster) / 2 + octaves(a.cluster_columns, b.cluster_columns) / 2 +
         4 * octaves(a.cluster_splits, b.cluster_splits) + 8 * std::abs(a.direct - b.direct) +
         8 * std::abs(a.swap - b.swap) + 4 * octaves(x.products, y.products);
}

// What tuned() chooses, or what was recorded that is most like it.
const Timed* nearest(const Problem& problem, const Model& model, double* distance) {
  const kernels::Gpu gpu = *kernels::Gpu::find(model.gpu.name, model.target);
  const kernels::Gemm chosen = kernels::tuned(gpu::options_of({}, problem.product), gpu);
  const Timed* out = nullptr;
  for (const Timed& each : problem.all) {
    if (each.partial) continue;
    const double now = apart(each.options, chosen);
    if (!out || now < *distance) out = &each, *distance = now;
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
  int recorded = 0;  // of what tuned() chooses
  Mean regret, whole, tuned, pick, whole_pick, tuned_pick, oracle;
};

constexpr double most_ratio = 1.25;  // of speeds; above that the library is not a measure

void table(const std::vector<Problem>& problems, const Model& model) {
  std::map<std::string, Row> rows;
  for (const Problem& each : problems) {
    const Timed *pick = picked(each, model, true), *whole = picked(each, model, false);
    double distance = 0;
    const Timed* tuned = nearest(each, model, &distance);
    if (!pick || !whole || !tuned) continue;
    for (const std::string& key :
         {"group " + each.group, "type " + std::string(name(each.product.a)),
          std::string("~all")}) {
      Row& row = rows[key];
      ++row.count;
      row.regret.add(pick->us / each.best, true);
      row.whole.add(whole->us / each.best_whole, true);
      row.tuned.add(tuned->us / each.best_whole, true);
      row.recorded += distance == 0;
      if (each.peer == 0) continue;
      row.pick.add(std::min(each.peer / pick->us, most_ratio), false);
      row.whole_pick.add(std::min(each.peer / whole->us, most_ratio), false);
      row.tuned_pick.add(std::min(each.peer / tuned->us, most_ratio), false);
      row.oracle.add(std::min(each.peer / each.best, most_ratio), false);
    }
  }
  constexpr auto line = "{:<12} {:>4} {:>4} {:>15} {:>15} {:>15} {:>15} {:>15} {:>15} {:>15}\n";
  fmt::print(
      "geometric mean (worst); regret: time over that of the best (all; one launch); speed: over "
      "the better library's, at most {}\n",
      most_ratio);
  fmt::print(line, "", "", "rec.", "regret, all", "one launch", "tuned()", "speed, all",
             "one launch", "tuned()", "of the best");
  for (const auto& [key, row] : rows)
    fmt::print(line, key, row.count, row.recorded, row.regret.text(), row.whole.text(),
               row.tuned.text(), row.pick.text(), row.whole_pick.text(), row.tuned_pick.text(),
               row.oracle.text());
}

std::string parts_of(const Timed& timed, const Model& model) {
  const auto cost = model.cost(timed);
  const double us = 1 / (model.gpu.clock * 1000);
  return fmt::format(
      "{}: {:.1f} us, model {:.1f} (SM {:.1f}, cache {:.1f}, memory {:.1f}, "
      "fixed {:.1f})",
      timed.name, timed.us, cost.cycles * us, cost.multiprocessor * us, cost.cache * us,
      cost.memory * us, cost.fixed * us);
}

void details(const std::vector<Problem>& problems, const Model& model, bool partial, bool every,
             double from) {
  for (const Problem& each : problems) {
    const Timed *pick = picked(each, model, partial), *best = nullptr;
    for (const Timed& timed : each.all)
      if ((partial || !timed.partial) && (!best || timed.us < best->us)) best = &timed;
    if (!pick || !best || pick->us < from * best->us) continue;
    fmt::print("{:.2f} {} [{}], library {:.1f} us\n   pick {}\n   best {}\n", pick->us / best->us,
               each.product.text(), each.group, each.peer, parts_of(*pick, model),
               parts_of(*best, model));
    if (every)
      for (const Timed& timed : each.all) fmt::print("        {}\n", parts_of(timed, model));
  }
}

// What users meet is the worst, not the mean: a regret above `tolerated` counts several times.
double disliked(double over) {
  constexpr double tolerated = 0.077, heavier = 5, most = 1.5;  // logarithms; 8 %
  over = std::min(over, most);
  return over + heavier * std::max(over - tolerated, 0.0);
}

// How bad a model is: the regret that is expected if the choice has some noise, and how far times
// near the best are from the model's.
double badness(const std::vector<Problem>& problems, const Model& model, bool partial) {
  constexpr double sharp = 40, of_times = 0.15;
  double out = 0;
  for (const Problem& each : problems) {
    std::vector<double> cycles, us;
    for (const Timed& timed : each.all)
      if ((partial || !timed.partial) && timed.candidate)
        cycles.push_back(model.cycles(timed)), us.push_back(timed.us);
    if (us.empty()) continue;
    const double best = partial ? each.best : each.best_whole;
    const double least = *std::min_element(cycles.begin(), cycles.end());
    double weights = 0, regret = 0, apart = 0, pairs = 0;
    for (std::size_t i = 0; i < cycles.size(); ++i) {
      const double weight = std::exp(-sharp * std::log(cycles[i] / least));
      const double over = std::log(us[i] / best);
      weights += weight, regret += weight * disliked(over);
      if (over > 0.7) continue;
      const double expected = cycles[i] / (model.gpu.clock * 1000);
      apart += std::pow(std::log(expected / us[i]), 2), ++pairs;
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
const Knob knobs[] = {CONSTANT(launch),        CONSTANT(second_launch),  CONSTANT(prologue),
                      CONSTANT(sum_share),     CONSTANT(sum_wait),       CONSTANT(epilogue),
                      CONSTANT(convert),       CONSTANT(store),          CONSTANT(store_lanes),
                      CONSTANT(between),       CONSTANT(wgmma_wait),     CONSTANT(mma_wait),
                      CONSTANT(producer_wait), CONSTANT(wgmma_share),    CONSTANT(shared),
                      CONSTANT(straddle),      CONSTANT(copy),           CONSTANT(copy_elements),
                      CONSTANT(copy_wait),     CONSTANT(word_loop),      CONSTANT(element_wait),
                      CONSTANT(few_wait),      CONSTANT(clusters),       CONSTANT(cluster_launch),
                      CONSTANT(memory_share),  CONSTANT(cache_share),    CONSTANT(reuse),
                      CONSTANT(pieces),        CONSTANT(wave),           CONSTANT(cluster_sum),
                      CONSTANT(cluster_bytes), CONSTANT(loop),           CONSTANT(sectors),
                      CONSTANT(power),         CONSTANT(fill),           CONSTANT(together),
                      CONSTANT(serial_wait),   CONSTANT(serial_line),    CONSTANT(filled),
                      CONSTANT(cluster_part),  CONSTANT(store_swapped),  CONSTANT(wgmma_alone),
                      CONSTANT(wgmma_behind),  CONSTANT(apart),          CONSTANT(fill_off),
                      CONSTANT(copy_off),      CONSTANT(apart_copied),   CONSTANT(store_parts),
                      CONSTANT(turn),          CONSTANT(turn_convert),   CONSTANT(direct),
                      CONSTANT(square),        CONSTANT(piece),          CONSTANT(piece_wait),
                      CONSTANT(aligned),       CONSTANT(lines),          CONSTANT(tall),
                      CONSTANT(wave_of_four),  CONSTANT(launch_on_lines)};
#undef CONSTANT

// What keeps constants that hardly matter near those before.
double strangeness(const Model& model, const Model& before) {
  constexpr double weight = 0.0005;
  double out = 0;
  for (const Knob& each : knobs) {
    Model old = before, now = model;
    out += std::pow(std::log(each.at(now) / each.at(old)), 2);
  }
  return weight * out;
}

// Multiplies up to three constants at a time, of those named in `only`, and keeps what is better:
// first each in turn, then at random.
Model fitted(const std::vector<Problem>& problems, Model model, bool partial, int tries,
             unsigned seed, const std::vector<std::string>& only) {
  std::vector<Knob> searched;
  for (const Knob& each : knobs)
    if (only.empty() || std::find(only.begin(), only.end(), each.name) != only.end())
      searched.push_back(each);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const Model before = model;
  const auto both = [&](const Model& each) {
    const double whole = badness(problems, each, false);
    return partial ? (whole + badness(problems, each, true)) / 2 : whole;
  };
  double least = both(model);
  const auto consider = [&](Model other) {
    other.constants.wgmma_share = std::min(other.constants.wgmma_share, 1.0);
    const double now = both(other) + strangeness(other, before);
    if (now < least) least = now, model = other;
  };
  constexpr double widths[] = {0.3, 0.1, 0.03};
  for (int i = 0; i < tries / 2;) {
    for (const Knob& each : searched)
      for (const double way : {1.0, -1.0}) {
        Model other = model;
        each.at(other) *= std::exp(way * widths[std::min(6 * i / tries, 2)]);
        consider(other);
        if (++i >= tries / 2) break;
      }
  }
  for (int i = tries / 2; i < tries; ++i) {
    Model other = model;
    const double width = i % 2 ? 0.3 : 0.08;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
      searched[random() % searched.size()].at(other) *= std::exp(width * normal(random));
    consider(other);
  }
  fmt::print("badness {:.4f}\n", least);
  for (const Knob& each : searched) fmt::print("  {} = {:.4g}\n", each.name, each.at(model));
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What the choice of the GEMM cost model costs, by a recording of gpu_regret"};
  std::string path, target = "sm_90a", name, judged;
  int tries = 0;
  unsigned seed = 1;
  double from = 1.1;
  bool partial = false, half = false, words = false, every = false;
  std::vector<std::string> only;
  app.add_option("recording", path, "The JSON of gpu_regret")->required();
  app.add_option("--target", target, "Of the recording")->capture_default_str();
  app.add_option("--gpu", name,
                 "Of the recording, such as H200; default: the usual one of the target");
  app.add_option("--fit", tries, "Steps of a search for better constants");
  app.add_option("--seed", seed, "Of that search")->capture_default_str();
  app.add_option("--judge", judged, "Shows this recording instead, which was not fitted");
  app.add_option("--only", only, "Fits only these constants");
  app.add_flag("--half", half, "Fits every other dozen of problems, and shows both halves apart");
  app.add_flag("--partial", partial, "Fits and lists split-K and stream-K too");
  app.add_flag("--words", words, "Leaves out problems whose rows are no multiple of four bytes");
  app.add_flag("--every", every, "Lists all configurations of those problems");
  app.add_option("--from", from, "Lists problems of so much regret")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto parsed = Target::parse(target);
  const GpuRow* gpu = parsed ? isa::find_gpu(parsed->arch) : nullptr;
  for (const GpuRow& row : isa::gpus())
    if (gpu && row.name == name) gpu = &row;
  if (gpu && !name.empty() && gpu->name != name)
    return std::cerr << "--gpu " << name << ": expected a name of gpus.cc, such as H200\n", 2;
  if (!gpu) return std::cerr << "--target " << target << ": expected sm_80 or later\n", 2;
  if (const auto runs = kernels::Gpu::find(gpu->name, *parsed); !runs)
    return std::cerr << runs.diags().text(), 2;
  std::vector<Problem> problems, shown;
  try {
    problems = read(path, words, *parsed, *gpu);
    shown = judged.empty() ? problems : read(judged, words, *parsed, *gpu);
  } catch (const std::exception& error) {
    return std::cerr << error.what() << "\n", 2;
  }
  Model model{*gpu, kernels::detail::gemm_constants(), *parsed};
  for (const std::string& each : only)
    if (std::none_of(std::begin(knobs), std::end(knobs),
                     [&](const Knob& knob) { return each == knob.name; }))
      return std::cerr << "--only " << each
                       << ": expected a constant of gemm_cost.h, such as fill\n",
             2;
  // Twelve problems in a row have all groups and types.
  std::vector<Problem> first, second;
  for (std::size_t i = 0; i < problems.size(); ++i)
    (i / 12 % 2 ? second : first).push_back(problems[i]);
  if (tries > 0) model = fitted(half ? first : problems, model, partial, tries, seed, only);
  if (half)
    table(first, model), fmt::print("The other half, which was not fitted:\n"),
        table(second, model);
  else table(shown, model);
  details(shown, model, partial, every, from);
  return 0;
}
