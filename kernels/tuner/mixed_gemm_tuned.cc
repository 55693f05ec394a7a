// SPDX-License-Identifier: Apache-2.0
// Tiles of mixed_gemm(). Few rows of X are bound by reading W: many warps share a k-tile, and many
// stages are in flight. Many rows are bound by the tensor cores.
#include <algorithm>

#include "kernels/common/integers.h"
#include "kernels/mixed/mixed_numbers.h"
#include "tartan/isa/feature.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/tuning.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int few_rows = 16, most_split_rows = 128, least_stages = 3, most_stages = 8, chunk = 64;

// An upper bound; `waste`: of a stage, for the alignment of zero points.
std::int64_t shared_bytes(const MixedGemm& with, const Target& target, int waste = 128) {
  const std::int64_t m = with.tile_m, n = with.tile_n, k = with.tile_k;
  const std::int64_t box = mixed_box_rows(with, target),
                     x = box ? quotient_up(box * (k + chunk) / chunk, 8) * 8 * chunk : m * k;
  const std::int64_t scales = std::max(with.tile_k / with.group, 1) * n * (with.zeros ? 3 : 2);
  const std::int64_t stage =
      2 * x + k * n * bits(with.weight) / 8 + quotient_up(scales, 128) * 128 + waste;
  const std::int64_t part = with.split && with.cluster > 1 ? 4 * m * (n + 4) : 0;
  return with.stages * stage + 2 * m * (n + 8) + 4 * (with.warps_k - 1) * m * n + part + 512;
}

// Few rows from sm_90 on: a tile for each multiprocessor, or for each pair of them, which divides
// k. So each reads as much, and the launch after this one finds as much room on each.
void fit_few_rows(MixedGemm& out, int m, int n, int multiprocessors) {
  constexpr int most = 8, least = 3;  // blocks of 16 columns
  const std::int64_t blocks = quotient_up(n, 16);
  const auto each = [&](int workers) {
    const std::int64_t all = quotient_up(blocks, workers);
    return static_cast<int>(quotient_up(all, quotient_up(all, most)));
  };
  int across = each(multiprocessors);
  const bool boxes =
      out.k > 0 && out.k % chunk == 0 &&  // see mixed_box_rows()
      (out.weight == Type::u4 ? m <= 8 || across <= most / 2 : m <= 8 && across >= least);
  // More rows of X than columns of W are read again for each tile, many copies of them.
  if (across < (boxes ? 2 : least) || (m > 8 && across <= most / 2 && !boxes)) {
    out.split = true, out.cluster = 2;
    across = each(std::max(multiprocessors / 2, 1));
  } else {
    out.split = false, out.even = true;
  }
  out.tile_m = m <= 8 ? 8 : 16, out.tile_n = 16 * across;
  out.tile_k = across <= most / 2 ? 512 : 256;
  if (out.weight == Type::u8) out.tile_k /= 2;
  out.warps_n = across, out.warps_k = across <= 2 ? 4 : 2;
  if (out.even && boxes) {
    // A warp multiplies several blocks where that leaves enough warps.
    const int chunks = out.tile_k / chunk;
    if (m <= 8 && across == 2) out.warps_n = 1, out.warps_k = std::min(8, chunks);
    else if (m <= 8) out.warps_k = across <= 4 ? std::min(4, chunks) : across < 7 ? 2 : 1;
    else if (across == 4) out.warps_n = 2, out.warps_k = 8;
  }
  out.scale_sums = out.overlap = true, out.producers = 1;
}

// Up to 128 rows by wgmma: stages that are long along k, and whole tiles, or pairs of CTAs that
// divide k, where these nearly fill the GPU.
void fit_some_rows(MixedGemm& out, int m, int n, int multiprocessors) {
  out.tile_m = m <= 32 ? 32 : m <= 64 ? 64 : 128;
  out.tile_k = out.tile_m <= 64 ? 256 : 128;
  if (out.weight == Type::u8) out.tile_k /= 2;
  const auto fills = [&](int ctas) {  // of a tile
    const std::int64_t all = ctas * quotient_up(n, out.tile_n);
    return 5 * all >= std::int64_t{4} * multiprocessors * quotient_up(all, multiprocessors);
  };
  if (fills(1)) out.split = false;
  else if (fills(2)) out.cluster = 2;
}

// Rows of a tile that wgmma multiplies: the fewest waves, then the fewest rows beyond X.
int rows_of_tile(int m, int n, int tile_n, int multiprocessors, int most) {
  int best = 0;
  std::int64_t least = 0;
  constexpr int start = 24;  // what a tile costs beside its k-tiles, in rows
  for (const int rows : {256, 192, 128, 64}) {
    if (rows > most) continue;
    const std::int64_t waves = quotient_up(quotient_up(m, rows) * quotient_up(n, tile_n),
                                           multiprocessors),
                       cost = waves * (rows + start);
    if (!best || cost < least) best = rows, least = cost;
  }
  return best;
}

}  // namespace

MixedGemm tuned(const MixedGemm& options, const Gpu& gpu) {
  const Target& target = gpu.target();
  MixedGemm out = options;
  const ArchRow* const arch = find_arch(target.arch);
  if (!arch || (out.weight != Type::u4 && out.weight != Type::u8) || out.group < 1) return out;
  const int m = out.m > 0 ? out.m : 4096, n = out.n > 0 ? out.n : 4096;
  // By tcgen05 (not measured) the tiles are those of wgmma, by half as many warps: 128 rows of W in
  // a warpgroup, not 64.
  const bool tensor = target.has(Feature::tensor_memory),
             warpgroups = tensor || target.has(Feature::wgmma);
  out.warpgroups = out.even = out.overlap = false;
  out.producers = 0, out.min_blocks = 0, out.cluster = 1;
  // Half of the memory of a multiprocessor, where two launches share it.
  const std::int64_t half = (arch->shared_bytes + 1024) / 2 - 1024;
  std::int64_t most_bytes = arch->shared_bytes;
  bool alone = false;
  if (m <= few_rows && target.has(Feature::tma)) {
    fit_few_rows(out, m, n, gpu.multiprocessors());
    // Boxes of more than 8 rows leave too few stages there.
    alone = m > 8 && out.even && mixed_box_rows(out, target);
    most_bytes = alone ? std::min<std::int64_t>(140 * 1024, arch->shared_bytes) : half;
  } else if (m <= few_rows) {
    out.scale_sums = out.split = true, out.producers = target.arch.has(Feature::tma) ? 1 : 0;
    out.tile_m = m <= 8 ? 8 : 16, out.tile_n = m <= 8 ? 64 : 128;
    out.tile_k = out.weight == Type::u4 ? 512 : 256;
    out.warps_n = out.tile_n / 16, out.warps_k = 16 / out.warps_n;
  } else {
    out.scale_sums = false, out.split = m <= most_split_rows;
    out.tile_n = 128, out.tile_k = 64, out.warps_k = 1;
    if (warpgroups) {
      out.warpgroups = true, out.producers = 4, out.warps_n = tensor ? 4 : 8;
      if (out.split) {
        fit_some_rows(out, m, n, gpu.multiprocessors());
      } else {
        // Of tcgen05, a thread has a row of W, and as many sums as X has rows.
        out.tile_m = rows_of_tile(m, n, out.tile_n, gpu.multiprocessors(), tensor ? 192 : 256);
        if (out.tile_m <= 64) out.tile_k = 128;
        if (n > out.tile_n) out.cluster = 2;
      }
    } else {
      out.warps_n = 4, out.tile_m = m <= 32 ? 32 : 64;
    }
  }
  // Few rows of 4 bits: weights that a launch copies beside the end of the one before it, more than
  // about half of what that one still reads, slow that one down.
  int most_ahead = most_stages;
  if (out.even && out.weight == Type::u4)
    most_ahead = std::clamp(64 * 1024 / (out.tile_n * out.tile_k / 2), 1, most_stages);
  const auto fill = [&] {
    for (out.stages = most_ahead; out.stages > 1 && shared_bytes(out, target) > most_bytes;)
      --out.stages;
  };
  for (fill(); out.stages < least_stages && out.tile_k > chunk * out.warps_k; fill())
    out.tile_k /= 2;
  // With four stages, there may be room for two launches after all.
  constexpr int enough = 4;
  const int waste = out.zeros ? 128 : 0;
  if (alone && out.stages > enough && shared_bytes(out, target, waste) > half) {
    MixedGemm beside = out;
    beside.stages = enough;
    if (shared_bytes(beside, target, waste) <= half) out = beside;
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
