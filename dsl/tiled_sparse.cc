// SPDX-License-Identifier: Apache-2.0
// Tiled products with a sparse A (PTX ISA 9.7.14.6 and 9.7.15.6).
#include "dsl/addressing.h"
#include "dsl/indices.h"
#include "dsl/warpgroup_mma.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::inline TARTAN_ABI {

using detail::tensor_of;

WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const Shared& metadata,
                              const Shared& b, Here at) const {
  if (!detail::KernelState::begins(state_, at)) return {};
  const Layout words = metadata_tile();
  const bool shapes =
      require_shape(*state_, tensor_of(a), tile_.m, columns_a(), "A of the tiled MMA") &
      require_shape(*state_, tensor_of(metadata), *words.rows.constant(), *words.cols.constant(),
                    "the metadata of the tiled MMA") &
      require_shape(*state_, tensor_of(b), tile_.k, tile_.n, "B of the tiled MMA");
  if (!shapes) return {};
  if (by_warpgroups(c, true))
    return WarpTile(detail::warpgroup_multiply(
                        *state_, *warpgroup_, options_, c.fragments(), tensor_of(a), tensor_of(b),
                        warp_m_ / 4, metadata_registers(metadata, isa::selectors(*warpgroup_), at)),
                    fragments_n(), c.place());
  return multiply(c, side_a(a), side_b(b), [&](MmaOptions& options, int i, int step) {
    options.metadata = metadata_word(metadata, warp_m_ * fragments_m() + i, step, at);
  });
}

// The word that this lane gives of 16 rows and the step's k.
Scalar TiledMma::metadata_word(const Shared& metadata, const Scalar& rows, const Scalar& step,
                               Here at) const {
  Builder k(state_);
  const int each = metadata_words();
  const Scalar lane = k.lane(at), word = each == 32 ? lane : lane / 4 * 2 + lane % 2;
  const Scalar found = k.read(metadata, rows, word + step * each, at);
  // Beyond the edge of A lie zeros, which are no metadata: any will do there.
  return select(found == 0, std::int64_t{0x44444444}, found);
}

// Where two of four lanes hold a step's words, the other two hold the next one's: the selector then
// says which of them count.
std::vector<codegen::Value> TiledMma::metadata_registers(const Shared& metadata, int selectors,
                                                         Here at) const {
  std::vector<codegen::Value> out;
  const Scalar lane = thread_index(*state_) % 32;
  for (int first = 0; first < steps(); first += selectors) {
    const bool turns = selectors == 2 && first + 1 < steps();
    const Scalar step = turns ? lane % 4 / 2 + first : Scalar(first);
    out.push_back(state_->value(metadata_word(metadata, warp_m_, step, at), b32));
  }
  return out;
}

// The words of 16 rows and one instruction's k: two lanes of four hold them, or all.
int TiledMma::metadata_words() const {
  isa::Form form{.shape = kind_.shape.shape, .a = kind_.a};
  form.kind = kind_.shape.kind;
  return isa::codes_per_row(form) == 16 ? 32 : 16;
}

Layout TiledMma::metadata_tile() const {
  if (kind_.shape.shape.m == 0) return row_major(1, 1);  // refused
  return row_major(std::max(tile_.m / 16, 1), std::max(steps() * metadata_words(), 1));
}

}  // namespace tartan::inline TARTAN_ABI
