// SPDX-License-Identifier: Apache-2.0
// tests/record/tensor_cases.h - the copies through tensor maps whose results on a GPU are recorded:
//
//   for (const TensorCopy& copy : edge_copies()) run_copy(device, copy, encode);
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/tensor_copies.h"

namespace tartan::test {

// A tensor with those extents, dense except for `padding` bytes after its rows.
inline TensorMap dense(Type type, std::vector<std::uint64_t> extents,
                       std::vector<std::uint32_t> box,
                       TensorMap::Swizzle swizzle = TensorMap::Swizzle::none) {
  TensorMap map{.type = type, .extents = extents, .box = box, .swizzle = swizzle};
  std::uint64_t stride = (extents[0] * static_cast<unsigned>(bits(type)) / 8 + 15) / 16 * 16;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    map.strides.push_back(stride);
    stride *= extents[i];
  }
  return map;
}

// A copy of a tile, with as much memory as it needs.
inline TensorCopy tile_copy(std::string operation, TensorMap map, std::vector<std::int32_t> at,
                            std::uint32_t mask = 0xFFFFFFFF, std::uint32_t shift = 0) {
  std::uint64_t memory = 64;
  for (std::size_t i = 0; i < map.rank(); ++i)
    memory += map.extents[i] * (i ? map.strides[i - 1] : static_cast<unsigned>(bits(map.type)) / 8);
  std::uint64_t rows = 1;
  for (std::size_t i = 1; i < map.rank(); ++i) rows *= map.copied(i);
  const std::uint32_t span = std::max<std::uint32_t>(
      span_bytes(map.swizzle), map.box[0] * static_cast<unsigned>(bits(map.type)) / 8);
  return {.operation = std::move(operation),
          .map = map,
          .at = std::move(at),
          .shift = shift,
          .memory_bytes = static_cast<std::uint32_t>((memory + 15) / 16 * 16),
          .shared_bytes = static_cast<std::uint32_t>((shift + rows * span + 127) / 64 * 64),
          .mask = mask};
}

inline std::vector<TensorCopy> copies() {
  std::vector<TensorCopy> out;
  const auto add = [&](std::string operation, TensorMap map, std::vector<std::int32_t> at,
                       std::uint32_t mask = 0xFFFFFFFF, std::uint32_t shift = 0) {
    out.push_back(tile_copy(std::move(operation), std::move(map), std::move(at), mask, shift));
  };
  // Every swizzle, whole and partial rows, at addresses that are not multiples of its period.
  for (int i = 0; i < 4; ++i) {
    const auto swizzle = static_cast<TensorMap::Swizzle>(i);
    const std::uint32_t most = i == 0 ? 64 : span_bytes(swizzle) / 2;
    for (const std::uint32_t shift : {0u, 128u, 384u})
      add("load", dense(Type::f16, {64, 16}, {most, 12}, swizzle), {0, 2}, ~0u, shift);
    if (most > 16) add("load", dense(Type::f16, {64, 16}, {most - 8, 9}, swizzle), {8, 1});
    add("load", dense(Type::u8, {48, 16}, {16, 9}, swizzle), {16, 3});
    add("store", dense(Type::f16, {64, 16}, {most, 12}, swizzle), {0, 2}, ~0u, 128);
    if (most > 16) add("store", dense(Type::f16, {64, 16}, {most - 8, 9}, swizzle), {8, 1});
  }
  // One thing at a time: a row that is not a multiple of 16 bytes, such a start, negative
  // coordinates.
  add("load", dense(Type::f16, {20, 9}, {16, 4}), {0, 0});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {5, 0});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {-8, 0});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {-5, 0});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {0, -2});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {16, 7});
  // Out of bounds: both sides of every dimension, and a box entirely outside.
  for (const std::int32_t x : {-5, 13, 40, -100})
    for (const std::int32_t y : {-2, 3, 7}) {
      add("load", dense(Type::f16, {20, 9}, {16, 4}), {x, y});
      add("store", dense(Type::f16, {20, 9}, {16, 4}), {x, y});
    }
  // Ranks, types, element strides, fills.
  add("load", dense(Type::u32, {100}, {32}), {80});
  add("load", dense(Type::u32, {12, 5, 4}, {4, 3, 2}), {8, 3, -1});
  add("load", dense(Type::u32, {12, 5, 4, 3}, {4, 3, 2, 2}), {2, 3, 1, 2});
  add("load", dense(Type::u32, {12, 5, 4, 3, 3}, {4, 3, 2, 2, 2}), {2, -1, 1, 2, 2});
  add("store", dense(Type::u32, {12, 5, 4, 3, 3}, {4, 3, 2, 2, 2}), {2, -1, 1, 2, 2});
  for (const Type type : {Type::u8, Type::u16, Type::s32, Type::u64, Type::s64, Type::f32,
                          Type::f64, Type::bf16, Type::tf32})
    add("load", dense(type, {48, 6}, {16, 3}), {40, 1});
  for (const Type type : {Type::f16, Type::bf16, Type::f32, Type::f64, Type::tf32}) {
    TensorMap map = dense(type, {48, 6}, {16, 3});
    map.fill = TensorMap::Fill::nan;
    add("load", map, {40, 4});
  }
  for (const Type type : {Type::f32, Type::tf32}) {
    TensorMap map = dense(type, {48, 6}, {16, 3});
    map.flush_subnormals = true;
    add("load", map, {0, 0}, 0x80FFFFFF);
    add("store", map, {0, 0}, 0x80FFFFFF);
    add("load", map, {0, 0});
  }
  add("store", dense(Type::tf32, {48, 6}, {16, 3}), {0, 0});
  for (const std::uint32_t step : {2u, 3u}) {
    TensorMap map = dense(Type::u16, {48, 20}, {16, 7});
    map.element_strides = {1, step};
    add("load", map, {4, 1});
    add("load", map, {4, 15});
    add("load", map, {4, -3});
    add("store", map, {4, 1});
    map.element_strides = {step, 1};
    add("load", map, {4, 1});
  }
  // Reductions.
  for (const char* operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
    add(operation, dense(Type::u32, {12, 6}, {8, 4}), {2, 4});
  for (const char* operation : {"add", "min", "max"}) {
    add(operation, dense(Type::s32, {12, 6}, {8, 4}), {2, 1});
    add(operation, dense(Type::f16, {24, 6}, {8, 4}), {2, 1}, 0xBFFFBFFF);
    add(operation, dense(Type::bf16, {24, 6}, {8, 4}), {2, 1}, 0xBFFFBFFF);
    add(operation, dense(Type::u64, {12, 6}, {8, 4}), {2, 1});
    add(operation, dense(Type::s64, {12, 6}, {8, 4}), {2, 1});
  }
  add("add", dense(Type::f32, {12, 6}, {8, 4}), {2, 1}, 0xBFFFFFFF);
  add("and", dense(Type::u64, {12, 6}, {8, 4}), {2, 1});
  // Last: after a rejection the GPU accepts nothing more.
  add("add", dense(Type::f64, {12, 6}, {8, 4}), {2, 1}, 0xBFFFFFFF);
  return out;
}

// Loads and stores of pixels: corners, offsets, strides, swizzles, ends of lines and of images.
inline std::vector<TensorCopy> image_copies() {
  std::vector<TensorCopy> out;
  const auto add = [&](std::string operation, std::vector<std::uint64_t> extents,
                       TensorMap::Im2col im2col, std::vector<std::int32_t> at,
                       std::vector<std::uint32_t> offsets, std::vector<std::uint32_t> steps = {},
                       TensorMap::Swizzle swizzle = TensorMap::Swizzle::none) {
    TensorMap map = dense(Type::f16, extents, {}, swizzle);
    map.im2col = std::move(im2col);
    map.element_strides = std::move(steps);
    const std::uint32_t row =
        std::max<std::uint32_t>(span_bytes(swizzle), 2 * map.im2col->channels);
    out.push_back(
        {.operation = std::move(operation),
         .map = map,
         .at = std::move(at),
         .offsets = std::move(offsets),
         .memory_bytes = static_cast<std::uint32_t>(map.extents.back() * map.strides.back()),
         .shared_bytes = map.im2col->pixels * row + 128});
  };
  add("load", {16, 9, 14, 9}, {{-1, -1}, {-1, -1}, 8, 64}, {0, 4, 7, 7}, {0, 0});
  add("load", {16, 9, 14, 9}, {{0, 0}, {-2, -2}, 8, 64}, {8, 4, 7, 7}, {2, 2});
  add("load", {16, 8, 14, 9}, {{-1, -1}, {-1, -1}, 16, 32}, {0, 5, 7, 7}, {1, 1}, {1, 2, 2, 1});
  add("load", {16, 9, 7, 9}, {{-1, -2}, {1, 0}, 16, 32}, {0, 5, 5, 0}, {1, 3}, {1, 3, 2, 1});
  add("load", {16, 9, 7, 9}, {{0, 0}, {0, 0}, 16, 70}, {0, 2, 1, 0}, {0, 0}, {1, 1, 1, 2});
  add("load", {16, 40, 5}, {{-3}, {2}, 8, 90}, {8, -3, 0}, {1});
  add("load", {8, 5, 4, 3, 3}, {{-1, 0, -1}, {0, -1, 1}, 8, 100}, {0, 2, 1, -1, 1}, {1, 0, 1});
  for (const auto& [swizzle, channels] : {std::pair{TensorMap::Swizzle::bytes_32, 16u},
                                          {TensorMap::Swizzle::bytes_64, 24u},
                                          {TensorMap::Swizzle::bytes_128, 64u}})
    add("load", {64, 6, 7, 4}, {{-1, -1}, {-1, -1}, channels, 70}, {0, -1, -1, 0}, {2, 1}, {},
        swizzle);
  // A start that is not a position of the filter.
  add("load", {16, 9, 7, 3}, {{0, 0}, {-2, -2}, 8, 40}, {0, 8, 0, 0}, {0, 0});
  add("load", {16, 9, 7, 3}, {{1, 1}, {0, 0}, 8, 40}, {0, 0, 0, 0}, {0, 0});
  add("store", {16, 6, 7, 4}, {{0, 0}, {0, 0}, 8, 60}, {8, 2, 3, 1}, {});
  add("store", {16, 6, 7, 4}, {{1, 1}, {-1, -2}, 16, 30}, {0, 1, 1, 0}, {}, {},
      TensorMap::Swizzle::bytes_32);
  return out;
}

// Copies that begin before an edge of the tensor, at its end or behind it, along each dimension and
// along several; parts of the box may be inside. All coordinates are whole chunks of 16 bytes.
inline std::vector<TensorCopy> edge_copies() {
  std::vector<TensorCopy> out;
  const auto add = [&](const TensorMap& map, const std::vector<std::int32_t>& at) {
    for (const char* operation : {"load", "store", "add"})
      if (operation[0] != 'l' || map.swizzle == TensorMap::Swizzle::none)
        out.push_back(tile_copy(operation, map, at, 0xBFFFBFFF));
  };
  for (int i = 0; i < 4; ++i) {
    const auto swizzle = static_cast<TensorMap::Swizzle>(i);
    const std::uint32_t columns = i == 0 ? 32 : span_bytes(swizzle) / 2;
    const TensorMap map = dense(Type::f16, {80, 9}, {columns, 4}, swizzle);
    const auto width = static_cast<std::int32_t>(columns);
    for (const std::int32_t x : {-8, -width, -128, 72, 80, 88}) add(map, {x, 0});
    for (const std::int32_t y : {-2, -4, -100, 0, 7, 9, 12}) add(map, {0, y});
  }
  constexpr std::int32_t most = 2147483640, least = -2147483647 - 1;
  for (const auto& at : std::vector<std::vector<std::int32_t>>{{-8, -2},
                                                               {0, -1},
                                                               {0, -3},
                                                               {0, most},
                                                               {0, least},
                                                               {most, 0},
                                                               {least, 0},
                                                               {-8, 9},
                                                               {80, -2},
                                                               {88, 9}})
    add(dense(Type::f16, {80, 9}, {32, 4}), at);
  for (const std::int32_t x : {-4, 0, 96, 100, 104, -32}) add(dense(Type::u32, {100}, {32}), {x});
  for (const Type type : {Type::f32, Type::u64, Type::bf16})
    for (const auto& at : std::vector<std::vector<std::int32_t>>{{0, -2}, {-8, 0}, {-8, -2}})
      add(dense(type, {48, 9}, {16, 4}), at);
  const auto each = [&](const TensorMap& map, std::vector<std::int32_t> inside) {
    for (std::size_t i = 0; i < map.rank(); ++i)
      for (const std::int64_t at :
           {std::int64_t{i ? -1 : -4}, static_cast<std::int64_t>(map.extents[i])}) {
        std::vector<std::int32_t> there = inside;
        there[i] = static_cast<std::int32_t>(at);
        add(map, there);
      }
  };
  each(dense(Type::u32, {12, 5, 4}, {4, 3, 2}), {4, 1, 1});
  each(dense(Type::u32, {12, 5, 4, 3}, {4, 3, 2, 2}), {4, 1, 1, 1});
  each(dense(Type::u32, {12, 5, 4, 3, 3}, {4, 3, 2, 2, 2}), {4, 1, 1, 1, 1});
  TensorMap steps = dense(Type::u16, {48, 20}, {16, 7});
  steps.element_strides = {1, 2};
  for (const std::int32_t y : {-3, -2, 15, 20}) add(steps, {8, y});
  // Pixels: before and behind the images and the channels; with corners before the images, of which
  // `pixels` do not go around to a next line, or do.
  const auto add_pixels = [&](std::vector<std::int32_t> at, int corner, std::uint32_t pixels) {
    for (const char* operation : {"store", "add"}) {
      TensorMap map = dense(Type::f16, {16, 6, 7, 4}, {});
      map.im2col = {.lower = {corner, corner}, .upper = {0, 0}, .channels = 8, .pixels = pixels};
      out.push_back({.operation = operation,
                     .map = map,
                     .at = at,
                     .memory_bytes = static_cast<std::uint32_t>(4 * map.strides.back()),
                     .shared_bytes = pixels * 16 + 128,
                     .mask = 0xBFFFBFFF});
    }
  };
  for (const auto& at : std::vector<std::vector<std::int32_t>>{{8, 2, 3, 1},
                                                               {-8, 2, 3, 1},
                                                               {16, 2, 3, 1},
                                                               {8, -1, 3, 1},
                                                               {8, 2, -1, 1},
                                                               {8, 2, 3, -1},
                                                               {8, 6, 3, 1},
                                                               {8, 2, 3, 4}})
    add_pixels(at, 0, 60);
  for (const std::uint32_t pixels : {2u, 4u, 5u, 60u}) {
    add_pixels({8, 2, 3, 1}, -1, pixels);
    add_pixels({8, 2, 6, 1}, -1, pixels);
    add_pixels({16, 2, 3, 4}, -1, pixels);
  }
  add_pixels({8, -1, 3, 1}, -1, 2);
  add_pixels({8, 2, -1, 1}, -1, 2);
  return out;
}

}  // namespace tartan::test
