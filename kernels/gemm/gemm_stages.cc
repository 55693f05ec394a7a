// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_stages.h"

#include <algorithm>

#include "dsl/tile/partial_sums.h"
#include "dsl/units/threads/aligned_rows.h"
#include "kernels/gemm/gemm_lines.h"
#include "kernels/gemm/gemm_resources.h"

namespace tartan::TARTAN_ABI::detail {

using kernels::Gemm;

namespace {

constexpr int barriers = 2048, most_of_c = 32 << 10;  // bytes, at most
constexpr int most = 12;

// Of A and B.
std::int64_t stage_bytes(const Gemm& each) {
  return std::int64_t{each.tile.m + each.tile.n} * each.tile.k * bits(each.a) / 8;
}

// What stages C, where producers load.
int bytes_of_c(const Gemm& each) {
  return each.producers ? each.tile.m * each.tile.n * bits(each.c) / 8 : 0;
}

int shared_of(const Target& target) {
  const ArchRow* arch = find_arch(target.arch);
  return arch ? arch->shared_bytes : 0;
}

// Of all stages.
std::int64_t stages_bytes(const Gemm& options) {
  // The tile that is multiplied lies beside the ring whose pieces are aligned.
  return stage_bytes(options) * (kernels::detail::reads_lines(options)
                                     ? AlignedRows::stages(options.stages) + 1
                                     : options.stages);
}

}  // namespace

std::int64_t shared_bytes(const Gemm& options) {
  return stages_bytes(options) + exchanged_bytes(options) + 1024;
}

std::int64_t exchanged_bytes(const Gemm& options) {
  constexpr std::int64_t shared = 227 << 10;  // of a CTA on sm_90
  const Tile& tile = options.tile;
  // gemm() refuses fewer columns than a fragment has.
  if (options.cluster_splits <= 1 || tile.n < 8 * tile.warps_n || tile.warps_n < 1) return 0;
  const std::int64_t left = shared - stages_bytes(options) - 1024;
  const int across = tile.n / (8 * tile.warps_n),
            takers = takers_among(options.cluster_splits, across),
            together = 8 * tile.warps_n * takers, own = across / takers;
  const std::int64_t column = std::int64_t{4} * tile.m * together;
  return columns_exchanged(own, column, left) * column;
}

GemmStages::GemmStages(const Gemm& product, const Target& target, const GpuRow& gpu)
    : target_(target),
      gpu_(gpu),
      shared_(shared_of(target)),
      off_lines_(!begins_on_lines(product)) {}

std::vector<int> GemmStages::counts(const Gemm& each, std::int64_t tiles) const {
  const Tile& tile = each.tile;
  const int stage = static_cast<int>(stage_bytes(each)), room = beside_c(each),
            of_two = gpu_.shared_bytes / 2 - bytes_of_c(each) - 2 * barriers;
  std::vector<int> out;
  const auto add = [&](int count) {
    if (count >= 2 && count * stage <= shared_ - barriers &&
        std::find(out.begin(), out.end(), count) == out.end())
      out.push_back(count);
  };
  if (!each.producers) {
    const int longest = tile.m <= 32 && !kernels::detail::reads_lines(each) ? 8 : 2;
    for (const int count : {3, 4, longest}) add(count);
    return out;
  }
  // CTAs of one tile stage C in them.
  const bool one = off_lines_ || tiles <= gpu_.multiprocessors;
  if (one && by_tma(each, target_) && by_wgmma(each, target_))
    add(std::min((shared_ - barriers) / stage, most));
  add(std::min(room / stage, most));
  add(std::min(std::min(of_two, room) / stage, 5));
  return out;
}

int GemmStages::lasting(const Gemm& each) const {
  constexpr int few = 4, least_of_c = 16 << 10;
  const int stage = static_cast<int>(stage_bytes(each)), room = beside_c(each),
            by_one = off_lines_ ? (room + most_of_c - least_of_c) / stage : 0;
  return std::min(std::max(room / stage, std::min(by_one, few)), most);
}

int GemmStages::in_turn(const Gemm& each) const {
  constexpr int boxes = 16 << 10, of_barriers = 1024, wanted = 5;
  const int stage = static_cast<int>(stage_bytes(each)), room = shared_ - of_barriers - boxes;
  return std::max((room - boxes) / stage, std::min(room / stage, wanted));
}

// Bytes for stages, beside what stages C.
int GemmStages::beside_c(const Gemm& each) const {
  return shared_ - std::min(bytes_of_c(each), most_of_c) - barriers;
}

}  // namespace tartan::TARTAN_ABI::detail
