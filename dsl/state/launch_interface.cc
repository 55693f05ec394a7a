// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/launch_interface.h"

#include <algorithm>

#include "dsl/state/scalars.h"

namespace tartan::TARTAN_ABI::detail {

int LaunchInterface::add(CompiledParam param, int value) {
  params_.push_back(std::move(param));
  values_.push_back(value);
  return static_cast<int>(params_.size()) - 1;
}

void LaunchInterface::forget_extent(const std::string& name) {
  for (CompiledParam& each : params_)
    if (each.pointer && each.name == name) each.elements = 0;
}

std::optional<MapNumber> LaunchInterface::find(int value) const {
  const auto at = std::find(values_.begin(), values_.end(), value);
  if (at != values_.end()) return MapNumber{1, {static_cast<int>(at - values_.begin())}};
  const auto derived = derived_.find(value);
  if (derived == derived_.end()) return std::nullopt;
  return derived->second;
}

std::optional<ir::Pointer> LaunchInterface::find_map(int memory, const CompiledMap& wanted) const {
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    const CompiledMap& each = maps_[i];
    if (map_memories_[i] == memory && each.box == wanted.box && each.swizzle == wanted.swizzle &&
        each.type == wanted.type && each.extents == wanted.extents &&
        each.strides == wanted.strides && each.pixels == wanted.pixels)
      return map_pointers_[i];
  }
  return std::nullopt;
}

void LaunchInterface::add_map(int memory, CompiledMap map, ir::Pointer pointer) {
  maps_.push_back(std::move(map));
  map_memories_.push_back(memory);
  map_pointers_.push_back(pointer);
}

std::optional<LaunchInterface::Range> LaunchInterface::range(int value) const {
  const auto at = ranges_.find(value);
  if (at == ranges_.end()) return std::nullopt;
  return at->second;
}

void LaunchInterface::add_bound(LaunchBound bound) {
  for (const LaunchBound& each : bounds_)
    if (each.of == bound.of && each.number == bound.number && each.offset == bound.offset &&
        each.factor == bound.factor && each.tiles == bound.tiles && each.exact == bound.exact)
      return;
  bounds_.push_back(std::move(bound));
}

std::optional<MapNumber> map_number(const LaunchInterface& launch, const Scalar& scalar) {
  if (const auto constant = scalar.constant()) return MapNumber{*constant, {}};
  if (addend(scalar) || wraps(scalar)) return std::nullopt;
  return launch.find(HandleParts::value(scalar).id);
}

std::optional<MatrixSpan> span_of(const LaunchInterface& launch, const Layout& layout) {
  if (layout.is_nested() || layout.extent()) return std::nullopt;
  const auto rows = map_number(launch, layout.rows), cols = map_number(launch, layout.cols),
             down = map_number(launch, layout.row_stride),
             across = map_number(launch, layout.col_stride);
  if (!rows || !cols || !down || !across) return std::nullopt;
  return MatrixSpan{*rows, *cols, *down, *across};
}

std::optional<MapNumber> tile_count(const LaunchInterface& launch, const Scalar& whole,
                                    std::int64_t size) {
  auto out = map_number(launch, whole);
  if (!out) return std::nullopt;
  if (out->params.empty()) return MapNumber{(out->value + size - 1) / size};
  if (out->value % size == 0) out->value /= size;
  else if (out->value == 1 && out->divisor == 1) out->divisor = size;
  else return std::nullopt;
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
