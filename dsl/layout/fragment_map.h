// SPDX-License-Identifier: Apache-2.0
// dsl/layout/fragment_map.h - a fragment's lane map in forms for loads and stores. Not installed.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tartan/dsl/fragment.h"

namespace tartan::TARTAN_ABI::detail {

/// A fragment of 32-bit registers as matrices of 8 lines of 16 bytes, one per register, each with
/// ldmatrix's layout: lane 4g+t holds bytes 4t..4t+3 of line g.
struct MatrixTiling {
  std::vector<isa::Coord> origins;  // of each register's matrix
  bool pairs_along_columns;  // the elements of a register are neighbours along columns (A, C);
                             // otherwise along rows (B)
};

/// Nothing for maps of another form (quad pairs, repeated fragments, f64).
std::optional<MatrixTiling> matrix_tiling(const FragmentKind& kind);

/// Six- and four-bit elements that take a byte each in the fragment's registers. In shared memory
/// they are a tile of b8 (see TiledMma::stored_a).
bool takes_bytes(const FragmentKind& kind);

/// Where element i of a lane sits, as origin + (lane / 4) * group + (lane % 4) * member.
struct AffineMap {
  isa::Coord origin, group, member;
};

/// Nothing if the lane map does not have that form.
std::optional<AffineMap> affine_map(const FragmentKind& kind, int i);

/// The place of element i of a lane, for any map: an origin, and a step for each set bit of the
/// lane number.
struct LaneMap {
  isa::Coord origin;
  std::array<isa::Coord, 5> steps;
};

LaneMap lane_map(const FragmentKind& kind, int i);

}  // namespace tartan::TARTAN_ABI::detail
