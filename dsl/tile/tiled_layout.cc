// SPDX-License-Identifier: Apache-2.0
// The layouts of A and B in shared memory: swizzled or padded, so that neither copies nor ldmatrix
// nor wgmma have bank conflicts.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "dsl/tile/tiled_parts.h"
#include "dsl/units/tma/tma_matrix.h"

namespace tartan::TARTAN_ABI::detail {

Type stored_type(const MmaKind& kind, Type element) {
  isa::Form form;
  form.kind = kind.shape.kind;
  return isa::container_bits(form, element) == bits(element) ? element : Type::b8;
}

RingLayout shared_layout(const TiledParts& mma, Operand operand, int stages, Major major) {
  const bool is_a = operand == Operand::a;
  const Type type = stored_type(mma.kind, is_a ? mma.kind.a : mma.kind.b);
  const int rows = is_a ? mma.tile.m : mma.tile.k,
            cols = is_a ? mma.columns_a() : columns_of_b(mma);
  const bool is_row_major = major == Major::none ? is_a : major == Major::row;
  Layout layout = is_row_major ? row_major(rows, cols) : col_major(rows, cols);
  if (mma.kind.shape.shape.m == 0 || !mma.state || bits(type) == 0)
    return {layout, stages, operand};  // refused
  const std::int64_t line = std::int64_t{is_row_major ? cols : rows} * bits(type) / 8;
  const std::string what = fmt::format("shared {}", is_a ? "A" : "B");
  // TMA's swizzles: lines of 128, 64 or 32 bytes.
  std::int64_t width = std::min<std::int64_t>(line & -line, 128);
  const auto panel_of = [&] { return width * 8 / std::max(bits(type), 1); };
  // A warp's share of the lines must not span two panels.
  const int share = is_a ? (is_row_major ? cols : rows / mma.tile.warps_m)
                         : (is_row_major ? cols / mma.tile.warps_n : rows);
  while (!mma.from_panels() && width >= 32 && share % panel_of() && panel_of() % share) width /= 2;
  const std::int64_t panel = panel_of();
  if (mma.from_panels() && width < 32)
    mma.state->log.report(
        "tile-divide"_rule,
        fmt::format("{} reads panels with rows of 32, 64 or 128 bytes, those of {} "
                    "have {}: {} = {} is not a multiple of {}",
                    mma.tensor ? "tcgen05.mma" : "wgmma", is_a ? "A" : "B", line,
                    is_row_major == is_a ? "k"
                    : is_a               ? "m"
                                         : "n",
                    is_row_major ? cols : rows, 256 / bits(type)));
  if (mma.state && mma.state->config.has_tma() && mma.state->config.options.producers &&
      bits(type) >= 8 && line > width && width >= 32) {
    layout = is_row_major ? blocked(row_major(rows, panel), row_major(1, cols / panel))
                          : blocked(col_major(panel, cols), col_major(rows / panel, 1));
    layout = layout.swizzled(swizzle_of_lines(width, type));
    mma.state->log.choose(
        what, layout.text(),
        fmt::format("panels with rows of {} bytes, swizzled by TMA: any eight rows put "
                    "a given 16-byte chunk in eight different bank groups",
                    width),
        {fmt::format("rows of {} bytes: TMA has no swizzle for them", line)});
    return {layout, stages, operand};
  }
  if (line >= 32 && std::has_single_bit(static_cast<std::uint64_t>(line))) {
    layout = layout.swizzled(swizzle_of_lines(line, type));
    if (mma.state)
      mma.state->log.choose(
          what, layout.text(),
          fmt::format("rows of {} bytes: any eight rows put a given 16-byte chunk in eight "
                      "different bank groups; so do the 128 bytes of a copy",
                      line),
          {"padding: it uses more memory and misaligns the 16-byte chunks for some sizes"});
  } else if (line % 16 == 0 && line / 16 % 2 == 0) {
    const std::int64_t padded = (line + 16) * 8 / bits(type);
    layout = is_row_major ? row_major(rows, cols, padded) : col_major(rows, cols, padded);
    if (mma.state)
      mma.state->log.choose(
          what, layout.text(),
          "an odd number of 16-byte chunks per row puts eight adjacent rows in eight "
          "different bank groups",
          {fmt::format("a swizzle: {} bytes per row is not a power of two", line)});
  }
  return {layout, stages, operand};
}

}  // namespace tartan::TARTAN_ABI::detail
