// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/attention.h - softmax(scale * Q * K^T) * V, tile by tile: no matrix of scores
// in memory (FlashAttention, Dao et al. 2022).
//
//   const Target target = Target::of(device.arch());
//   const auto options =
//       kernels::tuned(kernels::Attention{.head_dim = 128, .type = bf16, .causal = true}, target);
//   const auto compiled = compile(kernels::attention(options), device.arch());
//   ...                                                   // load it: see tartan/launch.h
//   const unsigned queries = 4096, keys = 4096, heads = 32, kv_heads = 8, batch = 2;
//   const float scale = 1 / std::sqrt(128.0F);
//   const Status launched =
//       launch(kernel, *compiled, {options.blocks(queries), heads, batch},   // or, if options are
//              // persistent, {options.persistent_blocks(queries, heads, batch, SMs), 1, batch}
//              Arguments().add(queries).add(keys).add(heads).add(kv_heads).add(scale)
//                         .add(q).add(k).add(v).add(o).add(lse));
#pragma once

#include <algorithm>
#include <vector>

#include "tartan/dsl/builder.h"
#include "tartan/kernels/gpu.h"
#include "tartan/support/dim3.h"

namespace tartan::TARTAN_ABI::kernels {

/// Caps of scores by tanh, cap * tanh(scale * score / cap), computed as
///   by_exp    1 - 2 / (1 + exp(2x)): wrong by at most cap * 2^-20, two more functions per score
///   by_tanh   tanh.approx: wrong by at most 2^-11 of the result, one more function per score
enum class Softcap : std::uint8_t { none, by_exp, by_tanh };

/// The forward pass. All matrices are row-major and contiguous:
///
///   Q, O   [batch][heads][queries][head_dim]      K, V   [batch][kv_heads][keys][head_dim]
///   LSE    [batch][heads][queries], f32: ln(sum over the keys of exp(scale * score)), which the
///          backward pass needs, and which joins the results of several sets of keys
///
/// Parameters: queries, keys, heads, kv_heads (s32, any lengths; kv_heads divides heads: that many
/// query heads share a head of keys and values; a grid has at most 65535 heads and batches), scale
/// (f32, above 0: results of another one mean nothing); the weights are rounded to `type` for the
/// product with V. A row that sees no key, or whose scores are all minus infinity, gives zero, and
/// LSE minus infinity. NaN in a row of Q, in a key that the row sees, or a score of plus infinity
/// makes that row of O and its LSE NaN. V must be finite where some rows do not see it: a key that
/// a row does not see, in a step that the block computes, is multiplied by a weight of zero, and
/// NaN or infinity there would spread to the block's rows.
///
/// Options add parameters: `window` (s32), `cap` (f32) and `sequences` (s32), in this order, after
/// scale, and `sinks` (f32, [heads]), `query_starts` and `key_starts` at the end. LSE includes caps
/// and sinks.
struct Attention {
  int head_dim = 64;  // a multiple of 16 up to 512; up to 256 nothing spills on sm_80 and sm_90a
  Type type = f16;    // of Q, K, V and O: f16 or bf16
  /// Query i sees the keys up to i + keys - queries: the last query sees all of them.
  bool causal = false;
  /// Sliding window, with `causal`: of these keys a query sees the last `window`, the first of
  /// which may lie before key 0. Steps without a key that the block sees are left out. A window of
  /// keys or more hides nothing, of 0 or less everything.
  bool window = false;
  /// Scores become cap * tanh(scale * score / cap). A cap that is not positive and finite makes all
  /// results NaN. A score of infinity becomes cap, of minus infinity -cap: it has a weight.
  Softcap softcap = Softcap::none;
  /// exp(sinks[head]) joins the sum of each row's weights, without a value: O is what it was times
  /// sum / (sum + exp(sink)), a row that sees no key gives zero, and LSE is the sink. A sink of
  /// minus infinity changes nothing; NaN and plus infinity make the head's results NaN. With its
  /// LSE, attention_backward() computes the gradients of Q, K and V.
  bool sinks = false;
  /// Sequences of different lengths, packed behind each other as FlashAttention's varlen has them:
  ///
  ///   Q, O   [queries][heads][head_dim]      K, V   [keys][kv_heads][head_dim]
  ///   LSE    [heads][queries]
  ///
  /// where `queries` and `keys` count the rows of all `sequences`. Sequence i has the queries from
  /// query_starts[i] to before query_starts[i + 1], and the keys from key_starts[i] to before
  /// key_starts[i + 1] (s32, [sequences + 1], not decreasing, within the rows); it may have none.
  /// Rows of no sequence are left as they are. No sequence's result depends on what others have,
  /// NaN included. A launch has blocks(the most queries of a sequence), heads, sequences.
  bool packed = false;
  int queries_per_block = 0;  // 0: 128 for head_dim up to 64, else 64: what registers hold
  int keys_per_step = 64;
  int warps = 4;
  int stages = 2;     // of the rings for K and V
  int producers = 0;  // producer warps, see Builder::roles()
  /// Each block computes tile after tile of its batch: the next one's queries and keys arrive while
  /// the last one ends. A launch may have any number of blocks along x and y; persistent_blocks()
  /// are faster than one for each tile. Requires producers, and no packed sequences.
  bool persistent = false;
  /// Where there are few keys: the keys and values of a step arrive together, and the step's two
  /// products follow each other. Nothing overlaps within a block, but it needs few registers and
  /// little shared memory, so that a multiprocessor runs several, which overlap. Not persistent.
  bool together = false;
  int blocks_per_multiprocessor = 0;  // for which registers suffice; 0: any number
  /// About how many keys a query sees at most, such as those of the longest sequence, or of the
  /// window; 0: unknown. tuned() chooses for them; the kernel takes any number. See key_limits().
  int keys = 0;

  /// Blocks (x) of a launch; y is the head, z the batch or sequence.
  unsigned blocks(int queries) const {
    return static_cast<unsigned>((std::int64_t{queries} + tile_queries() - 1) / tile_queries());
  }
  /// Blocks (x) of a launch of a persistent kernel, with y = 1 and z the batch: as many as run at a
  /// time, or one for each tile where these would leave more than a tenth of the GPU idle.
  unsigned persistent_blocks(int queries, int heads, int batch, int multiprocessors) const {
    const std::int64_t tiles = std::int64_t{blocks(queries)} * heads,
                       each = multiprocessors / std::max(batch, 1);
    const bool fills = each > 0 && 10 * each * batch >= std::int64_t{9} * multiprocessors;
    return static_cast<unsigned>(fills ? std::min(each, tiles) : tiles);
  }
  int tile_queries() const {
    return queries_per_block ? queries_per_block : head_dim <= 64 ? 128 : 64;
  }
};
Kernel attention(const Attention& options);

/// `options` with the tile, warps and producers that are fastest on a GPU: on sm_90a two or
/// three consumer warpgroups and one producer warpgroup, persistent up to 64, causal up to 96;
/// `together` for few `keys`; elsewhere what keeps registers from spilling. If shared memory does
/// not suffice: fewer keys per step, then fewer stages.
Attention tuned(const Attention& options, const Gpu& gpu);

/// Up to which numbers of keys tuned() chooses something else than for unknown ones, ascending;
/// none where it does not. A program whose launches have few keys and many compiles a kernel for
/// each limit and one without `keys`; it launches the first whose limit suffices. The C and Python
/// interfaces do so.
///
///   for (const int keys : key_limits(options, gpu)) {
///     Attention few = options;
///     few.keys = keys;
///     kernels.push_back(compile(attention(tuned(few, gpu)), device.arch()));
///   }
std::vector<int> key_limits(const Attention& options, const Gpu& gpu);

// ---- The same in parts: what is computed, how, and the launch.

/// What Attention computes: sizes, types and what belongs to the result.
struct AttentionProblem {
  int head_dim = 64;
  Type type = f16;
  bool causal = false, window = false;
  Softcap softcap = Softcap::none;
  bool sinks = false, packed = false;
  int keys = 0;
};
/// The members are those of Attention.
struct AttentionSchedule {
  int queries_per_block = 0, keys_per_step = 64, warps = 4, stages = 2, producers = 0;
  bool persistent = false, together = false;
  int blocks_per_multiprocessor = 0;
};
Attention flat(const AttentionProblem& problem, const AttentionSchedule& schedule);
AttentionProblem problem_of(const Attention& options);
AttentionSchedule schedule_of(const Attention& options);

/// A launch of Attention: see of().
struct AttentionLaunch {
  Dim3 grid;

  /// Packed: the most queries of a sequence, and the number of sequences as `batch`.
  static AttentionLaunch of(const Attention& options, int queries, int heads, int batch,
                            int multiprocessors);
};

}  // namespace tartan::TARTAN_ABI::kernels
