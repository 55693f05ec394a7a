// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/delta_rule.h - the gated delta rule (Yang et al. 2024) and Kimi Delta Attention:
// linear attention whose state forgets, and corrects what it has for a key. Sequences are computed
// in chunks of 64 tokens on tensor cores, by two kernels, launched in this order:
//
//   const auto with = tuned(kernels::DeltaRule{.key_dim = 128, .type = bf16}, target);
//   const unsigned chunks = with.chunk_blocks(most_tokens);      // of the longest sequence
//   Buffer transforms = *device.allocate(2 * with.transform_elements(tokens, heads, sequences));
//   Buffer weights = *device.allocate(2 * with.transform_elements(tokens, heads, sequences));
//   Buffer decays = *device.allocate(4 * with.decay_elements(tokens, heads, sequences));
//   ...        // delta_rule_chunks(with) and delta_rule(with), compiled for one target and loaded
//   launch(first, *compiled_first, {chunks, heads, sequences},
//          Arguments().add(tokens).add(heads).add(key_heads).add(sequences).add(q).add(k).add(g)
//                     .add(beta).add(starts).add(transforms).add(weights).add(decays));
//   launch(second, *compiled_second, {with.blocks(), heads, sequences},
//          Arguments().add(tokens).add(heads).add(key_heads).add(sequences).add(scale).add(q)
//                     .add(k).add(v).add(starts).add(transforms).add(weights).add(decays).add(o));
//
// A new token of each sequence is one step of the recurrence: delta_rule_decode().
#pragma once

#include <cstdint>

#include "tartan/dsl/builder.h"
#include "tartan/kernels/gpu.h"

namespace tartan::TARTAN_ABI::kernels {

/// The recurrence of a head, with a state S of value_dim x key_dim elements and a token's q, k, v:
///
///   S = S * diag(alpha)             alpha = exp(g): a number, or one for each element of a key
///   S = S + beta * (v - S * k) * k^T
///   o = scale * S * q
///
/// Sequences are packed one after the other, as Attention::packed has them:
///
///   Q, K     [tokens][key_heads][key_dim]       V, O   [tokens][heads][value_dim], of `type`
///   g        [tokens][heads], f32; with channel_gates [tokens][heads][key_dim]
///   beta     [tokens][heads], f32
///   starts   s32 [sequences + 1]: sequence i has the tokens from starts[i] to before starts[i +
///   1];
///            not decreasing, within the tokens. A sequence may have none.
///   S0, S1   [sequences][heads][value_dim][key_dim], f32
///
/// Parameters of delta_rule_chunks(): tokens (of all sequences), heads, key_heads (s32; key_heads
/// divides heads: so many heads of values share a head of keys), sequences (s32), Q, K, g, beta,
/// starts; and what it writes for the second kernel: transforms, weights (`type`,
/// transform_elements()), decays (f32, decay_elements()), with channel_gates also Qg, Kg and Ke
/// (`type`, [tokens][heads][key_dim]). Of delta_rule(): tokens, heads, key_heads, sequences, scale
/// (f32), Q, K, V, starts, transforms, weights, decays, O; Qg, Kg and Ke in place of Q and K with
/// channel_gates; S0 with initial_state and S1 with final_state at the end.
///
/// g is the natural logarithm of a gate: finite, 0 or below; above 0 the state grows, and results
/// may overflow. Keys are usually normalized: where beta * |k|^2 is above 2, the recurrence itself
/// diverges. Q, K and V are used as they are. Intermediate results are rounded to `type`, sums and
/// the state are f32; with channel_gates, products of a chunk's keys are those of elements in bf16,
/// whose range they need.
/// No sequence's result depends on what others have, NaN included; rows of no sequence are left as
/// they are. NaN or infinity in a token makes results of its chunk and of later tokens of its head
/// NaN.
struct DeltaRule {
  int key_dim = 128;    // 64, 96 or 128
  int value_dim = 128;  // a multiple of 64 up to 256
  Type type = bf16;     // of Q, K, V and O: f16 or bf16
  /// Kimi Delta Attention: each element of a key has a gate of its own.
  bool channel_gates = false;
  bool initial_state = false;  // S0 is the state before the first token; else it is zero
  bool final_state = false;    // S1 gets the state after the last token
  /// Of the state, rows that a CTA of the second kernel has: 16 for each warp.
  int values_per_block = 64;
  int stages = 2;     // of the rings for chunks
  int producers = 0;  // producer warps, see Builder::roles()

  static constexpr int chunk = 64;  // tokens

  /// gridDim.x of the first kernel; y is the head of values, z the sequence.
  unsigned chunk_blocks(int tokens_of_longest) const {
    return static_cast<unsigned>((std::int64_t{tokens_of_longest} + chunk - 1) / chunk);
  }
  /// gridDim.x of the second one; y is the head of values, z the sequence.
  unsigned blocks() const {
    return static_cast<unsigned>(value_dim / (values_per_block > 0 ? values_per_block : 64));
  }
  /// Chunks of all sequences that there is room for.
  std::int64_t chunks(int tokens, int sequences) const {
    return std::int64_t{tokens} / chunk + sequences;
  }
  /// Elements of transforms, and of weights.
  std::int64_t transform_elements(int tokens, int heads, int sequences) const {
    return chunks(tokens, sequences) * heads * chunk * chunk;
  }
  /// Elements of decays.
  std::int64_t decay_elements(int tokens, int heads, int sequences) const {
    return chunks(tokens, sequences) * heads * (channel_gates ? key_dim : 2 * chunk);
  }
};
Kernel delta_rule_chunks(const DeltaRule& options);
Kernel delta_rule(const DeltaRule& options);

/// `options` with the rows per block, stages and producers that are fastest on a GPU.
DeltaRule tuned(const DeltaRule& options, const Gpu& gpu);

/// The recurrence for a few new tokens of each sequence, token by token.
///
///   Q, K     [sequences][tokens][key_heads][key_dim]
///   V, O     [sequences][tokens][heads][value_dim], of `type`
///   g, beta  as those of DeltaRule, of [sequences][tokens]
///   S        [sequences][heads][value_dim][key_dim], f32: read, and then written
///
/// Parameters: sequences, tokens (of each sequence), heads, key_heads (s32), scale (f32), Q, K, V,
/// g, beta, S, O. A launch has blocks(), heads, sequences.
struct DeltaRuleDecode {
  int key_dim = 128;           // a multiple of 32 up to 256
  int value_dim = 128;         // a multiple of values_per_block
  Type type = bf16;            // f16 or bf16
  bool channel_gates = false;  // as that of DeltaRule
  /// Rows of the state that a CTA has: a multiple of 16, 4 rows of each of four warps at a time.
  int values_per_block = 32;

  unsigned blocks() const {
    return static_cast<unsigned>(value_dim / (values_per_block > 0 ? values_per_block : 32));
  }
};
Kernel delta_rule_decode(const DeltaRuleDecode& options);

/// `options` with the rows per block that are fastest on a GPU.
DeltaRuleDecode tuned(const DeltaRuleDecode& options, const Gpu& gpu);

}  // namespace tartan::TARTAN_ABI::kernels
