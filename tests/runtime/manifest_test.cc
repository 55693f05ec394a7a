// SPDX-License-Identifier: Apache-2.0
// Manifests: rejections and their messages, comparison of buffers, five kernels with an H100's
// results.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/outcome.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/runtime/manifest_folder.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

const fs::path programs = fs::path(TEST_DATA) / "programs";

TEST_F(ManifestTest, ReadsEverything) {
  const auto read = read_manifest(write("m.json", R"({"ptx": "small.ptx", "kernel": "store",
      "grid": [2, 3, 4], "block": [32, 2], "dynamic_shared": 1024, "cluster": [2, 3],
      "hardware": "sm_90", "params": [
      {"buffer": "a", "file": "seven.bin", "expect": "zero.bin"}, {"buffer": "b", "bytes": 4, "fill": 255},
      {"u32": 4294967295}, {"s32": -1}, {"u64": 18446744073709551615}, {"s64": -9223372036854775808},
      {"f32": 1}, {"f64": -0.5}, {"u8": 255}, {"s8": -128}, {"u16": 65535}, {"s16": -1},
      {"bytes": [1, 0, 255]}]})"));
  ASSERT_TRUE(read) << read.diags().text();
  EXPECT_EQ(read->ptx.text(), small_ptx);
  EXPECT_EQ(read->launch.grid, (Dim3{2, 3, 4}));
  EXPECT_EQ(read->launch.block, (Dim3{32, 2, 1}));
  EXPECT_EQ(read->launch.dynamic_shared, 1024u);
  EXPECT_EQ(read->launch.cluster, (Dim3{2, 3, 1}));
  EXPECT_EQ(read->hardware, "sm_90");
  ASSERT_EQ(read->params.size(), 13u);
  EXPECT_EQ(read->params[0].buffer->contents[0], std::byte{7});
  EXPECT_EQ((*read->params[0].buffer->expect)[0], std::byte{0});
  EXPECT_EQ(read->params[1].buffer->fill, 255);
  EXPECT_TRUE(read->params[1].buffer->filled);
  EXPECT_FALSE(read->params[0].buffer->filled);
  EXPECT_FALSE(read->params[1].buffer->expect);
  const auto scalar = [&]<typename T>(std::size_t i, T value) {
    ASSERT_EQ(read->params[i].scalar.size(), sizeof(T));
    EXPECT_EQ(std::memcmp(read->params[i].scalar.data(), &value, sizeof(T)), 0) << i;
  };
  scalar(2, std::uint32_t{4294967295u});
  scalar(3, std::int32_t{-1});
  scalar(4, ~std::uint64_t{0});
  scalar(5, std::numeric_limits<std::int64_t>::min());
  scalar(6, 1.0f);
  scalar(7, -0.5);
  scalar(8, std::uint8_t{255});
  scalar(9, std::int8_t{-128});
  scalar(10, std::uint16_t{65535});
  scalar(11, std::int16_t{-1});
  scalar(12, std::array<std::uint8_t, 3>{1, 0, 255});
}

TEST_F(ManifestTest, ReportsEveryWrongField) {
  EXPECT_EQ(complaints("{}"),
            (Texts{
                "ptx: expected a text, found nothing [manifest]",
                "kernel: expected a text, found nothing [manifest]",
                "grid: expected an array of one to three whole numbers, found nothing [manifest]",
                "block: expected an array of one to three whole numbers, found nothing [manifest]",
                "params: expected an array, found nothing [manifest]",
            }));
  EXPECT_EQ(
      complaints(
          R"({"ptx": 7, "kernel": "", "grid": [0, 65536], "block": [1, 1, 65], "dynamic_shared": -1,
                           "hardware": "sm_91", "params": {}, "gird": 1})"),
      (Texts{
          "gird: unknown field: expected kernel, grid, block, dynamic_shared, cluster, "
          "cooperative, "
          "programmatic, params, ptx, hardware, buffers, then, reference [manifest]",
          "ptx: expected a text, found 7 [manifest]",
          "kernel: expected a text, found \"\" [manifest]",
          "grid[0]: expected a whole number from 1 to 2147483647, found 0 [manifest]",
          "grid[1]: expected a whole number from 1 to 65535, found 65536 [manifest]",
          "block[2]: expected a whole number from 1 to 64, found 65 [manifest]",
          "dynamic_shared: expected a whole number from 0 to 232448, found -1 [manifest]",
          "hardware: expected an architecture such as \"sm_90\", found \"sm_91\" [manifest]",
          "params: expected an array, found an object with no fields [manifest]",
      }));
}

TEST_F(ManifestTest, NotJson) {
  const auto read = read_manifest(write("manifest.json", "{\n  \"ptx\": \"a\",\n  oops\n}"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.diags()[0].id, "manifest");
  EXPECT_EQ(read.diags()[0].place.line, 3);
  EXPECT_NE(read.diags()[0].message.find("syntax error"), std::string::npos)
      << read.diags()[0].message;
  EXPECT_EQ(complaints("[1]"),
            Texts{"the manifest: expected an object, found an array of 1 [manifest]"});
  for (const char* text : {"", "{\"ptx\": \"\xff\"}", "{\"grid\": [11e999]}"})
    EXPECT_FALSE(complaints(text).empty()) << text;
  EXPECT_EQ(param_complaints(std::string(90, '[') + std::string(90, ']')),
            Texts{"params[0]: expected a buffer, a tensor_map, a struct, an address, or one of "
                  "u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64, bytes, "
                  "found an array of 1 [manifest]"});
}

TEST_F(ManifestTest, BlockOfTooManyThreads) {
  EXPECT_EQ(
      complaints(
          R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [64, 32], "params": []})"),
      Texts{"block: expected at most 1024 threads, found an array of 2 [manifest]"});
}

TEST_F(ManifestTest, WrongScalars) {
  EXPECT_EQ(
      param_complaints(
          R"({"u32": -1}, {"u32": 4294967296}, {"u32": 1.5}, {"u32": "1"}, {"s32": 2147483648},
                                {"u64": -1}, {"s64": 9223372036854775808}, {"f32": 1e39}, {"f64": null},
                                {"f8": 1}, {"u32": 1, "s32": 1}, {}, 5, {"u8": 256}, {"s16": -32769},
                                {"bytes": [1, 256]})"),
      (Texts{
          "params[0].u32: expected a whole number from 0 to 4294967295, found -1 [manifest]",
          "params[1].u32: expected a whole number from 0 to 4294967295, found 4294967296 "
          "[manifest]",
          "params[2].u32: expected a whole number from 0 to 4294967295, found 1.5 [manifest]",
          "params[3].u32: expected a whole number from 0 to 4294967295, found \"1\" [manifest]",
          "params[4].s32: expected a whole number from -2147483648 to 2147483647, found 2147483648 "
          "[manifest]",
          "params[5].u64: expected a whole number from 0 to 18446744073709551615, found -1 "
          "[manifest]",
          "params[6].s64: expected a whole number from -9223372036854775808 to "
          "9223372036854775807, "
          "found 9223372036854775808 [manifest]",
          "params[7].f32: expected a number of at most 3.4028235e+38, found 1e+39 [manifest]",
          "params[8].f64: expected a number of at most 1.7976931348623157e+308, found null "
          "[manifest]",
          "params[9].f8: expected one of buffer, tensor_map, struct, address, u8, s8, u16, s16, "
          "u32, s32, u64, "
          "s64, f16, bf16, f32, f64, bytes as the "
          "field's "
          "name, found 1 [manifest]",
          "params[10]: expected a buffer, a tensor_map, a struct, an address, or one of u8, s8, "
          "u16, s16, u32, s32, u64, "
          "s64, f16, bf16, f32, f64, bytes, "
          "found an object "
          "with u32, s32 [manifest]",
          "params[11]: expected a buffer, a tensor_map, a struct, an address, or one of u8, s8, "
          "u16, s16, u32, s32, u64, "
          "s64, f16, bf16, f32, f64, bytes, "
          "found an object "
          "with no fields [manifest]",
          "params[12]: expected a buffer, a tensor_map, a struct, an address, or one of u8, s8, "
          "u16, s16, u32, s32, u64, "
          "s64, f16, bf16, f32, f64, bytes, "
          "found 5 "
          "[manifest]",
          "params[13].u8: expected a whole number from 0 to 255, found 256 [manifest]",
          "params[14].s16: expected a whole number from -32768 to 32767, found -32769 [manifest]",
          "params[15].bytes[1]: expected a whole number from 0 to 255, found 256 [manifest]",
      }));
}

TEST_F(ManifestTest, WrongBuffers) {
  const std::string at = folder.string() + "/";
  EXPECT_EQ(
      param_complaints(
          R"({"buffer": 1, "bytes": 0}, {"buffer": "a"}, {"buffer": "b", "bytes": 4, "file": "zero.bin"},
                                {"buffer": "b", "bytes": 4, "fill": 256}, {"buffer": "c", "bytes": 99999999999999},
                                {"buffer": "d", "file": "zero.bin", "fill": 1}, {"buffer": "e", "file": "none.bin"},
                                {"buffer": "f", "file": "empty.bin"}, {"buffer": "g", "file": "."},
                                {"buffer": "h", "bytes": 4, "expct": "zero.bin"},
                                {"buffer": "i", "bytes": 4, "uninitialized": 1},
                                {"buffer": "j", "bytes": 4, "fill": 1, "uninitialized": true},
                                {"buffer": "k", "file": "zero.bin", "uninitialized": true})"),
      (Texts{
          "params[0].buffer: expected a text, found 1 [manifest]",
          "params[0].bytes: expected a whole number from 1 to 68719476736, found 0 [manifest]",
          "params[1]: expected either file or bytes, or a shape, found an object with buffer "
          "[manifest]",
          "params[2]: expected either file or bytes, or a shape, found an object with buffer, "
          "bytes, "
          "file [manifest]",
          "params[3].fill: expected a whole number from 0 to 255, found 256 [manifest]",
          "params[4].bytes: expected a whole number from 1 to 68719476736, found 99999999999999 "
          "[manifest]",
          "params[5].fill: requires bytes, found a file [manifest]",
          "params[6].file: cannot read " + at + "none.bin: no such file [file]",
          "params[7].file: cannot read " + at + "empty.bin: the file is empty [file]",
          "params[8].file: cannot read " + at + ".: not a file [file]",
          "params[9].expct: unknown field: expected buffer, file, part, bytes, type, shape, fill, "
          "uninitialized, random, value, expect, compare, save, print [manifest]",
          "params[10].uninitialized: expected true or false, found 1 [manifest]",
          "params[11].uninitialized: requires bytes alone, found fill [manifest]",
          "params[12].uninitialized: requires bytes alone, found a file [manifest]",
          "params[3].buffer: duplicate name: params[2] is also called b [manifest]",
      }));
}

// Formulas have them by name.
TEST_F(ManifestTest, ScalarsOfOneName) {
  EXPECT_EQ(param_complaints(R"({"buffer": "a", "bytes": 4}, {"name": "n", "u32": 1},
                                {"name": "n", "u32": 2}, {"name": "a", "u32": 3})"),
            (Texts{
                "params[2].name: duplicate name: params[1] is also called n [manifest]",
                "params[3].name: duplicate name: params[0] is also called a [manifest]",
            }));
}

TEST_F(ManifestTest, WrongExpectations) {
  EXPECT_EQ(
      param_complaints(R"({"buffer": "a", "bytes": 4, "expect": "long.bin"},
                                {"buffer": "b", "bytes": 6, "expect": "long.bin", "compare": {"type": "f32"}},
                                {"buffer": "c", "bytes": 4, "compare": "bits"},
                                {"buffer": "d", "bytes": 4, "expect": "zero.bin", "compare": "bit"},
                                {"buffer": "e", "bytes": 4, "expect": "zero.bin", "compare": {"type": "s4", "max_rel": -1, "max_abs": "0", "max": 1}},
                                {"buffer": "f", "bytes": 4, "expect": "zero.bin", "compare": {}})"),
      (Texts{
          "params[0].expect: \"long.bin\" has 6 bytes, buffer a has 4 [manifest]",
          "params[1].compare: 6 bytes are not a multiple of the 4-byte elements [manifest]",
          "params[2].compare: there is no expect to compare with [manifest]",
          "params[3].compare: expected \"bits\" or an object with type, max_rel and max_abs, found "
          "\"bit\" [manifest]",
          "params[4].compare.max: unknown field: expected type, max_rel, max_abs [manifest]",
          "params[4].compare.type: expected an element type such as f32, f16, bf16, f64 or s32, "
          "found \"s4\" [manifest]",
          "params[4].compare.max_rel: expected a number of at least 0, found -1 [manifest]",
          "params[4].compare.max_abs: expected a number of at least 0, found \"0\" [manifest]",
          "params[5].compare.type: expected a text, found nothing [manifest]",
      }));
}

TEST_F(ManifestTest, MissingManifestAndModule) {
  const auto read = read_manifest((folder / "none.json").string());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.diags()[0].id, "file");
  EXPECT_EQ(refused(read.diags()).exit_code(), 2);
  const auto module = read_manifest(write(
      "m.json", R"({"ptx": "none.ptx", "kernel": "k", "grid": [1], "block": [1], "params": []})"));
  ASSERT_FALSE(module);
  EXPECT_EQ(module.diags()[0].id, "file");
}

constexpr const char* good =
    R"({"buffer": "out", "bytes": 4, "fill": 9, "expect": "seven.bin"}, {"u32": 7})";

TEST_F(ManifestTest, ExpectationHolds) {
  const Outcome outcome = run_text(good);
  EXPECT_EQ(outcome.exit_code(), 0) << outcome.complaints(false) << outcome.text(false);
  EXPECT_EQ(outcome.text(false), "out: 4 bytes as expected, bit for bit\n");
  const auto json = nlohmann::json::parse(outcome.json());
  EXPECT_EQ(json["expectations"].dump(),
            R"([{"buffer":"out","elements":4,"first":null,"mismatched":0,"ok":true}])");
  EXPECT_TRUE(json["findings"].empty());
  EXPECT_GT(json["report"]["warp_instructions"], 0);
  EXPECT_NE(outcome.text(true).find("device: emulator"), std::string::npos);
}

TEST_F(ManifestTest, ExpectationFails) {
  const Outcome outcome = run_text(
      R"({"buffer": "out", "bytes": 4, "expect": "seven.bin", "compare": {"type": "s32"}}, {"u32": 4294967294})");
  EXPECT_EQ(outcome.exit_code(), 1);
  EXPECT_EQ(
      outcome.text(false),
      "out: 1 of 1 elements differ, as s32, exactly; first at index 0: expected 7, found -2\n");
  EXPECT_EQ(nlohmann::json::parse(outcome.json())["expectations"][0]["first"].dump(),
            R"({"expected":7,"got":-2,"index":0})");
}

TEST_F(ManifestTest, FaultAndTrapAndEndlessLoop) {
  const Outcome fault = run_text(good, "fault");
  EXPECT_EQ(fault.exit_code(), 3);
  ASSERT_EQ(fault.findings.size(), 1u) << fault.complaints(false);
  EXPECT_EQ(fault.findings[0].id, "memory-fault");
  EXPECT_EQ(fault.findings[0].line, 21);
  EXPECT_EQ(fault.findings[0].lane, 0);
  EXPECT_EQ(fault.findings[0].block, (Dim3{0, 0, 0}));
  EXPECT_TRUE(fault.expectations.empty());
  const auto json = nlohmann::json::parse(fault.json());
  ASSERT_EQ(json["findings"].size(), 1u);
  EXPECT_EQ(json["findings"][0]["block"].dump(), "[0,0,0]");
  EXPECT_GT(json["findings"][0]["address"], 1073741824u);

  const Outcome stop = run_text(good, "stop");
  EXPECT_EQ(stop.exit_code(), 3);
  ASSERT_EQ(stop.findings.size(), 1u);
  EXPECT_EQ(stop.findings[0].id, "trap");

  const Outcome forever = run_text(good, "forever", "emulator", {.max_steps = 1000});
  EXPECT_EQ(forever.exit_code(), 3);
  ASSERT_EQ(forever.findings.size(), 1u);
  EXPECT_EQ(forever.findings[0].id, "step-limit");
}

TEST_F(ManifestTest, IllegalModuleIsRefused) {
  write("small.ptx",
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry store()\n{\n  mov.u32 %r1, "
        "0;\n}\n");
  const Outcome outcome = run_text(good);
  EXPECT_EQ(outcome.exit_code(), 2);
  EXPECT_TRUE(outcome.findings.empty());
  ASSERT_EQ(outcome.refused.size(), 1u);
  EXPECT_EQ(outcome.refused[0].id, "undeclared-register");
  EXPECT_EQ(outcome.refused[0].place.line, 6);
  EXPECT_EQ(nlohmann::json::parse(outcome.json())["findings"][0]["line"], 6);
}

TEST_F(ManifestTest, LaunchThatDoesNotFitIsRefused) {
  const Outcome scalar = run_text(R"({"buffer": "out", "bytes": 4}, {"u64": 7})");
  EXPECT_EQ(scalar.exit_code(), 2);
  EXPECT_EQ(scalar.complaints(false), (folder / "manifest.json").string() +
                                          ": error: argument 1 (value) of kernel store: expected 4 "
                                          "bytes, found 8 [launch-arguments]\n");
  const auto json = nlohmann::json::parse(scalar.json());
  EXPECT_EQ(json["findings"][0]["id"], "launch-arguments");
  EXPECT_TRUE(json["findings"][0]["block"].is_null());
  EXPECT_TRUE(json["findings"][0]["lane"].is_null());

  const Outcome name = run_text(good, "sotre");
  EXPECT_EQ(name.exit_code(), 2);
  EXPECT_NE(name.complaints(false).find("store"), std::string::npos);
  EXPECT_EQ(run_text(good, "store", "gpu").exit_code(), 2);
}

TEST_F(ManifestTest, GpuThatFails) {
  FakeCuda& fake = fake_cuda();
  fake = FakeCuda();
  fake.failures["cuCtxSynchronize"] = 0;
  fake.kernel = [&](const FakeLaunch& launch) {
    std::uint64_t address = 0;
    std::memcpy(&address, launch.params[0], 8);
    std::memcpy(reinterpret_cast<void*>(address), launch.params[1], 4);
  };
  const Outcome well = run_text(good, "store", "cuda");
  EXPECT_EQ(well.exit_code(), 0) << well.complaints(false);
  EXPECT_NE(well.text(true).find("device: Fake GPU (sm_90)"), std::string::npos);

  fake.kernel = [&](const FakeLaunch&) { fake.failures["cuCtxSynchronize"] = 700; };
  const Outcome fault = run_text(good, "store", "cuda");
  EXPECT_EQ(fault.exit_code(), 3);
  ASSERT_EQ(fault.findings.size(), 1u);
  EXPECT_EQ(fault.findings[0].id, "memory-fault");

  fake = FakeCuda();
  fake.devices = 0;
  EXPECT_EQ(run_text(good, "store", "cuda").exit_code(), 2);
  fake.devices = 1;
  fake.driver_version = 11040;
  fake.failures["cuModuleLoadDataEx"] = 222;
  const Outcome old = run_text(good, "store", "cuda");
  EXPECT_EQ(old.exit_code(), 2);
  EXPECT_NE(old.complaints(false).find("[driver-version]"), std::string::npos);
}

class Program : public testing::TestWithParam<const char*> {};

TEST_P(Program, GivesTheRecordedResults) {
  const auto manifest = read_manifest((programs / GetParam() / "manifest.json").string());
  ASSERT_TRUE(manifest) << manifest.diags().text();
  const Outcome outcome = run(*manifest, "emulator");
  EXPECT_EQ(outcome.exit_code(), 0) << outcome.complaints(false) << outcome.text(true);
  EXPECT_EQ(outcome.expectations.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, Program,
                         testing::Values("ldm_x4", "stm_x2_trans", "wmma_f16_f32_rc_sm80",
                                         "wgmma_f16_floor", "mma_gemm_sm80", "softmax"),
                         [](const auto& info) { return std::string(info.param); });

template <typename T>
Difference compared(const Comparison& comparison, const std::vector<T>& expected,
                    const std::vector<T>& got) {
  return compare(comparison, std::as_bytes(std::span(expected)), std::as_bytes(std::span(got)));
}

TEST(Comparison, BitsAreBytes) {
  const Difference difference =
      compared<std::uint32_t>({}, {0x11223344, 0x55667788, 9}, {0x11223344, 0x55007700, 9});
  EXPECT_EQ(difference.elements, 12u);
  EXPECT_EQ(difference.mismatched, 2u);
  EXPECT_EQ(difference.first, 4u);
  EXPECT_EQ(difference.expected, "0x88");
  EXPECT_EQ(difference.got, "0x00");
}

TEST(Comparison, FloatsWithinEitherTolerance) {
  const Comparison comparison{Type::f32, 1e-2, 1e-3};
  EXPECT_EQ(compared<float>(comparison, {100, 0, -100}, {100.9f, 0.0009f, -99.1f}).mismatched, 0u);
  const Difference difference = compared<float>(comparison, {100, 0, -100}, {101.1f, 0.0011f, -98});
  EXPECT_EQ(difference.mismatched, 3u);
  EXPECT_EQ(difference.expected, "100");
  EXPECT_EQ(difference.got, "101.1");
}

TEST(Comparison, NanAndInfinity) {
  const float nan = std::nanf(""), other = std::bit_cast<float>(0xffc12345u), infinity = HUGE_VALF;
  const Comparison wide{Type::f32, 1, 1e30};
  EXPECT_EQ(compared<float>(wide, {nan, infinity}, {other, infinity}).mismatched, 0u);
  const Difference difference =
      compared<float>(wide, {nan, 1, infinity, infinity}, {1, nan, 3e38f, -infinity});
  EXPECT_EQ(difference.mismatched, 4u);
  EXPECT_EQ(difference.expected, "nan");
}

TEST(Comparison, ZeroHasNoSign) {
  EXPECT_EQ(compared<float>({Type::f32}, {0.0f}, {-0.0f}).mismatched, 0u);
  EXPECT_EQ(compared<float>({Type::b32}, {0.0f}, {-0.0f}).mismatched, 1u);
}

struct SmallFloat {
  Type type;
  std::uint16_t word;
  const char* text;
};

TEST(Comparison, SmallFloats) {
  constexpr SmallFloat cases[] = {
      {Type::f16, 0x3c00, "1"},
      {Type::f16, 0xc500, "-5"},
      {Type::f16, 0x0001, "5.9604645e-08"},
      {Type::f16, 0x7bff, "65504"},
      {Type::f16, 0x7c00, "inf"},
      {Type::f16, 0xfe00, "nan"},
      {Type::bf16, 0x3fc0, "1.5"},
      {Type::bf16, 0xff80, "-inf"},
      {Type::bf16, 0x0001, "9.1835e-41"},
      {Type::e4m3, 0x7e, "448"},
      {Type::e4m3, 0xff, "nan"},
      {Type::e4m3, 0x78, "256"},
      {Type::e5m2, 0x7b, "57344"},
      {Type::e5m2, 0x7c, "inf"},
      {Type::e5m2, 0x01, "1.5258789e-05"},
  };
  for (const SmallFloat& small : cases) {
    const std::vector<std::byte> expected =
        bits(small.type) == 8 ? std::vector{std::byte(small.word)}
                              : std::vector{std::byte(small.word), std::byte(small.word >> 8)};
    std::vector<std::byte> got = expected;
    got.back() ^= std::byte{0x40};  // far away
    const Difference difference = compare({small.type}, expected, got);
    EXPECT_EQ(difference.mismatched, 1u) << small.text;
    EXPECT_EQ(difference.expected, small.text);
  }
}

TEST(Comparison, IntegersAtTheirEnds) {
  const std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = -(least + 1);
  EXPECT_EQ(compared<std::int64_t>({Type::s64}, {most, least}, {most - 1, least}).mismatched, 1u);
  EXPECT_EQ(compared<std::int64_t>({Type::s64, 0, 1e19}, {most}, {least}).mismatched, 1u);
  EXPECT_EQ(compared<std::int64_t>({Type::s64, 0, 2e19}, {most}, {least}).mismatched, 0u);
  EXPECT_EQ(compared<std::uint8_t>({Type::u8, 0, 1}, {0, 255, 7}, {1, 254, 9}).mismatched, 1u);
  EXPECT_EQ(compared<std::int8_t>({Type::s8}, {-3}, {3}).expected, "-3");
}

}  // namespace
}  // namespace tartan
