// SPDX-License-Identifier: Apache-2.0
// Operands of tiled MMAs: the fragments that each warp loads for a k-step.
#include <utility>

#include "dsl/layout/fragments.h"
#include "dsl/layout/placement.h"
#include "dsl/state/operations.h"
#include "dsl/tile/tiled_parts.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::detail {

// The tensor cores drop the low 13 bits of an f32. Rounds to nearest even, as tensor maps do.
std::vector<Fragment> rounded(const TiledParts& mma, std::vector<Fragment> fragments,
                              const Shared& from) {
  if (from.element() != f32) return fragments;
  for (Fragment& each : fragments) {
    if (each.kind().type != tf32 || is_bad(each)) continue;
    std::vector<ir::Value> registers;
    for (const ir::Value& value : registers_of(each))
      registers.push_back(mma.state->f().bitcast(
          mma.state->f().convert(mma.state->f().bitcast(value, f32), tf32), b32));
    each = make_fragment(*mma.state, each.kind(), std::move(registers));
    mma.state->log.choose(
        fmt::format("round {}", tensor_of(from).name),
        mma.state->config.target.has(Feature::tf32_conversion)
            ? "cvt.rn.tf32.f32"
            : "to nearest even, in integer arithmetic",
        "its elements are f32, and tensor cores would truncate their low 13 bits");
  }
  return fragments;
}

Side side_a(const TiledParts& mma, const Shared& a) {
  return [&mma, &a](int step) {
    const FragmentKind kind = operand_a(mma.kind.shape, mma.kind.a);
    const isa::Fragment fragment = kind.fragment();
    const auto part = [&](int rows, const Scalar& row) {
      return load_side(
          *mma.state, kind,
          tensor_of(a.tile({row, mma.warp_k * mma.steps() + step},
                           {fragment.rows * rows, fragment.cols}, mma.state->log.location())),
          rows);
    };
    if (!in_blocks(mma)) return rounded(mma, part(mma.fragments_m(), mma.warp_m), a);
    const WarpPlace place = place_of_a(mma);
    std::vector<Fragment> out;
    for (int i = 0; i < mma.fragments_m(); ++i)
      for (Fragment& each : part(1, (place.row + place.down(i, fragment.rows)) / fragment.rows))
        out.push_back(std::move(each));
    return rounded(mma, std::move(out), a);
  };
}

Side side_b(const TiledParts& mma, const Shared& b) {
  return [&mma, &b](int step) {
    const Shape& shape = mma.kind.shape.shape;
    return rounded(mma,
                   load_side(*mma.state, operand_b(mma.kind.shape, mma.kind.b),
                             tensor_of(b.tile({mma.warp_k * mma.steps() + step, mma.warp_n},
                                              {shape.k, shape.n * mma.fragments_n()},
                                              mma.state->log.location())),
                             mma.fragments_n()),
                   b);
  };
}

}  // namespace tartan::TARTAN_ABI::detail
