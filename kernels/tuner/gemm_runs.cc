// SPDX-License-Identifier: Apache-2.0
// Which configurations of GEMM run at all, and which of them are worth a cluster.
#include <algorithm>

#include "kernels/gemm/gemm_lines.h"
#include "kernels/gemm/gemm_stages.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/tuner/gemm_candidates.h"
#include "tartan/dsl/model.h"
#include "tartan/isa/advice.h"

namespace tartan::TARTAN_ABI::kernels::detail {

namespace {

// Registers of consumers beside their accumulators, see register_budget.cc.
constexpr int beside_wgmma = 26, beside_waits = 20;
// Of threads that also hold fragments of mma.sync and addresses.
constexpr int beside_fragments = 56;

}  // namespace

bool suits_cluster(const Gemm& options, const Target& target, const isa::GpuRow& gpu) {
  if (options.swap) return suits_cluster(in_tiles(options), target, gpu);
  if (!by_tma(options, target) || options.m <= (options.cluster - 1) * options.tile.m ||
      options.n <= (options.cluster_columns - 1) * options.tile.n)
    return false;
  // The CTAs of a column load groups of 8 of its lines each, or whole panels of 128 bytes.
  if (options.b_major == Major::row ? options.tile.n % (8 * options.cluster) != 0
                                    : options.tile.n < 8 * options.cluster)
    return false;
  // Clusters of more CTAs are few, and persistent ones leave multiprocessors idle. On lines, where
  // neighbours ask the cache for the same lines at the same time, pairs share too little, and a
  // launch in clusters costs more than short sums gain, or those of bytes.
  const int longest = std::max(options.cluster, options.cluster_columns);
  const bool at_once =
      !options.persistent &&
      options.tiles(options.m, options.n) * std::int64_t{options.splits} <= gpu.multiprocessors;
  if (begins_on_lines(options))
    return at_once && longest == 4 && has_long_sums(options) && bits(options.a) > 8;
  return at_once || longest == 2;
}

bool runs(const Gemm& options, const Target& target) {
  const ArchRow* arch = find_arch(target.arch);
  if (!arch || shared_bytes(options) > arch->shared_bytes) return false;
  const auto budget = model::ThreadBudget::of(
      {.block = options.tile.threads(), .producers = options.producers}, target);
  if (budget.threads > 1024) return false;
  if (by_tensor(options, target)) return true;
  const int held = accumulators(options) * (options.promote > 0 ? 2 : 1);
  if (!by_wgmma(options, target)) {
    const Tile& tile = options.tile;
    // The converted operands take registers too.
    const bool converts = bits(options.a) == 8 && info(options.a).floating &&
                          isa::advised(isa::Advice::fp8_by_wgmma_only, target.arch);
    if (converts && options.producers && held > 32) return false;
    // Threads that copy more than a row of a k-tile each, beside many accumulators, spill; those
    // that read lines, and keep where each of them is, beside as many.
    const bool lines = reads_lines(options);
    if (converts && held >= 64 && (lines || tile.m + tile.n > tile.threads())) return false;
    if (lines && held >= 128) return false;
    const int fragments =
        (tile.m / tile.warps_m / 4 + tile.n / tile.warps_n / 4) * (converts ? 3 : 1);
    return tile.n % (8 * tile.warps_n) == 0 &&
           held + fragments + beside_fragments <= budget.consumers;
  }
  const bool integers = !info(options.a).floating;
  if (integers && options.tile.n > 32 && options.tile.n % 16 != 0) return false;
  const int product = options.tile.n / 2;  // of an m64
  return product + beside_wgmma <= budget.at_start &&
         held + beside_waits <= std::max(budget.consumers, budget.at_start);
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
