// SPDX-License-Identifier: Apache-2.0
// tests/emulator/im2col_copies.h - copies of images and of gathered rows against plain loops.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "tests/emulator/tensor_copies.h"

namespace tartan::test::im2col {

using Swizzle = TensorMap::Swizzle;
using Bytes = std::vector<std::byte>;

inline std::uint64_t element_bytes(const TensorMap& map) {
  return static_cast<unsigned>(bits(map.type)) / 8;
}

inline TensorMap dense(Type type, std::vector<std::uint64_t> extents) {
  TensorMap map{.type = type, .extents = std::move(extents)};
  std::uint64_t stride = map.extents[0] * element_bytes(map);
  for (std::size_t i = 1; i < map.rank(); ++i) {
    map.strides.push_back(stride);
    stride *= map.extents[i];
  }
  return map;
}

inline Bytes bytes_of(const std::vector<std::uint32_t>& words) {
  Bytes out(4 * words.size());
  std::memcpy(out.data(), words.data(), out.size());
  return out;
}

// The place of an element of a row in shared memory that starts at a multiple of 1024.
inline std::uint64_t shared_place(const TensorMap& map, std::uint64_t row, std::uint64_t byte) {
  const std::uint64_t span = span_bytes(map.swizzle);
  if (span == 0) return row * map.row() * element_bytes(map) + byte;
  const std::uint64_t chunks = span / 16, rows_of_line = 128 / span;
  const std::uint64_t chunk = (byte / 16) ^ (row / rows_of_line % chunks);
  return row * span + chunk * 16 + byte % 16;
}

// A row's first element, dimension 0 aside: its index along the other dimensions.
using Line = std::vector<std::int64_t>;

// The final contents of shared memory, or of the tensor's memory.
inline Bytes expected(const TensorCopy& copy, const std::vector<Line>& lines) {
  const TensorMap& map = copy.map;
  const std::uint64_t size = element_bytes(map);
  const bool fills = fills_shared(copy);
  Bytes memory = bytes_of(pattern_words(copy.memory_bytes, copy.mask)),
        shared = fills ? Bytes(copy.shared_bytes, std::byte{0xEE})
                       : bytes_of(pattern_words(copy.shared_bytes, copy.mask));
  for (std::size_t row = 0; row < lines.size(); ++row)
    for (std::uint32_t i = 0; i < map.row(); ++i) {
      const std::int64_t x = copy.at[0] + std::int64_t{i};
      bool inside = x >= 0 && x < static_cast<std::int64_t>(map.extents[0]);
      std::uint64_t place = static_cast<std::uint64_t>(x) * size;
      for (std::size_t d = 1; d < map.rank(); ++d) {
        const std::int64_t y = lines[row][d - 1];
        inside &= y >= 0 && y < static_cast<std::int64_t>(map.extents[d]);
        place += static_cast<std::uint64_t>(y) * map.strides[d - 1];
      }
      std::byte* const there = &shared[shared_place(map, row, i * size)];
      if (!fills && inside) std::memcpy(&memory[place], there, size);
      if (fills && inside) std::memcpy(there, &memory[place], size);
      if (fills && !inside)
        for (std::uint64_t k = 0; k < size; ++k)
          there[k] =
              map.fill == TensorMap::Fill::nan ? std::byte(k % 2 ? 0x7F : 0xF7) : std::byte{};
    }
  return fills ? shared : memory;
}

// All positions of the filter, image by image, starting at the copy's own.
inline std::vector<Line> pixels(const TensorCopy& copy) {
  const TensorMap& map = copy.map;
  const std::size_t between = map.rank() - 2;
  const auto grid = [&](std::size_t d) {
    std::vector<std::int64_t> out;
    if (d > between) return std::vector<std::int64_t>{0};
    const std::int64_t step = map.element_strides.empty() ? 1 : map.element_strides[d];
    for (std::int64_t x = map.im2col->lower[d - 1];
         x < static_cast<std::int64_t>(map.extents[d]) + map.im2col->upper[d - 1]; x += step)
      out.push_back(x);
    return out;
  };
  const auto offset = [&](std::size_t d) {
    return d - 1 < copy.offsets.size() ? std::int64_t{copy.offsets[d - 1]} : 0;
  };
  std::vector<Line> out;
  bool started = false;
  for (std::int64_t image = copy.at.back(); out.size() < map.im2col->pixels; ++image)
    for (const std::int64_t z : grid(3))
      for (const std::int64_t y : grid(2))
        for (const std::int64_t x : grid(1)) {
          started |= x == copy.at[1] && (between < 2 || y == copy.at[2]) &&
                     (between < 3 || z == copy.at[3]);
          if (!started || out.size() == map.im2col->pixels) continue;
          Line line{x + offset(1)};
          if (between >= 2) line.push_back(y + offset(2));
          if (between >= 3) line.push_back(z + offset(3));
          line.push_back(image);
          out.push_back(line);
        }
  return out;
}

// Along the width alone, image by image: the halo behind all of them, or those of each 32.
inline std::vector<Line> wide_pixels(const TensorCopy& copy) {
  const TensorMap& map = copy.map;
  const auto step = [&](std::size_t d) {
    return map.element_strides.empty() ? 1 : std::int64_t{map.element_strides[d]};
  };
  const std::int64_t halo = copy.offsets[0], offset = copy.offsets[1];
  std::vector<Line> walk;
  for (std::int64_t image = copy.at.back(); walk.size() < 2000; image += step(map.rank() - 1))
    for (std::int64_t x = walk.empty() ? copy.at[1] : map.im2col->lower[0];
         x < static_cast<std::int64_t>(map.extents[1]) + map.im2col->upper[0]; x += step(1)) {
      Line line{x + offset};
      for (std::size_t d = 2; d + 1 < map.rank(); ++d) line.push_back(copy.at[d]);
      line.push_back(image);
      walk.push_back(line);
    }
  if (copy.wide == "::w") return {walk.begin(), walk.begin() + map.im2col->pixels + halo};
  std::vector<Line> out(walk.begin(), walk.begin() + 128);
  for (std::int64_t i = 0; i < halo; ++i)
    for (const std::int64_t behind : {32, 64, 96, 128})
      out.push_back(walk[static_cast<std::size_t>(behind + i)]);
  return out;
}

inline Result<std::vector<std::uint32_t>> run(const TensorCopy& copy) {
  auto device = Device::open("emulator");
  if (!device) return device.diags();
  return run_copy(*device, copy, [](const TensorMap& map) { return map.encode(); });
}

inline void expect_copied(TensorCopy copy) {
  const TensorMap& map = copy.map;
  std::uint64_t bytes = 0;
  for (std::size_t i = 1; i < map.rank(); ++i)
    bytes = std::max(bytes, map.extents[i] * map.strides[i - 1]);
  copy.memory_bytes = static_cast<std::uint32_t>(bytes);
  const std::uint64_t rows = of_rows(copy) ? 4 : copy.rows();
  copy.shared_bytes = static_cast<std::uint32_t>(
      rows * std::max<std::uint64_t>(map.row() * element_bytes(map), span_bytes(map.swizzle)) + 64);
  std::vector<Line> lines;
  if (of_rows(copy))
    for (std::size_t i = 1; i < 5; ++i) lines.push_back({copy.at[i]});
  else lines = copy.wide.empty() ? pixels(copy) : wide_pixels(copy);
  const auto words = run(copy);
  ASSERT_TRUE(static_cast<bool>(words)) << copy_json(copy) << words.diags().text();
  const Bytes want = expected(copy, lines), got = bytes_of(*words);
  ASSERT_EQ(want.size(), got.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(want[i], got[i]) << copy_json(copy) << " at byte " << i;
}

inline TensorMap images(Type type, std::vector<std::uint64_t> extents,
                        std::vector<std::int32_t> lower, std::vector<std::int32_t> upper,
                        std::uint32_t channels, std::uint32_t count) {
  TensorMap map = dense(type, std::move(extents));
  map.im2col = {std::move(lower), std::move(upper), channels, count};
  return map;
}

}  // namespace tartan::test::im2col
