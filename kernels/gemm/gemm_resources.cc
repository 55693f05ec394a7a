// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_resources.h"

#include <algorithm>
#include <numeric>

#include "kernels/gemm/gemm_lines.h"
#include "kernels/gemm/gemm_stages.h"
#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/model.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels::detail {

namespace {

constexpr int line_bytes = 128;         // of the second-level cache
constexpr int shared_of_system = 1024;  // of each CTA

model::ThreadBudget budget_of(const Gemm& options, const Target& target) {
  return model::ThreadBudget::of({.block = options.tile.threads(), .producers = options.producers},
                                 target);
}

int leading(int size, int multiple) { return size ? size : multiple; }

// Registers of a thread beside its accumulators, as ptxas allots them.
int registers_beside(const Gemm& options, const Target& target) {
  if (by_wgmma(options, target)) return 32;
  if (options.producers) return 56;
  if (reads_lines(options)) return bits(options.a) == 8 ? 128 : 96;
  // Bytes take more: copied one by one, and as fragments of large tiles.
  const bool more =
      bits(options.a) == 8 && (accumulators(options) >= 32 || copied_bytes(options) < 4);
  return more ? 148 : 88;
}

}  // namespace

bool by_wgmma(const Gemm& options, const Target& target) {
  if (options.swap) return by_wgmma(in_tiles(options), target);
  const Tile& tile = options.tile;
  return target.has(Feature::wgmma) && options.producers > 0 && tile.warps_n == 1 &&
         tile.warps_m % 4 == 0 && tile.m % (16 * tile.warps_m) == 0 && tile.n % 8 == 0 &&
         (bits(options.a) == 16 || bits(options.a) == 8 || bits(options.a) == 32) &&
         suits_warpgroups(options, tile);
}

bool by_tensor(const Gemm& options, const Target& target) {
  if (options.swap) return by_tensor(in_tiles(options), target);
  constexpr int most_columns = 512;  // of tensor memory
  const Tile& tile = options.tile;
  if (!target.has(Feature::tensor_memory) || options.producers == 0 || tile.warps_n != 1 ||
      tile.warps_k != 1 || tile.warps_m < 4 || tile.warps_m % 4 != 0)
    return false;
  const int warpgroups = tile.warps_m / 4, rows = tile.m / warpgroups;
  const bool alike = options.a == options.b, floating = info(options.a).floating,
             bytes = bits(options.a) == 8 && bits(options.b) == 8 &&
                     floating == info(options.b).floating,
             known =
                 bytes || (alike && (options.a == f16 || options.a == bf16 || options.a == f32));
  const bool half = options.accumulator == f16 && (options.a == f16 || (bytes && floating));
  return known && (half || options.accumulator == (floating ? f32 : s32)) &&
         tile.m % warpgroups == 0 && (rows == 64 || rows == 128) && tile.n % 16 == 0 &&
         tile.n <= 256 && warpgroups * tile.products * tile.n <= most_columns &&
         suits_warpgroups(options, tile);
}

bool by_pairs(const Gemm& options, const Target& target) {
  if (options.swap) return by_pairs(in_tiles(options), target);
  const Tile& tile = options.tile;
  return options.cluster == 2 && options.cluster_columns == 1 && by_tensor(options, target) &&
         tile.m == 32 * tile.warps_m && tile.n % 64 == 0;
}

bool by_tma(const Gemm& options, const Target& target) {
  if (options.swap) return by_tma(in_tiles(options), target);
  if (!target.has(Feature::tma) || options.producers == 0) return false;
  const auto whole = [&](int size) {
    return std::int64_t{leading(size, options.multiple)} * bits(options.a) % 128 == 0;
  };
  return whole(options.a_major == Major::row ? options.k : options.m) &&
         whole(options.b_major == Major::row ? options.n : options.k);
}

bool begins_on_lines(const Gemm& options) {
  const std::int64_t row = options.b_major == Major::row ? options.n : options.k;
  return row * bits(options.a) / 8 % line_bytes == 0;
}

bool has_long_sums(const Gemm& options) {
  constexpr int lines = 64;
  return std::int64_t{options.k} * bits(options.a) / 8 >= lines * line_bytes;
}

int copied_bytes(const Gemm& options) {
  const int width = bits(options.a), k = leading(options.k, options.multiple);
  return std::max(std::gcd(k, 128 / width) * width / 8, 1);
}

int accumulators(const Gemm& options) {
  const Tile& tile = options.tile;
  return tile.m * tile.n / std::max(tile.warps_m * tile.warps_n * 32, 1);
}

int thread_registers(const Gemm& options, const Target& target) {
  return budget_of(options, target).at_start;
}

int resident_ctas(const Gemm& options, const Target& target, const isa::GpuRow& gpu) {
  constexpr int registers = 65536, most_threads = 1536;
  const Tile& tile = options.tile;
  const auto budget = budget_of(options, target);
  if (budget.moves && budget.consumers > budget.at_start) return 1;
  const int threads = budget.threads, sums = accumulators(options) * (options.promote > 0 ? 2 : 1),
            each = sums + registers_beside(options, target);
  const std::int64_t staged =
      options.producers ? std::int64_t{tile.m} * tile.n * bits(options.c) / 8 : 0;
  const std::int64_t by_memory =
                         gpu.shared_bytes / (shared_bytes(options) + staged + shared_of_system),
                     by_registers = registers / (threads * each);
  return static_cast<int>(std::clamp<std::int64_t>(std::min(by_memory, by_registers), 1,
                                                   std::max(most_threads / threads, 1)));
}

int ctas_at_a_time(const Gemm& options, const Target& target) {
  const isa::GpuRow* gpu = isa::find_gpu(target.arch);
  const Tile& tile = options.tile;
  const int threads = tile.threads();
  if (!gpu || options.direct || options.producers || threads < 32 || threads > 1024) return 0;
  for (const int size : {tile.m, tile.n, tile.k, options.stages})
    if (size < 1 || size > 4096) return 0;  // gemm() refuses that tile
  return resident_ctas(options, target, *gpu);
}

int most_registers(const Gemm& options, const Target& target) {
  const auto budget = budget_of(options, target);
  if (!budget.moves || options.tile.threads() > 1024) return 0;
  // As measured: of an epilogue that computes, and of one that only stores.
  constexpr int beside_epilogue = 88, beside_stores = 56;
  // Sums of tensor memory are stored part by part.
  const int sums = by_tensor(options, target)
                       ? 64
                       : accumulators(options) * (options.promote > 0 ? 2 : 1),
            each = sums + (options.epilogue.empty() ? beside_stores : beside_epilogue);
  return each <= budget.at_start && budget.at_start < budget.consumers ? budget.at_start : 0;
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
