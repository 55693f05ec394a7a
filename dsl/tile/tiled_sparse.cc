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

using detail::tensor_of;
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
std::vector<codegen::Value> metadata_registers(const TiledParts& mma, const Shared& metadata,
                                               int selectors, Here at) {
  std::vector<codegen::Value> out;
  const Scalar lane = thread_index(*mma.state) % 32;
  for (int first = 0; first < mma.steps(); first += selectors) {
    const bool turns = selectors == 2 && first + 1 < mma.steps();
    const Scalar step = turns ? lane % 4 / 2 + first : Scalar(first);
    out.push_back(mma.state->value(metadata_word(mma, metadata, mma.warp_m, step, at), b32));
  }
  return out;
}

}  // namespace

WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const Shared& metadata,
                              const Shared& b, Here at) const {
  if (!detail::KernelState::begins(parts_.state, at)) return {};
  const Layout words = metadata_tile();
  const bool shapes = require_shape(*parts_.state, tensor_of(a), parts_.tile.m, parts_.columns_a(),
                                    "A of the tiled MMA") &
                      require_shape(*parts_.state, tensor_of(metadata), *words.rows.constant(),
                                    *words.cols.constant(), "the metadata of the tiled MMA") &
                      require_shape(*parts_.state, tensor_of(b), parts_.tile.k, parts_.tile.n,
                                    "B of the tiled MMA");
  if (!shapes) return {};
  if (by_warpgroups(parts_, c, true)) {
    if (!detail::at_place(parts_, Operand::c, c)) return {};
    return WarpTile(
        detail::warpgroup_multiply(
            *parts_.state, *parts_.warpgroup, parts_.options, c.fragments(), tensor_of(a),
            tensor_of(b), parts_.warp_m / 4,
            metadata_registers(parts_, metadata, isa::selectors(*parts_.warpgroup), at)),
        parts_.fragments_n(), c.place());
  }
  return multiply_tile(
      parts_, c, side_a(parts_, a), side_b(parts_, b), [&](MmaOptions& options, int i, int step) {
        options.metadata =
            metadata_word(parts_, metadata, parts_.warp_m * parts_.fragments_m() + i, step, at);
      });
}

Layout TiledMma::metadata_tile() const {
  if (parts_.kind.shape.shape.m == 0) return row_major(1, 1);  // refused
  return row_major(std::max(parts_.tile.m / 16, 1),
                   std::max(parts_.steps() * metadata_words(parts_), 1));
}

}  // namespace tartan::TARTAN_ABI
