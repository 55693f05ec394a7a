// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_rows.h - the rows of a box of a tensor, in the order in
// which they lie in shared memory: of a tile, single ones that are gathered or scattered, or pixels
// of images.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tartan/runtime/tensor_map.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr std::size_t most_dimensions = 5, gathered_rows = 4;

/// What an instruction says of a box: a coordinate of each dimension; of gathered rows: of
/// dimension 0, then of each row; of im2col: offsets too, of all dimensions but the first and the
/// last.
struct BoxCorner {
  std::int32_t at[most_dimensions] = {};
  std::uint32_t offsets[most_dimensions] = {};
};

/// Goes through the rows of a box.
class Rows {
 public:
  Rows(const TensorMap& map, const BoxCorner& place, bool gathers)
      : map_(map), place_(place), gathers_(gathers) {
    for (std::size_t i = 1; i < map_.rank(); ++i) base_[i] = place.at[i];
  }

  /// Where the row lies along dimension `i`, from 1 on.
  std::int64_t at(std::size_t i) const {
    if (gathers_) return place_.at[1 + index_];
    if (map_.im2col) return base_[i] + (i + 1 < map_.rank() ? place_.offsets[i - 1] : 0);
    return base_[i] + std::int64_t{step_[i]} * stride(i);
  }

  void next() {
    ++index_;
    if (map_.im2col) return next_pixel();
    if (gathers_) return;
    for (std::size_t i = 1; i < map_.rank() && ++step_[i] == map_.copied(i); ++i) step_[i] = 0;
  }

 private:
  std::uint32_t stride(std::size_t i) const {
    return map_.element_strides.empty() ? 1 : map_.element_strides[i];
  }

  // The filter's next place between the corners; behind the last one the next image's first.
  void next_pixel() {
    const std::size_t images = map_.rank() - 1;
    for (std::size_t i = 1; i < images; ++i) {
      base_[i] += stride(i);
      if (base_[i] <= static_cast<std::int64_t>(map_.extents[i]) - 1 + map_.im2col->upper[i - 1])
        return;
      base_[i] = map_.im2col->lower[i - 1];
    }
    base_[images] += stride(images);
  }

  const TensorMap& map_;
  const BoxCorner& place_;
  bool gathers_;
  std::size_t index_ = 0;
  std::int64_t base_[most_dimensions] = {};
  std::uint32_t step_[most_dimensions] = {};
};

}  // namespace tartan::TARTAN_ABI::emulator
