// SPDX-License-Identifier: Apache-2.0
// dsl/state/launch_interface.h - what a launch passes to a kernel: parameters, then tensor maps
// computed from numbers that the launch knows. Not installed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/function_builder.h"
#include "tartan/dsl/kernel.h"
#include "tartan/dsl/layout.h"
#include "tartan/dsl/scalar.h"

namespace tartan::TARTAN_ABI::detail {

class LaunchInterface {
 public:
  /// Returns its number.
  int add_pointer(CompiledParam param) { return add(std::move(param), no_value); }
  /// `value`: the id of its value.
  int add_scalar(CompiledParam param, int value) { return add(std::move(param), value); }
  const std::vector<CompiledParam>& params() const { return params_; }
  /// The launch decides how many elements a pointer has.
  void forget_extent(const std::string& name);

  /// The number with a value's id, if a launch knows it.
  std::optional<MapNumber> find(int value) const;
  /// Records a value that is computed from parameters alone.
  void note(int value, MapNumber number) { derived_[value] = std::move(number); }

  /// The values that an index takes: 0 up to the number of blocks or k-tiles, with this addend.
  struct Range {
    LaunchBound::Of of = LaunchBound::Of::number;
    MapNumber number = {};
    std::int64_t addend = 0;
    std::int64_t factor = 1;  // of both: block_x() * 4 + i
  };
  void note_range(int value, Range range) { ranges_[value] = std::move(range); }
  std::optional<Range> range(int value) const;
  /// Rows of tiles that lie below the result, in clusters that it does not fill.
  void note_beyond(int value) { beyond_.insert(value); }
  bool may_be_beyond(int value) const { return beyond_.contains(value); }
  void add_bound(LaunchBound bound);
  const std::vector<LaunchBound>& bounds() const { return bounds_; }

  /// An existing tensor map of a memory that equals `wanted` (apart from its name), if any.
  std::optional<ir::Pointer> find_map(int memory, const CompiledMap& wanted) const;
  void add_map(int memory, CompiledMap map, ir::Pointer pointer);
  const std::vector<CompiledMap>& maps() const { return maps_; }
  const std::vector<ir::Pointer>& map_pointers() const { return map_pointers_; }

 private:
  static constexpr int no_value = -1;
  int add(CompiledParam param, int value);

  std::vector<CompiledParam> params_;
  std::vector<int> values_;           // of each parameter: its value's id
  std::map<int, MapNumber> derived_;  // by the id of a value
  std::map<int, Range> ranges_;       // likewise
  std::set<int> beyond_;              // ids
  std::vector<LaunchBound> bounds_;
  std::vector<CompiledMap> maps_;
  std::vector<int> map_memories_;  // of each map
  std::vector<ir::Pointer> map_pointers_;
};

/// A number that a launch knows: a constant or a parameter.
std::optional<MapNumber> map_number(const LaunchInterface& launch, const Scalar& scalar);
/// What a launch knows of a matrix whose size is not constant.
std::optional<MatrixSpan> span_of(const LaunchInterface& launch, const Layout& layout);
/// How many tiles of `size` cover `whole`, if a launch knows it.
std::optional<MapNumber> tile_count(const LaunchInterface& launch, const Scalar& whole,
                                    std::int64_t size);

}  // namespace tartan::TARTAN_ABI::detail
