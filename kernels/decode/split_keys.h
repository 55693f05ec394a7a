// SPDX-License-Identifier: Apache-2.0
// kernels/decode/split_keys.h - what decoding kernels share: each CTA gets an equal share of the
// keys of the whole batch, and the last CTA of those that share a head adds their parts. Not
// installed.
#pragma once

#include <functional>
#include <vector>

#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::kernels {

/// The division of all keys into steps, and of steps among CTAs. Fill the fields, call
/// find_share() outside of roles(), then each_part(), and combine() for each part that is not all
/// of its head's keys.
class SplitKeys {
 public:
  /// A part of the keys of one sequence and head.
  struct Part {
    Scalar sequence, head, length;
    Scalar first, count, units;  // steps; of the sequence
    Scalar unit_begin;           // number of its first unit
    Scalar steps;                // of them those with keys: none of an empty sequence
    /// Whether it has all keys of the sequence.
    Scalar whole() const { return count == units; }
  };
  /// Writes a row's columns col .. col + 3, divided by the row's sum.
  using Writer = std::function<void(const Part&, const Scalar& row, const Scalar& col,
                                    const std::vector<Scalar>& values, const Scalar& sum)>;

  explicit SplitKeys(Builder& builder) : k(builder) {}

  Builder& k;
  int rows = 0, cols = 0;  // of a part of the result
  int keys_per_step = 0;   // keys of a step
  int threads = 0;         // consumers
  Scalar batch, heads;     // sequences; heads of keys of each
  Scalar scale;            // of the scores, for exp2
  Global lengths;          // [batch]
  Global P, L, counters;   // see tartan/kernels/decode.h
  int vectors = 4;         // of four columns that a thread adds at once
  int tiles = 1;           // of rows, each of which has CTAs, parts and counters of its own
  // CTAs get whole heads of sequences where the busiest one then has at most so many steps more
  // than an equal share. 0: always equal shares.
  int whole_steps = 0;
  Scalar tile = 0;  // this CTA's

  /// Declares P, L and counters: `rows` x `cols`, `rows` x 2, and one for each head or tile of a
  /// sequence of the `batch`. Finds this CTA's tile.
  void declare_parts();
  /// What a score is that a query does not see: minus infinity.
  Scalar masked() const;
  /// Finds this CTA's share.
  void find_share();
  /// Describes `body`, which consumers execute: producers run what steers the pipelines, but not
  /// what only consumers' values decide.
  void consumers(const std::function<void()>& body) const { k.when(consumes_, body); }
  /// Describes `body`, which runs for each part of the share.
  void each_part(const std::function<void(const Part&)>& body) const;
  /// Where this CTA's part goes, and the maxima and sums of its rows: rows x cols and rows x 2.
  Global sums_of(const Part& part) const { return P.matrix(slot_of(part) * tiles + tile); }
  Global weights_of(const Part& part) const { return L.matrix(slot_of(part) * tiles + tile); }
  /// After all consumers have written their part: the last CTA adds all parts and writes them.
  void combine(const Part& part, const Writer& write) const;
  /// What a sum relative to the maximum `top` counts relative to `most`, which is infinite before
  /// any key is seen.
  Scalar weight(const Scalar& top, const Scalar& most) const;
  /// A row's value divided by its sum. A row that sees no key has the sum 0; a NaN is not 0.
  static Scalar share(const Scalar& x, const Scalar& sum);

 private:
  Scalar units_of(const Scalar& length) const;
  Scalar slot_of(const Part& part) const;
  Scalar owner(const Scalar& unit) const { return StreamShare::owner(all_, workers_, unit); }
  void add_parts(const Part& part, const Scalar& begin, const Scalar& end,
                 const Writer& write) const;

  Scalar workers_, worker_;  // CTAs that divide the keys, and which of them this is
  Shared ticket_;            // one u32
  Scalar all_, first_sequence_, first_before_, first_head_, consumes_;
  StreamShare share_;
};

}  // namespace tartan::TARTAN_ABI::kernels
