// SPDX-License-Identifier: Apache-2.0
// kernels/tuner/gemm_candidates.h - the configurations among which tuned() chooses. Not installed.
#pragma once

#include <vector>

#include "kernels/tuner/gemm_cost.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// A configuration and its cost.
struct Candidate {
  Gemm options;
  double cycles = 0;
};

/// All configurations of the product that the target can run without spills, of gemm() alone or,
/// with `partial`, followed by gemm_sum(). What describes the product is as in `options`; splits
/// and stream_blocks too, unless `partial` frees them.
std::vector<Gemm> candidates(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
                             bool partial = false);

/// Those of Gemm::direct: of one to four rows.
std::vector<Gemm> direct_candidates(const Gemm& options, const Target& target);

/// The cheapest first; equal costs in the order of candidates(). At most `most`.
std::vector<Candidate> ranked(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
                              bool partial = false, std::size_t most = 12,
                              const GemmConstants& constants = gemm_constants());

/// Whether CTAs of a cluster can share the columns' operand (B; with swap, A) and the rows', and
/// that can pay: where the cache limits, since rows straddle lines or one wave reads them at once.
bool suits_cluster(const Gemm& options, const Target& target, const isa::GpuRow& gpu);

/// Whether the kernel compiles and its threads have registers for it.
bool runs(const Gemm& options, const Target& target);

}  // namespace tartan::TARTAN_ABI::kernels::detail
