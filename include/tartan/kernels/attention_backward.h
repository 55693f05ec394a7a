// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/attention_backward.h - the gradients of Q, K and V from that of O, the result
// of kernels::attention(): no matrix of scores in memory. Three kernels, launched in this order:
//
//   const auto with =
//       tuned(kernels::AttentionBackward{.head_dim = 128, .type = bf16, .causal = true}, target);
//   const unsigned heads = 32, kv_heads = 8, batch = 2, rows = with.row_blocks(queries);
//   const auto floats = [&](std::int64_t each) { return 4 * batch * heads * each; };
//   Buffer stats = *device.allocate(floats(with.stat_elements(queries)));
//   Buffer sums = *device.allocate(floats(with.sum_elements(queries)));
//   ...        // attention_backward_rows(with), attention_backward(with) and
//              // attention_backward_queries(with), compiled for one target and loaded
//   launch(first, *compiled_first, {rows, heads, batch},
//          Arguments().add(queries).add(heads).add(o).add(d_o).add(lse).add(stats).add(sums));
//   launch(second, *compiled_second, {with.blocks(keys), kv_heads, batch},
//          Arguments().add(queries).add(keys).add(heads).add(kv_heads).add(scale)
//                     .add(q).add(k).add(v).add(d_o).add(stats).add(sums).add(d_k).add(d_v));
//   launch(third, *compiled_third, {rows, heads, batch},
//          Arguments().add(queries).add(heads).add(scale).add(sums).add(d_q));
//
// With P = exp(scale * Q * K^T - LSE) and D the sums of dO o O along rows:
//
//   dV = P^T * dO    dS = P o (dO * V^T - D)    dK = scale * dS^T * Q    dQ = scale * dS * K
//
// A CTA of the second kernel has some keys, and goes through the queries that see them, of all
// heads that share the keys; it adds its part of dQ to sums in f32 (FlashAttention-2, Dao 2023).
#pragma once

#include <algorithm>

#include "tartan/dsl/builder.h"
#include "tartan/kernels/gpu.h"

namespace tartan::TARTAN_ABI::kernels {

/// The backward pass. Matrices are those of kernels::Attention, row-major and contiguous, and each
/// gradient is like what it is the gradient of:
///
///   Q, O, dO, dQ   [batch][heads][queries][head_dim]
///   K, V, dK, dV   [batch][kv_heads][keys][head_dim]
///   LSE            [batch][heads][queries], f32: what kernels::attention() writes
///   stats, sums    f32, written by the first kernel: stat_elements() and sum_elements() per head
///   turns          u32, only if `deterministic`, the last argument of the first and the second
///                  kernel: turn_elements()
///
/// Parameters: queries, keys, heads, kv_heads (s32, any lengths; kv_heads divides heads; a grid has
/// at most 65535 heads and batches), scale f32. All three kernels are compiled with the same
/// options and for the same architecture. P and dS are rounded to `type` for the products.
///
/// A row that sees no key adds nothing, and its gradient is zero; a key that no query sees has
/// gradients of zero. NaN or infinity in a row of Q, O, dO or LSE makes that row of dQ NaN, and
/// what it sees of dK and dV. K, V, Q and dO must be finite where a mask hides them from each
/// other: products with a weight of zero are computed.
struct AttentionBackward {
  int head_dim = 64;  // 64 or 128
  Type type = f16;    // f16 or bf16
  /// As that of Attention: query i sees the keys up to i + keys - queries.
  bool causal = false;
  /// CTAs add to dQ in the order of their keys: the same bits in each run. Otherwise the order, and
  /// so the last bits of dQ, differ from run to run; dK and dV never do.
  bool deterministic = false;
  int queries_per_step = 64, keys_per_block = 64;
  int warps = 4;
  int stages = 1;     // of the rings for Q and dO
  int producers = 0;  // producer warps, see Builder::roles()

  /// gridDim.x of the second kernel; y is the head of keys, z the batch.
  unsigned blocks(int keys) const {
    const std::int64_t each = std::max(keys_per_block, 1);
    return static_cast<unsigned>((keys + each - 1) / each);
  }
  /// gridDim.x of the first and the third one; y is the head of queries, z the batch.
  unsigned row_blocks(int queries) const {
    const std::int64_t each = std::max(queries_per_step, 1);
    return static_cast<unsigned>((queries + each - 1) / each);
  }
  /// Elements for each head and batch.
  std::int64_t stat_elements(int queries) const {
    return std::int64_t{2} * row_blocks(queries) * queries_per_step;
  }
  std::int64_t sum_elements(int queries) const {
    return std::int64_t{row_blocks(queries)} * queries_per_step * head_dim;
  }
  /// Elements in all, for that many heads of all batches together.
  std::int64_t turn_elements(int queries, int heads) const {
    return std::int64_t{row_blocks(queries)} * heads + 1;
  }
};

/// The first kernel: D, and what the others expect in stats, sums and turns.
Kernel attention_backward_rows(const AttentionBackward& options);
/// The second kernel: dK, dV, and the sums of dQ.
Kernel attention_backward(const AttentionBackward& options);
/// The third kernel: dQ from its sums.
Kernel attention_backward_queries(const AttentionBackward& options);

/// `options` with the tiles, warps, stages and producers that are fastest on a GPU: on sm_90a
/// two consumer warpgroups and one producer warpgroup, unchanged elsewhere.
AttentionBackward tuned(const AttentionBackward& options, const Gpu& gpu);

}  // namespace tartan::TARTAN_ABI::kernels
