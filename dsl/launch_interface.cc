// SPDX-License-Identifier: Apache-2.0
#include "dsl/launch_interface.h"

#include <algorithm>

#include "dsl/scalars.h"

namespace tartan::inline TARTAN_ABI::detail {

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

std::optional<codegen::Pointer> LaunchInterface::find_map(int memory,
                                                          const CompiledMap& wanted) const {
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    const CompiledMap& each = maps_[i];
    if (map_memories_[i] == memory && each.box == wanted.box && each.swizzle == wanted.swizzle &&
        each.type == wanted.type && each.extents == wanted.extents &&
        each.strides == wanted.strides)
      return map_pointers_[i];
  }
  return std::nullopt;
}

void LaunchInterface::add_map(int memory, CompiledMap map, codegen::Pointer pointer) {
  maps_.push_back(std::move(map));
  map_memories_.push_back(memory);
  map_pointers_.push_back(pointer);
}

std::optional<MapNumber> map_number(const LaunchInterface& launch, const Scalar& scalar) {
  if (const auto constant = scalar.constant()) return MapNumber{*constant, {}};
  if (addend(scalar) || wraps(scalar)) return std::nullopt;
  return launch.find(HandleParts::value(scalar).id);
}

}  // namespace tartan::inline TARTAN_ABI::detail
