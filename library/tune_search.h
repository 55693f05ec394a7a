// SPDX-License-Identifier: Apache-2.0
// library/tune_search.h - the search behind kernels::tune(): which candidates are measured, how
// often, and which one wins. What measures them is an interface: tests give it a table of times.
// Not installed.
#pragma once

#include <cstddef>
#include <vector>

#include "tartan/tune.h"

namespace tartan::TARTAN_ABI::detail {

/// What measures candidates. They have numbers, in the order of load().
class TuneBench {
 public:
  virtual ~TuneBench() = default;
  /// Since the search began.
  virtual double seconds() = 0;
  /// Makes the candidates ready, the first ones first and at least one of them, until `deadline` in
  /// seconds. For each: what is wrong with it, or a note if no time was left.
  virtual std::vector<Diags> load(const std::vector<kernels::Gemm>& candidates,
                                  double deadline) = 0;
  /// C of the candidate, of operands whose sums are exact in any order.
  virtual Result<std::vector<std::byte>> result(std::size_t candidate) = 0;
  /// Microseconds of one product, measured over some.
  virtual Result<double> sample(std::size_t candidate) = 0;
};

struct SearchResult {
  std::size_t best = 0;
  std::vector<kernels::Trial> trials;
};

/// Each candidate is compared with the first and measured once; then those near the best again,
/// until one is left or the time is over. A sample far above the candidate's best so far is taken
/// again. The smallest median wins, where there are more without the first sample; of equal ones
/// the first.
Result<SearchResult> search(TuneBench& bench, const std::vector<kernels::Gemm>& candidates,
                            double seconds);

/// The options of `tartan emit gemm`: "--tile 128x256x64 --warps 8x1 --stages 4 --producers 4".
std::string text_of(const kernels::Gemm& options);

}  // namespace tartan::TARTAN_ABI::detail
