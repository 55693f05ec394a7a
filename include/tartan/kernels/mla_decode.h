// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/mla_decode.h - multi-head latent attention (MLA) of a few new tokens over a
// cache in pages: all query heads share one head, of which values are the first part of the keys.
//
//   const Target target = Target::of(device.arch());
//   const auto options = kernels::tuned(kernels::MlaDecode{.heads = 128, .page = 64}, target);
//   const auto compiled = compile(kernels::mla_decode(options), device.arch());
//   ...                                                   // load it: see tartan/launch.h
//   const unsigned blocks = options.blocks(132);          // 132 multiprocessors
//   Buffer p = ..., l = ...;                              // options.partials(blocks) ...
//   const Status launched =
//       launch(kernel, *compiled, {blocks},
//              Arguments().add(batch).add(most_pages).add(scale).add(q).add(kv).add(table)
//                         .add(lengths).add(o).add(p).add(l).add(counters));
#pragma once

#include <algorithm>

#include "tartan/dsl/builder.h"
#include "tartan/kernels/gpu.h"

namespace tartan::TARTAN_ABI::kernels {

/// Decoding with multi-head latent attention, as DeepSeek's models have it: `queries` new tokens of
/// each sequence, whose keys are in the cache already. A key has 576 elements, a latent vector of
/// 512 and 64 with its position (RoPE); its value is the latent vector.
///
///   Q         [batch][queries][heads][576]
///   KV        [pages][page][576]
///   table     [batch][most_pages], s32: which page holds keys page * i .. page * i + page - 1
///   lengths   [batch], s32: keys of each sequence, the new tokens included; 0: an empty sequence
///   O         [batch][queries][heads][512]
///   P, L      work space, f32: partial_elements() and weight_elements()
///   counters  [batch][row_tiles()], u32: zeros before the first launch, and again after each
///
/// Parameters: batch, most_pages (s32), scale f32. Masks, empty sequences, NaN and the division of
/// keys among blocks are as in decode.h: query token t sees keys up to length - queries + t. The
/// rows of Q of a sequence, queries * heads, are tiles of 64; a tile's block reads each key once
/// for all of its rows. Where there are several tiles, as many neighbouring blocks read the same
/// keys at the same time: a grid is a multiple of row_tiles(). Blocks get whole sequences where
/// that costs less than parts, and their sums: see `whole_steps`.
struct MlaDecode {
  static constexpr int latent = 512, key = 576;

  Type type = bf16;        // of Q, KV and O: f16 or bf16
  int queries = 1;         // 1 to 16
  int heads = 128;         // query heads: 1 to 128
  int page = 64;           // keys in a page: a power of two, 16 to 256
  int keys_per_step = 64;  // 16, 32 or 64
  int stages = 1;          // of the ring for keys
  int producers = 0;       // producer warps, see Builder::roles()
  /// Blocks get whole sequences where the busiest one then has at most so many steps more than an
  /// equal share of all keys. 0: equal shares.
  int whole_steps = 8;

  int rows() const { return queries * heads; }
  /// At least 1, also for numbers that mla_decode() refuses.
  int row_tiles() const { return std::max(rows() / 64 + (rows() % 64 > 0), 1); }
  /// gridDim.x of a launch that fills a GPU.
  unsigned blocks(int multiprocessors) const {
    return static_cast<unsigned>(std::max(multiprocessors / row_tiles(), 1) * row_tiles());
  }
  /// Elements of P and of L for a grid of `blocks`.
  std::int64_t partial_elements(unsigned blocks) const {
    return std::int64_t{2} * blocks * std::min(rows(), 64) * latent;
  }
  std::int64_t weight_elements(unsigned blocks) const {
    return std::int64_t{4} * blocks * std::min(rows(), 64);
  }
};
Kernel mla_decode(const MlaDecode& options);

/// `options` with the step, stages and producers that are fastest on a GPU. Where
/// shared memory does not suffice (99 KB on sm_86): fewer keys per step.
MlaDecode tuned(const MlaDecode& options, const Gpu& gpu);

}  // namespace tartan::TARTAN_ABI::kernels
