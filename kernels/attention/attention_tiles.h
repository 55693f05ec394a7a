// SPDX-License-Identifier: Apache-2.0
// kernels/attention/attention_tiles.h - the order of attention's tiles of queries, and values of
// their rows.
#pragma once

#include <utility>

#include "tartan/dsl/warp.h"
#include "tartan/kernels/attention.h"

namespace tartan::TARTAN_ABI::kernels {

/// The tiles of a batch's heads.
struct TileOrder {
  const Attention& with;
  Scalar heads, kv_heads, keys, blocks;  // blocks: tiles of a head

  /// The head, and the tile in it, that come `number`th. Causal: the last queries have the most
  /// work. They come first, those of several heads whose keys and values L2 holds.
  std::pair<Scalar, Scalar> longest_first(const Scalar& number) const;
};

/// Writes one value for each row of the tile that exists, from place `begin` on; the tile's first
/// row is number `first`. The four lanes that share a row hold the same value.
void write_rows(Builder& k, const Global& to, const Scalar& begin, const Scalar& count,
                const Scalar& first, const WarpTile& tile, const RowValues& values);

/// The logarithm of each row's sum of exponentials, of which `top` is the largest exponent before
/// `scale` and `sum` what is left.
RowValues log_sums(Builder& k, const RowValues& top, const RowValues& sum, const Scalar& scale);

/// Zeros for rows of a tile from `first` on, which are another sequence's: NaN times a weight of
/// zero would be NaN. The stage has arrived, and its next filling awaits all `threads`.
void clear_rows(Builder& k, const Shared& tile, const Scalar& first, int rows, int columns,
                int threads);

/// Whether a row's value is so. Of no rows, as there are after an error: false.
Scalar any(const RowValues& rows, Scalar (*is)(const Scalar&));
/// Whether the product of a score and the scale has less than 12 fraction bits.
Scalar is_far(const Scalar& product);
Scalar is_not_one(const Scalar& x);

/// Of the four lanes that share a row.
template <typename Combine>
RowValues across_lanes(RowValues of, Combine combine) {
  for (const int by : {1, 2})
    of = map(of, [&](const Scalar& x) { return combine(x, shuffle_xor(x, by)); });
  return of;
}

/// Per row: of this lane's elements alone.
template <typename Combine>
RowValues in_lane(Builder& k, const WarpTile& tile, Combine combine) {
  RowValues out;
  for (int y = 0; y < tile.down(); ++y)
    for (int x = 0; x < tile.across(); ++x) {
      const std::vector<Scalar> elements = k.elements(tile.fragment(y, x));
      for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t row = 2 * static_cast<std::size_t>(y) + half;
        const Scalar both = combine(elements[2 * half], elements[2 * half + 1]);
        if (out.size() <= row) out.push_back(both);
        else out[row] = combine(out[row], both);
      }
    }
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
