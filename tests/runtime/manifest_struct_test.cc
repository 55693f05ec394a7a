// SPDX-License-Identifier: Apache-2.0
// Parameters of a manifest that are structs with addresses and tensor maps in them.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/runtime/manifest_folder.h"

namespace tartan {
namespace {

constexpr const char* struct_ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry gather(.param .align 64 .b8 p[256], .param .u64 last)
{
  .reg .b64 %rd<8>;
  .reg .b32 %r<8>;
  .reg .pred %p1;
  .shared .align 128 .b8 tile[64];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [p+8];
  ld.param.u64 %rd2, [p+16];
  ld.param.u32 %r2, [p+24];
  ld.global.u32 %r3, [%rd2];
  mov.b64 %rd3, p;
  cvta.param.u64 %rd3, %rd3;
  add.u64 %rd3, %rd3, 128;
  mbarrier.init.shared.b64 [full], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [full], 64;
  cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd3, {%r1}], [full];
$wait:
  mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
  @!%p1 bra $wait;
  ld.shared.u32 %r4, [tile];
  ld.param.u64 %rd4, [last];
  st.global.u32 [%rd1], %r1;
  st.global.u32 [%rd1+4], %r2;
  st.global.u32 [%rd1+8], %r3;
  st.global.u32 [%rd4], %r4;
  ret;
}
)";

class ManifestStruct : public ManifestTest {
 protected:
  std::string manifest(const std::string& fields, const std::string& more = "") {
    write("struct.ptx", struct_ptx);
    return write("m.json", R"({"ptx": "struct.ptx", "kernel": "gather", "grid": [1], "block": [1],
      "params": [{"struct": 256, )" +
                               more + R"("fields": [)" + fields + R"(]},
                 {"address": "out", "offset": 12}],
      "buffers": [{"buffer": "out", "bytes": 16, "fill": 255, "expect": "want.bin"},
                  {"buffer": "in", "file": "in.bin"}]})");
  }

  static std::string words(const std::vector<std::uint32_t>& values) {
    return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
  }
};

TEST_F(ManifestStruct, AddressesAndMapsAreWhereTheirFieldsSay) {
  std::vector<std::uint32_t> in(64);
  for (std::uint32_t i = 0; i < 64; ++i) in[i] = 1000 + i;
  write("in.bin", words(in));
  write("want.bin", words({4, 77, 1005, 1020}));
  std::string base(256, '\0');
  base[24] = 77;
  write("base.bin", base);
  const std::string map = R"({"at": 128, "tensor_map": "in", "offset": 64, "type": "u32",
      "extents": [48], "strides": [], "box": [16]})";
  const auto read = read_manifest(manifest(R"({"at": 0, "address": "out"}, {"at": 8, "u32": 4},
                  {"at": 16, "address": "in", "offset": 20}, )" +
                                               map,
                                           R"("file": "base.bin", )"));
  ASSERT_TRUE(read) << read.diags().text();
  const Outcome outcome = run(*read, "emulator");
  EXPECT_EQ(outcome.exit_code(), 0) << outcome.complaints(false) << outcome.text(false);
}

TEST_F(ManifestStruct, ReportsEveryWrongField) {
  write("in.bin", words({1, 2, 3, 4}));
  write("want.bin", words({1, 2, 3, 4}));
  const auto said = [&](const std::string& fields, const std::string& more = "") {
    const auto read = read_manifest(manifest(fields, more));
    Texts out;
    if (!read)
      for (const Diag& diag : read.diags()) out.push_back(diag.message);
    return out;
  };
  EXPECT_EQ(
      said(R"({"u32": 1}, 7, {"at": 256, "u8": 1}, {"at": 4}, {"at": 0, "u32": 1, "u8": 1})"),
      (Texts{
          "params[0].fields[0].at: expected an offset in bytes, found nothing",
          "params[0].fields[1]: expected an object, found 7",
          "params[0].fields[2].at: expected a whole number from 0 to 255, found 256",
          "params[0].fields[3]: expected a tensor_map, an address, or one of u8, s8, u16, s16, "
          "u32, s32, u64, s64, f16, bf16, f32, f64, bytes, found an object with at",
          "params[0].fields[4]: expected a tensor_map, an address, or one of u8, s8, u16, s16, "
          "u32, s32, u64, s64, f16, bf16, f32, f64, bytes, found an object with at, u32, u8",
      }));
  EXPECT_EQ(
      said(R"({"at": 252, "address": "in"}, {"at": 8, "u32": 1}, {"at": 10, "u8": 1})"),
      (Texts{
          "params[0].fields[0].at: 8 bytes at offset 252 extend beyond the struct, which has 256",
          "params[0].fields[2].at: the 1 bytes at offset 10 overlap another field's",
      }));
  EXPECT_EQ(said(R"({"at": 32, "tensor_map": "in", "type": "u32", "extents": [4], "strides": [],
                     "box": [4]})"),
            (Texts{"params[0].fields[0].at: misaligned tensor map: expected a multiple of 64 "
                   "bytes, found 32"}));
  EXPECT_EQ(said(R"({"at": 0, "address": "inn"}, {"at": 8, "address": "in", "size": 4})"),
            (Texts{"params[0].fields[1].size: unknown field: expected address, offset, at"}));
  EXPECT_EQ(
      said(R"({"at": 0, "address": "inn"})"),
      (Texts{
          "params[0].fields[0].address: unknown buffer inn: expected one of params or buffers"}));
  EXPECT_EQ(
      said(R"({"at": 0, "u8": 1}, {"at": 8, "address": "in", "offset": 17})"),
      (Texts{"params[0].fields[1].offset: 17 is beyond the end of buffer in, which has 16 bytes"}));
  EXPECT_EQ(said("", R"("file": "in.bin", )"),
            (Texts{"params[0].file: expected 256 bytes, found 16"}));
  EXPECT_EQ(param_complaints(R"({"struct": 0, "fields": []}, {"struct": 8, "fields": {}},
                                {"struct": 8, "members": []})"),
            (Texts{
                "params[0].struct: expected a whole number from 1 to 32764, found 0 [manifest]",
                "params[1].fields: expected an array, found an object with no fields [manifest]",
                "params[2].members: unknown field: expected struct, file, fields [manifest]",
            }));
}

TEST_F(ManifestTest, CooperativeIsTrueOrFalse) {
  const auto read = read_manifest(write("m.json", R"({"ptx": "small.ptx", "kernel": "store",
      "grid": [1], "block": [1], "cooperative": true, "params": []})"));
  ASSERT_TRUE(read) << read.diags().text();
  EXPECT_TRUE(read->launch.cooperative);
  EXPECT_EQ(complaints(R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [1],
                           "cooperative": 1, "params": []})"),
            Texts{"cooperative: expected true or false, found 1 [manifest]"});
}

}  // namespace
}  // namespace tartan
