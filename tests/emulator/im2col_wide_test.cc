// SPDX-License-Identifier: Apache-2.0
// im2col::w and im2col::w::128 against a walk written apart, and their tensor maps against those of
// the driver.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/emulator/im2col_copies.h"

namespace tartan::test {
namespace {

using namespace im2col;

TensorMap wide_images(Type type, std::vector<std::uint64_t> extents, std::int32_t lower,
                      std::int32_t upper, std::uint32_t channels, std::uint32_t count,
                      Swizzle swizzle = Swizzle::bytes_64) {
  std::vector<std::int32_t> lowers(extents.size() - 2), uppers(extents.size() - 2);
  lowers[0] = lower;
  uppers[0] = upper;
  TensorMap map = images(type, std::move(extents), lowers, uppers, channels, count);
  map.swizzle = swizzle;
  return map;
}

// Its sizes, smaller; the last of them has three buffers, each with an offset of its own.
TEST(EmulatorIm2colWide, TheManualsExamples) {
  for (const char* const wide : {"::w", "::w::128"})
    expect_copied({.map = wide_images(f16, {32, 9, 7, 24}, 0, 0, 32, 128),
                   .at = {0, 2, 3, 0},
                   .offsets = {2, 0},
                   .wide = wide});
  for (const std::uint32_t offset : {0u, 1u, 2u}) {
    TensorMap map = wide_images(f16, {64, 7, 7, 40}, -1, -1, 64, 80, Swizzle::bytes_128);
    map.element_strides = {1, 3, 1, 1};
    expect_copied({.map = map, .at = {0, -1, 2, 0}, .offsets = {0, offset}, .wide = "::w"});
    expect_copied({.map = map, .at = {0, -1, 2, 0}, .offsets = {1, offset}, .wide = "::w::128"});
  }
}

TEST(EmulatorIm2colWide, EveryRankInRandomCases) {
  std::uint32_t state = 5;
  const auto below = [&](std::uint32_t count) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % count;
  };
  for (int i = 0; i < 60; ++i) {
    const std::size_t rank = 3 + below(3);
    std::vector<std::uint64_t> extents = {64, 6 + below(60), 3, 2};
    extents.resize(rank - 1);
    extents.push_back(3 + below(4));
    const bool narrow = below(2);
    const auto lower = static_cast<std::int32_t>(below(5)) - 3,
               upper = 2 - static_cast<std::int32_t>(below(5));
    TensorMap map = wide_images(below(2) ? f16 : bf16, extents, lower, upper, narrow ? 24 : 64,
                                1 + below(150), narrow ? Swizzle::bytes_64 : Swizzle::bytes_128);
    map.element_strides.assign(rank, 1);
    map.element_strides[1] = 1 + below(3);
    map.element_strides[rank - 1] = 1 + below(2);
    map.fill = below(2) ? TensorMap::Fill::nan : TensorMap::Fill::zero;
    std::vector<std::int32_t> at(rank);
    // The first pixel may lie left of the corners, not right of them.
    at[1] =
        lower - 2 + static_cast<std::int32_t>(below(static_cast<std::uint32_t>(extents[1]) - 2));
    at[1] = std::min(at[1], static_cast<std::int32_t>(extents[1]) - 1 + upper);
    for (std::size_t d = 2; d < rank; ++d)
      at[d] = static_cast<std::int32_t>(below(static_cast<std::uint32_t>(extents[d]) + 2)) - 1;
    at[0] = narrow ? 8 * static_cast<std::int32_t>(below(6)) : 0;
    const bool of_128 = below(2);
    expect_copied({.map = map,
                   .at = at,
                   .offsets = {below(of_128 ? 6 : 20), below(4)},
                   .wide = of_128 ? "::w::128" : "::w"});
  }
}

TEST(EmulatorIm2colWide, FindsMistakes) {
  const TensorMap right = wide_images(f16, {64, 9, 7, 5}, -1, -1, 32, 16);
  const auto finding = [](const TensorMap& map, std::vector<std::int32_t> at,
                          std::vector<std::uint32_t> offsets, const char* wide = "::w") {
    const auto words = run({.map = map,
                            .at = std::move(at),
                            .offsets = std::move(offsets),
                            .memory_bytes = 40320,
                            .shared_bytes = 40000,
                            .wide = wide});
    return words ? std::string()
                 : std::string(words.diags()[0].id) + " " + words.diags()[0].message;
  };
  EXPECT_EQ(finding(right, {0, 7, 0, 0}, {0, 0}), "");
  EXPECT_EQ(finding(right, {0, -9, 0, 0}, {511, 31}), "");
  const auto expect = [](const std::string& text, const char* says) {
    EXPECT_TRUE(text.starts_with("tensor-map ")) << text;
    EXPECT_NE(text.find(says), std::string::npos) << text;
  };
  expect(finding(right, {0, 8, 0, 0}, {0, 0}), "the tensor map's corners allow at most 7");
  expect(finding(right, {0, 0, 0, 0}, {512, 0}), "wHalo is 512, wOffset 0: expected less than 512");
  expect(finding(right, {0, 0, 0, 0}, {32, 0}, "::w::128"), "expected less than 32 and 32");
  expect(finding(right, {0, 0, 0, 0}, {0, 32}), "wOffset 32");
  TensorMap map = right;
  map.swizzle = Swizzle::none;
  expect(finding(map, {0, 0, 0, 0}, {0, 0}), "a swizzle of 0 bytes: expected 64 or 128");
  map = right;
  map.im2col->lower[1] = -1;
  expect(finding(map, {0, 0, 0, 0}, {0, 0}), "corners of the height or depth");
  map = dense(f16, {64, 9, 7, 5});
  map.box = {8, 2, 2, 1};
  auto device = Device::open("emulator");
  const auto words = run_copy(*device,
                              {.map = right,
                               .at = {0, 0, 0, 0},
                               .offsets = {0, 0},
                               .memory_bytes = 40320,
                               .shared_bytes = 4096,
                               .wide = "::w"},
                              [&](TensorMap given) {
                                map.address = given.address;
                                return map.encode();
                              });
  ASSERT_FALSE(static_cast<bool>(words));
  expect("tensor-map " + words.diags()[0].message, "the tensor map is tiled");
}

// What cuTensorMapEncodeIm2colWide of driver 580 wrote on an H200, but for the address.
TEST(EmulatorIm2colWide, MapsAreThoseOfTheDriver) {
  using Words = std::array<std::uint64_t, 9>;
  const auto words = [](std::vector<std::uint64_t> extents, std::int32_t lower, std::int32_t upper,
                        std::uint32_t pixels, Swizzle swizzle,
                        std::vector<std::uint32_t> strides = {}, int promotion = 0,
                        bool nan = false) {
    TensorMap map = wide_images(f16, std::move(extents), lower, upper, 32, pixels, swizzle);
    map.element_strides = std::move(strides);
    map.promotion = static_cast<TensorMap::Promotion>(promotion);
    map.fill = nan ? TensorMap::Fill::nan : TensorMap::Fill::zero;
    const auto bytes = map.encode();
    Words out{};
    if (bytes) std::memcpy(out.data(), bytes->bytes.data() + 8, sizeof out);
    return out;
  };
  EXPECT_EQ(
      words({64, 9, 6}, -1, -2, 16, Swizzle::bytes_64),
      (Words{0x800004321, 0x48, 0, 0x80000003f, 5, 0x1f00000000000000, 0xffffeffff, 0x400, 0x200}));
  EXPECT_EQ(words({64, 9, 7, 6}, 3, 5, 1024, Swizzle::bytes_64),
            (Words{0x800004331, 0x1f800000048, 0, 0x80000003f, 0x500000006, 0x1f00000000000000,
                   0x3ff00050003, 0x10000, 0x200}));
  EXPECT_EQ(words({64, 9, 7, 6}, -4, 2, 222, Swizzle::bytes_128, {1, 3, 1, 2}, 2),
            (Words{0x800046331, 0x1f800000048, 0, 0x80000003f, 0x500000006, 0x1f00021000000000,
                   0xdd000200fc, 0x3780, 0x400}));
  EXPECT_EQ(words({64, 9, 7, 5, 6}, -3, -2, 152, Swizzle::bytes_128, {1, 2, 2, 3, 2}, 3),
            (Words{0x800066341, 0x1f800000048, 0x9d8, 0x80000003f, 0x400000006, 0x1f00144800000005,
                   0x97001e001d, 0x2600, 0x400}));
  EXPECT_EQ(words({64, 9, 7, 5, 6}, 1, -3, 225, Swizzle::bytes_64, {1, 2, 3, 1, 2}, 3, true),
            (Words{0x80006c341, 0x1f800000048, 0x9d8, 0x80000003f, 0x400000006, 0x1f00108800000005,
                   0xe0001d0001, 0x3840, 0x200}));
}

}  // namespace
}  // namespace tartan::test
