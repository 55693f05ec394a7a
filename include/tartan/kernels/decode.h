// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/decode.h - attention of a few new tokens over keys and values in pages, split
// along the keys so that all multiprocessors read (flash decoding).
//
//   const Target target = Target::of(device.arch());
//   const kernels::Decode decode{.head_dim = 128, .type = bf16, .group = 8, .page = 64};
//   const auto options = kernels::tuned(decode, target);
//   const auto compiled = compile(kernels::decode(options), device.arch());
//   ...                                                   // load it: see tartan/launch.h
//   const unsigned blocks = options.blocks(132);          // 132 multiprocessors; or with sizes
//   Buffer p = ..., l = ...;                              // options.partial_elements(blocks) ...
//   const Status launched =
//       launch(kernel, *compiled, {blocks},
//              Arguments().add(batch).add(kv_heads).add(most_pages).add(scale)
//                         .add(q).add(k).add(v).add(table).add(lengths).add(o)
//                         .add(p).add(l).add(counters));
#pragma once

#include "tartan/dsl/builder.h"
#include "tartan/kernels/gpu.h"
#include "tartan/support/dim3.h"

namespace tartan::TARTAN_ABI::kernels {

/// Decoding: `queries` new tokens of each sequence, whose keys and values are in the cache already.
///
///   Q, O      [batch][queries][kv_heads][group][head_dim]: as many query heads as a model has,
///             `group` neighbours of which share a head of keys
///   K, V      [pages][kv_heads][page][head_dim]
///   table     [batch][most_pages], s32: which page holds keys page * i .. page * i + page - 1
///   lengths   [batch], s32: keys of each sequence, the new tokens included; 0: an empty sequence
///   P, L      work space, f32: partial_elements() and weight_elements()
///   counters  [batch][kv_heads], u32: zeros before the first launch, and again after each
///
/// Parameters: batch, kv_heads, most_pages (s32), scale f32. Query token t of a sequence sees its
/// keys up to length - queries + t: the last one sees all. A row that sees no key gives zeros. Of
/// the table only the pages that a sequence has are read; what is in its last page beyond its
/// length does not matter, NaN included. Weights are rounded to `type` for the product with V.
///
/// All rows that read the same keys, queries * group, are one tile. Any number of blocks computes
/// the same up to rounding: each has an equal share of all keys, or whole heads where that is
/// nearly the same. Where several have a part of a sequence's head, the last of them combines the
/// parts, in their order: results do not depend on timing. Launches that share work space must not
/// run at the same time.
struct Decode {
  int head_dim = 128;  // a multiple of 16, 16 to 256
  Type type = f16;     // of Q, K, V and O: f16 or bf16
  int queries = 1;     // 1 to 16
  int group = 8;       // query heads that share a head of keys; at most 128 rows in all
  int page = 64;       // keys in a page: a power of two, 16 to 256
  int keys_per_step = 64;
  int key_groups = 0;  // groups of warps that divide a step's keys; 0: chosen by the rows
  int stages = 3;      // of the rings for K and V
  int producers = 0;   // producer warps, see Builder::roles()
  int blocks_per_multiprocessor = 1;
  /// Blocks get whole heads of sequences, whose parts nobody has to add, where the busiest one then
  /// has at most so many steps more than an equal share. 0: equal shares.
  int whole_steps = 3;

  int rows() const { return queries * group; }
  /// gridDim.x of a launch that fills a GPU.
  unsigned blocks(int multiprocessors) const {
    return static_cast<unsigned>(multiprocessors * blocks_per_multiprocessor);
  }
  /// The same where all sequences have about `keys` keys: a block for each head of a sequence, if
  /// these are many and long, so that multiprocessors that read faster than others take more.
  unsigned blocks(int multiprocessors, int batch, int kv_heads, int keys) const;
  /// Elements of P and of L for a grid of `blocks`.
  std::int64_t partial_elements(unsigned blocks) const {
    return std::int64_t{2} * blocks * rows() * head_dim;
  }
  std::int64_t weight_elements(unsigned blocks) const { return std::int64_t{4} * blocks * rows(); }
};
Kernel decode(const Decode& options);

/// `options` with the step, warps, stages and producers that are fastest on a GPU. If shared
/// memory does not suffice: fewer stages, then fewer keys per step.
Decode tuned(const Decode& options, const Gpu& gpu);

// ---- The same in parts: what is computed, how, and the launch.

/// What Decode computes: sizes, types and what belongs to the result.
struct DecodeProblem {
  int head_dim = 128;
  Type type = f16;
  int queries = 1, group = 8, page = 64;
};
/// The members are those of Decode.
struct DecodeSchedule {
  int keys_per_step = 64, key_groups = 0, stages = 3, producers = 0;
  int blocks_per_multiprocessor = 1, whole_steps = 3;
};
Decode flat(const DecodeProblem& problem, const DecodeSchedule& schedule);
DecodeProblem problem_of(const Decode& options);
DecodeSchedule schedule_of(const Decode& options);

/// A launch of Decode: see of().
struct DecodeLaunch {
  Dim3 grid;
  std::int64_t partials = 0, weights = 0, counters = 0;  // elements of P, L and counters

  /// `keys`: where all sequences have about as many, else 0.
  static DecodeLaunch of(const Decode& options, int batch, int kv_heads, int multiprocessors,
                         int keys = 0);
};

}  // namespace tartan::TARTAN_ABI::kernels
