// SPDX-License-Identifier: Apache-2.0
// Output of the GPU benchmarks, with made-up figures.
#include "bench/gpu/figures.h"
#include "bench/gpu/ratios_svg.h"

#include <gtest/gtest.h>

#include "bench/gpu/elements.h"

namespace {

gpu::Run run() {
  gpu::Run out{.program = "gpu_gemm",
               .command = "gpu_gemm --size 64",
               .date = "2026-01-02T03:04:05Z",
               .device = "GPU <1> & only",
               .driver = "1.2",
               .libraries = {{"cuBLAS", "130100"}}};
  gpu::Race& race = out.races.emplace_back(gpu::Race{"64x64x64 f16 to f16, rc", "a launch", {}});
  race.figures.push_back({.name = "64x64x64:2x2:3",
                          .operations = 1e9,
                          .cool = {50, 10, 40},
                          .hot = {60, 60, 60},
                          .note = "equal to cuBLAS"});
  race.figures.push_back(
      {.name = "cuBLAS", .peer = true, .operations = 1e9, .cool = {80}, .hot = {50}});
  return out;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t out = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++out;
  return out;
}

TEST(Figures, MedianAndWhatFollows) {
  EXPECT_EQ(gpu::median({}), 0);
  EXPECT_EQ(gpu::median({3, 1, 2}), 2);
  EXPECT_EQ(gpu::ratio({40}, {80}), 0.5);
  EXPECT_EQ(gpu::ratio({40}, {}), 0) << "not measured";
  const gpu::Race race = run().races[0];
  EXPECT_DOUBLE_EQ(gpu::microseconds(race.figures[0], race.figures[0].cool), 25);
}

TEST(Figures, Table) {
  EXPECT_EQ(gpu::table(run().races[0]),
            "\n64x64x64 f16 to f16, rc (a launch)\n"
            "TFLOP/s                     cool     hot   us, hot      of cuBLAS\n"
            "64x64x64:2x2:3              40.0    60.0      16.7    0.500 1.200  equal to cuBLAS\n"
            "cuBLAS                      80.0    50.0      20.0    1.000 1.000\n");
}

TEST(Figures, JsonAndBack) {
  const auto json = gpu::to_json(run());
  const auto& figure = json["races"][0]["figures"][0];
  EXPECT_EQ(figure["cool_median"], 40);
  EXPECT_EQ(figure["ratios"]["cuBLAS"]["hot"], 1.2);
  EXPECT_TRUE(json["races"][0]["figures"][1]["ratios"].empty());
  EXPECT_EQ(json["libraries"]["cuBLAS"], "130100");
  const gpu::Run back = gpu::from_json(nlohmann::json::parse(json.dump()));
  EXPECT_EQ(gpu::to_json(back), json);
  EXPECT_THROW(gpu::from_json(nlohmann::json::object()), nlohmann::json::exception);
}

TEST(Figures, RunsAreJoined) {
  gpu::Run both = run(), other = run();
  other.libraries = {{"cuBLAS", "130100"}, {"cuDNN", "91000"}};
  both.add(other);
  EXPECT_EQ(both.races.size(), 2u);
  EXPECT_EQ(both.libraries.size(), 2u);
}

TEST(Figures, Picture) {
  const std::string svg = gpu::to_svg(run());
  EXPECT_EQ(svg.find("<svg "), 0u);
  EXPECT_NE(svg.find("GPU &lt;1&gt; &amp; only"), svg.npos);
  EXPECT_NE(svg.find("40.0 / 60.0"), svg.npos);
  EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
  EXPECT_EQ(count(svg, "class=\"peer\" x"), 1u + 1) << "a bar, and the legend's";
  EXPECT_EQ(count(svg, "width=\"420.0\""), 1u) << "the longest bar fills the width";
  EXPECT_NE(gpu::to_svg({}).find("</svg>"), svg.npos) << "nothing measured";
}

TEST(Ratios, APointForEachProblemThatALibraryTakes) {
  const auto problem = [](int m, double library, double tuned, double workspace) {
    return nlohmann::json{{"m", m},
                          {"n", 512},
                          {"k", 1024},
                          {"a", "bf16"},
                          {"c", "f32"},
                          {"group", m % 8 ? "any" : "8"},
                          {"library_us", library},
                          {"choice", {{"tuned", "64x8<"}, {"workspace", "64x16"}}},
                          {"us", {{"tuned", tuned}, {"workspace", workspace}}}};
  };
  nlohmann::json run{{"device", "GPU"}, {"command", "gpu_tuned"}, {"date", "today"}};
  run["problems"] = {problem(1, 10, 8, 5), problem(8192, 10, 10, 80), problem(8, 1, 1, 1)};
  run["problems"][2].erase("library_us");
  const std::string svg = gpu::ratios_svg(run);
  EXPECT_EQ(count(svg, "<circle"), 3u + 2 * 2) << "the legend, and two ways of two problems";
  EXPECT_NE(svg.find("<circle class=\"of_any\" cx=\"40.0\""), svg.npos) << "one row: at the left";
  EXPECT_NE(svg.find("1 x 512 x 1024, bf16 to f32: 1.25, 64x8&lt;"), svg.npos);
  EXPECT_NE(svg.find("8192 x 512 x 1024, bf16 to f32: 0.12, 64x16"), svg.npos);
  EXPECT_EQ(svg.find(">searched<"), svg.npos) << "nothing was searched";
  run["problems"][0].erase("m");
  EXPECT_THROW(gpu::ratios_svg(run), nlohmann::json::exception);
}

using tartan::Type;

std::vector<std::uint8_t> bytes(const std::vector<std::uint16_t>& words) {
  std::vector<std::uint8_t> out;
  for (const std::uint16_t each : words)
    out.insert(out.end(), {static_cast<std::uint8_t>(each), static_cast<std::uint8_t>(each >> 8)});
  return out;
}

TEST(Elements, Compared) {
  const auto theirs = bytes({0x3C00, 0xC000, 0x0000});  // 1, -2, 0
  EXPECT_EQ(gpu::compare(tartan::f16, theirs, theirs).text("cuBLAS"), "equal to cuBLAS");
  const auto apart = gpu::compare(tartan::f16, bytes({0x3C00, 0xC200, 0x0000}), theirs);  // -3
  EXPECT_EQ(apart.differ, 1u);
  EXPECT_EQ(apart.count, 3u);
  EXPECT_EQ(apart.largest, 0.5);
  EXPECT_TRUE(std::isinf(gpu::compare(tartan::f16, bytes({0x7E00, 0xC000, 0}), theirs).largest));
  EXPECT_EQ(gpu::compare(Type::s8, {0xFF, 4}, {1, 4}).largest, 0.5);
  EXPECT_TRUE(std::isinf(gpu::compare(Type::e4m3, {0x7F}, {0x7E}).largest));
  EXPECT_EQ(gpu::compare(Type::e4m3, {0x38}, {0x40}).largest, 0.5);  // 1, 2
}

TEST(Elements, RandomOnesAreAboutOne) {
  for (const Type type : {Type::f16, Type::bf16, Type::f32, Type::e4m3, Type::e5m2}) {
    const auto values = gpu::random_elements(type, 1000, 7);
    const auto width = static_cast<std::size_t>(tartan::bits(type) / 8);
    ASSERT_EQ(values.size(), 1000 * width);
    // The distance to zeros, relative to nothing: the largest magnitude itself.
    const auto apart = gpu::compare(type, values, std::vector<std::uint8_t>(values.size()));
    EXPECT_EQ(apart.differ, 1000u);
    EXPECT_GE(apart.largest, 1);
    EXPECT_LT(apart.largest, 2);
  }
}

}  // namespace
