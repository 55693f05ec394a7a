// SPDX-License-Identifier: Apache-2.0
// The timed search: which candidate wins, by a table of times; and what it measures on a device.
#include "tartan/tune.h"

#include "kernels/tuner/gemm_candidates.h"
#include "library/tune_bench.h"
#include "tests/kernels/gemm_finished.h"
#include "tests/runtime/temporary_cache.h"

namespace tartan {
namespace {

using detail::search;
using detail::TuneBench;
using kernels::Gemm;

// A candidate for each row: its times, one after the other, the last again and again.
struct Row {
  std::vector<double> us;
  std::string c = "same";
  Diags refused = {};
};

class Table : public TuneBench {
 public:
  explicit Table(std::vector<Row> rows) : rows_(std::move(rows)), samples(rows_.size()) {}

  double seconds() override { return now; }
  std::vector<Diags> load(const std::vector<Gemm>& candidates, double until) override {
    EXPECT_EQ(candidates.size(), rows_.size());
    deadline = until;
    std::vector<Diags> out;
    for (const Row& row : rows_) out.push_back(row.refused);
    return out;
  }
  Result<std::vector<std::byte>> result(std::size_t i) override {
    const auto bytes = std::as_bytes(std::span(rows_[i].c));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  Result<double> sample(std::size_t i) override {
    now += 0.1;
    const auto& us = rows_[i].us;
    if (us.empty()) return {"driver"_rule, "a launch failed"};
    return us[std::min<std::size_t>(static_cast<std::size_t>(samples[i]++), us.size() - 1)];
  }

  double now = 0, deadline = 0;

 private:
  std::vector<Row> rows_;

 public:
  std::vector<int> samples;
};

std::vector<Gemm> some(std::size_t count) {
  std::vector<Gemm> out(count, Gemm{.m = 512, .n = 512, .k = 512});
  for (std::size_t i = 0; i < count; ++i) out[i].stages = static_cast<int>(i) + 2;
  return out;
}

Result<detail::SearchResult> searched(Table& table, double seconds = 100) {
  return search(table, some(table.samples.size()), seconds);
}

TEST(TuneSearch, TheSmallestMedianWins) {
  // The first has one lucky sample, the third is the fastest in most.
  Table table({{{10, 14, 14, 14, 14}}, {{13}}, {{12, 11, 11, 11, 11}}, {{40}}});
  const auto found = searched(table);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best, 2u);
  EXPECT_EQ(found->trials[2].us, 11);
  EXPECT_EQ(table.samples[3], 1);  // far behind after one sample
  EXPECT_GT(table.samples[2], 2);
  EXPECT_EQ(found->trials[3].us, 40);
}

TEST(TuneSearch, TheFirstSampleCountsAlone) {
  // With it the first one's median would be 9.
  Table table({{{8.5, 9, 9.3, 9, 9.3, 9, 9.3, 9, 9.3}}, {{9.1}}});
  const auto found = searched(table);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best, 1u);
  EXPECT_EQ(found->trials[0].samples, 9);
  EXPECT_NEAR(found->trials[0].us, 9.15, 1e-9);
}

TEST(TuneSearch, EqualOnesKeepTheModelsOrder) {
  Table table({{{11}}, {{10}}, {{10}}});
  EXPECT_EQ(searched(table)->best, 1u);
}

TEST(TuneSearch, AnOutlierIsMeasuredAgain) {
  // Of each second sample of the first, another process had half of the GPU.
  Table table({{{10, 20, 10, 10, 20, 10, 10, 20, 10, 10}}, {{10.2}}});
  const auto found = searched(table);
  EXPECT_EQ(found->best, 0u);
  EXPECT_EQ(found->trials[0].us, 10);
  EXPECT_GT(table.samples[0], found->trials[0].samples);
}

TEST(TuneSearch, NoneIsAnOutlierOfTheFirstSample) {
  Table table({{{8, 9.3}}, {{9.4}}});
  const auto found = searched(table);
  EXPECT_EQ(found->best, 0u);
  EXPECT_EQ(found->trials[0].samples, 9);
  EXPECT_EQ(table.samples[0], 10);  // only the second is measured again
}

TEST(TuneSearch, EndsWithTheBudget) {
  Table table({{{10}}, {{10.1}}, {{9}}, {{8}}});
  const auto found = searched(table, 0.35);
  EXPECT_EQ(found->best, 2u);  // no time for the fourth: the others are to be told apart
  EXPECT_EQ(found->trials[3].samples, 0);
  EXPECT_EQ(found->trials[3].us, 0);
  EXPECT_EQ(found->trials[0].samples, 2);
  EXPECT_NEAR(table.now, 0.4, 1e-9);
  EXPECT_LT(table.deadline, 0.25);
  Table late({{{10}}, {{5}}});
  late.now = 3;  // compilation took longer: one is measured all the same
  EXPECT_EQ(searched(late, 2)->trials[0].samples, 1);
}

TEST(TuneSearch, WrongResultsAreAnError) {
  Table table({{{10}}, {{9}}, {{8}, "fame"}});
  const auto found = searched(table);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.diags()[0].id, "different-function"_rule.id);
  EXPECT_EQ(found.diags()[0].message,
            "tune: two configurations give different results: 1 of 4 bytes of C, the first at 0: "
            "--tile 64x64x0 --warps 2x2 --stages 2 and --tile 64x64x0 --warps 2x2 --stages 4; "
            "nothing is kept");
}

TEST(TuneSearch, WhatDoesNotRunIsLeftOut) {
  const Diags refused = Diags::one("shared-size"_rule, {}, "too large");
  Table table({{{1}, "same", refused}, {{}}, {{12}}, {{11}}});
  const auto found = searched(table);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best, 3u);
  EXPECT_EQ(found->trials[0].refused[0].message, "too large");
  EXPECT_EQ(found->trials[1].refused[0].message, "a launch failed");
  Table none({{{1}, "same", refused}, {{}}});
  const auto nothing = searched(none);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.diags().size(), 2u);
}

TEST(Tune, RefusesWhatHasNoCandidates) {
  const auto refused = [](const Gemm& product, const kernels::TuneBudget& budget = {}) {
    const auto found = kernels::tune(testing_gemm::emulator(), product, budget);
    return found ? std::string() : found.diags().text();
  };
  const std::string all = refused({.m = 0, .n = 64, .k = 0, .batched = true}, {.seconds = 0});
  for (const char* part : {"m = 0", "k = 0", "batched", "seconds = 0"})
    EXPECT_NE(all.find(part), all.npos) << part << '\n' << all;
  EXPECT_NE(refused({.a = f64, .b = f64, .accumulator = f64, .c = f64}).find("f64 elements"),
            all.npos);
  EXPECT_NE(refused({}).find("measures on a GPU, and this device is the emulator"), all.npos);
}

// The device's part on the emulator, which takes the times of the host: launches, arguments and
// results of whole, split and stream-K products.
TEST(Tune, MeasuresOnADevice) {
  const test::TemporaryCache cache;
  struct Case {
    Type type, c;
    kernels::Epilogue epilogue = {};
  };
  for (const auto& [type, c, epilogue] : {Case{bf16, bf16, testing_gemm::every_part},
                                          {Type::e4m3, bf16},
                                          {Type::s8, Type::s8, {.alpha = true}}}) {
    Gemm product{.m = 40, .n = 136, .k = 528, .a = type, .b = type, .c = c, .epilogue = epilogue};
    if (type == Type::s8) product.accumulator = s32;
    Device device = *Device::open("emulator");
    const Target target = Target::of(device.arch());
    const auto& gpu = *isa::find_gpu(target.arch);
    std::vector<Gemm> candidates;
    for (const kernels::detail::Candidate& each :
         kernels::detail::ranked(product, target, gpu, true, 60))
      if (candidates.empty() || (each.options.splits == 4) != (candidates.back().splits == 4))
        candidates.push_back(each.options);
    if (candidates.size() > 3) candidates.resize(3);
    Gemm stream = candidates[0];
    stream.splits = 1, stream.stream_blocks = 7, stream.persistent = false, stream.cluster = 1;
    candidates.push_back(stream);
    auto bench = detail::DeviceBench::make(device, product, gpu, cache.open());
    ASSERT_TRUE(bench) << bench.diags().text();
    const auto found = search(**bench, candidates, 1000);
    ASSERT_TRUE(found) << found.diags().text();
    for (const kernels::Trial& each : found->trials) {
      EXPECT_TRUE(each.refused.empty()) << each.refused.text();
      EXPECT_GT(each.us, 0) << detail::text_of(each.options);
    }
    for (const Finding& each : device.findings()) ADD_FAILURE() << each.message;
    // The operands are what they are said to be: the sums of bf16 are integers, not all zero.
    const auto c_bytes = (*bench)->result(0);
    ASSERT_TRUE(c_bytes);
    const auto values = testing_numbers::decode(c, *c_bytes);
    EXPECT_EQ(values.size(), 40u * 136);
    EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](double v) { return v > 1; }));
    if (bits(c) == 8) continue;
    for (const double value : values) ASSERT_EQ(value, std::floor(value));
  }
}

// Sums of fp8 products have 13 bits: none of a long row may need more, or its bits would depend on
// the order of a configuration's additions.
TEST(Tune, SumsOfLongRowsAreExact) {
  const test::TemporaryCache cache;
  const Gemm product{.m = 16, .n = 32, .k = 16384, .a = Type::e4m3, .b = Type::e4m3, .c = f32};
  Device device = *Device::open("emulator");
  const auto& gpu = *isa::find_gpu(device.arch());
  auto bench = detail::DeviceBench::make(device, product, gpu, cache.open());
  ASSERT_TRUE(bench) << bench.diags().text();
  const auto best = kernels::detail::ranked(product, Target::of(device.arch()), gpu, false, 1);
  ASSERT_EQ((*bench)->load({best.at(0).options}, 1000).at(0).text(), "");
  const auto bytes = (*bench)->result(0);
  ASSERT_TRUE(bytes) << bytes.diags().text();
  double most = 0;
  for (const double value : testing_numbers::decode(f32, *bytes)) {
    ASSERT_EQ(value, std::floor(value));
    most = std::max(most, std::abs(value));
  }
  EXPECT_GT(most, 500);
  EXPECT_LT(most, 8192);
}

// Without time the model's best is loaded; so are others before a deadline that is far away.
TEST(Tune, LoadsWhatThereIsTimeFor) {
  const test::TemporaryCache cache;
  const Gemm product{.m = 64, .n = 64, .k = 256, .a = bf16, .b = bf16, .c = bf16};
  Device device = *Device::open("emulator");
  const auto& gpu = *isa::find_gpu(device.arch());
  std::vector<Gemm> candidates;
  for (const auto& each :
       kernels::detail::ranked(product, Target::of(device.arch()), gpu, false, 4))
    candidates.push_back(each.options);
  ASSERT_EQ(candidates.size(), 4u);
  for (const double deadline : {0.0, 1000.0}) {
    auto bench = detail::DeviceBench::make(device, product, gpu, cache.open());
    ASSERT_TRUE(bench) << bench.diags().text();
    const auto wrong = (*bench)->load(candidates, deadline);
    EXPECT_EQ(wrong.at(0).text(), "");
    EXPECT_TRUE((*bench)->result(0));
    for (std::size_t i = 1; i < candidates.size(); ++i)
      EXPECT_EQ(wrong.at(i).text().find("no time was left") != std::string::npos, deadline == 0)
          << wrong.at(i).text();
  }
}

TEST(Tune, SmallIntegersOfEveryType) {
  for (const Type type : {f16, bf16, f32, Type::e4m3, Type::e5m2, Type::s8, Type::u8}) {
    std::vector<std::byte> bytes;
    for (const std::uint32_t each : detail::small_integers(type))
      for (int at = 0; at < bits(type); at += 8) bytes.push_back(std::byte(each >> at));
    std::vector<double> expected = {0, 1, 2, 3, -1, -2, -3};
    if (type == Type::u8) expected.resize(4);
    EXPECT_EQ(testing_numbers::decode(type, bytes), expected) << name(type);
  }
}

}  // namespace
}  // namespace tartan
