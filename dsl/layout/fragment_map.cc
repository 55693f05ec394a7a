// SPDX-License-Identifier: Apache-2.0
#include "dsl/layout/fragment_map.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

isa::Coord minus(const isa::Coord& x, const isa::Coord& y) {
  return {x.matrix - y.matrix, x.row - y.row, x.col - y.col};
}

// Coordinates of one fragment: its form is looked up once.
class Coords {
 public:
  explicit Coords(const FragmentKind& kind) : form_(kind.form()), operand_(kind.operand) {}
  isa::Coord operator()(int lane, int i) const { return isa::coord(form_, operand_, lane, i); }

 private:
  isa::Form form_;
  Operand operand_;
};

bool lies_as_ldmatrix(const Coords& coord, int per_register, int r, const isa::Coord& origin,
                      bool along_columns) {
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < per_register; ++e) {
      const int group = lane / 4, along = lane % 4 * per_register + e;
      const isa::Coord wanted{0, origin.row + (along_columns ? group : along),
                              origin.col + (along_columns ? along : group)};
      if (!(coord(lane, per_register * r + e) == wanted)) return false;
    }
  return true;
}

}  // namespace

std::optional<MatrixTiling> matrix_tiling(const FragmentKind& kind) {
  const isa::Fragment fragment = kind.fragment();
  const bool whole = fragment.container_bits == bits(kind.type) || takes_bytes(kind);
  if (fragment.register_bits != 32 || !whole || fragment.matrices != 1 || fragment.copies != 1)
    return std::nullopt;
  const Coords coord(kind);
  MatrixTiling out;
  out.pairs_along_columns = coord(1, 0).col > coord(0, 0).col;
  for (int r = 0; r < fragment.registers; ++r) {
    out.origins.push_back(coord(0, fragment.per_register * r));
    if (!lies_as_ldmatrix(coord, fragment.per_register, r, out.origins.back(),
                          out.pairs_along_columns))
      return std::nullopt;
  }
  return out;
}

bool takes_bytes(const FragmentKind& kind) {
  return bits(kind.type) < 8 && kind.fragment().container_bits == 8;
}

std::optional<AffineMap> affine_map(const FragmentKind& kind, int i) {
  const Coords coord(kind);
  const isa::Coord origin = coord(0, i);
  const AffineMap map{origin, minus(coord(4, i), origin), minus(coord(1, i), origin)};
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    const isa::Coord wanted{0, origin.row + g * map.group.row + t * map.member.row,
                            origin.col + g * map.group.col + t * map.member.col};
    if (!(coord(lane, i) == wanted)) return std::nullopt;
  }
  return map;
}

LaneMap lane_map(const FragmentKind& kind, int i) {
  const Coords coord(kind);
  LaneMap out{coord(0, i), {}};
  for (int bit = 0; bit < 5; ++bit)
    out.steps[static_cast<std::size_t>(bit)] = minus(coord(1 << bit, i), out.origin);
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
