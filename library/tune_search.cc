// SPDX-License-Identifier: Apache-2.0
#include "library/tune_search.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::TARTAN_ABI::detail {
namespace {

using kernels::Gemm;
using kernels::Trial;

// Shares of the time after which no candidate is loaded, and none is measured that was not yet.
constexpr double loading = 0.7, beginning = 0.85;
constexpr double near_first = 1.15;  // of the best, to be measured again after one sample
constexpr double near_later = 1.04;  // and after more of them
constexpr double outlier = 1.1;      // times the candidate's best sample
constexpr std::size_t enough = 9;    // samples

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The first sample finds a cooler GPU than those of the rounds behind it: it counts alone.
std::vector<double> counted(const std::vector<double>& samples) {
  return samples.size() == 1 ? samples : std::vector(samples.begin() + 1, samples.end());
}

double time_of(const std::vector<double>& samples) { return median(counted(samples)); }

class Search {
 public:
  Search(TuneBench& bench, const std::vector<Gemm>& candidates, double seconds)
      : bench_(bench), candidates_(candidates), seconds_(seconds), samples_(candidates.size()) {}

  Result<SearchResult> run() {
    const auto wrong = bench_.load(candidates_, loading * seconds_);
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      out_.trials.push_back({.options = candidates_[i], .refused = wrong[i]});
    if (const Status first = first_round(); !first) return first.diags();
    if (std::all_of(samples_.begin(), samples_.end(), [](const auto& s) { return s.empty(); }))
      return none_runs();
    while (!over() && another_round()) {
    }
    choose();
    return std::move(out_);
  }

 private:
  bool over() { return bench_.seconds() >= seconds_; }

  // Compares and measures each once; at least one.
  Status first_round() {
    bool some = false;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (some && bench_.seconds() >= beginning * seconds_) break;
      if (!out_.trials[i].refused.empty()) continue;
      const auto c = bench_.result(i);
      if (!c) {
        out_.trials[i].refused = c.diags();
        continue;
      }
      if (const Status same = compare(i, *c); !same) return same;
      take(i);
      some |= !samples_[i].empty();
    }
    return Done{};
  }

  Status compare(std::size_t i, const std::vector<std::byte>& c) {
    if (reference_.empty()) {
      reference_ = c, first_ = i;
      return Done{};
    }
    if (c == reference_) return Done{};
    std::size_t differ = 0, first = c.size();
    for (std::size_t at = std::min(c.size(), reference_.size()); at-- > 0;)
      if (c[at] != reference_[at]) ++differ, first = at;
    return {"different-function"_rule,
            fmt::format("tune: two configurations give different results: {} of {} bytes of C, the "
                        "first at {}: {} and {}; nothing is kept",
                        differ, c.size(), first, text_of(candidates_[first_]),
                        text_of(candidates_[i]))};
  }

  // One sample; another one if it is far above the best before it.
  void take(std::size_t i) {
    auto& samples = samples_[i];
    auto us = bench_.sample(i);
    if (us && !samples.empty() && *us > outlier * std::ranges::min(counted(samples))) {
      const auto again = bench_.sample(i);
      if (again) us = std::min(*us, *again);
    }
    if (us) samples.push_back(*us);
    else out_.trials[i].refused = us.diags();
  }

  double best() const {
    double least = 0;
    for (const auto& each : samples_)
      if (!each.empty() && (least == 0 || time_of(each) < least)) least = time_of(each);
    return least;
  }

  // Whether there was more than one to tell apart.
  bool another_round() {
    const double least = best();
    std::vector<std::size_t> close;
    for (std::size_t i = 0; i < samples_.size(); ++i)
      if (const auto& samples = samples_[i];
          !samples.empty() && samples.size() < enough && out_.trials[i].refused.empty() &&
          time_of(samples) <= (samples.size() < 3 ? near_first : near_later) * least)
        close.push_back(i);
    // One lucky sample does not decide.
    if (close.size() < 2 && (close.empty() || samples_[close[0]].size() >= 3)) return false;
    for (const std::size_t i : close) {
      if (over()) break;
      take(i);
    }
    return true;
  }

  void choose() {
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      Trial& trial = out_.trials[i];
      trial.samples = static_cast<int>(samples_[i].size());
      if (samples_[i].empty() || !trial.refused.ok()) continue;
      trial.us = time_of(samples_[i]);
      const double least = out_.trials[out_.best].us;
      if (least == 0 || trial.us < least) out_.best = i;
    }
  }

  Diags none_runs() {
    Diags out;
    for (const Trial& each : out_.trials) out.append(each.refused);
    if (out.ok())
      out.report("kernel-option"_rule, {},
                 fmt::format("tune: none of {} candidates runs", candidates_.size()));
    return out;
  }

  TuneBench& bench_;
  const std::vector<Gemm>& candidates_;
  const double seconds_;
  std::vector<std::vector<double>> samples_;
  std::vector<std::byte> reference_;
  std::size_t first_ = 0;  // whose result the reference is
  SearchResult out_;
};

}  // namespace

Result<SearchResult> search(TuneBench& bench, const std::vector<Gemm>& candidates, double seconds) {
  return Search(bench, candidates, seconds).run();
}

std::string text_of(const Gemm& options) {
  const Tile& tile = options.tile;
  std::string out = fmt::format("--tile {}x{}x{} --warps {}x{}", tile.m, tile.n, tile.k,
                                tile.warps_m, tile.warps_n);
  if (tile.warps_k > 1) out += fmt::format("x{}", tile.warps_k);
  out += fmt::format(" --stages {}", options.stages);
  const auto add = [&](const char* word, int value, int usual) {
    if (value != usual) out += fmt::format(" --{} {}", word, value);
  };
  add("producers", options.producers, 0), add("cluster", options.cluster, 1);
  add("cluster-columns", options.cluster_columns, 1);
  add("group", options.group, Gemm{}.group), add("splits", options.splits, 1);
  add("stream-blocks", options.stream_blocks, 0), add("cluster-splits", options.cluster_splits, 1);
  add("products", tile.products, 1);
  if (options.swap) out += " --swap";
  if (options.direct) out += " --direct";
  if (options.persistent) out += " --persistent";
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
