// SPDX-License-Identifier: Apache-2.0
#include "dsl/kernels/gemm_stages.h"

#include <algorithm>

#include "dsl/kernels/gemm_cost.h"

namespace tartan::inline TARTAN_ABI::detail {

using kernels::Gemm;

namespace {

constexpr int barriers = 2048, most_of_c = 32 << 10;  // bytes, at most
constexpr int most = 12;

int stage_bytes(const Gemm& each) {
  return (each.tile.m + each.tile.n) * each.tile.k * bits(each.a) / 8;
}

// What stages C, where producers load.
int bytes_of_c(const Gemm& each) {
  return each.producers ? each.tile.m * each.tile.n * bits(each.c) / 8 : 0;
}

int shared_of(const Target& target) {
  const ArchRow* arch = find_arch(target.arch);
  return arch ? arch->shared_bytes : 0;
}

}  // namespace

Stages::Stages(const Gemm& product, const Target& target, const GpuRow& gpu)
    : product_(product),
      target_(target),
      gpu_(gpu),
      shared_(shared_of(target)),
      off_lines_(!begins_on_lines(product)) {}

std::vector<int> Stages::counts(const Gemm& each, std::int64_t tiles) const {
  const Tile& tile = each.tile;
  const int stage = stage_bytes(each), room = beside_c(each),
            of_two = gpu_.shared_bytes / 2 - bytes_of_c(each) - 2 * barriers;
  std::vector<int> out;
  const auto add = [&](int count) {
    if (count >= 2 && count * stage <= shared_ - barriers &&
        std::find(out.begin(), out.end(), count) == out.end())
      out.push_back(count);
  };
  if (!each.producers) {
    // Warps of 64 rows spill beside bytes that they copy one by one into four.
    const bool spills =
        bits(each.a) == 8 && copied_bytes(product_) < 4 && tile.m >= 64 * tile.warps_m;
    for (const int count : {3, spills ? 3 : 4, tile.m <= 32 ? 8 : 2}) add(count);
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

int Stages::lasting(const Gemm& each) const {
  constexpr int few = 4, least_of_c = 16 << 10;
  const int stage = stage_bytes(each), room = beside_c(each),
            by_one = off_lines_ ? (room + most_of_c - least_of_c) / stage : 0;
  return std::min(std::max(room / stage, std::min(by_one, few)), most);
}

int Stages::in_turn(const Gemm& each) const {
  constexpr int boxes = 16 << 10, of_barriers = 1024, wanted = 5;
  const int stage = stage_bytes(each), room = shared_ - of_barriers - boxes;
  return std::max((room - boxes) / stage, std::min(room / stage, wanted));
}

// Bytes for stages, beside what stages C.
int Stages::beside_c(const Gemm& each) const {
  return shared_ - std::min(bytes_of_c(each), most_of_c) - barriers;
}

}  // namespace tartan::inline TARTAN_ABI::detail
