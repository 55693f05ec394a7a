// SPDX-License-Identifier: Apache-2.0
// bench/gpu/regret_race.h - measures all configurations, and the libraries, on one problem.
//
// Launches go through sets of matrices, more than the second-level cache holds, in parts of large
// pools of random elements. Short products run in a graph. Each contestant gets one measurement, a
// rough one if it takes far longer than the best so far; then the best and the libraries race in
// shuffled rounds.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/gpu/cublas.h"
#include "bench/gpu/gemm_contest.h"
#include "bench/gpu/regret_kernels.h"

namespace gpu {

/// Seconds since it was made.
class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Device memory with random elements of each type, for all problems.
class Pools {
 public:
  Pools(Session& session, std::size_t bytes) : session_(session), bytes_(bytes) {}
  std::size_t bytes() const { return bytes_; }
  tartan::Buffer& of(tartan::Type type);
  tartan::Buffer& results();
  tartan::Buffer& parts();

 private:
  Session& session_;
  std::size_t bytes_;
  std::map<tartan::Type, tartan::Buffer> random_;
  tartan::Buffer results_, parts_;
};

struct RaceOptions {
  int rounds = 3;         // of the second part
  int finalists = 12;     // configurations in it
  int proposals = 8;      // of cuBLASLt
  double hopeless = 1.5;  // times the best: measured once, roughly
  bool alone = false;     // kernels begin when the launch in front has ended, not beside its end
};

/// What was measured: microseconds per product.
struct Measured {
  std::string name;
  double us = 0;       // the median of all rounds, or the only measurement
  int rounds = 0;      // 0: rough
  double differs = 0;  // from the first contestant, relative to the largest value in the samples
};

class RegretRace {
 public:
  RegretRace(Session& session, const Peers& peers, Pools& pools, const Product& product,
             const RaceOptions& options);
  /// Of these kernels, without those that are null or do not load.
  std::vector<Measured> run(const std::vector<RegretKernel*>& kernels,
                            const tartan::Loader& loader);

 private:
  using Launch = std::function<bool(std::size_t set)>;
  struct Entry {
    Measured measured;
    bool peer = false;
    Launch launch;
    std::function<void()> batch;
    int products = 0;  // of a batch
    std::vector<double> samples;
  };

  void add_peers();
  void add(RegretKernel& kernel);
  void enter(std::string name, bool peer, Launch launch);
  bool starts(Entry& entry);
  void prepare(Entry& entry, double rough);
  double batch_us(Entry& entry, int batches);
  void race();
  Operands operands(std::size_t set) const;
  std::vector<std::uint8_t> sampled();
  void clear_samples();

  Session& session_;
  const Peers& peers_;
  Pools& pools_;
  const Product product_;
  const RaceOptions options_;
  std::size_t a_bytes_, b_bytes_, c_bytes_, sets_ = 1;
  float alpha_;
  double best_ = 0;  // us
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<std::uint8_t> reference_;
};

/// {"name": us, ...} and, by name, what was measured roughly or differs.
nlohmann::json to_json(const std::vector<Measured>& all);

}  // namespace gpu
