// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_stages.h"

#include <algorithm>

#include "kernels/gemm/gemm_lines.h"
#include "kernels/gemm/gemm_resources.h"
#include "tartan/dsl/line_ring.h"
#include "tartan/dsl/model.h"

namespace tartan::TARTAN_ABI::kernels::detail {

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
  return stage_bytes(options) *
         (reads_lines(options) ? LineRing::stages(options.stages) + 1 : options.stages);
}

}  // namespace

std::int64_t shared_bytes(const Gemm& options) {
  return stages_bytes(options) + exchanged_bytes(options) + 1024;
}

std::int64_t exchanged_bytes(const Gemm& options) {
  constexpr std::int64_t shared = 227 << 10;  // of a CTA on sm_90
  return model::exchange_bytes(options.tile, options.cluster_splits,
                               shared - stages_bytes(options) - 1024);
}

GemmStages::GemmStages(const Gemm& product, const Target& target, const isa::GpuRow& gpu)
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
    const int longest = tile.m <= 32 && !reads_lines(each) ? 8 : 2;
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

}  // namespace tartan::TARTAN_ABI::kernels::detail
