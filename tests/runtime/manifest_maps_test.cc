// SPDX-License-Identifier: Apache-2.0
// Manifests with tensor maps, buffers that are not parameters, parts of files; and one from `tartan
// emit`, whose maps give the product.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/paths.h"
#include "tests/runtime/manifest_folder.h"
#include "tests/support/small_product.h"

namespace tartan {
namespace {

TEST_F(ManifestTest, ReadsTensorMapsAndPartsOfFiles) {
  const auto read = read_manifest(write("m.json", R"({"ptx": "small.ptx", "kernel": "store",
      "grid": [1], "block": [1], "params": [
      {"tensor_map": "t", "offset": 16, "type": "f32", "extents": [8, 6], "strides": [32],
       "box": [8, 4], "element_strides": [1, 2], "swizzle": 32, "promotion": 256, "fill": "nan",
       "flush_subnormals": true},
      {"tensor_map": "part", "type": "u8", "extents": [3], "box": [16]},
      {"buffer": "part", "file": "long.bin", "part": [2, 3]}],
      "buffers": [{"buffer": "t", "bytes": 208, "fill": 1}]})"));
  ASSERT_TRUE(read) << read.diags().text();
  ASSERT_EQ(read->params.size(), 3u);
  EXPECT_EQ(read->params[0].tensor_map->buffer, "t");
  EXPECT_EQ(read->params[0].tensor_map->offset, 16u);
  EXPECT_EQ(read->params[0].tensor_map->map,
            (TensorMap{.type = f32,
                       .extents = {8, 6},
                       .strides = {32},
                       .box = {8, 4},
                       .element_strides = {1, 2},
                       .swizzle = TensorMap::Swizzle::bytes_32,
                       .promotion = TensorMap::Promotion::bytes_256,
                       .fill = TensorMap::Fill::nan,
                       .flush_subnormals = true}));
  EXPECT_EQ(read->params[1].tensor_map->map,
            (TensorMap{.type = Type::u8, .extents = {3}, .box = {16}}));
  EXPECT_EQ(read->params[2].buffer->size, 3u);
  ASSERT_EQ(read->buffers.size(), 1u);
  EXPECT_EQ(read->buffers[0].fill, 1);
}

TEST_F(ManifestTest, WrongTensorMaps) {
  const std::string good = R"("type": "f16", "extents": [64, 4], "strides": [128], "box": [64, 2])";
  const auto of = [&](const std::string& buffer, const std::string& rest) {
    return R"({"tensor_map": ")" + buffer + R"(", )" + rest + "}";
  };
  EXPECT_EQ(param_complaints(of("b", good) + R"(, {"buffer": "b", "bytes": 512})"), Texts{});
  EXPECT_EQ(
      param_complaints(
          R"({"tensor_map": 7}, )" + of("b", good + R"(, "offset": 8, "swizzle": 16)") + ", " +
          of("b", good + R"(, "fill": 0, "promotion": "256", "interleave": 1)") +
          R"(, {"tensor_map": "b", "type": "f17", "extents": 4, "strides": [-1], "box": []})"),
      (Texts{
          "params[0].tensor_map: expected a text, found 7 [manifest]",
          "params[0].box: expected an array of whole numbers, found nothing [manifest]",
          "params[1].offset: 8 is not a multiple of 16 bytes [manifest]",
          "params[1].swizzle: expected one of 0, 32, 64, 128, \"128-atom-32\", found 16 [manifest]",
          "params[2].interleave: unknown field: expected tensor_map, offset, type, extents, "
          "strides, box, swizzle, promotion, fill, element_strides, flush_subnormals [manifest]",
          "params[2].promotion: expected one of 0, 64, 128, 256, found \"256\" [manifest]",
          "params[2].fill: expected one of \"zero\", \"nan\", found 0 [manifest]",
          "params[3].type: expected an element type such as f16, bf16, f32 or u8, found \"f17\" "
          "[manifest]",
          "params[3].extents: expected an array of whole numbers, found 4 [manifest]",
          "params[3].strides[0]: expected a whole number from 0 to 18446744073709551615, found -1 "
          "[manifest]",
      }));
  // Unsupported values, by field.
  EXPECT_EQ(
      param_complaints(
          of("b", R"("type": "f16", "extents": [64, 4], "strides": [120], "box": [60, 257])") +
          ", " +
          of("b", R"("type": "f16", "extents": [1, 1, 1, 1, 1, 1], "strides": [], "box": [1])") +
          ", " + of("b", good + R"(, "swizzle": 64)")),
      (Texts{
          "params[0].strides[0]: expected a multiple of 16 below 2^40 bytes, found 120 [manifest]",
          "params[0].box[1]: expected 1 to 256 elements, found 257 [manifest]",
          "params[0].box[0]: 60 elements of f16 are 120 bytes, which is not a multiple of 16 "
          "[manifest]",
          "params[1]: wrong number of extents: a tensor map has 1 to 5, found 6 [manifest]",
          "params[1].box: expected one number per dimension (6), found 1 [manifest]",
          "params[2].box[0]: 64 elements of f16 are 128 bytes, the swizzle allows at most 64 "
          "[manifest]",
      }));
  // Errors of the tensor's place.
  EXPECT_EQ(
      param_complaints(of("c", good) + R"(, {"buffer": "b", "bytes": 512})"),
      Texts{
          "params[0].tensor_map: unknown buffer c: expected one of params or buffers [manifest]"});
  for (const char* bytes : {"496", "128", "1"})
    EXPECT_EQ(
        param_complaints(of("b", good) + R"(, {"buffer": "b", "bytes": )" + bytes + "}"),
        Texts{std::string(
                  "params[0].extents: the tensor extends beyond the end of buffer b, which has ") +
              bytes + " bytes [manifest]"});
  EXPECT_EQ(
      param_complaints(
          of("b",
             R"("type": "u8", "extents": [4294967296, 4294967296], "strides": [1099511627760], "box": [16, 1])") +
          R"(, {"buffer": "b", "bytes": 512})"),
      Texts{"params[0].extents: the tensor extends beyond the end of buffer b, which has 512 bytes "
            "[manifest]"});
}

TEST_F(ManifestTest, WrongPartsAndBuffers) {
  EXPECT_EQ(
      param_complaints(
          R"({"buffer": "a", "file": "long.bin", "part": [2, 5]}, {"buffer": "b", "file": "long.bin", "part": [1]},
                   {"buffer": "c", "bytes": 4, "part": [0, 4]}, {"buffer": "d", "file": "long.bin", "part": [7, 0]},
                   {"buffer": "e", "file": "long.bin", "part": 3})"),
      (Texts{
          "params[0].part: 5 bytes at offset 2 are outside a file of 6 bytes [manifest]",
          "params[1].part: expected expected an offset and a number of bytes, found an array of 1 "
          "[manifest]",
          "params[2].part: requires a file, found bytes [manifest]",
          "params[3].part: 0 bytes at offset 7 are outside a file of 6 bytes [manifest]",
          "params[4].part: expected an array of whole numbers, found 3 [manifest]",
      }));
  EXPECT_EQ(
      complaints(R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [1],
                           "params": [{"buffer": "a", "bytes": 4}],
                           "buffers": [{"buffer": "a", "bytes": 4}, 7, {"buffer": "b"}]})"),
      (Texts{
          "buffers[1]: expected a buffer, found 7 [manifest]",
          "buffers[2]: expected either file or bytes, or a shape, found an object with buffer "
          "[manifest]",
          "buffers[0].buffer: duplicate name: params[0] is also called a [manifest]",
      }));
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size()};
}

// emit, then run: the tensor maps refer to A, B and C.
class EmittedManifest : public ManifestTest {
 protected:
  void expect_product(const std::string& words, std::uint32_t m, std::uint32_t n, std::uint32_t k,
                      bool maps) {
    const std::string ptx = (folder / "out" / "gemm.ptx").string(),
                      path = (folder / "gemm.json").string();
    std::filesystem::create_directories(folder / "out");
    const std::string command =
        std::string(TARTAN_COMMAND) + " emit gemm " + words + " -o " + ptx + " --manifest " + path;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const auto [a, b, c] = test::SmallProduct(m, n, k);
    write("a.bin", bytes_of(a));
    write("b.bin", bytes_of(b));
    write("c.bin", bytes_of(c));
    nlohmann::ordered_json manifest;
    std::ifstream(path) >> manifest;
    std::size_t found = 0;
    for (auto& param : manifest["params"]) {
      found += param.contains("tensor_map");
      if (!param.contains("buffer")) continue;
      const std::string name = param["buffer"];
      if (name == "C") {
        EXPECT_EQ(param["bytes"], 4 * c.size());
        EXPECT_EQ(param["uninitialized"], true);
        param["expect"] = "c.bin";
      } else {
        EXPECT_EQ(param["bytes"], 2 * (name == "A" ? a : b).size()) << name;
        EXPECT_FALSE(param.contains("uninitialized"));
        param.erase("bytes");
        param["file"] = name == "A" ? "a.bin" : "b.bin";
      }
    }
    EXPECT_EQ(found >= 2, maps) << manifest.dump(1);  // of A and B, and where it helps, of C
    write("gemm.json", manifest.dump());
    const auto read = read_manifest(path);
    ASSERT_TRUE(read) << read.diags().text();
    const Outcome outcome = run(*read, "emulator");
    EXPECT_EQ(outcome.exit_code(), 0) << outcome.complaints(false) << outcome.text(false);
    ASSERT_EQ(outcome.expectations.size(), 1u);
  }
};

TEST_F(EmittedManifest, GivesTheProduct) {
  if (std::system(TARTAN_COMMAND " emit --list > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "built without LLVM: no emit";
  const std::string hopper = "--target sm_90a --producers 1 ";
  expect_product(hopper + "--tile 128x128x64 --warps 4x1", 256, 256, 256, true);
  expect_product(hopper + "--tile 128x64x64 --warps 8x1 --m 200 --n 72 --k 136", 200, 72, 136,
                 true);
  expect_product("--target sm_80 --m 128 --n 64 --k 96", 128, 64, 96, false);
}

}  // namespace
}  // namespace tartan
