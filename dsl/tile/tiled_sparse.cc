// SPDX-License-Identifier: Apache-2.0
// Tiled MMAs with a sparse A (PTX ISA 9.0, 9.7.14.6 and 9.7.15.6).
#include "dsl/layout/addressing.h"
#include "dsl/layout/placement.h"
#include "dsl/tile/tiled_parts.h"
#include "dsl/units/wgmma/warpgroup_mma.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI {

namespace {

using detail::TiledParts;

// The metadata words of 16 rows and one instruction's k: two lanes of each quad hold them, or all
// four.
int metadata_words(const TiledParts& mma) {
  isa::Form form{.shape = mma.kind.shape.shape, .a = mma.kind.a};
  form.kind = mma.kind.shape.kind;
  return isa::codes_per_row(form) == 16 ? 32 : 16;
}

// The word that this lane supplies for 16 rows and the step's k.
Scalar metadata_word(const TiledParts& mma, const Shared& metadata, const Scalar& rows,
                     const Scalar& step, Here at) {
  Builder k(mma.state);
  const int each = metadata_words(mma);
  const Scalar lane = k.lane(at), word = each == 32 ? lane : lane / 4 * 2 + lane % 2;
  const Scalar found = k.read(metadata, rows, word + step * each, at);
  // Beyond the edge of A memory reads as zero, which is not valid metadata: use any valid code
  // there.
  return select(found == 0, std::int64_t{0x44444444}, found);
}

// If two lanes of each quad hold a step's words, the other two hold the next step's: the selector
// chooses between them.
std::vector<ir::Value> metadata_registers(const TiledParts& mma, const Shared& metadata,
                                          int selectors, Here at) {
  std::vector<ir::Value> out;
  const Scalar lane = thread_index(*mma.state) % 32;
  for (int first = 0; first < mma.steps(); first += selectors) {
    const bool turns = selectors == 2 && first + 1 < mma.steps();
    const Scalar step = turns ? lane % 4 / 2 + first : Scalar(first);
    out.push_back(mma.state->value(metadata_word(mma, metadata, mma.warp_m, step, at), b32));
  }
  return out;
}

}  // namespace

bool detail::fit_sparse(const TiledParts& mma, const Shared& a, const Shared& metadata,
                        const Shared& b) {
  const Layout words = metadata_layout(mma);
  return require_shape(*mma.state, tensor_of(a), mma.tile.m, mma.columns_a(),
                       "A of the tiled MMA") &
         require_shape(*mma.state, tensor_of(metadata), *words.rows.constant(),
                       *words.cols.constant(), "the metadata of the tiled MMA") &
         require_shape(*mma.state, tensor_of(b), mma.tile.k, columns_of_b(mma),
                       "B of the tiled MMA");
}

WarpTile detail::sparse_product(const TiledParts& mma, const WarpTile& sum, bool fresh,
                                const Shared& a, const Shared& metadata, const Shared& b) {
  const Here at = mma.state->log.location();
  if (!fit_sparse(mma, a, metadata, b)) return {};
  if (by_warpgroups(mma, sum, true)) {
    if (!at_place(mma, Operand::c, sum)) return {};
    return WarpTile(
        warpgroup_multiply(*mma.state, *mma.warpgroup, mma.options, sum.fragments(), tensor_of(a),
                           tensor_of(b), mma.warp_m / 4,
                           metadata_registers(mma, metadata, isa::selectors(*mma.warpgroup), at),
                           fresh),
        mma.fragments_n(), sum.place());
  }
  return multiply_tile(
      mma, sum, fresh, side_a(mma, a), side_b(mma, b), [&](MmaOptions& options, int i, int step) {
        options.metadata =
            metadata_word(mma, metadata, mma.warp_m * mma.fragments_m() + i, step, at);
      });
}

Layout detail::metadata_layout(const TiledParts& mma) {
  if (mma.kind.shape.shape.m == 0) return row_major(1, 1);  // refused
  return row_major(std::max(mma.tile.m / 16, 1), std::max(mma.steps() * metadata_words(mma), 1));
}

Layout TiledMma::metadata_tile() const { return detail::metadata_layout(parts_); }

}  // namespace tartan::TARTAN_ABI
