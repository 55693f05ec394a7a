// SPDX-License-Identifier: Apache-2.0
// Each struct is taken apart by a structured binding of all its members: a member more, and this
// does not compile until the key has it.
#include "kernels/common/keys.h"

#include <fmt/format.h>

namespace tartan::TARTAN_ABI::kernels {
namespace {

// Of numbers, flags and enumerators.
template <typename... Members>
std::string joined(Members... members) {
  std::string out;
  ((out += fmt::format("{} ", static_cast<int>(members))), ...);
  return out;
}

std::string key_of(const Tile& tile) {
  const auto& [m, n, k, warps_m, warps_n, warps_k, products] = tile;
  return joined(m, n, k, warps_m, warps_n, warps_k, products);
}

std::string key_of(const Epilogue& epilogue) {
  const auto& [alpha, beta, row_scales, column_scales, bias, activation, residual] = epilogue;
  return joined(alpha, beta, row_scales, column_scales, bias, activation, residual);
}

}  // namespace

std::string key_of(const Gemm& options) {
  const auto& [m, n, k, a, b, accumulator, c, a_major, b_major, multiple, multiple_c, tile, stages,
               promote, bit_op, epilogue, splits, cluster_splits, stream_blocks, group, persistent,
               producers, cluster, cluster_columns, swap, direct, batched] = options;
  return joined(m, n, k, a, b, accumulator, c, a_major, b_major, multiple, multiple_c) +
         joined(stages, promote, bit_op, splits, stream_blocks, group, persistent) +
         joined(producers, cluster, cluster_columns, cluster_splits, swap, direct, batched) +
         key_of(tile) + key_of(epilogue);
}

std::string key_of(const BlockScaled& options) {
  const auto& [m, n, k, a, b, scale, kind, c, multiple, multiple_c, tile, stages, epilogue] =
      options;
  return joined(m, n, k, a, b, scale, kind, c, multiple, multiple_c, stages) + key_of(tile) +
         key_of(epilogue);
}

std::string key_of(const ScaledGemm& options) {
  const auto& [m, n, k, c, grouping, tile, parts_n, blocks_k, overlap, stages, group, cluster,
               share_a, cluster_splits] = options;
  return joined(m, n, k, c, grouping, parts_n, blocks_k, overlap, stages, group, cluster, share_a,
                cluster_splits) +
         key_of(tile);
}

std::string key_of(const KGroupedGemm& options) {
  const auto& [m, n, k, accumulate, tile, stages, group, cluster, share_a] = options;
  return joined(m, n, k, accumulate, stages, group, cluster, share_a) + key_of(tile);
}

std::string key_of(const Attention& options) {
  const auto& [head_dim, type, causal, window, softcap, sinks, packed, queries_per_block,
               keys_per_step, warps, stages, producers, persistent] = options;
  return joined(head_dim, type, causal, window, softcap, sinks, packed, queries_per_block,
                keys_per_step) +
         joined(warps, stages, producers, persistent);
}

std::string key_of(const AttentionBackward& options) {
  const auto& [head_dim, type, causal, deterministic, queries_per_step, keys_per_block, warps,
               stages, producers] = options;
  return joined(head_dim, type, causal, deterministic, queries_per_step, keys_per_block, warps) +
         joined(stages, producers);
}

std::string key_of(const Decode& options) {
  const auto& [head_dim, type, queries, group, page, keys_per_step, key_groups, stages, producers,
               blocks_per_multiprocessor, whole_steps] = options;
  return joined(head_dim, type, queries, group, page, keys_per_step, key_groups, stages) +
         joined(producers, blocks_per_multiprocessor, whole_steps);
}

std::string key_of(const MlaDecode& options) {
  const auto& [type, queries, heads, page, keys_per_step, stages, producers, whole_steps] = options;
  return joined(type, queries, heads, page, keys_per_step, stages, producers, whole_steps);
}

std::string key_of(const SmallProducts& options) {
  const auto& [m, n, k, type, c, a_major, b_major, warps_m, warps_n, products, ahead, staged] =
      options;
  return joined(m, n, k, type, c, a_major, b_major, warps_m) +
         joined(warps_n, products, ahead, staged);
}

std::string key_of(const MixedGemm& options) {
  const auto& [m, n, k, type, weight, group, zeros, scale_sums, tile_m, tile_n, tile_k, warps_n,
               warps_k, stages, producers, min_blocks, warpgroups, split, even, cluster, overlap] =
      options;
  return joined(m, n, k, type, weight, group, zeros, scale_sums, tile_m, tile_n, tile_k) +
         joined(warps_n, warps_k, stages, producers, min_blocks, warpgroups, split, even, cluster,
                overlap);
}

std::string key_of(const Gate& options) {
  const auto& [activation, type] = options;
  return joined(activation, type);
}

}  // namespace tartan::TARTAN_ABI::kernels
