// SPDX-License-Identifier: Apache-2.0
// bench/gpu/regret_kernels.h - kernels with sizes as parameters, each compiled once for all
// problems that it fits: by all host threads at first, loaded when it is needed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bench/gpu/measure.h"
#include "bench/gpu/regret_problems.h"
#include "tartan/load.h"

namespace gpu {

/// A configuration's kernels: of the product and, with split-K and stream-K, of the reduction.
struct RegretKernel {
  Config config;
  tartan::kernels::Gemm options;
  tartan::Compiled compiled, sum_compiled;
  std::optional<tartan::LoadedKernel> kernel, sum;
  tartan::Diags refused;  // why it does not compile or load

  bool has_sum() const { return options.splits > 1 || options.stream_blocks > 0; }
};

class RegretKernels {
 public:
  /// Compiles what the problems need; `share` of `shares` only, of which there are more if several
  /// processes fill the caches.
  RegretKernels(const tartan::Target& target, const std::vector<Drawn>& problems, int share = 0,
                int shares = 1);
  /// One kernel for each of these configurations of constant sizes.
  RegretKernels(const tartan::Target& target, const std::vector<tartan::kernels::Gemm>& all,
                int share = 0, int shares = 1);
  std::size_t size() const { return all_.size(); }
  /// Those for a problem, in the order of regret_configs(); null where one is not sensible.
  std::vector<RegretKernel*> of(const Product& product) const;
  /// Loads a kernel, once. False if it does not compile or load.
  static bool load(const tartan::Loader& loader, RegretKernel& kernel);
  void load_all(const tartan::Loader& loader);
  /// That of a configuration of constant sizes; null if it was not among those.
  RegretKernel* of(const tartan::kernels::Gemm& options) const;

 private:
  using Key = std::tuple<tartan::Type, Divisors, std::string>;
  static Key key(const Product& product, const Config& config);
  void keep_share(int share, int shares);
  void compile_all();

  const tartan::Target target_;
  std::map<Key, std::unique_ptr<RegretKernel>> all_;
};

}  // namespace gpu
