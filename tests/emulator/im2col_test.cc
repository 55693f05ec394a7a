// SPDX-License-Identifier: Apache-2.0
// im2col copies, gathered and scattered rows, and their tensor maps, against plain loops.
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "tests/emulator/im2col_copies.h"
#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

using namespace im2col;

// ---- im2col.

// The manual's figures 13 and 14, with fewer channels: a 3 x 3 filter over images of 14 x 9.
TEST(EmulatorIm2col, TheManualsExamples) {
  expect_copied({.map = images(f16, {16, 9, 14, 9}, {-1, -1}, {-1, -1}, 8, 64),
                 .at = {0, 4, 7, 7},
                 .offsets = {0, 0}});
  expect_copied({.map = images(f16, {16, 9, 14, 9}, {0, 0}, {-2, -2}, 8, 64),
                 .at = {8, 4, 7, 7},
                 .offsets = {2, 2}});
  TensorMap strided = images(f16, {16, 8, 14, 9}, {-1, -1}, {-1, -1}, 16, 32);
  strided.element_strides = {1, 2, 2, 1};
  expect_copied({.map = strided, .at = {0, 5, 7, 7}, .offsets = {1, 1}});
}

TEST(EmulatorIm2col, EveryRankTypeAndSwizzle) {
  expect_copied(
      {.map = images(Type::u32, {8, 11, 5}, {-3}, {2}, 4, 50), .at = {4, -3, 0}, .offsets = {1}});
  expect_copied({.map = images(f32, {8, 5, 4, 3, 3}, {-1, 0, -1}, {0, -1, 1}, 8, 100),
                 .at = {0, 2, 1, -1, 1},
                 .offsets = {1, 0, 1}});
  for (const auto& [swizzle, channels] :
       {std::pair{Swizzle::bytes_32, 16u}, {Swizzle::bytes_64, 24u}, {Swizzle::bytes_128, 64u}})
    for (const std::uint32_t offset : {0u, 2u}) {
      TensorMap map = images(bf16, {64, 6, 7, 4}, {-1, -1}, {-1, -1}, channels, 70);
      map.swizzle = swizzle;
      map.fill = offset ? TensorMap::Fill::nan : TensorMap::Fill::zero;
      expect_copied({.map = map, .at = {0, -1, -1, 0}, .offsets = {offset, 1}});
      expect_copied({.map = map, .at = {48, 4, 5, 3}, .offsets = {offset, offset}});
    }
  TensorMap steps = images(Type::u8, {32, 10, 9, 8, 2}, {-1, -2, 0}, {1, -1, -1}, 16, 64);
  steps.element_strides = {1, 3, 2, 4, 1};
  expect_copied({.map = steps, .at = {16, 2, 0, 4, 0}, .offsets = {0, 2, 1}});
}

TEST(EmulatorIm2col, Stores) {
  expect_copied({.operation = "store",
                 .map = images(f16, {16, 6, 7, 4}, {0, 0}, {0, 0}, 8, 60),
                 .at = {8, 2, 3, 1}});
  TensorMap map = images(f16, {16, 6, 7, 4}, {1, 1}, {-1, -2}, 16, 30);
  map.swizzle = Swizzle::bytes_32;
  expect_copied({.operation = "store", .map = map, .at = {0, 1, 1, 0}});
}

TEST(EmulatorIm2col, MapsKeepTheirCorners) {
  TensorMap map = images(f16, {64, 9, 14, 64}, {-128, 3}, {127, -10}, 8, 1024);
  map.address = 0x700000000000;
  map.element_strides = {1, 2, 3, 1};
  const auto bytes = map.encode();
  ASSERT_TRUE(static_cast<bool>(bytes)) << bytes.diags().text();
  const auto back = TensorMap::decode(bytes->bytes);
  ASSERT_TRUE(static_cast<bool>(back)) << back.diags().text();
  EXPECT_EQ(*back, map);
  TensorMapBytes spoiled = *bytes;
  spoiled.bytes[8 * 12 + 4] = std::byte{0xFF};  // pixels
  spoiled.bytes[8 * 12 + 5] = std::byte{0xFF};
  EXPECT_FALSE(static_cast<bool>(TensorMap::decode(spoiled.bytes)));
}

TEST(EmulatorIm2col, RejectsInvalidMaps) {
  const auto complaint = [](auto&& change) {
    TensorMap map = images(f16, {64, 9, 14, 64}, {-1, -1}, {-1, -1}, 8, 64);
    change(map);
    const Status status = map.check();
    return status ? std::string() : status.diags()[0].message;
  };
  EXPECT_EQ(complaint([](TensorMap&) {}), "");
  EXPECT_NE(complaint([](TensorMap& map) {
              map.box = {8, 1, 1, 1};
            }).find("no box"),
            std::string::npos);
  EXPECT_NE(complaint([](TensorMap& map) { map.im2col->lower = {0}; }).find("2 numbers"),
            std::string::npos);
  EXPECT_NE(complaint([](TensorMap& map) { map.im2col->upper[0] = 128; }).find("-128 to 127"),
            std::string::npos);
  EXPECT_NE(complaint([](TensorMap& map) { map.im2col->upper[0] = -10; }).find("no pixel"),
            std::string::npos);
  EXPECT_NE(complaint([](TensorMap& map) { map.im2col->pixels = 1025; }).find("1 to 1024"),
            std::string::npos);
  EXPECT_NE(complaint([](TensorMap& map) { map.im2col->channels = 4; }).find("multiple of 16"),
            std::string::npos);
  EXPECT_NE(complaint([](TensorMap& map) {
              map.im2col->channels = 32, map.swizzle = Swizzle::bytes_32;
            }).find("the swizzle allows"),
            std::string::npos);
}

// A tiled instruction with an im2col map, and the reverse.
TEST(EmulatorIm2col, TheInstructionMustFitTheMap) {
  TensorMap pixels_map = images(f16, {16, 6, 7}, {0}, {0}, 8, 8);
  TensorMap tiles = dense(f16, {16, 6, 7});
  tiles.box = {8, 2, 2};
  for (const bool pixels_first : {true, false}) {
    TensorCopy copy{.map = pixels_first ? pixels_map : tiles,
                    .at = {0, 0, 0},
                    .memory_bytes = 2048,
                    .shared_bytes = 2048};
    if (pixels_first) copy.offsets = {0};
    auto device = Device::open("emulator");
    const auto words = run_copy(*device, copy, [&](TensorMap map) {
      TensorMap other = pixels_first ? tiles : pixels_map;
      other.address = map.address;
      return other.encode();
    });
    ASSERT_FALSE(static_cast<bool>(words));
    EXPECT_EQ(words.diags()[0].id, "tensor-map");
    EXPECT_NE(words.diags()[0].message.find("im2col"), std::string::npos);
  }
}

TEST(EmulatorIm2col, ChecksNumberOfOffsets) {
  const std::string line =
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::"
      "complete_tx::bytes [r1], [rd0, {r1, r2, r3, r4}], [r2], {h1};";
  EXPECT_NE(run_body(".reg .b16 h1;\n" + line).complaint.find("wrong number of im2col offsets"),
            std::string::npos);
  const std::string wide =
      "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::"
      "complete_tx::bytes [r1], [rd0, {r1, r2, r3}], [r2], {h1, h1};";
  EXPECT_NE(run_body(".reg .b16 h1;\n" + wide).complaint.find("im2col::w requires sm_100"),
            std::string::npos);
}

// ---- Rows.

TensorMap rows_map(Swizzle swizzle, std::uint32_t width) {
  TensorMap map = dense(f16, {64, 20});
  map.box = {width, 1};
  map.swizzle = swizzle;
  return map;
}

TEST(EmulatorIm2col, FourRowsAreGatheredAndScattered) {
  for (const auto& [swizzle, width] : {std::pair{Swizzle::none, 24u},
                                       {Swizzle::bytes_32, 16u},
                                       {Swizzle::bytes_64, 32u},
                                       {Swizzle::bytes_128, 64u}})
    for (const std::int32_t x : {0, 8, 56}) {
      expect_copied(
          {.operation = "gather", .map = rows_map(swizzle, width), .at = {x, 5, 0, 19, 2}});
      expect_copied(
          {.operation = "scatter", .map = rows_map(swizzle, width), .at = {x, 5, 0, 19, 2}});
    }
  // Out of bounds, and the same row twice.
  expect_copied(
      {.operation = "gather", .map = rows_map(Swizzle::bytes_128, 64), .at = {-8, -1, 7, 20, 7}});
  expect_copied(
      {.operation = "scatter", .map = rows_map(Swizzle::bytes_64, 32), .at = {48, 3, 20, 100, 4}});
}

TEST(EmulatorIm2col, GatheredRowsAreSingle) {
  TensorMap map = rows_map(Swizzle::none, 16);
  map.box[1] = 2;
  const auto words = run({.operation = "gather",
                          .map = map,
                          .at = {0, 1, 2, 3, 4},
                          .memory_bytes = 2560,
                          .shared_bytes = 512});
  ASSERT_FALSE(static_cast<bool>(words));
  EXPECT_NE(words.diags()[0].message.find("a box of one row"), std::string::npos);
}

// ---- Pairs of blocks.

// Both blocks of two pairs receive the box. With .cta_group::2 it completes on the mbarriers of
// blocks whose rank has the issuing block's parity, twice each; otherwise on each block's own.
TEST(EmulatorIm2col, PairsOfBlocksShareAnMbarrier) {
  for (const int group : {1, 2}) {
    std::string text = kernel_text(
        R"(
mov.u32 r2, %cluster_ctarank;
setp.eq.u32 q, r0, 0;
mov.b64 rd4, map;
cvta.param.u64 rd4, rd4;
@q mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
@q mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], BYTES;
barrier.cluster.arrive;
barrier.cluster.wait;
mov.u16 h, 15;
mov.u32 r5, tile;
mov.u32 r6, bar;
setp.eq.and.u32 p, r2, 1, q;
@p cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::GROUP [r5], [rd4, {0}], [r6], h;
barrier.cluster.arrive;
barrier.cluster.wait;
mov.u32 r3, 0;
mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 0;
selp.u32 r3, 1, 0, p;
mad.wide.u32 rd5, r2, 4, rd0;
@q st.global.u32 [rd5], r3;
)",
        ".shared .align 128 .b8 tile[128];\n.shared .align 8 .b8 bar[8];\n");
    const auto replace = [&](const std::string& what, const std::string& by) {
      text.replace(text.find(what), what.size(), by);
    };
    replace(".version 8.6\n.target sm_90\n", ".version 8.6\n.target sm_100a\n");
    replace(".param .u64 out", ".param .u64 out, .param .align 64 .b8 map[128]");
    replace(".reg .pred p, q;", ".reg .pred p, q;\n.reg .b16 h;");
    replace("BYTES", group == 2 ? "128" : "64");
    replace("GROUP", std::to_string(group));
    auto engine = emulator::make_engine({});
    auto module = (*engine)->load(text, "pairs.ptx");
    ASSERT_TRUE(static_cast<bool>(module)) << module.diags().text();
    auto kernel = (*module)->kernel("k");
    ASSERT_TRUE(static_cast<bool>(kernel)) << kernel.diags().text();
    const auto out = (*engine)->allocate(64), memory = (*engine)->allocate(256);
    TensorMap map{.type = Type::u32, .address = *memory, .extents = {64}, .box = {16}};
    const Status launched = (*kernel)->launch({.grid = {4}, .block = {32}, .cluster = {4, 1, 1}},
                                              Arguments().add(*out).add(*map.encode()), nullptr);
    ASSERT_TRUE(static_cast<bool>(launched)) << launched.diags().text();
    ASSERT_TRUE(static_cast<bool>((*engine)->synchronize())) << (*engine)->findings()[0].message;
    std::uint32_t done[4];
    ASSERT_TRUE(static_cast<bool>((*engine)->read(*out, std::as_writable_bytes(std::span(done)))));
    for (std::uint32_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(done[rank], group == 2 ? rank % 2 : 1u) << group << " " << rank;
  }
}

}  // namespace
}  // namespace tartan::test
