// SPDX-License-Identifier: Apache-2.0
// Copies of elements of four and six bits, and the swizzle of 32-byte atoms (PTX ISA 5.5.1.1 and
// 5.5.7): where each bit goes, by loops of their own.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/emulator/tensor_copies.h"

namespace tartan::test {
namespace {

using Swizzle = TensorMap::Swizzle;
constexpr std::uint32_t rows = 24, box_rows = 9, columns = 256;

// Rows of 256 elements, 32 bytes apart from what they need.
TensorCopy packed_copy(const std::string& operation, Type type, Swizzle swizzle) {
  const bool six = type == Type::b6x16_p32;
  const std::uint64_t stride = columns * (six ? 6 : 4) / 8 + 32;
  TensorCopy copy{.operation = operation,
                  .map = {.type = type,
                          .extents = {columns, rows},
                          .strides = {stride},
                          .box = {128, box_rows},
                          .swizzle = swizzle},
                  .at = {128, 18}};  // three rows are outside
  copy.memory_bytes = static_cast<std::uint32_t>(stride) * rows;
  copy.shared_bytes = 4096;
  copy.shift = 1024;
  return copy;
}

Result<std::vector<std::uint32_t>> run(const TensorCopy& copy) {
  auto device = Device::open("emulator");
  if (!device) return device.diags();
  return run_copy(*device, copy, [](const TensorMap& map) { return map.encode(); });
}

// Where byte `at` of a row of 128 (or 64) bytes lies in shared memory.
std::uint32_t place(const TensorCopy& copy, std::uint32_t row, std::uint32_t at) {
  const std::uint32_t pitch =
      copy.map.swizzle == Swizzle::none && copy.map.type == Type::b4 ? 64 : 128;
  std::uint32_t address = copy.shift + row * pitch + at;
  if (copy.map.swizzle == Swizzle::bytes_128) address ^= address / 128 % 8 * 16;
  if (copy.map.swizzle == Swizzle::bytes_128_atom_32) address ^= address / 128 % 4 * 32;
  return address;
}

std::uint32_t bits_at(const std::vector<std::uint32_t>& words, std::uint64_t bit, int count) {
  std::uint32_t out = 0;
  for (int i = 0; i < count; ++i, ++bit) out |= (words[bit / 32] >> bit % 32 & 1) << i;
  return out;
}

TEST(PackedCopies, LoadsPutPaddingBehindSixteenElements) {
  for (const Type type : {Type::b4, Type::b4x16_p64, Type::b6x16_p32})
    for (const Swizzle swizzle : {Swizzle::none, Swizzle::bytes_128, Swizzle::bytes_128_atom_32}) {
      const TensorCopy copy = packed_copy("load", type, swizzle);
      const auto shared = run(copy);
      ASSERT_TRUE(shared) << shared.diags().text();
      const auto memory = pattern_words(copy.memory_bytes, copy.mask);
      const int width = type == Type::b6x16_p32 ? 6 : 4;
      std::vector<bool> seen(copy.shared_bytes);
      for (std::uint32_t row = 0; row < box_rows; ++row)
        for (std::uint32_t i = 0; i < 128; ++i) {
          const std::uint32_t bit = i % 16 * static_cast<std::uint32_t>(width);
          const std::uint32_t in_row = type == Type::b4 ? i / 2 : i / 16 * 16 + bit / 8;
          const std::uint64_t at = std::uint64_t{8} * place(copy, row, in_row) +
                                   (type == Type::b4 ? i % 2 * 4 : bit % 8);
          const std::uint64_t from =
              8 * copy.map.strides[0] * (18 + row) + (128 + i) * static_cast<std::uint64_t>(width);
          ASSERT_EQ(bits_at(*shared, at, width), row < 6 ? bits_at(memory, from, width) : 0)
              << name(type) << ", row " << row << ", element " << i;
          for (int k = 0; k < width; ++k) seen[(at + static_cast<std::uint64_t>(k)) / 8] = true;
        }
      // Nobody writes padding.
      for (std::size_t byte = 0; byte < copy.shared_bytes; ++byte) {
        if (seen[byte]) continue;
        ASSERT_EQ((*shared)[byte / 4] >> 8 * (byte % 4) & 0xFF, 0xEEu) << name(type) << byte;
      }
    }
}

TEST(PackedCopies, StoresPackTheLowBits) {
  for (const Type type : {Type::b4, Type::b6x16_p32}) {
    const TensorCopy copy = packed_copy("store", type, Swizzle::bytes_128_atom_32);
    const auto memory = run(copy);
    ASSERT_TRUE(memory) << memory.diags().text();
    const auto before = pattern_words(copy.memory_bytes, copy.mask);
    const auto shared = pattern_words(copy.shared_bytes, copy.mask);
    const int width = type == Type::b6x16_p32 ? 6 : 4;
    for (std::uint32_t row = 0; row < rows; ++row)
      for (std::uint32_t i = 0; i < columns; ++i) {
        const std::uint64_t to =
            8 * copy.map.strides[0] * row + i * static_cast<std::uint64_t>(width);
        std::uint32_t expected = bits_at(before, to, width);
        if (row >= 18 && i >= 128) {
          const std::uint32_t in_row = type == Type::b4 ? (i - 128) / 2 : i - 128;
          expected = bits_at(
              shared,
              std::uint64_t{8} * place(copy, row - 18, in_row) + (type == Type::b4 ? i % 2 * 4 : 0),
              width);
        }
        ASSERT_EQ(bits_at(*memory, to, width), expected) << name(type) << row << " " << i;
      }
  }
}

TEST(PackedCopies, MapsAreAsTheDriverAsks) {
  const auto complaints = [](TensorMap map) {
    const Status status = map.check();
    return status ? std::string() : status.diags().text();
  };
  TensorMap map{.type = Type::b6x16_p32,
                .address = 64,
                .extents = {256, 8},
                .strides = {192},
                .box = {128, 8},
                .swizzle = Swizzle::bytes_128};
  EXPECT_EQ(complaints(map), "");
  map = {.type = Type::b4x16_p64,
         .address = 16,
         .extents = {192, 8},
         .strides = {144},
         .box = {64, 8},
         .swizzle = Swizzle::bytes_64};
  const std::string all = complaints(map);
  for (const char* each :
       {"address: 0x10 is not a multiple of 32", "extents[0]: expected a multiple of 128",
        "strides[0]: expected a multiple of 32", "box[0]: expected 128", "swizzle: elements of"})
    EXPECT_NE(all.find(each), std::string::npos) << each << "\n" << all;
  EXPECT_NE(complaints({.type = Type::b4, .extents = {65}, .strides = {}, .box = {32}})
                .find("multiple of 2 elements of b4"),
            std::string::npos);
}

TEST(PackedCopies, MapsComeBackFromTheirBytes) {
  for (const Type type : {Type::b4, Type::b4x16_p64, Type::b6x16_p32})
    for (const Swizzle swizzle : {Swizzle::none, Swizzle::bytes_128, Swizzle::bytes_128_atom_32}) {
      TensorMap map = packed_copy("load", type, swizzle).map;
      map.element_strides = {1, 1};
      const auto bytes = map.encode();
      ASSERT_TRUE(bytes) << bytes.diags().text();
      const auto back = TensorMap::decode(bytes->bytes);
      ASSERT_TRUE(back) << back.diags().text();
      EXPECT_EQ(*back, map);
    }
}

TEST(PackedCopies, RefuseStoresAndCornersThatTheManualRefuses) {
  TensorCopy copy = packed_copy("store", Type::b4x16_p64, Swizzle::none);
  EXPECT_NE(run(copy).diags().text().find("b4x16_p64 are loaded only"), std::string::npos);
  copy = packed_copy("load", Type::b6x16_p32, Swizzle::none);
  copy.at[0] = 64;
  EXPECT_NE(run(copy).diags().text().find("must be a multiple of 128, found 64"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan::test
