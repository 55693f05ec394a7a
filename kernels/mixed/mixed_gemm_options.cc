// SPDX-License-Identifier: Apache-2.0
// Options of mixed_gemm(): which there are, and grids.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/common/integers.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/mixed/mixed_numbers.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
bool is_possible(Builder& k, const MixedGemm& with) {
  bool out = true;
  const auto require = [&](bool holds, const std::string& otherwise) {
    out &= k.require(holds, otherwise);
  };
  const auto size = [&](const char* what, int value, int multiple) {
    const std::string wanted =
        multiple > 1 ? fmt::format("a multiple of {}", multiple) : "a positive number";
    require(value >= 0 && value % multiple == 0,
            fmt::format("{} = {}: expected {}, or 0 for a parameter; the nearest is {}", what,
                        value, wanted, detail::nearest_multiple(value, multiple)));
  };
  const auto one_of = [&](bool holds, const char* what, int value, const char* expected) {
    require(holds, fmt::format("{} = {}: expected {}", what, value, expected));
  };
  const Arch arch = k.target().arch;
  require(arch.has(Feature::async_copy),
          fmt::format("target {}: expected sm_80 or later, for cp.async and "
                      "m16n8k16",
                      arch.text()));
  size("m", with.m, 1), size("n", with.n, 8), size("k", with.k, 8);
  require(with.type == f16 || with.type == bf16,
          fmt::format("type = {}: expected f16 or bf16", name(with.type)));
  require(with.weight == Type::u4 || with.weight == Type::u8,
          fmt::format("weight = {}: expected u4 or u8", name(with.weight)));
  one_of(with.group == 64 || with.group == 128, "group", with.group,
         "64 or 128 weights with a scale");
  one_of(with.tile_m >= 8 && with.tile_m <= 256 && with.tile_m % 8 == 0, "tile_m", with.tile_m,
         "a multiple of 8 up to 256");
  one_of(with.tile_n >= 16 && with.tile_n <= 512 && with.tile_n % 16 == 0, "tile_n", with.tile_n,
         "a multiple of 16 up to 512");
  one_of(is_power(with.tile_k, 64, 512), "tile_k", with.tile_k, "64, 128, 256 or 512");
  one_of(with.warps_k >= 1 && with.warps_k <= 8 && with.tile_k % (mixed_chunk * with.warps_k) == 0,
         "warps_k", with.warps_k, "a divisor of tile_k / 64");
  one_of(with.warps_n >= 1 && with.warps_n <= 32 && with.tile_n % (16 * with.warps_n) == 0,
         "warps_n", with.warps_n, "a divisor of tile_n / 16");
  require(with.threads() <= 1024,
          fmt::format("warps_n * warps_k = {} * {}: expected up to 32 warps", with.warps_n,
                      with.warps_k));
  if (!arch.has(Feature::clusters))  // later, the launch's options say which clusters there are
    one_of(with.cluster == 1, "cluster", with.cluster, "1: clusters begin with sm_90");
  else
    require(!with.split || with.cluster <= 1 || with.tile_n % (8 * with.cluster) == 0,
            fmt::format("tile_n = {}: expected a multiple of {}, 8 columns for each CTA of a "
                        "cluster that divides k",
                        with.tile_n, 8 * with.cluster));
  require(!with.even || (!with.split && with.cluster == 1),
          fmt::format("even: expected whole tiles and cluster = 1, found {}cluster = {}",
                      with.split ? "split and " : "", with.cluster));
  one_of(with.stages >= 1 && with.stages <= 256, "stages", with.stages, "1 to 256");
  require(!with.warpgroups || (!with.scale_sums && with.warps_k == 1),
          fmt::format("warpgroups: expected scaled weights and warps_k = 1, found {} and {}",
                      with.scale_sums ? "scaled sums" : "scaled weights", with.warps_k));
  return out;
}

int mixed_box_rows(const MixedGemm& with, const Target& target) {
  const bool has_tma = target.has(Feature::tma), multicasts = with.cluster > 1 && !with.split;
  const int chunks = with.tile_k / mixed_chunk,
            rows = with.m > 0 ? std::min(with.m, with.tile_m) : with.tile_m;
  if (!has_tma || !with.producers || !with.scale_sums || multicasts || with.k < 1 ||
      with.k % mixed_chunk)
    return 0;
  // A box has one chunk more than the stage: with many rows, a few copies are better.
  return chunks >= 8 || (chunks > 1 && rows <= 8) ? rows : 0;
}

std::int64_t MixedGemm::tiles(int rows, int columns) const {
  return quotient_up(rows, std::max(tile_m, 1)) * quotient_up(columns, std::max(tile_n, 1));
}

unsigned MixedGemm::blocks(int rows, int columns, int multiprocessors) const {
  const std::int64_t together = std::max(cluster, 1),
                     ctas = std::int64_t{multiprocessors} * std::max(min_blocks, 1),
                     slots = std::max(ctas / together, std::int64_t{1}) * together;
  const auto nearly_fills = [&](std::int64_t x) { return x <= slots && x * 16 >= slots * 15; };
  if (even || (split && cluster > 1)) {
    const std::int64_t wide = quotient_up(columns, std::max(tile_n, 1)),
                       each = std::max(quotient_up(wide * together, slots), std::int64_t{1}),
                       all = std::max(quotient_up(wide, each) * together, together);
    return static_cast<unsigned>(nearly_fills(all) ? slots : all);
  }
  const std::int64_t wide = quotient_up(columns, std::max(tile_n, 1) * together) * together,
                     all = std::max(quotient_up(rows, std::max(tile_m, 1)) * wide, together);
  // Tiles that nearly fill the GPU stay whole: no sums go through memory.
  return static_cast<unsigned>(split && !nearly_fills(all) ? slots : std::min(all, slots));
}

std::int64_t MixedGemm::partial_elements(unsigned blocks) const {
  return sums_in_memory() ? std::int64_t{2} * blocks * tile_m * tile_n : 0;
}

}  // namespace tartan::TARTAN_ABI::kernels
