// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_rows.h - the rows of a box of a tensor, in the order in
// which they lie in shared memory: of a tile, single ones that are gathered or scattered, or pixels
// of images.
//
// im2col::w goes along the width of images alone; behind its pixels lie those of the halo, which
// follow them in the walk. im2col::w::128 has 128 pixels, and a halo for each 32 of them: behind
// them first the first pixel of each halo, then the second of each (so another emulator; the
// manual's text does not tell).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tartan/runtime/tensor_map.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr std::size_t most_dimensions = 5, gathered_rows = 4;

/// What an instruction says of a box: a coordinate of each dimension; of gathered rows: of
/// dimension 0, then of each row; of im2col: offsets too, of all dimensions but the first and the
/// last; of im2col::w: the size of the halo, and an offset along the width.
struct BoxCorner {
  enum class Wide : std::uint8_t { no, w, w_128 };
  std::int32_t at[most_dimensions] = {};
  std::uint32_t offsets[most_dimensions] = {};
  Wide wide = Wide::no;

  /// Rows of a box of that map.
  std::uint64_t rows(const TensorMap& map) const {
    if (wide == Wide::w_128) return pixels_of_128 + halos_of_128 * offsets[0];
    return wide == Wide::w ? map.im2col->pixels + offsets[0] : map.rows();
  }
  static constexpr std::uint32_t pixels_of_128 = 128, halos_of_128 = 4;
};

/// Goes through the rows of a box.
class Rows {
 public:
  Rows(const TensorMap& map, const BoxCorner& place, bool gathers)
      : map_(map), place_(place), gathers_(gathers) {
    for (std::size_t i = 1; i < map_.rank(); ++i) base_[i] = place.at[i];
    if (place.wide != BoxCorner::Wide::no) walk();
  }

  /// Where the row lies along dimension `i`, from 1 on.
  std::int64_t at(std::size_t i) const {
    if (gathers_) return place_.at[1 + index_];
    if (!walk_.empty()) {
      const auto& [across, image] = walk_[step_of(index_)];
      return i == 1 ? across : i + 1 == map_.rank() ? image : base_[i];
    }
    if (map_.im2col) return base_[i] + (i + 1 < map_.rank() ? place_.offsets[i - 1] : 0);
    return base_[i] + std::int64_t{step_[i]} * stride(i);
  }

  void next() {
    ++index_;
    if (!walk_.empty()) return;
    if (map_.im2col) return next_pixel();
    if (gathers_) return;
    for (std::size_t i = 1; i < map_.rank() && ++step_[i] == map_.copied(i); ++i) step_[i] = 0;
  }

 private:
  std::uint32_t stride(std::size_t i) const {
    return map_.element_strides.empty() ? 1 : map_.element_strides[i];
  }

  // Places along the width, and images.
  void walk() {
    const std::size_t images = map_.rank() - 1;
    const std::int64_t offset = place_.offsets[1], lower = map_.im2col->lower[0] + offset,
                       end = static_cast<std::int64_t>(map_.extents[1]) + map_.im2col->upper[0] +
                             offset;
    std::int64_t across = place_.at[1] + offset, image = place_.at[images];
    for (std::uint64_t i = place_.rows(map_) + place_.offsets[0]; i > 0; --i) {
      walk_.emplace_back(across, image);
      across += stride(1);
      if (across < end) continue;
      across = lower;
      image += stride(images);
    }
  }
  // Which of these a row is.
  std::size_t step_of(std::size_t row) const {
    constexpr std::size_t pixels = BoxCorner::pixels_of_128, halos = BoxCorner::halos_of_128;
    if (place_.wide != BoxCorner::Wide::w_128 || row < pixels) return row;
    const std::size_t halo = (row - pixels) % halos, inside = (row - pixels) / halos;
    return (halo + 1) * (pixels / halos) + inside;
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
  std::vector<std::pair<std::int64_t, std::int64_t>> walk_;
};

}  // namespace tartan::TARTAN_ABI::emulator
