// SPDX-License-Identifier: Apache-2.0
// Options of copies: which instructions they become, and what the kernel computes with them. And
// the numbers of blocks of a launch.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

constexpr int rows = 64, cols = 64;

// Adds 1 to the elements of A, whose tiles a cluster of two CTAs reads together.
Kernel added(const CopyOptions& with, int cluster) {
  return kernel("added", {.block = 128, .producers = 4, .cluster = cluster}, [=](Builder& k) {
    auto A = k.global("A", s32, row_major(rows, cols));
    auto C = k.global("C", s32, row_major(rows * cluster, cols));
    auto s = k.shared("s", s32, RingLayout{row_major(rows, 32), 2});
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, cols / 32,
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {rows, 32}), s[stage], with);
          },
          [&](Scalar t, Scalar stage) {
            k.loop(k.convert(k.thread(), s32), rows * 32, 128, [&](Scalar i) {
              k.write(C.tile({k.block_x(), t}, {rows, 32}), i / 32, i % 32,
                      k.read(s[stage], i / 32, i % 32) + 1);
            });
          });
    });
  });
}

// What the PTX ISA's createpolicy.fractional.L2::evict_first and evict_last give for all accesses.
std::string policy_of(const std::string& ptx) {
  if (ptx.find("L2::cache_hint") == std::string::npos) return "none";
  if (ptx.find("1364590687093260288") != std::string::npos) return "first";
  return ptx.find("1508705875169116160") != std::string::npos ? "last" : "another";
}

TEST(CopyOptions, BecomeInstructionsAndChangeNoResult) {
  std::vector<int> numbers;
  for (int i = 0; i < rows * cols; ++i) numbers.push_back(i % 91);
  for (const char* target : {"sm_80", "sm_90a", "sm_120a"})
    for (const Among among : {Among::none, Among::cluster, Among::row})
      for (const Evict evict : {Evict::normal, Evict::first, Evict::last}) {
        const bool tma = std::string_view(target) != "sm_80";
        const int cluster = tma ? 2 : 1;
        const Kernel kernel = added({.multicast = among, .evict = evict}, cluster);
        const auto compiled = compile(kernel, testing_gemm::target_of(target));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        const char* const policies[] = {"none", "first", "last"};
        EXPECT_EQ(policy_of(compiled->ptx), tma ? policies[static_cast<int>(evict)] : "none");
        // A row of a cluster in one column is one CTA.
        const bool shared = among == Among::cluster && std::string_view(target) == "sm_90a";
        EXPECT_EQ(compiled->ptx.find(".multicast::cluster") != std::string::npos, shared)
            << target << ", " << static_cast<int>(among);
        const testing_gemm::Launch launch{
            {static_cast<unsigned>(cluster)},
            [&](Device& device, Arguments& arguments, std::vector<Buffer>& kept) {
              kept.push_back(
                  testing_gemm::buffer_of(device, testing_numbers::encode(s32, numbers)));
              Buffer out = *device.allocate(static_cast<std::size_t>(rows * cols * 4 * cluster));
              EXPECT_TRUE(out.fill(0));
              arguments.add(kept.back()).add(out);
              return out;
            }};
        const auto got = testing_numbers::decode(
            s32, testing_gemm::run(kernel, testing_gemm::target_of(target), launch));
        ASSERT_EQ(got.size(), static_cast<std::size_t>(rows * cols * cluster));
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(got[i], numbers[i % numbers.size()] + 1) << target << ", element " << i;
      }
}

// Options are those of one copy: the next one has none.
TEST(CopyOptions, EndWithTheirCopy) {
  const auto both = kernel("both", {.block = 128, .producers = 4}, [](Builder& k) {
    auto A = k.global("A", s32, row_major(rows, cols)),
         B = k.global("B", s32, row_major(rows, cols));
    auto a = k.shared("a", s32, RingLayout{row_major(rows, 32), 2}),
         b = k.shared("b", s32, RingLayout{row_major(rows, 32), 2});
    auto C = k.global("C", s32, row_major(rows, 32));
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, 2,
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {rows, 32}), a[stage], {.evict = Evict::first});
            k.copy(B.tile({0, t}, {rows, 32}), b[stage]);
          },
          [&](Scalar, Scalar stage) { k.copy(a[stage], C), k.copy(b[stage], C); });
    });
  });
  const auto compiled = compile(both, *Target::parse("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  int hinted = 0, all = 0;
  const std::string name = "cp.async.bulk.tensor.2d";
  for (auto at = compiled->ptx.find(name); at != std::string::npos;
       at = compiled->ptx.find(name, at + 1)) {
    const std::string line = compiled->ptx.substr(at, compiled->ptx.find('\n', at) - at);
    if (line.find("shared::cluster.global") == std::string::npos) continue;
    ++all, hinted += line.find("cache_hint") != std::string::npos;
  }
  EXPECT_GT(hinted, 0);
  EXPECT_EQ(2 * hinted, all);
}

TEST(Launch, TellsItsKernelHowManyBlocksThereAre) {
  const auto grid = kernel("grid", {}, [](Builder& k) {
    k.write(k.global("out", u32, row_major(1, 1)), 0, 0, k.blocks_x() * 100 + k.blocks_y());
  });
  const testing_gemm::Launch launch{
      {7, 3}, [&](Device& device, Arguments& arguments, std::vector<Buffer>&) {
        Buffer out = *device.allocate(4);
        arguments.add(out);
        return out;
      }};
  const auto got = testing_numbers::decode(
      s32, testing_gemm::run(grid, testing_gemm::target_of("sm_80"), launch));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], 703);
}

}  // namespace
}  // namespace tartan
