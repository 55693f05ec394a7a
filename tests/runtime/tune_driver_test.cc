// SPDX-License-Identifier: Apache-2.0
// A search beside a driver that assembles slowly, one kernel at a time: the double.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "kernels/common/gpus.h"
#include "kernels/tuner/gemm_candidates.h"
#include "library/tune_bench.h"
#include "tests/runtime/cuda_double.h"
#include "tests/runtime/double_cubin.h"
#include "tests/runtime/temporary_cache.h"

namespace tartan {
namespace {

using kernels::Gemm;

class TuneDriver : public test::CudaDouble {};

// While the driver assembles the model's best, the deadline passes: others, which wait for it with
// their PTX, do not begin.
TEST_F(TuneDriver, ThreadsThatWaitedTooLongGiveUp) {
  const test::TemporaryCache cache;
  const Gemm product{.m = 64, .n = 64, .k = 256, .a = bf16, .b = bf16, .c = bf16};
  const auto& gpu = *isa::find_gpu(device->arch());
  std::vector<Gemm> candidates;
  for (const auto& each :
       kernels::detail::ranked(product, Target::of(device->arch()), gpu, false, 6))
    candidates.push_back(each.options);
  ASSERT_EQ(candidates.size(), 6u);
  // The best comes out of the cache, and so is the first at the driver.
  const Cache kept = cache.open();
  ASSERT_TRUE(compile(kernels::gemm(candidates[0]), device->arch(), kept));
  auto bench = detail::DeviceBench::make(*device, product, gpu, kept);
  ASSERT_TRUE(bench) << bench.diags().text();

  constexpr double deadline = 0.5;  // seconds, of which LLVM needs a tenth
  fake.calls.clear();
  fake.waits = [&](const std::string& entry) {
    if (entry != "cuLinkCreate" && entry != "cuModuleLoadDataEx") return;
    while ((*bench)->seconds() < deadline + 0.1)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto wrong = (*bench)->load(candidates, deadline);
  fake.waits = nullptr;
  const auto count = [&](const char* entry) {
    return std::count(fake.calls.begin(), fake.calls.end(), entry);
  };
  EXPECT_EQ(count("cuLinkCreate"), 1);
  int late = 0;
  for (const Diags& each : wrong) late += each.text().find("no time was left") != std::string::npos;
  EXPECT_EQ(late, 5);
}

// The deadline passes while the driver assembles split-K: the kernel that adds its parts is
// assembled as well.
TEST_F(TuneDriver, WhatWasBegunIsLoadedWhole) {
  fake.cubin = test::double_cubin("gemm gemm_sum  ");
  const test::TemporaryCache cache;
  const Gemm whole{.m = 64, .n = 64, .k = 256, .a = bf16, .b = bf16, .c = bf16};
  Gemm split = whole;
  split.splits = 2;
  const Cache kept = cache.open();
  for (const Gemm& each : {whole, split})
    ASSERT_TRUE(compile(kernels::gemm(each), device->arch(), kept));
  auto bench = detail::DeviceBench::make(*device, whole, *isa::find_gpu(device->arch()), kept);
  ASSERT_TRUE(bench) << bench.diags().text();

  constexpr double deadline = 1;
  std::atomic<int> kernels = 0;
  fake.waits = [&](const std::string& entry) {
    if (entry != "cuLinkCreate" || ++kernels != 2) return;
    while ((*bench)->seconds() < deadline + 0.1)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto wrong = (*bench)->load({whole, split}, deadline);
  fake.waits = nullptr;
  ASSERT_EQ(wrong.size(), 2u);
  for (const Diags& each : wrong) EXPECT_TRUE(each.ok() && each.text().empty()) << each.text();
  EXPECT_EQ(kernels, 3);
}

}  // namespace
}  // namespace tartan
