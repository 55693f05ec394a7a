// SPDX-License-Identifier: Apache-2.0
// dsl/tile/tiled_parts.h - the mainloop of a tiled MMA where each warp multiplies fragments: shared
// by dense, sparse and block-scaled kinds. Not installed.
#pragma once

#include <functional>
#include <vector>

#include "dsl/state/state.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI::detail {

/// A warp's fragments of A or B for one k-step.
using Side = std::function<std::vector<Fragment>(int step)>;
Side side_a(const TiledParts& mma, const Shared& a);
Side side_b(const TiledParts& mma, const Shared& b);
/// Fragments of tf32 that were loaded from memory of f32.
std::vector<Fragment> rounded(const TiledParts& mma, std::vector<Fragment> fragments,
                              const Shared& from);

/// Columns of B that this CTA has: half of them where a pair multiplies.
inline int columns_of_b(const TiledParts& mma) { return mma.tile.n / mma.ctas_of_b(); }

/// "A" or "B".
std::string_view letter(Operand operand);
/// Whether a warp's fragments are those of A or B of the kind, match the tile in number, and belong
/// to this kernel; reports if not.
bool takes_fragments(const TiledParts& mma, Operand operand, const WarpTile& given, int down,
                     int across);

/// Adds an instruction's operands beside fragments to its options, for the `i`th row or column of
/// fragments.
using Beside = std::function<void(MmaOptions&, int i, int step)>;
/// `fresh`: A * B, without what `sum` was.
WarpTile multiply_tile(const TiledParts& mma, const WarpTile& sum, bool fresh, const Side& a,
                       const Side& b, const Beside& row = {}, const Beside& column = {});
/// Products of a sparse A, and block-scaled ones, with the data that they need.
WarpTile sparse_product(const TiledParts& mma, const WarpTile& sum, bool fresh, const Shared& a,
                        const Shared& metadata, const Shared& b);
WarpTile scaled_product(const TiledParts& mma, const WarpTile& sum, bool fresh, const Shared& a,
                        const Shared& a_scales, const Shared& b, const Shared& b_scales);
/// Whether the operands of a block-scaled product have the tile's shapes; reports if not.
bool fit_scaled(const TiledParts& mma, const Shared& a, const Shared& a_scales, const Shared& b,
                const Shared& b_scales);
/// The same of a product with a sparse A.
bool fit_sparse(const TiledParts& mma, const Shared& a, const Shared& metadata, const Shared& b);
/// Whether a matrix in shared memory is the scales of an operand; reports if not.
bool are_scales(const TiledParts& mma, const Shared& scales, Operand operand);
/// The metadata of a stage: TiledMma::metadata_tile().
Layout metadata_layout(const TiledParts& mma);

/// How elements of an operand lie in shared memory: those of six and four bits that take a byte of
/// a register stay packed there.
Type stored_type(const MmaKind& kind, Type element);
/// A ring of `stages` for operand A or B, in the layout that copies and products want.
RingLayout shared_layout(const TiledParts& mma, Operand operand, int stages, Major major);
/// An accumulator of a tiled MMA: TiledMma::accumulator().
Accumulator make_accumulator(const TiledParts& mma, Here at);
/// Whether these are accumulators of wgmma.
bool by_warpgroups(const TiledParts& mma, const WarpTile& c, bool sparse = false);
/// mxf4nvf4 is written with its .scale_vec, which the scales' type decides.
void complete_scales(TiledParts& mma);

}  // namespace tartan::TARTAN_ABI::detail
