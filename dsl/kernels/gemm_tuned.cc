// SPDX-License-Identifier: Apache-2.0
// The tiles that were fastest on an H100, by the size of the product.
#include <algorithm>

#include "tartan/dsl/kernels/gemm.h"

namespace tartan::inline TARTAN_ABI::kernels {
namespace {

constexpr int line_bytes = 128;  // that a stage has along k

// Bits of a row in memory.
std::int64_t line_of_a(const Gemm& options) {
  return std::int64_t{options.a_major == Major::row ? options.k : options.m} * bits(options.a);
}
std::int64_t line_of_b(const Gemm& options) {
  return std::int64_t{options.b_major == Major::row ? options.n : options.k} * bits(options.b);
}

// Whether rows of A or B start off cache-line boundaries, so that a box row spans two lines.
bool straddles(const Gemm& options) {
  return line_of_a(options) % (8 * line_bytes) || line_of_b(options) % (8 * line_bytes);
}

// Estimated cycles of one SM for its share. Per k-tile, the tensor cores take 4 cycles per column
// of the tile for any type, and operands arrive at 64 bytes per cycle; the larger one counts.
// Between two tiles 4500 cycles pass.
std::int64_t cycles(const Gemm& options) {
  const Tile& tile = options.tile;
  const unsigned blocks = options.persistent_blocks(options.m, options.n, h100_multiprocessors);
  const std::int64_t tiles = (options.tiles(options.m, options.n) + blocks - 1) / blocks;
  const std::int64_t steps = options.k ? (options.k + tile.k - 1) / tile.k : 64;
  const int packets = straddles(options) ? 3 : 2;
  return tiles * (steps * std::max(4 * tile.n, packets * (tile.m + tile.n)) + 4500);
}

// As many stages as fit beside the staging memory of C.
int stages_of(const Tile& tile) {
  return std::min(192 * 1024 / ((tile.m + tile.n) * line_bytes), 8);
}

// Narrows the tile if the last wave would leave most of h100_multiprocessors idle. Boxes of C need
// rows of at least 32 bytes, and a row-major B rows of 128.
void fit_width(Gemm& options) {
  const int step = options.b_major == Major::row ? 8 * line_bytes / bits(options.b)
                                                 : std::max(256 / bits(options.c), 16);
  const std::int64_t before = cycles(options);
  Gemm best = options;
  for (int n = options.tile.n - step; n >= 64; n -= step) {
    Gemm narrower = options;
    narrower.tile.n = n;
    narrower.stages = stages_of(narrower.tile);
    if (cycles(narrower) < cycles(best)) best = narrower;
  }
  if (cycles(best) < before - before / 32) options = best;
}

// For mma.sync, ldmatrix and cp.async: the largest tile of which there are at least `tiles`.
Gemm tuned_for_threads(const Gemm& options, const Target& target) {
  Gemm out = options;
  const int line = 8 * line_bytes / bits(options.a);  // elements
  struct Way {
    Tile tile;
    int stages;
    unsigned tiles;
  };
  const Way ways[] = {
      {{.m = 128, .n = 256, .k = line, .warps_m = 2, .warps_n = 4}, 3, 2 * h100_multiprocessors},
      {{.m = 128, .n = 128, .k = line, .warps_m = 2, .warps_n = 2}, 3, h100_multiprocessors},
      {{.m = 64, .n = 64, .k = line, .warps_m = 2, .warps_n = 2}, 4, h100_multiprocessors},
      {{.m = 32, .n = 64, .k = 2 * line, .warps_m = 2, .warps_n = 2}, 4, 0}};
  // There, mma.sync multiplies fp8 as f16, and the converted operands need registers too.
  const bool converts = bits(options.a) == 8 && info(options.a).floating && target.arch.sm >= 90 &&
                        target.arch.sm < 120;
  const ArchRow* arch = find_arch(target.arch);
  for (Way way : ways) {
    if (converts && way.tile.m == 128) way.tile.n = 128, way.tile.warps_n = 4;
    out.tile = way.tile, out.stages = way.stages;
    const int bytes = way.stages * (way.tile.m + way.tile.n) * way.tile.k * bits(options.a) / 8;
    const bool unknown = options.m == 0 || options.n == 0;
    if (arch && bytes <= arch->shared_bytes &&
        (unknown || out.blocks(options.m, options.n) >= way.tiles))
      break;
  }
  return out;
}

// Few rows: the bandwidth of B is the limit.
constexpr int few_rows = 32;
Gemm tuned_for_rows(const Gemm& options, const Target& target) {
  Gemm out = options;
  const int line = 8 * line_bytes / bits(options.a);
  out.tile = {
      .m = options.m <= 16 ? 16 : few_rows, .n = 64, .k = 2 * line, .warps_m = 1, .warps_n = 4};
  const int stage_bytes = (out.tile.m + out.tile.n) * 2 * line_bytes;
  const ArchRow* arch = find_arch(target.arch);
  out.stages = std::clamp((arch ? arch->shared_bytes : 0) / stage_bytes, 2, 8);
  return out;
}

}  // namespace

Gemm tuned(const Gemm& options, const Target& target) {
  Gemm out = options;
  const int width = bits(options.a);
  if (target.arch.sm < 80 || width < 8 || width > 32 || options.accumulator == f64) return out;
  if (options.m < 0 || options.n < 0 || options.k < 0 || options.cluster < 1 ||
      bits(options.b) == 0 || bits(options.c) == 0)
    return out;  // gemm() reports the error
  // Hours of work for the whole GPU; cycles() does not overflow below that.
  if (double{1} * options.m * options.n * options.k > 0x1p62) return out;
  const bool hopper = target.arch.text() == "sm_90a";
  // Targets whose mma.sync multiplies fp8 as f16, at half the speed.
  const bool slow_by_threads = hopper && width == 8 && info(options.a).floating;
  if (options.m && options.m <= few_rows && !slow_by_threads)
    return tuned_for_rows(options, target);
  if (!hopper) return tuned_for_threads(options, target);
  // The largest tile of which there are at least `tiles`.
  struct Way {
    int m, n, stages;
    int group;
    unsigned tiles;
    bool persistent = false;
  };
  const bool short_sums = width > 8 && options.k > 0 && options.k <= 4096;
  const bool four_stages = short_sums || (width == 8 && bits(options.c) == 32);
  const Way flat{64, 128, 6, 8, 0};
  const Way ways[] = {{128, 256, four_stages ? 4 : 3, width == 32 && !short_sums ? 8 : 16,
                       h100_multiprocessors, true},
                      {128, 256, 4, 4, 17},
                      {64, 64, 8, 8, 96},
                      {64, 32, 8, 8, 0}};
  const bool known = options.m > 0 && options.n > 0,
             whole = options.splits == 1 && options.stream_blocks == 0;
  const auto use = [&](const Way& way) {
    out.tile = {
        .m = way.m, .n = way.n, .k = 8 * line_bytes / width, .warps_m = way.m / 16, .warps_n = 1};
    out.stages = way.stages, out.producers = 4;
    out.group = way.group;
    out.persistent = way.persistent && whole;
    return options.m == 0 || options.n == 0 || out.blocks(options.m, options.n) >= way.tiles;
  };
  if (options.m && options.m <= flat.m) return use(flat), out;
  for (const Way& way : ways)
    if (use(way)) break;
  if (out.tile.n != 256 || !whole || !known) return out;
  // TMA reads what blocks share from the cache once.
  if (out.persistent && options.cluster == 1 && straddles(options) && line_of_b(options) % 128 == 0)
    out.cluster = 2, out.stages = 4;
  fit_width(out);
  if (!out.persistent && out.tile.n <= 96) out.group = 8;
  return out;
}

}  // namespace tartan::inline TARTAN_ABI::kernels
