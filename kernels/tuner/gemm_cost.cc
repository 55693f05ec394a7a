// SPDX-License-Identifier: Apache-2.0
#include "kernels/tuner/gemm_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/gemm/gemm_lines.h"
#include "kernels/gemm/gemm_stages.h"
#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/model.h"
#include "tartan/isa/advice.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels::detail {

namespace {

constexpr int line_bytes = 128, sector_bytes = 32;  // of the second-level cache
// Of the multiprocessors, for clusters of more than two CTAs: some have too few neighbours that are
// free. As measured on an H100: 30 clusters of four run at a time, 32 do not.
constexpr double clustered = 0.91;
// CTAs that follow each other run on one GPC, which reads a line from the cache once for those that
// ask for it at the same time.
constexpr double neighbours = 16;

double up(double x, double y) { return std::ceil(x / y); }

// Limits that act side by side, but not quite: the longest counts most. The order does not matter.
double together(std::initializer_list<double> limits) {
  double sum = 0;
  for (const double each : limits) sum += each * each;
  return std::sqrt(sum);
}

double sharply(std::initializer_list<double> limits) {
  double sum = 0;
  for (const double each : limits) sum += each * each * each * each;
  return std::sqrt(std::sqrt(sum));
}

int leading(int size, int multiple) { return size ? size : multiple; }

// What the model reads of a configuration, in cycles and bytes of one CTA.
struct Work {
  // `swapped`: C is the transpose of what is stored.
  Work(const Gemm& options, const Target& target, const isa::GpuRow& gpu, const GemmConstants& c,
       bool swapped);

  double m, n, k, steps;                              // steps: k-tiles of one CTA
  double tiles, ctas;                                 // ctas: of the launch
  int resident;                                       // CTAs of one SM at a time
  double tensor, shared, fill, issue, wait, latency;  // of a k-tile
  double copy;       // the share of each thread that copies, if threads do
  double begin = 0;  // of a CTA, for stages without a k-tile
  double epilogue;
  double stage_bytes;
  double own_bytes;  // of those, without what neighbours read too
  bool partial;

 private:
  void copies(const Gemm& options, const Target& target, double line, const GemmConstants& c);
};

// Of neighbours, so many in groups of so many rows: how many rows and columns they have.
struct Spread {
  double rows, columns;

  Spread(double number, double height, double all_columns) {
    const bool even = height <= number && std::fmod(number, height) == 0;
    columns = std::min(even ? number / height : 1 + (number - 1) / height, all_columns);
    rows = std::max(std::min(height, number), number / all_columns);
  }
};

// Rows of A and columns of B that a CTA reads for all of its neighbours, in a group of tiles of so
// many rows.
double own_in_group(double tile_rows, double tile_columns, double height, double columns) {
  const Spread spread(neighbours, height, columns);
  return (spread.rows * tile_rows + spread.columns * tile_columns) / neighbours;
}

// The same of clusters in a line, which share one operand by multicast, and read of the other what
// the clusters beside them read too.
double own_in_line(const Gemm& options, double of_a, double of_b, double rows, double columns) {
  const int down = options.cluster, across = options.cluster_columns;
  const double number = neighbours / (down * across);
  const Spread spread(number, std::clamp<double>(options.group / down, 1, up(rows, down)),
                      up(columns, across));
  return (down > 1 ? spread.rows * down * of_a + number * of_b
                   : number * of_a + spread.columns * across * of_b) /
         neighbours;
}

// The same of all groups: the last one may have fewer rows. Clusters in a line are neighbours where
// a wave has all of them; others go to the GPCs in turn.
double own_rows(const Gemm& options, double m, double n, bool in_line) {
  const double rows = std::max(up(m, options.tile.m), 1.0),
               columns = std::max(up(n, options.tile.n), 1.0), of_a = m / rows, of_b = n / columns;
  if (in_line) return own_in_line(options, of_a, of_b, rows, columns);
  if (cluster_size(options) > 1) return of_a / options.cluster_columns + of_b / options.cluster;
  const double height = std::clamp<double>(options.group, 1.0, rows),
               last = std::fmod(rows, height);
  return (own_in_group(of_a, of_b, height, columns) * (rows - last) +
          (last > 0 ? own_in_group(of_a, of_b, last, columns) * last : 0)) /
         rows;
}

// Cycles of the tensor cores for a k-tile.
double tensor_cycles(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
                     const GemmConstants& c) {
  const Tile& tile = options.tile;
  const bool wgmma = by_wgmma(options, target);
  const int width = bits(options.a);
  double rate = (wgmma ? gpu.wgmma * c.wgmma_share : gpu.mma * c.mma_share) * 16 / width;
  const bool converts = !wgmma && width == 8 && info(options.a).floating &&
                        isa::advised(isa::Advice::fp8_by_wgmma_only, target.arch);
  if (converts) rate /= 4;
  return double{1} * tile.m * tile.n * tile.k / rate;
}

// Bytes that the tensor cores read from shared memory in a k-tile, and a share of those that fill
// it.
double shared_traffic(const Gemm& options, const Target& target, double line,
                      const GemmConstants& c) {
  const Tile& tile = options.tile;
  const double fill = c.filled * (tile.m + tile.n) * line;
  if (by_wgmma(options, target)) return fill + (tile.m + tile.m / 64.0 * tile.n) * line;
  return fill + (double{1} * tile.warps_n * tile.m + double{1} * tile.warps_m * tile.n) * line;
}

Work::Work(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
           const GemmConstants& c, bool swapped) {
  const Tile& tile = options.tile;
  m = options.m ? options.m : 4096, n = options.n ? options.n : 4096,
  k = options.k ? options.k : 4096;
  partial = options.splits > 1 || options.stream_blocks > 0;
  const bool wgmma = by_wgmma(options, target), tma = by_tma(options, target);
  const double line = double{1} * tile.k * bits(options.a) / 8;
  tiles = static_cast<double>(options.tiles(static_cast<int>(m), static_cast<int>(n)));
  const double all = std::max(up(k, tile.k), 1.0);
  const double apart = double{1} * options.splits * options.cluster_splits;
  steps = up(all, apart), ctas = tiles * apart;
  if (options.stream_blocks)
    ctas = options.stream_blocks, steps = up(tiles * all, options.stream_blocks);
  resident = resident_ctas(options, target, gpu);

  tensor = tensor_cycles(options, target, gpu, c);
  shared = shared_traffic(options, target, line, c) / c.shared;
  // Of so many rows, all but one start off a line.
  const std::int64_t row = std::int64_t{leading(options.k, 128)} * bits(options.a) / 8;
  const auto unit = std::gcd(row, std::int64_t{line_bytes});
  const double off = (1 - double(unit) / line_bytes) * (unit % sector_bytes == 0 ? c.sectors : 1),
               more = reads_lines(options) ? c.lines
                      : tma                ? c.straddle
                                           : c.copy_off,
               straddle = 1 + (more - 1) * off;
  // TMA reads whole tiles, some of it twice: any_rows_outside(). Threads read what is inside.
  const double rows = tma ? tile.m : m / up(m, tile.m), columns = tma ? tile.n : n / up(n, tile.n);
  const double read = (rows / options.cluster_columns + columns / options.cluster) * line;
  stage_bytes = read * straddle;
  // block_tile() must know how many there are.
  const bool known = options.m && options.n;
  const int size = options.cluster * options.cluster_columns;
  const bool in_line = known && !options.persistent && apart == 1 && ctas <= gpu.multiprocessors &&
                       model::ordered_by_gpc(target.arch, options.cluster, options.cluster_columns,
                                             static_cast<std::int64_t>(ctas) / size);
  own_bytes = std::min(own_rows(options, m, n, in_line) * line, read) * straddle;
  // Rows that begin within sectors take longer to come, too: a box's row has a fifth one.
  const double within = unit % sector_bytes ? 1 - double(unit) / line_bytes : 0;
  fill = tma ? read * (1 + (c.fill_off - 1) * within) / c.fill : 0;
  issue = copy = 0;
  if (!tma) copies(options, target, line, c), copy *= straddle, begin *= straddle;
  // One warpgroup alone waits for its products before it releases a stage; two take turns.
  const int groups = wgmma ? tile.warps_m / 4 : 1;
  // Of few columns, several CTAs of a multiprocessor hide that. Warpgroups that compute tiles in
  // turn leave their products in flight.
  const bool alone = groups == 1 && tile.n > 16 && tile.products == 1,
             late = tma && options.stages > model::most_prompt_stages;
  wait = wgmma               ? (alone && !late ? c.wgmma_alone
                                : alone        ? c.wgmma_behind
                                               : c.wgmma_wait / groups)
         : options.producers ? c.producer_wait
                             : c.mma_wait;
  // Producers of wgmma wait for their own copies.
  const bool serial = wgmma && !tma;
  latency = serial ? 0 : gpu.latency / std::max(options.stages - 1, 1);
  if (serial) copy += gpu.latency;
  const double c_bytes = double{1} * tile.m * tile.n * (partial ? 32 : bits(options.c)) / 8;
  const int stored = swapped ? options.m : options.n,
            c_line = stored ? stored * bits(options.c) / 8 : 16;
  const bool lanes =
      !options.producers || partial || c_line % 16 != 0 || !target.arch.has(Feature::tma);
  // Through shared memory; of a transpose, only elements of 16 bits.
  const bool scattered = swapped && (lanes || bits(options.c) != 16);
  const double convert = tile.products > 1 ? c.turn_convert : c.convert;
  epilogue = c.epilogue + convert * accumulators(options) +
             c_bytes / (partial     ? c.store_parts
                        : scattered ? c.store_swapped
                        : lanes     ? c.store_lanes
                                    : c.store);
}

// Threads fill a stage: by cp.async, or, where the divisor of the rows is less than four bytes,
// through registers, in words, in batches that wait for their loads: see copy.cc.
void Work::copies(const Gemm& options, const Target& target, double line, const GemmConstants& c) {
  const Tile& tile = options.tile;
  if (reads_lines(options)) {
    const double pieces = (tile.m + tile.n) * line / (16 * 32);  // of a warp's accesses
    issue = pieces * c.piece;
    copy = c.aligned + pieces / (tile.warps_m * tile.warps_n) * c.piece_wait;
    return;
  }
  constexpr int word = 4;
  const int bytes = copied_bytes(options);
  const bool elements = bytes < word, serial = by_wgmma(options, target);
  const bool few =
      model::ThreadBudget::of({.block = tile.threads(), .producers = options.producers}, target)
          .moves;
  const double warps = options.producers ? options.producers : tile.warps_m * tile.warps_n;
  const auto operand = [&](double rows, double inside) {
    const double accesses = rows * line / bytes / 32, each = accesses / warps;
    const bool loops = model::copies_in_loop(rows * line / std::max(bytes, word), 32 * warps);
    issue += accesses * inside * (elements ? c.copy_elements : c.copy);
    copy += each * inside *
            (!elements ? (serial ? c.serial_wait : c.copy_wait * (loops ? c.word_loop : 1))
             : few     ? c.few_wait
                       : c.element_wait * (loops ? c.loop : 1));
    if (serial) copy += rows * line / line_bytes / warps * inside * c.serial_line;
  };
  operand(tile.m, m / (up(m, tile.m) * tile.m));
  operand(tile.n, n / (up(n, tile.n) * tile.n));
  // Stages beyond the end of k are filled too.
  if (elements) begin = std::max(options.stages - 1 - steps, 0.0) * copy;
}

// Cycles of a k-tile with so many CTAs on a multiprocessor.
double step_cycles(const Work& work, double count) {
  const double longest = std::max({work.tensor, work.shared, work.fill, work.issue});
  return together({std::max(longest + work.wait, count * longest), work.copy, work.latency});
}

// Multiprocessors that CTAs of such clusters can have at a time.
double multiprocessors_for(int cluster, const isa::GpuRow& gpu) {
  if (cluster <= 2) return gpu.multiprocessors;
  return std::max(std::floor(clustered * gpu.multiprocessors / cluster), 1.0) * cluster;
}

// Cycles of the busiest multiprocessor.
double multiprocessor_cycles(const Gemm& options, const Work& work, const isa::GpuRow& gpu,
                             const GemmConstants& c) {
  const double begin = c.prologue + gpu.latency + work.begin;
  if (options.persistent) {
    const double blocks = options.persistent_blocks(static_cast<int>(work.m),
                                                    static_cast<int>(work.n), gpu.multiprocessors);
    const double each = up(work.tiles, blocks), step = step_cycles(work, 1);
    // Warpgroups in turn store while others multiply.
    if (const int products = options.tile.products; products > 1) {
      const double multiplied = work.steps * step + c.turn;
      return begin + work.epilogue +
             each * std::max(multiplied, (multiplied + work.epilogue) / products);
    }
    return begin + each * work.steps * step +
           (each - 1) * (c.between + work.epilogue - c.epilogue) + work.epilogue;
  }
  double left = up(work.ctas, multiprocessors_for(cluster_size(options), gpu)), out = 0, waves = 0;
  while (left > 0) {
    const double now = std::min<double>(left, work.resident);
    const double rounds = left >= work.resident ? std::floor(left / work.resident) : 1;
    out += rounds * (begin + work.steps * step_cycles(work, now) +
                     (work.epilogue - c.epilogue) * now + c.epilogue);
    left -= rounds * now;
    waves += rounds;
  }
  const bool four = options.cluster * options.cluster_columns >= 4;
  return out + std::max(waves - 1, 0.0) * (four ? c.wave_of_four : c.wave);
}

// Bytes from memory: operands once, and again where the cache does not keep them.
double memory_bytes(const Gemm& options, const Work& work, const isa::GpuRow& gpu,
                    const GemmConstants& c) {
  const double element = bits(options.a) / 8.0, a = work.m * work.k * element,
               b = work.n * work.k * element, written = work.m * work.n * bits(options.c) / 8.0;
  const double rows = std::min(double{1} * options.group * options.tile.m, work.m),
               bands = up(work.m, double{1} * options.group * options.tile.m);
  const double kept = gpu.cache_bytes * c.reuse;
  // A group of tile rows walks along all columns of B; the next one does again. One wave reads all
  // at the same time.
  const bool once = (!options.stream_blocks && work.ctas <= gpu.multiprocessors) ||
                    b + rows * work.k * element <= kept;
  const double again = once ? 1 : bands;
  return a + b * again + written;
}

// Whether partial sums are gone from the cache when they are read: operands pass through it.
bool leave_cache(const Gemm& options, const Work& work, const isa::GpuRow& gpu, double parts,
                 const GemmConstants& c) {
  const double operands = (work.m + work.n) * work.k * bits(options.a) / 8.0;
  return 2 * parts + operands > 2 * gpu.cache_bytes * c.reuse;
}

// Of the reduction after split-K and stream-K: a launch; the partial sums of C, which come from the
// cache, or from memory where it does not hold them; C.
double sum_cycles(const Gemm& options, const Work& work, const isa::GpuRow& gpu, double parts,
                  const GemmConstants& c) {
  const double c_bytes = work.m * work.n * bits(options.c) / 8.0;
  const double rate = leave_cache(options, work, gpu, parts, c) ? gpu.memory * c.memory_share
                                                                : gpu.cache * c.cache_share;
  if (options.splits > 1) {
    const double read = 4.0 * work.m * work.n * options.splits;
    return c.second_launch + (read + c_bytes) / (rate * c.sum_share);
  }
  // A CTA of 256 threads for each tile, element after element.
  constexpr double threads = 256, resident = 8;
  const double rounds = up(work.tiles, gpu.multiprocessors * resident),
               parts_of_tile = 1 + work.ctas / work.tiles;
  return c.second_launch +
         rounds * options.tile.m * options.tile.n / threads * parts_of_tile * c.sum_wait;
}

// Of a tile's accumulators, what each CTA reads that adds up a part of it, in a cluster that
// divides k: all, or more where fewer CTAs have a part.
double parts_each(const Gemm& options) {
  const Tile& tile = options.tile;
  const int across = std::max(tile.n / (8 * std::max(tile.warps_n, 1)), 1);
  return double(options.cluster_splits) / scatter_parts(options.cluster_splits, across);
}

}  // namespace

const GemmConstants& gemm_constants() {
  static constexpr GemmConstants fitted{};
  return fitted;
}

GemmCost gemm_cost(const Gemm& given, const Target& target, const isa::GpuRow& gpu,
                   const GemmConstants& c) {
  if (given.direct) return direct_cost(given, gpu, c);
  const Gemm options = in_tiles(given);
  const Work work(options, target, gpu, c, given.swap);
  GemmCost out;
  out.fixed = c.launch;
  out.multiprocessor = multiprocessor_cycles(options, work, gpu, c);
  if (options.tile.m == 256 && options.tile.warps_m == 8 && by_wgmma(options, target))
    out.multiprocessor *= c.tall;
  if (options.cluster * options.cluster_columns > 1) {
    const bool lines = begins_on_lines(options);
    out.multiprocessor *= lines ? c.clusters_on_lines : c.clusters;
    out.fixed += lines ? c.launch_on_lines : c.cluster_launch;
  }
  if (options.persistent && options.cluster > 1 && options.cluster_columns > 1)
    out.multiprocessor *= c.square;
  if (by_wgmma(options, target))
    out.multiprocessor = std::max(
        out.multiprocessor, c.power * work.ctas * work.steps * work.tensor / gpu.multiprocessors);
  if (options.cluster_splits > 1)  // after all loads
    out.fixed += c.cluster_sum + c.cluster_part * options.cluster_splits +
                 4.0 * options.tile.m * options.tile.n * parts_each(options) / c.cluster_bytes;
  // Neighbours that divide k read nothing that others just read.
  const double apart = options.cluster_splits == 1 ? 1
                       : by_tma(options, target)   ? c.apart
                                                   : c.apart_copied;
  const double loaded = work.ctas * work.steps * apart *
                        (work.own_bytes + c.together * (work.stage_bytes - work.own_bytes)),
               stored = work.m * work.n * bits(options.c) / 8.0,
               parts = work.partial ? 4.0 * options.tile.m * options.tile.n * work.ctas : 0;
  out.cache = (loaded + stored + parts / c.sum_share) / (gpu.cache * c.cache_share);
  out.memory = memory_bytes(options, work, gpu, c) / (gpu.memory * c.memory_share);
  if (work.partial) out.memory *= c.pieces;
  const double edges = c.prologue + gpu.latency + work.epilogue;
  if (work.partial) {
    out.fixed += sum_cycles(options, work, gpu, parts, c);
    if (leave_cache(options, work, gpu, parts, c))
      out.memory += parts / (gpu.memory * c.memory_share * c.sum_share);
  }
  out.cycles = out.fixed + sharply({out.multiprocessor, out.cache + edges, out.memory + edges});
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
