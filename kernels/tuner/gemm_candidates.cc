// SPDX-License-Identifier: Apache-2.0
#include "kernels/tuner/gemm_candidates.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "kernels/gemm/gemm_lines.h"
#include "kernels/gemm/gemm_order.h"
#include "kernels/gemm/gemm_stages.h"
#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/model.h"
#include "tartan/isa/advice.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels::detail {

namespace {

constexpr int line_bytes = 128;  // of a row of a stage's panel

int line_elements(const Gemm& options) { return 8 * line_bytes / bits(options.a); }

// Collects the configurations of one product.
class Collector {
 public:
  Collector(const Gemm& options, const Target& target, const isa::GpuRow& gpu, bool partial)
      : options_(options),
        target_(target),
        gpu_(gpu),
        partial_(partial),
        stages_(options, target, gpu) {
    Gemm produced = options;
    produced.producers = 4;
    by_boxes_ = by_tma(produced, target);
    // Producers that copy element by element take twice as long as all threads, or longer.
    warpgroups_ = target.has(Feature::wgmma) && (by_boxes_ || copied_bytes(options) >= 4);
  }

  std::vector<Gemm> all() {
    std::vector<Gemm> direct = direct_candidates(options_, target_);
    // Few rows off 16 bytes, which TMA does not copy: threads take 1.2 to 3 times as long.
    if (!direct.empty() && copied_bytes(options_) < 16 && options_.n >= gpu_.multiprocessors)
      return direct;
    if (warpgroups_ && by_boxes_) by_swap();
    if (warpgroups_) by_warpgroups();
    if (warpgroups_ && by_boxes_) by_turns(), by_lasting_swap(), by_swapped_columns();
    by_warps();
    out_.insert(out_.end(), direct.begin(), direct.end());
    for (Gemm& each : out_) beside_each_other(each);
    return std::move(out_);
  }

 private:
  // Few rows as wgmma's N: faster than mma.sync up to 16.
  void by_swap() {
    constexpr int few = 16;
    if (options_.m < 1 || options_.m > few || options_.a_major != Major::row) return;
    if (options_.splits != 1 || options_.stream_blocks != 0) return;
    Gemm each = swapped_tile(64, options_.m <= 8 ? 8 : few, 2);
    each.producers = 1;
    if (!by_wgmma(each, target_)) return;
    for (const int stages : stages_.counts(each, tiles_of(each))) {
      each.stages = stages;
      if (runs(each, target_)) out_.push_back(each);
    }
  }

  // More rows as wgmma's N.
  void by_swapped_columns() {
    constexpr int few = 16, most = 512;
    if (options_.m <= few || options_.n == 0 || options_.a_major != Major::row) return;
    if (options_.splits != 1 || options_.stream_blocks != 0 || options_.batched) return;
    const bool is_low = options_.m <= most;
    if (is_low) in_few_columns();
    in_even_columns(is_low ? most_across + 1 : 1);
  }

  static constexpr int most_across = 4, widest_swapped = 256;
  // Columns of swapped tiles: clusters of four divide them into boxes of eight.
  int least_columns() const { return info(options_.a).floating ? 8 : 16; }

  // Up to four tiles have all rows, without much padding, and clusters share A.
  void in_few_columns() {
    const int units[] = {least_columns(), 16, 32};
    for (int across = 1; across <= most_across; ++across) {
      const int rows = (options_.m + across - 1) / across;
      int before = 0;
      for (const int unit : units) {
        const int columns = (rows + unit - 1) / unit * unit;
        if (columns > widest_swapped || (across > 1 && columns < 40)) continue;
        if (std::exchange(before, columns) == columns || (across > 1 && unit == 32)) continue;
        for (const int height : {64, 128, 192, 256})
          for (const int lines : {1, 2}) swapped(height, columns, lines);
      }
    }
  }

  // Tiles that divide the rows evenly, at least `fewest` across, where one wave has all of them: as
  // narrow as they can be, and with the columns that most tiles have.
  void in_even_columns(int fewest) {
    const int least = least_columns(), rows = options_.m;
    for (int unit = least; unit <= 16; unit *= 2)
      for (int across = std::max((rows + widest_swapped - 1) / widest_swapped, fewest);; ++across) {
        const int each = (rows + across - 1) / across, columns = (each + unit - 1) / unit * unit;
        if (columns < 64 || across > gpu_.multiprocessors) break;
        const bool twice = unit > least && columns - each < least;  // by `least` too
        if (columns > widest_swapped || twice) continue;
        for (const int height : {64, 128, 192, 256}) {
          if (height == 64 && !off_lines()) continue;
          const std::int64_t tiles = std::int64_t{across} * ((options_.n + height - 1) / height);
          if (tiles <= gpu_.multiprocessors && 4 * tiles >= 3 * gpu_.multiprocessors)
            swapped(height, columns, 1);
        }
      }
  }

  Gemm swapped_tile(int height, int columns, int lines) const {
    const int warps = height == 256 ? 8 : height / 16;  // 256: see is_tall()
    Gemm out = options_;
    out.swap = true, out.producers = 4, out.persistent = false;
    out.tile = {.m = height,
                .n = columns,
                .k = lines * line_elements(options_),
                .warps_m = warps,
                .warps_n = 1};
    return out;
  }

  void swapped(int height, int columns, int lines) {
    if (lines == 2 && columns * height > 128 * 64) return;
    if (height == 256 && columns > widest_of_tall()) return;
    Gemm each = swapped_tile(height, columns, lines);
    if (!by_wgmma(each, target_)) return;
    const std::vector<int> counts = stages_.counts(each, tiles_of(each));
    for (const int stages : counts) {
      each.stages = stages;
      const std::int64_t tiles = each.tiles(each.m, each.n);
      if (!runs(each, target_) || (is_tall(each.tile) && !tall_in_one_wave(tiles))) continue;
      out_.push_back(each);
      shared(each);
      in_clusters(each, tiles);
      if (partial_ && stages == counts.front() && !is_tall(each.tile)) in_one_wave(each, tiles);
    }
  }

  // Split-K with a workspace, of as many CTAs as run at a time.
  void in_one_wave(Gemm each, std::int64_t tiles) {
    const int steps = (each.k + each.tile.k - 1) / each.tile.k;
    int before = 1;
    for (const std::int64_t splits : {std::int64_t{2}, std::int64_t{4}, std::int64_t{8},
                                      gpu_.multiprocessors / std::max<std::int64_t>(tiles, 1)}) {
      if (splits <= before || splits > 16 || tiles * splits > gpu_.multiprocessors ||
          steps < 2 * splits)
        continue;
      before = each.splits = static_cast<int>(splits);
      out_.push_back(each);
      shared(each);
    }
  }

  // Several waves whose rows would pad tall tiles more than its columns do, or few that fill the
  // multiprocessors: 5248 x 1024 are 264 tiles of 160 x 128.
  void by_lasting_swap() {
    constexpr int most = 512;
    const Gemm& of = options_;
    if (of.m <= most || of.n == 0 || of.a_major != Major::row || of.batched) return;
    if (of.splits != 1 || of.stream_blocks != 0) return;
    for (const int height : {256, 192, 128})
      for (int columns = height == 128 ? 256 : 192; columns >= 128; columns -= 8) {
        const bool usual = off_lines() && columns % 16 == 0 && columns >= 144 && height != 128;
        if (!usual && !divide_evenly(columns, of.m)) continue;
        if (height == 256 && columns > widest_of_tall()) continue;
        const Gemm each = swapped_tile(height, columns, 1);
        const bool by_boxes = of.n * bits(of.c) % 128 == 0;  // the transpose of C
        if (off_lines() || of.m % 128 != 0 || (in_few_waves(each) && by_boxes)) lasting(each);
      }
  }

  void by_warpgroups() {
    struct Height {
      int m, warps, widest, narrowest;
    };
    static constexpr Height heights[] = {
        {128, 8, 256, 32}, {64, 4, 256, 32}, {192, 12, 192, 64}, {256, 8, 192, 96}};
    for (const Height& each : heights)
      for (int n = each.widest; n >= each.narrowest; n -= 8)
        for (const int lines : {1, 2}) {
          if (lines == 2 && (each.m > 128 || n > 128)) continue;
          if (each.m == 256 && n > widest_of_tall()) continue;
          // On lines, as many tiles of 128 rows are as fast, and on some GPUs 1.5 times as fast.
          if (each.m == 64 && n > 128 && options_.m > 64 && !off_lines()) continue;
          // Of copies by threads, few were measured.
          if (!by_boxes_ && (lines == 2 || each.m > 128 || n % 64 != 0)) continue;
          const Tile tile = {.m = each.m,
                             .n = n,
                             .k = lines * line_elements(options_),
                             .warps_m = each.warps,
                             .warps_n = 1};
          if (n % 16 != 0 && !avoids_padding(tile)) continue;
          if (by_boxes_) shape(tile, 4);
          else
            for (const int producers : {4, 8})
              if (copies_quickly(tile, producers)) shape(tile, producers);
        }
  }

  // Off 128-byte lines reading padding takes long; on lines, in few waves of long sums.
  bool avoids_padding(const Tile& tile) const {
    Gemm each = options_;
    each.tile = tile;
    return divide_evenly(tile.n, options_.n) &&
           (off_lines() || (has_long_sums(each) && in_few_waves(each)));
  }

  bool in_few_waves(const Gemm& each) const {
    constexpr int most = 4;
    return tiles_of(each) <= most * gpu_.multiprocessors;
  }

  // Whether tiles of `each` columns have as little padding as so many tiles can.
  static bool divide_evenly(int each, int all) {
    const int tiles = (all + each - 1) / each;
    return tiles > 0 && each == ((all + tiles - 1) / tiles + 7) / 8 * 8;
  }

  // Whose warpgroups have 128 rows each.
  static bool is_tall(const Tile& tile) { return tile.m == 256 && tile.warps_m == 8; }

  // Of several waves, CTAs that last are faster; of one wave, smaller tiles, unless all
  // multiprocessors read rows off lines.
  bool tall_in_one_wave(std::int64_t tiles) const {
    return off_lines() && tiles <= gpu_.multiprocessors && 4 * tiles >= 3 * gpu_.multiprocessors;
  }

  // Columns of such tiles: beside more, epilogues have too few registers for what they read and
  // compute, and those that store a transpose, for addresses.
  int widest_of_tall() const {
    if (reads_matrices() || reads_vectors()) return reads_matrices() && reads_vectors() ? 96 : 112;
    return options_.epilogue.activation == Activation::gelu ? 176 : 208;
  }
  bool reads_matrices() const { return options_.epilogue.beta || options_.epilogue.residual; }
  bool reads_vectors() const {
    const Epilogue& epilogue = options_.epilogue;
    return epilogue.row_scales || epilogue.column_scales || epilogue.bias;
  }

  // Two warpgroups that compute tiles in turn, on one ring: of sums so short that storing C takes a
  // large part of the time. Off 128-byte lines in pairs of CTAs, too.
  void by_turns() {
    constexpr int longest = 4096, sector = 32, narrowest = 96;  // bytes of a row; columns
    const Gemm& of = options_;
    // Of rows that begin within sectors of L2, fetching takes too long to hide: 1.4 times as long.
    if (of.k * bits(of.a) / 8 % sector != 0) return;
    // Beside wider tiles, epilogues have too few registers for what they read.
    if (reads_matrices() && of.epilogue.row_scales) return;
    if (of.k < 1 || of.k > longest * 8 / bits(of.a)) return;
    if (of.m < 1 || of.n < 1 || of.splits != 1 || of.stream_blocks != 0) return;
    const int widest = reads_matrices() || reads_vectors() ? 112 : 208;  // of 128 rows
    // Only elements of 16 bits are transposed in shared memory.
    const bool swaps = of.a_major == Major::row && !of.batched && bits(of.c) == 16;
    for (const int height : {128, 192})
      for (int columns = widest * 128 / height / 8 * 8; columns >= narrowest; columns -= 8) {
        if (columns % 16 == 0) in_turn(height, columns, false);
        if (swaps && divide_evenly(columns, of.m)) in_turn(height, columns, true);
      }
  }

  // One such tile, alone and in pairs of CTAs; with `swap`, its columns are rows of A.
  void in_turn(int height, int columns, bool swap) {
    Gemm each = options_;
    each.tile = {.m = height,
                 .n = columns,
                 .k = line_elements(options_),
                 .warps_m = 4,
                 .warps_n = 1,
                 .products = 2};
    if (!swap && (!fits(each.tile) || wasteful(each.tile) || only_split(each.tile))) return;
    each.swap = swap, each.producers = 4, each.persistent = true;
    each.stages = stages_.in_turn(each);
    each.group = (swap ? each.n : each.m) <= 16 * height ? 16 : 8;
    const bool several = each.tiles(each.m, each.n) > gpu_.multiprocessors;
    if (!several || !by_wgmma(each, target_) || !runs(each, target_)) return;
    out_.push_back(each);
    each.cluster = 2;
    if (options_.cluster == 1 && suits_cluster(each, target_, gpu_)) out_.push_back(each);
  }

  // Producers that issue each copy themselves: more copies of an operand than a loop unrolls take
  // twice as long each.
  bool copies_quickly(const Tile& tile, int producers) const {
    return !model::copies_in_loop(std::max(tile.m, tile.n) * line_bytes / copied_bytes(options_),
                                  32 * producers);
  }

  void by_warps() {
    struct Shape {
      int m, n, warps_m, warps_n, lines;
    };
    static constexpr Shape shapes[] = {
        {128, 256, 2, 4, 1}, {128, 192, 2, 4, 1}, {256, 128, 4, 2, 1}, {128, 128, 2, 2, 1},
        {128, 128, 2, 4, 1}, {128, 96, 2, 2, 1},  {128, 64, 2, 2, 1},  {64, 256, 1, 4, 1},
        {64, 128, 2, 2, 1},  {64, 128, 1, 4, 1},  {64, 96, 2, 2, 1},   {64, 64, 2, 2, 1},
        {64, 64, 1, 4, 1},   {64, 64, 4, 1, 1},   {64, 64, 2, 2, 2},   {64, 32, 2, 2, 1},
        {64, 32, 2, 2, 2},   {32, 128, 1, 4, 1},  {32, 128, 1, 4, 2},  {32, 64, 2, 2, 2},
        {32, 64, 1, 4, 1},   {32, 64, 1, 4, 2},   {32, 32, 1, 4, 1},   {32, 32, 1, 4, 2},
        {16, 128, 1, 4, 1},  {16, 128, 1, 4, 2},  {16, 64, 1, 4, 1},   {16, 64, 1, 4, 2},
        {16, 64, 1, 4, 4},   {16, 32, 1, 4, 2},   {16, 32, 1, 4, 4}};
    for (const Shape& each : shapes)
      for (const int producers : {0, 4}) {
        // Producers by cp.async were not measured on other targets.
        if (producers > 0 && !(warpgroups_ && by_boxes_)) continue;
        shape({.m = each.m,
               .n = each.n,
               .k = each.lines * line_elements(options_),
               .warps_m = each.warps_m,
               .warps_n = each.warps_n},
              producers);
      }
  }

  // Boxes of C take rows of 16 bytes, and a row-major B rows of 128; mma.sync n in steps of 8.
  bool fits(const Tile& tile) const {
    if (options_.b_major == Major::row && tile.n % line_elements(options_) != 0) return false;
    if (options_.a_major == Major::col && tile.m % line_elements(options_) != 0) return false;
    return tile.n * bits(options_.c) % 128 == 0;
  }

  // Of rows that are only padding.
  bool wasteful(const Tile& tile) const {
    return options_.m > 0 && tile.m > 2 * std::max(options_.m, 32);
  }

  // Where rows can be wgmma's N instead, a third of padding is much; less so with split-K off
  // 128-byte lines, where copies take longer than products.
  bool only_split(const Tile& tile) const {
    const int m = options_.m, rows = (m + tile.m - 1) / tile.m * tile.m;
    const bool swaps = warpgroups_ && by_boxes_ && options_.a_major == Major::row &&
                       !options_.batched && options_.n > 0 && options_.splits == 1 &&
                       options_.stream_blocks == 0;
    return swaps && m > 64 && 2 * rows > 3 * m;
  }
  bool off_lines() const { return !begins_on_lines(options_); }

  void shape(Tile tile, int producers) {
    if (!fits(tile) || wasteful(tile) || (only_split(tile) && !(partial_ && off_lines()))) return;
    Gemm each = options_;
    each.tile = tile, each.producers = producers, each.persistent = false;
    lasting(each);
    for (const int stages : stages_.counts(each, tiles_of(each))) {
      each.stages = stages;
      if (runs(each, target_)) schedules(each);
    }
  }

  static std::int64_t tiles_of(const Gemm& each) {
    return each.tiles(each.m ? each.m : 4096, each.n ? each.n : 4096);
  }
  static bool is_whole(const Gemm& each) {
    return each.splits == 1 && each.stream_blocks == 0 && each.cluster_splits == 1;
  }
  void schedules(const Gemm& each) {
    const std::int64_t tiles = tiles_of(each);
    if (!only_split(each.tile)) {
      if (is_tall(each.tile) && !tall_in_one_wave(tiles)) return;
      out_.push_back(each);
      if (is_whole(each)) shared(each), in_clusters(each, tiles);
    }
    if (!partial_ || !is_whole(each) || each.batched) return;
    const int steps = each.k ? (each.k + each.tile.k - 1) / each.tile.k : 64;
    for (const int splits : {2, 4, 8, 16})
      if (tiles * splits <= 4 * gpu_.multiprocessors && steps >= 2 * splits) {
        Gemm split = each;
        split.splits = splits;
        out_.push_back(split);
        if (tiles * splits <= gpu_.multiprocessors) shared(split);
      }
  }

  // Clusters that divide k: where there are not more of them than run at the same time.
  void in_clusters(Gemm each, std::int64_t tiles) {
    const Tile& tile = each.tile;
    if (each.m == 0 || each.n == 0 || options_.cluster > 1 || each.batched) return;
    if (!isa::advised(isa::Advice::split_clusters, target_.arch) || is_tall(tile)) return;
    for (const int splits : {2, 4, 8}) {
      // Where threads copy, several CTAs of a multiprocessor hide each other's waits.
      const int most = (by_boxes_ ? 1 : 4) * gpu_.multiprocessors;
      const int fewest = by_boxes_ ? 4 : 2;  // k-tiles of a CTA
      if (tiles * splits > most || each.k < fewest * splits * tile.k) continue;
      // The fewer CTAs have a part of the sum, the longer it takes.
      const int across = tile.n / (8 * tile.warps_n);  // fragments of a warp
      if (3 * scatter_parts(splits, across) < std::min(splits, across)) continue;
      // CTAs that add unlike parts need registers that wide tiles of warpgroups do not leave.
      constexpr int widest_unlike = 128;
      if (by_boxes_ && across % splits != 0 && tile.n > widest_unlike) continue;
      each.cluster_splits = splits;
      beside_sums(each);
    }
  }

  // With as many of its stages as fit beside what the CTAs exchange: in parts, or all at once.
  void beside_sums(Gemm each) {
    // With two stages, more CTAs at a time leave warps of 64 rows too few registers; not beside the
    // ring of lines.
    const bool tall = each.tile.m >= 64 * each.tile.warps_m && !reads_lines(each);
    const int stages = each.stages, fewest = each.producers || tall ? 3 : 2;
    constexpr int barriers = 512;  // bytes, at most
    const std::int64_t whole = std::int64_t{4} * each.tile.m * each.tile.n;
    const auto fits = [&] {
      return runs(each, target_) && shared_bytes(each) + barriers <= stages_.shared();
    };
    for (const bool at_once : {false, true})
      for (each.stages = stages; each.stages >= fewest; --each.stages)
        if (fits() && (!at_once || exchanged_bytes(each) == whole)) {
          add_once(each);
          break;
        }
  }

  // Of a shape, several counts of stages may become the same.
  void add_once(const Gemm& each) {
    const auto key = [](const Gemm& of) {
      const Tile& tile = of.tile;
      return std::tuple(tile.m, tile.n, tile.k, tile.warps_m, tile.warps_n, of.stages, of.producers,
                        of.cluster_splits, of.swap);
    };
    constexpr std::ptrdiff_t of_shape = 24;  // candidates, at most
    const auto first = out_.end() - std::min(std::ssize(out_), of_shape);
    if (std::none_of(first, out_.end(), [&](const Gemm& of) { return key(of) == key(each); }))
      out_.push_back(each);
  }

  // Where a wave has all tiles: those that share an operand are neighbours.
  void beside_each_other(Gemm& each) const {
    if (!is_whole(each) || each.m == 0 || each.n == 0 || each.persistent || !by_boxes_) return;
    if (!by_wgmma(each, target_) || std::min(each.cluster, each.cluster_columns) > 1) return;
    if (each.tiles(each.m, each.n) > gpu_.multiprocessors) return;
    const Tile& tile = each.tile;
    const int usual = tile.n >= 4 * tile.m ? 8 : tile.n >= tile.m ? 4 : 2;
    if (each.cluster > 1) each.group = each.cluster;
    else if (each.cluster_columns == 1) each.group = group_beside(tile_grid(each), usual);
  }

  // CTAs of several tiles.
  void lasting(Gemm each) {
    if (!is_whole(each) || !by_boxes_ || !by_wgmma(each, target_) || only_split(each.tile)) return;
    if (tiles_of(each) <= gpu_.multiprocessors) return;
    each.stages = stages_.lasting(each);
    each.persistent = true;
    each.group = is_tall(each.tile) && (each.swap ? each.n : each.m) > 16 * each.tile.m ? 8 : 16;
    if (each.stages < 2 || !runs(each, target_)) return;
    out_.push_back(each);
    shared(each);
  }

  // CTAs that share what their columns and rows read.
  void shared(Gemm each) {
    if (options_.cluster > 1 || !by_boxes_ || !by_wgmma(each, target_)) return;
    const auto add = [&](int cluster, int columns) {
      each.cluster = cluster, each.cluster_columns = columns;
      if (suits_cluster(each, target_, gpu_)) out_.push_back(each);
    };
    add(2, 1), add(2, 2), add(1, 2);
    constexpr int large = 256 * 128;  // tensor cores limit those before the cache does
    if (each.tile.m * each.tile.n <= large) add(4, 1), add(1, 4), add(4, 2), add(2, 4);
  }

  const Gemm& options_;
  const Target& target_;
  const isa::GpuRow& gpu_;
  const bool partial_;
  const GemmStages stages_;
  bool by_boxes_ = false;    // TMA copies for producers
  bool warpgroups_ = false;  // wgmma
  std::vector<Gemm> out_;
};

}  // namespace

std::vector<Gemm> candidates(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
                             bool partial) {
  Gemm plain = options;
  plain.swap = plain.direct = false, plain.cluster_columns = plain.cluster_splits = 1;
  return Collector(plain, target, gpu, partial).all();
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
