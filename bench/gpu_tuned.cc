// SPDX-License-Identifier: Apache-2.0
// Measures what tuned() and tune() choose for fresh problems beside cuBLAS and cuBLASLt: the seed
// of the problems is an argument, chosen after the build. With --table it only prints the table of
// a result.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>

#include "bench/gpu/regret_race.h"
#include "bench/gpu/words.h"
#include "tartan/tune.h"

using namespace tartan;

namespace {

struct Words {
  std::string device = "cuda", json = "tuned.json", table, only_load, tuning;
  std::vector<std::string> sizes, types{"bf16"};
  unsigned seed = 1;
  int drawn = 120, searched = 36;
  std::size_t megabytes = 2048, workspace = 32;
  double seconds = 100, budget = 2;
  gpu::RaceOptions race{.rounds = 3, .finalists = 4, .proposals = 8, .hopeless = 8};
};

// What is measured of a problem. Partial sums may take as much memory as the libraries' do.
struct Chosen {
  kernels::Gemm plain, split, searched;
  double search_seconds = 0, search_us = 0;
  int measured = 0;
};

Chosen by_model(const gpu::Product& product, const kernels::Gpu& gpu, std::int64_t workspace) {
  const kernels::Gemm options = gpu::options_of({}, product);
  const kernels::Gemm plain = kernels::tuned(options, gpu);
  return {plain, kernels::tuned(options, gpu, workspace), plain};
}

// ---- The table.

struct Mean {
  double sum = 0, worst = 0;
  int count = 0;
  void add(double ratio) {
    constexpr double most = 1.25;
    ratio = std::min(ratio, most);
    sum += std::log(ratio);
    if (count++ == 0 || ratio < worst) worst = ratio;
  }
  std::string text() const {
    return count ? fmt::format("{:.3f} ({:.2f})", std::exp(sum / count), worst) : "-";
  }
};

constexpr const char* ways[] = {"tuned", "workspace", "searched"};

struct Row {
  int problems = 0, searched = 0, alone = 0;
  Mean all[3];       // of ways
  Mean of_searched;  // "tuned", of the problems that were searched
};

int print_table(const nlohmann::json& run) {
  std::map<std::string, Row> rows;
  for (const auto& each : run.at("problems")) {
    for (const std::string& key :
         {"group " + each.at("group").get<std::string>(), "type " + each.at("a").get<std::string>(),
          std::string("~all")}) {
      Row& row = rows[key];
      const auto& us = each.at("us");
      ++row.problems, row.searched += us.contains("searched");
      if (!each.contains("library_us")) {
        ++row.alone;
        continue;
      }
      const double library = each.at("library_us");
      for (std::size_t i = 0; i < 3; ++i)
        if (us.contains(ways[i])) row.all[i].add(library / us.at(ways[i]).get<double>());
      if (us.contains("searched")) row.of_searched.add(library / us.at("tuned").get<double>());
    }
  }
  constexpr auto line = "{:<12} {:>9} {:>11} {:>15} {:>15} {:>9} {:>15} {:>15}\n";
  fmt::print(
      "speed over the better of cuBLAS and cuBLASLt, at most 1.25: geometric mean (worst)\n");
  fmt::print(line, "", "problems", "no library", "tuned()", "with workspace", "searched",
             "of them tuned()", "searched");
  for (const auto& [key, row] : rows)
    fmt::print(line, key, row.problems, row.alone, row.all[0].text(), row.all[1].text(),
               row.searched, row.of_searched.text(), row.all[2].text());
  for (const auto& each : run.at("problems"))
    if (each.contains("library_us"))
      for (const char* way : ways)
        if (const auto& us = each.at("us"); us.contains(way)) {
          const double ratio = each.at("library_us").get<double>() / us.at(way).get<double>();
          if (ratio < 0.9)
            fmt::print("{:.2f} {}x{}x{} {} {}: {} {:.1f} us, library {:.1f} us\n", ratio,
                       each.at("m").get<int>(), each.at("n").get<int>(), each.at("k").get<int>(),
                       each.at("a").get<std::string>(), way,
                       each.at("choice").at(way).get<std::string>(), us.at(way).get<double>(),
                       each.at("library_us").get<double>());
        }
  return 0;
}

// ---- The run.

nlohmann::json measured(const gpu::Drawn& problem, const Chosen& chosen, bool searched,
                        const std::vector<gpu::Measured>& all) {
  const gpu::Product& product = problem.product;
  nlohmann::json out{{"m", product.m},       {"n", product.n},       {"k", product.k},
                     {"a", name(product.a)}, {"c", name(product.c)}, {"group", problem.group}};
  double library = 0;
  std::map<std::string, const gpu::Measured*> ours;
  for (const gpu::Measured& each : all) {
    if (!each.name.starts_with("cuBLAS")) ours[each.name] = &each;
    else if (each.rounds > 1 && (library == 0 || each.us < library)) library = each.us;
  }
  if (library > 0) out["library_us"] = library;
  const auto add = [&](const char* way, const kernels::Gemm& options) {
    const std::string text = gpu::config_text(options);
    const auto found = ours.find(text);
    if (found == ours.end()) return;
    out["choice"][way] = text, out["us"][way] = found->second->us;
    if (found->second->differs > 0) out["differs"][way] = found->second->differs;
  };
  out["us"] = nlohmann::json::object(), out["choice"] = nlohmann::json::object();
  add("tuned", chosen.plain), add("workspace", chosen.split);
  if (!searched) return out;
  add("searched", chosen.searched);
  out["search"] = {
      {"seconds", chosen.search_seconds}, {"measured", chosen.measured}, {"us", chosen.search_us}};
  return out;
}

// Runs the search; false if it found nothing.
bool search(gpu::Session& session, const gpu::Product& product, const Words& words,
            Chosen& chosen) {
  kernels::TuneBudget budget{.seconds = words.budget};
  budget.workspace = static_cast<std::int64_t>(words.workspace) << 20;
  const auto found = kernels::tune(session.device, gpu::options_of({}, product), budget);
  if (!found) {
    std::cerr << product.text() << ":\n" << found.diags().text();
    return false;
  }
  chosen.searched = found->best.choice, chosen.search_seconds = found->seconds;
  chosen.search_us = found->best.us;
  for (const kernels::Trial& each : found->trials) {
    chosen.measured += each.us > 0;
    if (!each.refused.ok()) std::cerr << product.text() << ":\n" << each.refused.text();
  }
  if (words.tuning.empty()) return true;
  kernels::Tuning tuning;
  tuning.add(found->best);
  if (const Status kept = tuning.merge_into(words.tuning); !kept) std::cerr << kept.diags().text();
  return true;
}

std::vector<gpu::Drawn> problems_of(const Words& words) {
  auto out = gpu::given_problems(words.sizes, words.types);
  return out.empty() ? gpu::drawn_problems(words.seed, words.drawn) : out;
}

int run(int argc, char** argv, const Words& words) {
  const auto problems = problems_of(words);
  const auto workspace = static_cast<std::int64_t>(words.workspace) << 20;
  const auto chosen_for = [&](const kernels::Gpu& gpu) {
    std::vector<Chosen> out;
    for (const gpu::Drawn& each : problems) out.push_back(by_model(each.product, gpu, workspace));
    return out;
  };
  const auto kernels_of = [](const std::vector<Chosen>& all) {
    std::vector<kernels::Gemm> out;
    for (const Chosen& each : all) out.insert(out.end(), {each.plain, each.split});
    return out;
  };
  if (!words.only_load.empty()) {
    const auto parts = gpu::split(words.only_load, '/');
    int share = 0, shares = 0;
    if (parts.size() != 2 || !gpu::read_number(parts[0], share) ||
        !gpu::read_number(parts[1], shares) || share >= shares)
      gpu::refuse("--only-load", words.only_load, "I/N, I below N");
    Device device = gpu::must(Device::open(words.device));
    const Target target = gpu::target_of(device);
    gpu::RegretKernels(target, kernels_of(chosen_for(kernels::Gpu::of(device, target))), share,
                       shares)
        .load_all(Loader(device, gpu::must(Cache::open())));
    return 0;
  }
  gpu::Session session(argc, argv, words.device);
  const gpu::Clock clock;
  const Target target = gpu::target_of(session.device);
  const Loader loader(session.device, gpu::must(Cache::open()));
  std::vector<Chosen> chosen = chosen_for(kernels::Gpu::of(session.device, target));
  gpu::RegretKernels kernels(target, kernels_of(chosen));
  fmt::print("{} kernels in {:.1f} s\n", kernels.size(), clock.seconds());
  const gpu::Peers peers(session);
  gpu::Pools pools(session, words.megabytes << 20);
  nlohmann::json out{{"program", session.run.program},
                     {"command", session.run.command},
                     {"date", session.run.date},
                     {"device", session.run.device},
                     {"driver", session.run.driver},
                     {"libraries", session.run.libraries},
                     {"seed", words.seed},
                     {"problems", nlohmann::json::array()}};
  const auto write = [&] {
    std::ofstream file(words.json);
    file << out.dump() << '\n';
    file.close();
    if (!file) std::cerr << "cannot write " << words.json << '\n';
    return bool(file);
  };
  for (std::size_t i = 0; i < problems.size() && clock.seconds() < words.seconds; ++i) {
    const gpu::Product& product = problems[i].product;
    const bool searched =
        static_cast<int>(i) < words.searched && search(session, product, words, chosen[i]);
    std::vector<gpu::RegretKernel*> ours{kernels.of(chosen[i].plain)};
    const auto enter = [&](gpu::RegretKernel* each) {
      if (std::find(ours.begin(), ours.end(), each) == ours.end()) ours.push_back(each);
    };
    enter(kernels.of(chosen[i].split));
    std::optional<gpu::RegretKernels> found;
    if (gpu::RegretKernel* known = kernels.of(chosen[i].searched)) {
      enter(known);
    } else {
      found.emplace(target, std::vector{chosen[i].searched});
      enter(found->of(chosen[i].searched));
    }
    const auto all = gpu::RegretRace(session, peers, pools, product, words.race).run(ours, loader);
    out["problems"].push_back(measured(problems[i], chosen[i], searched, all));
    fmt::print("{:.1f} s: {} {}\n", clock.seconds(), product.text(),
               out["problems"].back()["us"].dump());
    std::cout.flush();
    constexpr std::size_t between = 8;  // problems, of which a run that is stopped loses the last
    if (out["problems"].size() % between == 0 && !write()) return 1;
  }
  print_table(out);
  return write() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What tuned() and tune() choose for drawn problems, beside cuBLAS and cuBLASLt"};
  Words words;
  app.add_option("--seed", words.seed, "Of the drawn problems")->capture_default_str();
  app.add_option("--drawn", words.drawn, "How many")->capture_default_str();
  app.add_option("--size", words.sizes, "N (a cube) or MxNxK instead; several");
  app.add_option("--type", words.types, "Types of those: bf16, f16, e4m3, s8")
      ->capture_default_str();
  app.add_option("--searched", words.searched, "The first of them: tune() chooses too")
      ->capture_default_str();
  app.add_option("--budget", words.budget, "Seconds of such a search")->capture_default_str();
  app.add_option("--workspace", words.workspace,
                 "Megabytes for partial sums; the libraries have 32")
      ->capture_default_str();
  app.add_option("--seconds", words.seconds, "No further problem is begun after that time")
      ->capture_default_str();
  app.add_option("--megabytes", words.megabytes, "Of each pool of matrices")->capture_default_str();
  app.add_option("--tuning", words.tuning, "Keeps what the searches found in this file");
  app.add_option("--only-load", words.only_load,
                 "I/N: load every N-th kernel, which fills the caches, and end; run N of "
                 "these at the same time");
  app.add_flag("--alone", words.race.alone,
               "Kernels begin when the launch in front has ended, not beside its end");
  app.add_option("--device", words.device, "cuda or emulator")->capture_default_str();
  app.add_option("--json", words.json, "The file of the results")->capture_default_str();
  app.add_option("--table", words.table, "Print the table of this result instead; needs no GPU");
  CLI11_PARSE(app, argc, argv);
  if (words.table.empty()) return run(argc, argv, words);
  std::ifstream file(words.table);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded() || !json.contains("problems"))
    gpu::refuse("--table", words.table, "the JSON of gpu_tuned");
  return print_table(json);
}
