// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_shape.h"
#include "tartan/isa/feature.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int most_head_dim = 512, widest_sum = 256;  // columns of one by tcgen05

// Upper bound of the bytes of shared memory.
std::int64_t shared_bytes(const Attention& options) {
  const std::int64_t line = 2 * std::int64_t{options.head_dim},
                     padding = line & (line - 1) ? 16 : 0;
  const std::int64_t lines = std::int64_t{options.tile_queries()} * (options.persistent ? 2 : 1) +
                             std::int64_t{2} * options.stages * options.keys_per_step;
  constexpr std::int64_t barriers = 1024;
  return lines * (line + padding) + barriers;
}

// Reduces the keys per step, then the stages, until shared memory suffices.
Attention fitting(const Attention& options, const Target& target) {
  Attention out = options;
  const ArchRow* arch = find_arch(target.arch);
  if (!arch) return out;
  const auto fits = [&] { return shared_bytes(out) <= arch->shared_bytes; };
  while (!fits() && out.keys_per_step > 32) out.keys_per_step -= 16;
  while (!fits() && out.stages > 1) --out.stages;
  return out;
}

// What is fastest for few keys on an H200. Several blocks with 64 queries each overlap, but
// together they read keys and values more often, which wide heads can afford for fewer keys.
struct FewKeys {
  int above, head_dim;  // above the one, up to the other
  int keys;             // at most
  bool causal;          // only then
  int keys_per_step, stages;
  int blocks = 0;  // of 64 queries on a multiprocessor; 0: the tile for many keys

  bool chooses_as(const FewKeys& other) const {
    return keys_per_step == other.keys_per_step && stages == other.stages && blocks == other.blocks;
  }
};
constexpr FewKeys few_keys[] = {
    {0, 64, 1024, false, 64, 2, 4},   {0, 64, 2048, true, 64, 2, 4},
    {64, 96, 1024, false, 64, 2, 3},  {96, 128, 256, false, 32, 3, 3},
    {96, 128, 768, true, 48, 2, 3},   {128, 192, 128, false, 32, 2, 2},
    {192, 256, 128, false, 16, 4, 2}, {192, 256, 256, false, 32, 3},
    {192, 256, 1024, false, 64, 2},
};

// Up to how many keys the row is of use for the options; 0: for none.
int limit(const FewKeys& row, const Attention& options) {
  // Shared memory has lines of 32 bytes then, and steps of fewer keys take longer.
  constexpr int most_of_short_lines = 256;
  if (options.head_dim <= row.above || options.head_dim > row.head_dim) return 0;
  if (row.causal && !options.causal) return 0;
  return options.head_dim % 32 != 0 ? std::min(row.keys, most_of_short_lines) : row.keys;
}

const FewKeys* row_for(const Attention& options) {
  for (const FewKeys& row : few_keys)
    if (options.keys > 0 && options.keys <= limit(row, options)) return &row;
  return nullptr;
}

}  // namespace

bool is_possible(Builder& k, const Attention& options) {
  const int d = options.head_dim;
  return k.require(d >= 16 && d <= most_head_dim && d % 16 == 0,
                   fmt::format(
                       "head_dim = {}: expected a multiple of 16, from 16 to {}; the nearest is {}",
                       d, most_head_dim, std::clamp(d, 16, most_head_dim + 15) / 16 * 16)) &
         k.require(
             options.type == f16 || options.type == bf16,
             fmt::format("type = {}: expected f16 or bf16 for Q, K, V and O", name(options.type))) &
         k.require(options.causal || !options.window,
                   "window = true: expected causal = true, found causal = false: a window ends at "
                   "the query's own key") &
         k.require(!options.persistent || (options.producers > 0 && !options.packed),
                   fmt::format("persistent = true: expected producers, which copy ahead, and "
                               "packed = false; found producers = {}, packed = {}",
                               options.producers, options.packed)) &
         k.require(!options.persistent || !options.together,
                   "persistent = true: expected together = false, found true") &
         k.require(!options.persistent || (options.stages >= 1 && options.stages <= 3),
                   fmt::format("stages = {}: expected 1 to 3 with persistent = true: queries of "
                               "only two tiles are kept",
                               options.stages));
}

bool has_own_output(const Attention& options, const Target& target) {
  // Three warpgroups: slower so, but if the next tile's products hide it.
  constexpr int of_warp = 4096, reserve = 4096, most_warps = 8;
  const ArchRow* arch = find_arch(target.arch);
  if (options.persistent) return true;
  return options.producers > 0 && options.warps <= most_warps && arch &&
         shared_bytes(options) + options.warps * of_warp + reserve <= arch->shared_bytes;
}

namespace {

bool has_tensor_memory(const Attention& options, const Target& target) {
  return target.has(Feature::tensor_memory) && options.head_dim <= widest_sum;
}

// By tcgen05: not measured. Each warpgroup has 128 queries, and of 512 columns of tensor memory
// those for scores, weights of 16 bits and outputs. Scores of 64 keys fit into a thread's
// registers.
Attention by_tensor_memory(Attention out) {
  constexpr int columns = 512, keys = 64;
  out.producers = 4, out.keys_per_step = keys;
  out.warps = 2 * (keys + keys / 2 + out.head_dim) <= columns ? 8 : 4;
  out.queries_per_block = 32 * out.warps;
  return out;
}

}  // namespace

std::vector<int> key_limits(const Attention& options, const Gpu& gpu) {
  std::vector<int> out;
  if (!gpu.target().has(Feature::wgmma) || has_tensor_memory(options, gpu.target())) return out;
  const FewKeys* last = nullptr;
  for (const FewKeys& row : few_keys) {
    const int keys = limit(row, options);
    if (keys <= (out.empty() ? 0 : out.back())) continue;
    if (last && last->chooses_as(row)) out.pop_back();
    out.push_back(keys);
    last = &row;
  }
  return out;
}

Attention tuned(const Attention& options, const Gpu& gpu) {
  const Target& target = gpu.target();
  Attention out = options;
  const int d = options.head_dim;
  if (has_tensor_memory(options, target)) return fitting(by_tensor_memory(out), target);
  if (!target.has(Feature::wgmma)) {
    // With more, the assembler spills.
    if (d == 96 || d == 240) out.keys_per_step = std::min(out.keys_per_step, 48);
    return fitting(out, target);
  }
  out.warps = d <= 96 ? 12 : 8, out.producers = 4;  // three warpgroups have enough registers
  // 1 to 3 % faster or slower elsewhere.
  out.persistent = d <= (options.causal ? 96 : 64) && !options.packed;
  out.keys_per_step = 64 < d && d <= 96 ? 112 : 128;
  if (const FewKeys* few = row_for(options)) {
    out.keys_per_step = few->keys_per_step, out.stages = few->stages;
    if (few->blocks) {
      out.together = true, out.blocks_per_multiprocessor = few->blocks;
      out.warps = 4, out.producers = 1, out.persistent = false;
    }
  }
  out.queries_per_block = 16 * out.warps;
  return fitting(out, target);
}

}  // namespace tartan::TARTAN_ABI::kernels
