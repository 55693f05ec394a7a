// SPDX-License-Identifier: Apache-2.0
// bench/gpu/gemm_contest.h - the race of one product: configurations of the kernel, libraries, the
// ceiling.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "bench/gpu/cublas.h"
#include "bench/gpu/elements.h"
#include "bench/gpu/gemm_runner.h"
#include "bench/gpu/measure.h"

namespace gpu {

struct Peers {
  explicit Peers(Session& session);
  Cublas cublas;
  CublasLt lt;
};

struct ContestOptions {
  int rounds = 5;
  int graph = -1;     // products in a graph; 0: single launches; -1: 40 of short products
  int proposals = 8;  // of cuBLASLt
  bool ceiling = true;
};

class GemmContest {
 public:
  GemmContest(Session& session, const Peers& peers, const Product& product,
              const ContestOptions& options);
  /// Runs the race, prints its table and keeps it in the session.
  void run(const std::vector<Config>& configs);

 private:
  using Launch = std::function<void(std::size_t set)>;

  void add_peers();
  void add_peer(const std::string& name, const Multiply& multiply);
  void add(const Config& config);
  void enter(std::string name, bool peer, const Launch& launch, std::string note);

  Launch launch_of(const Multiply& multiply);
  std::function<void()> in_turn(const Launch& launch);
  std::function<void()> in_graph(const Launch& launch);
  double seconds_of(const Multiply& multiply);
  std::string compared(const std::string& name);
  std::string ceiling_instruction() const;

  Session& session_;
  const Peers& peers_;
  const Product product_;
  const ContestOptions options_;
  const int graph_;  // products; 0: single launches
  const float alpha_;
  Matrices matrices_;
  std::list<GemmRunner> runners_;
  std::vector<Contestant> contestants_;
  std::vector<std::uint8_t> reference_;  // the first contestant's C
  std::string reference_name_;
};

}  // namespace gpu
