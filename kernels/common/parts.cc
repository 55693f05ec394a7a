// SPDX-License-Identifier: Apache-2.0
// Options of kernels as problem and schedule, and the launches of both. A member that is missing
// here does not compile: structured bindings name all of them.
#include "tartan/kernels/attention.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/scaled_gemm.h"

namespace tartan::TARTAN_ABI::kernels {

Attention flat(const AttentionProblem& problem, const AttentionSchedule& schedule) {
  const auto& [head_dim, type, causal, window, softcap, sinks, packed, keys] = problem;
  const auto& [queries_per_block, keys_per_step, warps, stages, producers, persistent, together,
               blocks_per_multiprocessor] = schedule;
  return {head_dim,
          type,
          causal,
          window,
          softcap,
          sinks,
          packed,
          queries_per_block,
          keys_per_step,
          warps,
          stages,
          producers,
          persistent,
          together,
          blocks_per_multiprocessor,
          keys};
}

AttentionProblem problem_of(const Attention& x) {
  return {x.head_dim, x.type, x.causal, x.window, x.softcap, x.sinks, x.packed, x.keys};
}

AttentionSchedule schedule_of(const Attention& x) {
  return {x.queries_per_block, x.keys_per_step, x.warps,    x.stages,
          x.producers,         x.persistent,    x.together, x.blocks_per_multiprocessor};
}

AttentionLaunch AttentionLaunch::of(const Attention& options, int queries, int heads, int batch,
                                    int multiprocessors) {
  const auto z = static_cast<std::uint32_t>(batch);
  if (options.persistent)
    return {{options.persistent_blocks(queries, heads, batch, multiprocessors), 1, z}};
  return {{options.blocks(queries), static_cast<std::uint32_t>(heads), z}};
}

Decode flat(const DecodeProblem& problem, const DecodeSchedule& schedule) {
  const auto& [head_dim, type, queries, group, page] = problem;
  const auto& [keys_per_step, key_groups, stages, producers, blocks_per_multiprocessor,
               whole_steps] = schedule;
  return {head_dim,      type,       queries, group,     page,
          keys_per_step, key_groups, stages,  producers, blocks_per_multiprocessor,
          whole_steps};
}

DecodeProblem problem_of(const Decode& x) {
  return {x.head_dim, x.type, x.queries, x.group, x.page};
}

DecodeSchedule schedule_of(const Decode& x) {
  return {x.keys_per_step, x.key_groups, x.stages, x.producers, x.blocks_per_multiprocessor,
          x.whole_steps};
}

DecodeLaunch DecodeLaunch::of(const Decode& options, int batch, int kv_heads, int multiprocessors,
                              int keys) {
  const unsigned blocks = options.blocks(multiprocessors, batch, kv_heads, keys);
  return {{blocks},
          options.partial_elements(blocks),
          options.weight_elements(blocks),
          std::int64_t{batch} * kv_heads};
}

MixedGemm flat(const MixedGemmProblem& problem, const MixedGemmSchedule& schedule) {
  const auto& [m, n, k, type, weight, group, zeros] = problem;
  const auto& [scale_sums, tile_m, tile_n, tile_k, warps_n, warps_k, stages, producers, min_blocks,
               warpgroups, split, even, cluster, overlap] = schedule;
  return {m,          n,          k,          type,   weight,  group,   zeros,
          scale_sums, tile_m,     tile_n,     tile_k, warps_n, warps_k, stages,
          producers,  min_blocks, warpgroups, split,  even,    cluster, overlap};
}

MixedGemmProblem problem_of(const MixedGemm& x) {
  return {x.m, x.n, x.k, x.type, x.weight, x.group, x.zeros};
}

MixedGemmSchedule schedule_of(const MixedGemm& x) {
  return {x.scale_sums, x.tile_m,     x.tile_n,     x.tile_k, x.warps_n, x.warps_k, x.stages,
          x.producers,  x.min_blocks, x.warpgroups, x.split,  x.even,    x.cluster, x.overlap};
}

MixedGemmLaunch MixedGemmLaunch::of(const MixedGemm& options, int m, int n, int multiprocessors) {
  const unsigned blocks = options.blocks(m, n, multiprocessors);
  return {{blocks},
          options.partial_elements(blocks),
          options.sums_in_memory() ? options.counter_elements(m, n) : 0};
}

ScaledGemm flat(const ScaledGemmProblem& problem, const ScaledGemmSchedule& schedule) {
  const auto& [m, n, k, c, grouping] = problem;
  const auto& [tile, parts_n, blocks_k, overlap, stages, group, cluster, share_a, cluster_splits] =
      schedule;
  return {m,        n,       k,      c,     grouping, tile,    parts_n,
          blocks_k, overlap, stages, group, cluster,  share_a, cluster_splits};
}

ScaledGemmProblem problem_of(const ScaledGemm& x) { return {x.m, x.n, x.k, x.c, x.grouping}; }

ScaledGemmSchedule schedule_of(const ScaledGemm& x) {
  return {x.tile,  x.parts_n, x.blocks_k, x.overlap,       x.stages,
          x.group, x.cluster, x.share_a,  x.cluster_splits};
}

ScaledGemmLaunch ScaledGemmLaunch::of(const ScaledGemm& options, int m, int n, int multiprocessors,
                                      int groups) {
  return {{options.grid_x(m, n, multiprocessors, groups)}};
}

}  // namespace tartan::TARTAN_ABI::kernels
