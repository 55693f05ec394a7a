// SPDX-License-Identifier: Apache-2.0
// Kernels whose launch may be programmatic, behind one that writes all of their memory: what they
// read or write without having waited is a race, which the emulator reports.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/engine.h"

namespace tartan {
namespace {

using kernels::Grouping;

/// A parameter's memory, and what is in each word of it.
struct Memory {
  std::int64_t bytes;
  std::uint32_t word = 0;
};

struct Case {
  std::string name;
  Kernel kernel;
  Dim3 grid;
  std::vector<int> numbers;  // arguments in front of the memory
  std::vector<Memory> memory;
};

// Writes all of it.
Kernel front_of(const std::vector<Memory>& memory) {
  return kernel("front", {.block = 256}, [=](Builder& k) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::int64_t words = memory[i].bytes / 4;
      auto to = k.global(fmt::format("to{}", i), u32, row_major(1, words));
      k.loop(k.thread(), words, 256,
             [&](const Scalar& at) { k.write(to, 0, at, k.constant(u32, memory[i].word)); });
    }
  });
}

std::optional<std::string> launched(Device& device, const Kernel& described, const Dim3& grid,
                                    const Arguments& arguments) {
  const auto compiled = compile(described, Arch{90, 'a'});
  if (!compiled) return compiled.diags().text();
  const auto module = device.load(compiled->ptx, compiled->name);
  if (!module) return module.diags().text();
  auto loaded = module->kernel(compiled->name);
  if (!loaded) return loaded.diags().text();
  const auto all = arguments_of(*compiled, arguments);
  if (!all) return all.diags().text();
  const auto status = loaded->launch({.grid = grid,
                                      .block = {static_cast<unsigned>(compiled->block)},
                                      .dynamic_shared = unsigned(compiled->dynamic_shared),
                                      .programmatic = described.name() != "front"},
                                     *all);
  return status ? std::nullopt : std::optional(status.diags().text());
}

// The ids of what the emulator finds; what fails.
std::string findings_of(const Case& each) {
  Device device = test::open_engine({.hardware = "sm_90a", .checks = Checks::all});
  std::vector<Buffer> buffers;
  Arguments front, behind;
  for (const int number : each.numbers) behind.add(number);
  for (const Memory& memory : each.memory) {
    buffers.push_back(*device.allocate(static_cast<std::size_t>(memory.bytes)));
    front.add(buffers.back()), behind.add(buffers.back());
  }
  if (const auto failed = launched(device, front_of(each.memory), {1}, front)) return *failed;
  if (const auto failed = launched(device, each.kernel, each.grid, behind)) return *failed;
  const auto status = device.synchronize();
  std::string out = status ? "" : status.diags().text();
  for (const Finding& finding : device.findings())
    out += finding.id + ": " + finding.message + "\n";
  return out;
}

Case scaled(const char* name, Grouping grouping, int m, int cluster_splits = 1) {
  kernels::ScaledGemm with{.m = m, .n = 72, .k = 272, .grouping = grouping};
  with.tile = {
      .m = m < 128 ? 64 : 128, .n = 64, .k = 128, .warps_m = m < 128 ? 4 : 8, .warps_n = 1};
  with.cluster_splits = cluster_splits;
  const int groups = grouping == Grouping::none ? 1 : 2;
  const std::int64_t rows = grouping == Grouping::masked ? groups * m : m;
  Case out{name, kernels::scaled_gemm(with), {with.grid_x(m, 72, 4, groups)}, {}, {}};
  if (grouping == Grouping::masked) out.numbers = {groups};
  out.memory = {
      {rows * 272}, {rows * 3 * 4}, {groups * 272 * 72}, {groups * 3 * 4}, {rows * 72 * 2}};
  if (grouping == Grouping::contiguous) out.memory.push_back({rows * 4});
  if (grouping == Grouping::masked) out.memory.push_back({groups * 4, 60});
  return out;
}

Case along_k(bool accumulate, int cluster) {
  kernels::KGroupedGemm with{.m = 72, .n = 72, .k = 512, .accumulate = accumulate};
  with.tile = {.m = 64, .n = 64, .k = 128, .warps_m = 4, .warps_n = 1}, with.cluster = cluster;
  return {fmt::format("k_grouped_gemm, accumulate {}, cluster {}", accumulate, cluster),
          kernels::k_grouped_gemm(with),
          {with.grid_x(72, 72, 2, 4)},
          {2},
          {{72 * 512}, {72 * 4 * 4}, {72 * 512}, {4 * 72 * 4}, {2 * 72 * 72 * 4}, {8, 200}}};
}

// A sparse A of one k-tile and more, by wgmma and by mma.sync, with one row of tiles and several.
Case sparse(int m, int producers) {
  kernels::Gemm with{.m = m, .n = 72, .k = 256, .c = f16};
  with.tile = {.m = 64, .n = 64, .k = 128, .warps_m = 4, .warps_n = 1}, with.producers = producers;
  const int lines = (m + 15) / 16;
  return {fmt::format("sparse_gemm, {} rows, {} producers", m, producers),
          kernels::sparse_gemm(with),
          {with.blocks(m, 72)},
          {},
          {{m * 128 * 2}, {lines * 8 * 16 * 4, 0x44444444}, {256 * 72 * 2}, {m * 72 * 2}}};
}

TEST(DependentLaunch, WaitsForTheLaunchInFront) {
  if (test::on_gpu()) GTEST_SKIP() << "the emulator finds races";
  for (const Case& each :
       {scaled("dense", Grouping::none, 136), scaled("one row of tiles", Grouping::none, 64),
        scaled("cluster_splits", Grouping::none, 64, 2),
        scaled("contiguous", Grouping::contiguous, 256), scaled("masked", Grouping::masked, 136),
        along_k(false, 1), along_k(true, 2), sparse(136, 4), sparse(64, 4), sparse(136, 0)})
    EXPECT_EQ(findings_of(each), "") << each.name;
}

TEST(DependentLaunch, AKernelThatDoesNotWaitIsFound) {
  if (test::on_gpu()) GTEST_SKIP() << "the emulator finds races";
  for (const bool waits : {false, true}) {
    const Kernel copies = kernel("copies", {.block = 32}, [=](Builder& k) {
      auto from = k.global("from", u32, row_major(1, 32)),
           to = k.global("to", u32, row_major(1, 32));
      if (waits) k.griddepcontrol_wait();
      k.write(to, 0, k.thread(), k.read(from, 0, k.thread()));
    });
    const std::string found = findings_of({"copies", copies, {1}, {}, {{128}, {128}}});
    EXPECT_EQ(found.find("memory-race") == std::string::npos, waits) << found;
  }
}

}  // namespace
}  // namespace tartan
