// SPDX-License-Identifier: Apache-2.0
// dsl/fragment_map.h - a fragment's lane map in forms that loads and stores can use. Not installed.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "dsl/fragment.h"

namespace tartan::detail {

/// A 16-bit fragment as 8x8 matrices, one per register, each laid out as ldmatrix delivers it: lane
/// 4g+t holds (g, 2t) and (g, 2t+1).
struct MatrixTiling {
  std::vector<isa::Coord> origins;  // of each register's matrix
  bool pairs_along_columns;  // the two elements of a register are neighbours along columns (A, C);
                             // otherwise along rows (B)
};

/// Nothing if the map is another one (32-bit elements, quad pairs, repeated fragments).
std::optional<MatrixTiling> matrix_tiling(const FragmentKind& kind);

/// Where element i of a lane sits, as origin + (lane / 4) * group + (lane % 4) * member.
struct AffineMap {
  isa::Coord origin, group, member;
};

/// Nothing if the lane map is not of that form.
std::optional<AffineMap> affine_map(const FragmentKind& kind, int i);

/// Where element i of a lane sits, whatever the map: origin, and a step for each set bit of the
/// lane number.
struct LaneMap {
  isa::Coord origin;
  std::array<isa::Coord, 5> steps;
};

LaneMap lane_map(const FragmentKind& kind, int i);

}  // namespace tartan::detail
