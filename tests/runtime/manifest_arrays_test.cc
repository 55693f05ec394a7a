// SPDX-License-Identifier: Apache-2.0
// Manifests with arrays: .npy files, types and shapes, contents of a seed, formulas, results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "runtime/npy.h"
#include "runtime/references.h"
#include "tests/runtime/manifest_folder.h"

namespace tartan {
namespace {

class ManifestArrays : public ManifestTest {
 protected:
  Result<Manifest> read(const std::string& params, const std::string& more = "") {
    return read_manifest(
        write("manifest.json",
              R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [1], "params": [)" +
                  params + "]" + more + "}"));
  }

  void write_npy(const std::string& name, Type type, const std::vector<std::uint64_t>& shape,
                 const std::vector<float>& values) {
    write(name, npy_text(type, shape, std::as_bytes(std::span(values))));
  }

  // What a formula expects of the buffer y.
  std::vector<float> expected(const std::string& params, const std::string& formula) {
    auto manifest = read(params, ", \"reference\": \"" + formula + "\"");
    if (!manifest) return ADD_FAILURE() << manifest.diags().text(), std::vector<float>();
    const Diags diags = expect_references(*manifest);
    EXPECT_TRUE(diags.ok()) << diags.text();
    for (const ManifestBuffer* each : manifest->all_buffers()) {
      if (each->name != "y" || !each->expect) continue;
      std::vector<float> out(each->expect->size() / sizeof(float));
      std::memcpy(out.data(), each->expect->data(), each->expect->size());
      return out;
    }
    return ADD_FAILURE() << "no y", std::vector<float>();
  }

  std::string reference_complaint(const std::string& params, const std::string& formula) {
    auto manifest = read(params, ", \"reference\": \"" + formula + "\"");
    if (!manifest) return manifest.diags()[0].message;
    const Diags diags = expect_references(*manifest);
    return diags.empty() ? "" : diags[0].message;
  }

  static std::string array(const std::string& name, const std::string& shape,
                           const std::string& start) {
    return R"({"buffer": ")" + name + R"(", "type": "f32", "shape": )" + shape + ", " + start + "}";
  }
};

TEST_F(ManifestArrays, TakeTypeAndShapeFromNpy) {
  write_npy("a.npy", Type::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto manifest = read(R"({"buffer": "a", "file": "a.npy", "expect": "a.npy"},
      {"buffer": "b", "file": "a.npy", "type": "bf16", "save": "b.npy", "print": ["0,1:", ":"]},
      {"buffer": "c", "type": "f16", "shape": [4], "value": -1.5},
      {"buffer": "d", "type": "u8", "shape": [16], "random": 7},
      {"f16": 0.5, "name": "h"}, {"bf16": 1})");
  ASSERT_TRUE(manifest) << manifest.diags().text();
  const ManifestBuffer& a = *manifest->params[0].buffer;
  EXPECT_EQ(a.type, Type::f32);
  EXPECT_EQ(a.shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(a.size, 24u);
  EXPECT_EQ(a.comparison.type, Type::f32);
  const ManifestBuffer& b = *manifest->params[1].buffer;
  EXPECT_EQ(b.size, 12u);
  EXPECT_EQ(b.contents[1], std::byte{0x3f});  // 1.0 is 0x3f80
  EXPECT_EQ(b.save, (folder / "b.npy").string());
  EXPECT_EQ(b.prints.size(), 2u);
  const ManifestBuffer& c = *manifest->params[2].buffer;
  EXPECT_EQ(c.contents[7], std::byte{0xbe});  // -1.5 is 0xbe00
  for (const std::byte each : manifest->params[3].buffer->contents)
    EXPECT_LE(std::to_integer<int>(each), 15);
  EXPECT_EQ(manifest->params[4].scalar, (std::vector<std::byte>{std::byte{0}, std::byte{0x38}}));
  EXPECT_EQ(manifest->params[4].name, "h");
  EXPECT_EQ(manifest->params[5].scalar, (std::vector<std::byte>{std::byte{0x80}, std::byte{0x3f}}));
}

TEST_F(ManifestArrays, ReportWrongFields) {
  write_npy("a.npy", Type::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  write_npy("flat.npy", Type::f32, {4}, {1, 2, 3, 4});
  write("bad.npy", "\x93NUMPY\x01");
  EXPECT_EQ(
      param_complaints(R"({"buffer": "a", "type": "f31", "shape": [4], "fill": 0},
          {"buffer": "b", "shape": [4]}, {"buffer": "c", "type": "f32", "shape": []},
          {"buffer": "d", "type": "f32", "shape": [2, 0]},
          {"buffer": "e", "type": "f32", "shape": [4], "bytes": 16},
          {"buffer": "f", "file": "a.npy", "random": 1},
          {"buffer": "g", "bytes": 4, "value": 1},
          {"buffer": "h", "type": "u8", "shape": [4], "value": 256},
          {"buffer": "i", "type": "f32", "bytes": 6},
          {"buffer": "j", "type": "f32", "shape": [4], "random": 1, "value": 2},
          {"buffer": "k", "type": "f32", "shape": [1048576, 1048576, 1048576]})"),
      (Texts{
          "params[0].type: expected an element type such as f32, f16, bf16, f64 or s32, found "
          "\"f31\" [manifest]",
          "params[1].shape: requires type, an element type such as f32, f16, bf16, f64 or s32 "
          "[manifest]",
          "params[2].shape: expected at least one extent, found an array of 0 [manifest]",
          "params[3].shape[1]: expected a whole number from 1 to 68719476736, found 0 [manifest]",
          "params[4].shape: requires a file or no bytes, found bytes [manifest]",
          "params[5].random: requires a shape alone, found a file [manifest]",
          "params[6].value: requires type, an element type such as f32, f16, bf16, f64 or s32 "
          "[manifest]",
          "params[7].value: expected a number of u8, found 256 [manifest]",
          "params[8].bytes: 6 is not a multiple of the 4-byte elements of f32 [manifest]",
          "params[9].value: requires a shape alone, found random [manifest]",
          "params[10].shape: 1048576x1048576x1048576 elements are more than the 68719476736 bytes "
          "that a buffer has [manifest]",
      }));
  EXPECT_EQ(
      param_complaints(R"({"buffer": "a", "file": "a.npy", "shape": [3, 2]},
          {"buffer": "b", "file": "bad.npy"}, {"buffer": "c", "file": "a.npy", "print": "2"},
          {"buffer": "d", "file": "a.npy", "print": "x"}, {"buffer": "e", "bytes": 4, "print": ":"},
          {"buffer": "f", "file": "a.npy", "expect": "flat.npy"},
          {"buffer": "g", "file": "zero.bin", "type": "f32", "shape": [2]},
          {"f16": 70000}, {"name": "n"}, {"u32": 1, "name": 5}, {"bf16": "1"})"),
      (Texts{
          "params[0].shape: expected that of a.npy, 2x3, found 3x2 [manifest]",
          "params[1].file: bad.npy: the .npy file is truncated: its header does not end [file]",
          "params[2].print: [2]: no index of dimension 0, which has 2 [manifest]",
          "params[3].print: expected a part such as \"0:4,0:8\" (\":\" is all of it), found "
          "\"x\" [manifest]",
          "params[4].print: requires type, an element type such as f32, f16, bf16, f64 or s32 "
          "[manifest]",
          "params[5].expect: flat.npy has shape 4, buffer f has 2x3 [manifest]",
          "params[6].shape: 2 of f32 takes 8 bytes, zero.bin has 4 [manifest]",
          "params[7].f16: expected a number that f16 has, found 70000 [manifest]",
          "params[8].name: expected one of buffer, tensor_map, struct, address, u8, s8, u16, s16, "
          "u32, s32, u64, s64, f16, bf16, f32, f64, bytes as the field's name, found \"n\" "
          "[manifest]",
          "params[9].name: expected a text, found 5 [manifest]",
          "params[10].bf16: expected a number that bf16 has, found \"1\" [manifest]",
      }));
}

TEST_F(ManifestArrays, FormulasGiveWhatTheirDefinitionsSay) {
  write_npy("a.npy", Type::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  write_npy("b.npy", Type::f32, {2, 3}, {1, 0, -1, 2, 1, 0});
  const std::string a = R"({"buffer": "a", "file": "a.npy"}, )";
  const std::string b = R"({"buffer": "b", "file": "b.npy"}, )";
  const auto y = [](const std::string& shape, const std::string& value = "0") {
    return array("y", shape, "\"value\": " + value);
  };
  const std::string s = R"({"f32": 2, "name": "s"}, )";
  EXPECT_EQ(expected(a + b + y("[2, 2]"), "y = a * b'"), (std::vector<float>{-2, 4, -2, 13}));
  EXPECT_EQ(expected(a + b + y("[3, 3]"), "y = a' * b"),
            (std::vector<float>{9, 4, -1, 12, 5, -2, 15, 6, -3}));
  EXPECT_EQ(expected(a + b + y("[2, 3]"), "y = a - 2 * b"),
            (std::vector<float>{-1, 2, 5, 0, 3, 6}));
  EXPECT_EQ(expected(a + s + y("[2, 3]", "1"), "y = s * a + y"),
            (std::vector<float>{3, 5, 7, 9, 11, 13}));
  EXPECT_EQ(expected(b + y("[2, 3]"), "y = relu(b)"), (std::vector<float>{1, 0, 0, 2, 1, 0}));
  EXPECT_EQ(expected(a + y("[2]"), "y = sum(a)"), (std::vector<float>{6, 15}));
  EXPECT_EQ(expected(a + y("[1]"), "y = sum(a)"), (std::vector<float>{21}));
  EXPECT_EQ(expected(a + y("[3]"), "y = max(a, columns=2)"), (std::vector<float>{2, 4, 6}));
  const auto soft = expected(b + y("[2, 3]"), "y = softmax(b)");
  ASSERT_EQ(soft.size(), 6u);
  const double sum = std::exp(1.0) + 1 + std::exp(-1.0);
  EXPECT_FLOAT_EQ(soft[0], static_cast<float>(std::exp(1.0) / sum));
  EXPECT_FLOAT_EQ(soft[2], static_cast<float>(std::exp(-1.0) / sum));
  const auto norm = expected(a + y("[2, 3]"), "y = layer_norm(a, eps=0)");
  ASSERT_EQ(norm.size(), 6u);
  EXPECT_FLOAT_EQ(norm[0], -std::sqrt(1.5f));
  EXPECT_FLOAT_EQ(norm[4], 0);
  // Of one key each query gets its value.
  const std::string k = array("k", "[1, 3]", "\"value\": 7") + ", ";
  EXPECT_EQ(expected(a + k + y("[2, 3]"), "y = attention(a, k, k)"), std::vector<float>(6, 7));
}

TEST_F(ManifestArrays, FormulasThatDoNotFitAreReported) {
  write_npy("a.npy", Type::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const std::string a = R"({"buffer": "a", "file": "a.npy"}, )";
  const std::string y = array("y", "[2, 2]", "\"fill\": 0");
  EXPECT_EQ(reference_complaint(a + y, "y = a * a"),
            "reference: formula: a is 2x3: expected 3x2; ' transposes it");
  EXPECT_EQ(reference_complaint(a + y, "y = a * a' * a"),
            "reference: formula: expected one matrix or two, found \"\"");
  EXPECT_EQ(reference_complaint(a + y, "y = a + c"),
            "reference: no buffer is called c: expected one of a, y");
  EXPECT_EQ(reference_complaint(a + y, "y = a"),
            "reference: formula: a has 6 elements: expected "
            "4, or 2 for a row");
  EXPECT_EQ(reference_complaint(a + R"({"buffer": "y", "bytes": 16})", "y = a"),
            "reference: buffer y has no type: expected one such as f32");
  EXPECT_EQ(reference_complaint(a + array("y", "[2, 2]", "\"uninitialized\": true"), "y = y"),
            "reference: y starts uninitialized: expected contents");
  EXPECT_EQ(
      reference_complaint(a + R"({"buffer": "y", "file": "a.npy", "expect": "a.npy"})", "y = a"),
      "params[1].expect: a reference says what is expected, too");
  EXPECT_EQ(reference_complaint(
                a + R"({"buffer": "y", "file": "a.npy"}, {"buffer": "z", "file": "a.npy", )"
                    R"("compare": {"max_rel": 1}})",
                "y = a"),
            "params[2].compare: there is neither expect nor reference to compare with");
  EXPECT_EQ(complaints(R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [1],
                           "params": [], "reference": 5})"),
            (Texts{"reference: expected a formula such as \"C = A * B\", found 5 [manifest]"}));
}

TEST_F(ManifestArrays, MapsOfWholeBuffersTakeTheirShape) {
  const auto manifest =
      read(array("x", "[256, 64]", "\"fill\": 0") + R"(, {"tensor_map": "x", "box": [32, 16]})");
  ASSERT_TRUE(manifest) << manifest.diags().text();
  const TensorMap& map = manifest->params[1].tensor_map->map;
  EXPECT_EQ(map.type, Type::f32);
  EXPECT_EQ(map.extents, (std::vector<std::uint64_t>{64, 256}));
  EXPECT_EQ(map.strides, (std::vector<std::uint64_t>{256}));
  EXPECT_EQ(param_complaints(R"({"buffer": "x", "bytes": 1024}, {"tensor_map": "x", "box": [32]})"),
            (Texts{"params[1].extents: expected an array of whole numbers, or a type and shape of "
                   "buffer x [manifest]"}));
}

}  // namespace
}  // namespace tartan
