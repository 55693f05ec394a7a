// SPDX-License-Identifier: Apache-2.0
#include "dsl/units/tma/tma_matrix.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tartan::TARTAN_ABI::detail {

Type unsigned_of(int bits) {
  return bits == 8 ? Type::u8 : bits == 16 ? Type::u16 : bits == 32 ? u32 : u64;
}

// TMA swizzles by bits of the address, so that a part of a stage must begin where the swizzle does;
// without one, at a multiple of 128 bytes.
std::string stage_boxes(const Tensor& to, bool is_row_major, StageBoxes& out, bool divides) {
  const Layout& layout = to.layout;
  const std::int64_t line = *(is_row_major ? layout.cols : layout.rows).constant();
  out.panel = layout.run() ? layout.run() : line;
  constexpr std::int64_t span = 128;  // bytes of the longest swizzle
  const std::int64_t of_span = span * 8 / bits(to.type);
  if (divides && !layout.run() && line > of_span && line % of_span == 0 &&
      layout.swizzle == swizzle_of_lines(span, to.type))
    out.panel = of_span, out.panels = line / of_span;
  const std::int64_t bytes = out.panel * bits(to.type) / 8;
  const Scalar& across = is_row_major ? layout.row_stride : layout.col_stride;
  if (across.constant() != out.panel * out.panels || line % out.panel)
    return fmt::format("rows of {} are not consecutive in memory", layout.text());
  if (bytes % 16 || std::max(out.panel, out.panels) > longest_in_box)
    return fmt::format("its boxes do not fit {}", layout.text());
  const auto swizzle = tma_swizzle(layout.swizzle, bytes, to.type);
  if (!swizzle) return fmt::format("TMA has no swizzle like that of {}", layout.text());
  out.swizzle = *swizzle;
  const Swizzle& bits_of = layout.swizzle;
  const std::int64_t unit = bits_of.bits
                                ? std::int64_t{1} << (bits_of.bits + bits_of.base + bits_of.shift)
                                : 1024 / bits(to.type);
  if (to.offset.constant().value_or(to.offset.multiple()) % unit == 0) return {};
  return fmt::format("{} is a part of its stage that does not begin at a multiple of {} bytes",
                     to.name, unit * bits(to.type) / 8);
}

Swizzle swizzle_of_lines(std::int64_t bytes, Type type) {
  const int chunks = std::countr_zero(static_cast<std::uint64_t>(bytes / 16));  // a line's, as 2^
  return {std::min(chunks, 3), std::countr_zero(static_cast<unsigned>(128 / bits(type))),
          std::max(chunks, 3)};
}

std::optional<int> tma_swizzle(const Swizzle& swizzle, std::int64_t bytes, Type type) {
  if (!swizzle.bits) return 0;
  const bool spans = bytes == 32 || bytes == 64 || bytes == 128;
  if (!spans || !(swizzle == swizzle_of_lines(bytes, type))) return std::nullopt;
  return static_cast<int>(bytes);
}

std::string TmaMatrix::problem() {
  const Layout& layout = matrix_.layout;
  const int element = bits(matrix_.type);
  if (!state_.config.has_tma())
    return fmt::format("requires sm_90 and PTX 8.0, the target is {}", state_.config.target.text());
  if (element < 8) return fmt::format("requires elements of at least 8 bits, found {}", element);
  if (layout.is_nested() || layout.major() == Major::none)
    return fmt::format("{} has no contiguous dimension", layout.text());
  if (across(layout).multiple() * element % 128) {
    lacks_promise_ = !across(layout).constant();
    return fmt::format(
        "the leading dimension must be a multiple of 16 bytes, that of {} is a multiple of {}",
        matrix_.name, across(layout).multiple() * element / 8);
  }
  if (std::gcd(inner().multiple(), std::int64_t{128}) * element % 128) {
    lacks_promise_ = !inner().constant();
    return fmt::format("boxes of {} are not guaranteed to begin at a multiple of 16 bytes",
                       matrix_.name);
  }
  if (matrix_.ragged_inside) return "a tile exceeds the edge of another tile inside the matrix";
  if (matrix_.batches > 1) return "the matrix belongs to a batch of batches";
  return numbers_problem();
}

std::string TmaMatrix::problem_of_stores() {
  for (const Scalar* at : {&matrix_.row_at, &matrix_.col_at})
    if (at->constant().value_or(0) < 0)
      return fmt::format("{} begins {} elements before an edge, where TMA loads but does not store",
                         matrix_.name, -*at->constant());
  return problem();
}

// Everything in the map must be known at launch.
std::string TmaMatrix::numbers_problem() {
  const auto length =
                 map_number(state_.launch, is_row_major_ ? matrix_.whole_cols : matrix_.whole_rows),
             count =
                 map_number(state_.launch, is_row_major_ ? matrix_.whole_rows : matrix_.whole_cols),
             stride = map_number(state_.launch, across(matrix_.layout));
  if (!length || !count || !stride)
    return fmt::format("the size of {} is computed by the kernel", matrix_.name);
  if (matrix_.matrix_at && !matrix_.matrix_stride && (count->divisor != 1 || stride->divisor != 1))
    return fmt::format("the batch stride of {} is computed by the kernel", matrix_.name);
  extents_ = {*length, *count};
  strides_ = {*stride};
  if (!matrix_.matrix_at) return {};
  // A batch is a third dimension of unlimited extent: the launch knows how many matrices there are.
  MapNumber apart{count->value * stride->value, count->params};
  apart.params.insert(apart.params.end(), stride->params.begin(), stride->params.end());
  if (matrix_.matrix_stride) {
    const auto given = map_number(state_.launch, *matrix_.matrix_stride);
    if (!given || matrix_.matrix_stride->multiple() * bits(matrix_.type) % 128)
      return fmt::format("the batch stride of {} is not guaranteed to be a multiple of 16 bytes",
                         matrix_.name);
    apart = *given;
  }
  extents_.push_back({std::int64_t{1} << 31, {}});
  strides_.push_back(apart);
  return {};
}

std::string TmaMatrix::divide_lines(std::int64_t panel) {
  const MapNumber& length = extents_[0];
  if (!length.params.empty() || length.value % panel)
    return fmt::format("lines of {} are not a constant multiple of {} elements", matrix_.name,
                       panel);
  if (inner().multiple() % panel || inner().constant().value_or(0) < 0)
    return fmt::format("boxes of {} are not guaranteed to begin at a multiple of {} elements",
                       matrix_.name, panel);
  panel_ = panel;
  extents_.insert(extents_.begin() + 1, {.value = length.value / panel});
  extents_[0].value = panel;
  strides_.insert(strides_.begin(), {.value = panel});
  return {};
}

std::vector<ir::Value> TmaMatrix::coordinates(const Scalar& along, const Scalar& first) const {
  return coordinates_at(inner() + along, outer() + first);
}

std::vector<ir::Value> TmaMatrix::coordinates_at(const Scalar& inner, const Scalar& outer) const {
  std::vector<ir::Value> out{state_.value(panel_ ? Scalar(0) : inner, u32)};
  if (panel_) out.push_back(state_.value(inner / panel_, u32));
  out.push_back(state_.value(outer, u32));
  if (matrix_.matrix_at) out.push_back(state_.value(*matrix_.matrix_at, u32));
  return out;
}

ir::Pointer TmaMatrix::map(int along, int lines, int swizzle, Type type) {
  const Memory& memory = state_.memories.of(matrix_);
  if (type == Type::none) type = unsigned_of(bits(matrix_.type));
  CompiledMap wanted{.of = memory.param, .type = type};
  wanted.extents = extents_, wanted.strides = strides_, wanted.swizzle = swizzle;
  wanted.box = {along, lines};
  if (panel_) wanted.box = {static_cast<int>(panel_), along / static_cast<int>(panel_), lines};
  if (matrix_.matrix_at) wanted.box.push_back(1);
  if (const auto map = state_.launch.find_map(matrix_.memory, wanted)) return *map;
  wanted.name = matrix_.name + "_map";
  const ir::Pointer map = state_.f().add_tensor_map();
  state_.launch.add_map(matrix_.memory, std::move(wanted), map);
  return map;
}

}  // namespace tartan::TARTAN_ABI::detail
