// SPDX-License-Identifier: Apache-2.0
#include "kernels/tuner/gemm_tensor.h"

#include <algorithm>
#include <utility>

#include "kernels/gemm/gemm_stages.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/tuner/gemm_candidates.h"

namespace tartan::TARTAN_ABI::kernels::detail {

namespace {

constexpr int line_bytes = 128;   // of a row of a stage
constexpr int usual_size = 4096;  // of one that the launch gives

// What follows from a tile: how many there are, and how long one takes.
struct Work {
  std::int64_t tiles = 0, of_each = 0;  // of a multiprocessor
  double multiply = 0, load = 0, store = 0;
};

Work work_of(const Gemm& each, const isa::GpuRow& gpu) {
  constexpr double loaded = 64, stored = 24;  // bytes per cycle of a multiprocessor
  const Tile& tile = each.tile;
  const int k = each.k ? each.k : usual_size, width = bits(each.a);
  const double steps = (k + tile.k - 1) / tile.k,
               rows = std::max(tile.m, 128);  // 64 take as long as 128
  Work out;
  out.tiles = each.tiles(each.m ? each.m : usual_size, each.n ? each.n : usual_size);
  out.of_each = (out.tiles + gpu.multiprocessors - 1) / gpu.multiprocessors;
  out.multiply = steps * rows * tile.n * tile.k / (gpu.tcgen05 * 16 / width);
  out.load = steps * line_bytes * (tile.m + tile.n / each.cluster) / loaded;
  out.store = double{1} * tile.m * tile.n * bits(each.c) / 8 / stored;
  return out;
}

// Cycles. The epilogue of a tile runs during the products of the warpgroup whose turn is next.
double cost(const Gemm& each, const isa::GpuRow& gpu) {
  const Work work = work_of(each, gpu);
  const auto count = static_cast<double>(work.of_each);
  const double product = std::max(work.multiply, work.load) + gpu.latency;
  return each.tile.products > 1 ? count * std::max(product, work.store) + work.store
                                : count * (product + work.store);
}

class TensorTiles {
 public:
  TensorTiles(const Gemm& options, const Target& target, const isa::GpuRow& gpu)
      : options_(options), target_(target), gpu_(gpu), stages_(options, target, gpu) {}

  std::vector<Gemm> all() {
    constexpr int widest = 256, unit = 16;
    for (const bool swap : {false, true})
      for (const int height : {128, 64})
        for (int columns = widest; columns >= unit; columns -= unit) add(swap, height, columns);
    std::ranges::stable_sort(
        out_, [&](const Gemm& x, const Gemm& y) { return cost(x, gpu_) < cost(y, gpu_); });
    return std::move(out_);
  }

 private:
  void add(bool swap, int height, int columns) {
    Gemm each = options_;
    each.swap = swap, each.direct = false, each.cluster_splits = each.cluster_columns = 1;
    each.producers = 4;
    each.tile = {
        .m = height, .n = columns, .k = 8 * line_bytes / bits(each.a), .warps_m = 4, .warps_n = 1};
    if (swap &&
        (each.a_major != Major::row || each.batched || each.splits != 1 || each.stream_blocks != 0))
      return;
    if (!fits(in_tiles(each))) return;
    const bool several = work_of(each, gpu_).tiles > gpu_.multiprocessors;
    if (several && each.splits == 1 && each.stream_blocks == 0) in_turn(each);
    for (const int stages : stages_.counts(each, work_of(each, gpu_).tiles)) {
      each.stages = stages;
      keep(each);
      break;  // the most
    }
  }

  // Persistent CTAs of two warpgroups, in pairs where rows of tiles are.
  void in_turn(Gemm each) {
    each.tile.products = 2, each.persistent = true;
    each.stages = stages_.in_turn(each);
    keep(each);
    if (each.batched || options_.cluster != 1) return;
    const int rows = each.swap ? each.n : each.m;
    each.cluster = 2;
    if (rows && (rows + each.tile.m - 1) / each.tile.m % 2 == 0 &&
        by_pairs(in_tiles(each), target_))
      keep(each);
  }

  // Rows of C are boxes of 16 bytes; lines of A and B, whole ones.
  static bool fits(const Gemm& of) {
    const int line = 8 * line_bytes / bits(of.a);
    return (of.b_major == Major::col || of.tile.n % line == 0) &&
           (of.a_major == Major::row || of.tile.m % line == 0) && of.tile.n * bits(of.c) % 128 == 0;
  }

  void keep(const Gemm& each) {
    if (each.stages >= 2 && by_tensor(each, target_) && by_tma(each, target_) &&
        runs(each, target_))
      out_.push_back(each);
  }

  const Gemm& options_;
  const Target& target_;
  const isa::GpuRow& gpu_;
  const GemmStages stages_;
  std::vector<Gemm> out_;
};

}  // namespace

std::vector<Gemm> tensor_candidates(const Gemm& options, const Target& target,
                                    const isa::GpuRow& gpu) {
  // Few rows wait for memory: lanes, or warps, read them as fast.
  constexpr int few = 16;
  if (gpu.tcgen05 == 0 || (options.m > 0 && options.m <= few)) return {};
  return TensorTiles(options, target, gpu).all();
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
