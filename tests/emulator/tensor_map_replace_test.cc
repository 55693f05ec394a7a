// SPDX-License-Identifier: Apache-2.0
// Tensor maps assembled field by field, as tensormap.replace does, equal those of encode().
#include <gtest/gtest.h>

#include <cstring>

#include "tartan/runtime/tensor_map.h"
#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using Bytes = std::array<std::byte, 128>;
using Field = TensorMapField;

void put(Bytes& bytes, Field field, std::size_t ordinal, std::uint64_t value) {
  const Status status = TensorMap::replace(bytes, field, ordinal, value);
  EXPECT_TRUE(static_cast<bool>(status)) << status.diags().text();
}

TEST(TensorMapReplace, FieldByField) {
  const TensorMap maps[] = {
      {.type = f16,
       .address = 0x7f0012345670,
       .extents = {256, 130},
       .strides = {512},
       .box = {64, 128},
       .swizzle = TensorMap::Swizzle::bytes_128},
      {.type = Type::u8,
       .address = 64,
       .extents = {std::uint64_t{1} << 32, 2, 3, 4, 5},
       .strides = {std::uint64_t{1} << 39, 32, std::uint64_t{1} << 38, 64},
       .box = {16, 1, 2, 3, 4},
       .element_strides = {1, 2, 3, 4, 8},
       .fill = TensorMap::Fill::zero},
      {.type = tf32, .address = 0, .extents = {8}, .box = {4}, .fill = TensorMap::Fill::nan},
      {.type = bf16,
       .address = 16,
       .extents = {8, 8, 8},
       .strides = {16, 128},
       .box = {16, 1, 1},
       .swizzle = TensorMap::Swizzle::bytes_32},
  };
  const std::uint64_t types[] = {6, 0, 11, 10};
  for (std::size_t m = 0; m < std::size(maps); ++m) {
    TensorMap map = maps[m];
    Bytes bytes{};
    if (m % 2 == 0) bytes = maps[m + 1].encode()->bytes;  // over another map
    put(bytes, Field::address, 0, map.address);
    put(bytes, Field::rank, 0, map.rank() - 1);
    for (std::size_t i = 0; i < 5; ++i) {
      const bool inside = i < map.rank();
      const std::uint64_t step =
          inside && !map.element_strides.empty() ? map.element_strides[i] : 1;
      put(bytes, Field::extent, i, inside ? map.extents[i] : 1);
      put(bytes, Field::box, i, inside ? map.box[i] : 1);
      put(bytes, Field::element_stride, i, step);
      if (i < 4) put(bytes, Field::stride, i, i + 1 < map.rank() ? map.strides[i] : 0);
    }
    put(bytes, Field::type, 0, types[m]);
    put(bytes, Field::interleave, 0, 0);
    put(bytes, Field::swizzle, 0, static_cast<std::uint64_t>(map.swizzle));
    put(bytes, Field::fill, 0, static_cast<std::uint64_t>(map.fill));
    const auto read = TensorMap::decode(bytes);
    ASSERT_TRUE(static_cast<bool>(read)) << m << ": " << read.diags().text();
    if (map.element_strides.empty()) map.element_strides.assign(map.rank(), 1);
    TensorMap got = *read;
    got.promotion = map.promotion;  // tensormap.replace has no such field
    EXPECT_EQ(got, map) << m;
  }
}

TEST(TensorMapReplace, RejectsInvalidFields) {
  Bytes bytes{};
  for (const auto& [field, ordinal, value] :
       std::vector<std::tuple<Field, std::size_t, std::uint64_t>>{{Field::stride, 4, 16},
                                                                  {Field::stride, 0, 8},
                                                                  {Field::type, 0, 16},
                                                                  {Field::rank, 0, 5},
                                                                  {Field::box, 1, 257},
                                                                  {Field::box, 0, 0},
                                                                  {Field::element_stride, 2, 9},
                                                                  {Field::fill, 0, 2},
                                                                  {Field::swizzle, 0, 4},
                                                                  {Field::swizzle_atomicity, 0, 2},
                                                                  {Field::interleave, 0, 1}})
    EXPECT_FALSE(static_cast<bool>(TensorMap::replace(bytes, field, ordinal, value)))
        << static_cast<int>(field) << " " << value;
  EXPECT_EQ(bytes, Bytes{});
  EXPECT_EQ(TensorMap::replace(bytes, Field::interleave, 0, 2).diags()[0].message,
            "interleave_layout: expected 0 to 0, found 2: layouts interleaved by 16 and 32 bytes "
            "are not emulated");
}

// In a kernel: made in shared memory, copied to global memory, read back.
TEST(TensorMapReplace, InAKernel) {
  const std::string shared = ".shared .align 128 .b8 map[128];\n";
  const std::string body = R"(
mov.u32 r1, map;
mad.lo.u32 r1, r0, 4, r1;
st.shared.u32 [r1], 0;
bar.warp.sync -1;
setp.eq.u32 q, r0, 0;
mov.u64 rd2, map;
mov.u32 r2, 96;
@q tensormap.replace.tile.global_address.shared::cta.b1024.b64 [rd2], rd0;
@q tensormap.replace.tile.rank.shared::cta.b1024.b32 [rd2], 0x1;
@q tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [rd2], 0x1, r2;
bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [rd0+128], [rd2], 0x80;
)";
  std::string text = test::kernel_text(body, shared);
  text.replace(text.find(".target sm_90\n"), 14, ".target sm_90a\n");
  const test::KernelRun run = test::run_text(text, {.grid = {1}, .block = {32}}, 64);
  ASSERT_EQ(run.complaint, "");
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  EXPECT_EQ(run.out[32 + 2], 1u << 4);  // word 1: rank - 1
  EXPECT_EQ(run.out[32 + 9], 95u);      // word 4, high: extent 1 - 1
  text.replace(text.find("[rd0+128]"), 9, "[rd0+64]");
  EXPECT_EQ(test::run_text(text, {.grid = {1}, .block = {32}}, 64).findings.at(0).id,
            "misaligned-access");
}

}  // namespace
}  // namespace tartan
