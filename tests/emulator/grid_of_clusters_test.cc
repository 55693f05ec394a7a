// SPDX-License-Identifier: Apache-2.0
// .blocksareclusters: a launch's grid counts clusters. As an H200 (driver 580) has it.
#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using test::KernelRun;
using test::run_text;

// Each block writes grid, cluster and its place to its own eight words.
KernelRun run(const std::string& directives, Launch launch, const DeviceOptions& options = {}) {
  std::string text = test::kernel_text(R"(
    mov.u32 r1, %ctaid.x;
    mov.u32 r2, %nctaid.x;
    mov.u32 r3, %ctaid.y;
    mad.lo.u32 r4, r3, r2, r1;
    mul.wide.u32 rd2, r4, 32;
    add.s64 rd2, rd0, rd2;
    mov.u32 r5, %nctaid.y;
    mov.u32 r6, %nclusterid.x;
    mov.u32 r7, %nclusterid.y;
    st.global.v4.u32 [rd2], {r2, r5, r6, r7};
    mov.u32 r2, %clusterid.x;
    mov.u32 r5, %cluster_nctaid.x;
    mov.u32 r6, %cluster_ctarank;
    mov.pred p, %is_explicit_cluster;
    selp.u32 r7, 1, 0, p;
    st.global.v4.u32 [rd2+16], {r2, r5, r6, r7};)");
  text.replace(text.find("8.6"), 3, "9.0");
  text.insert(text.find('{', text.find("(.param")), directives);
  return run_text(text, launch, 128, options);
}

const std::string pairs = ".reqntid 1\n.reqnctapercluster 2\n.blocksareclusters\n";

TEST(GridOfClusters, CountsClusters) {
  for (const Dim3 cluster : {Dim3{0, 0, 0}, Dim3{2, 1, 1}}) {
    const KernelRun ran = run(pairs, {.grid = {3, 2}, .block = {1}, .cluster = cluster});
    ASSERT_EQ(ran.complaint, "");
    for (std::uint32_t block = 0; block < 12; ++block) {
      const auto first = ran.out.begin() + 8 * block;
      EXPECT_EQ(std::vector(first, first + 8),
                (std::vector<std::uint32_t>{6, 2, 3, 2, block % 6 / 2, 2, block % 2, 1}))
          << block;
    }
    EXPECT_EQ(ran.out[8 * 12], 0u);
  }
}

TEST(GridOfClusters, OtherDimensionsAndClustersOfOne) {
  const KernelRun down = run(".reqntid 1\n.reqnctapercluster 1, 2\n.blocksareclusters\n",
                             {.grid = {1, 3}, .block = {1}});
  ASSERT_EQ(down.complaint, "");
  EXPECT_EQ(std::vector(down.out.begin() + 40, down.out.begin() + 48),
            (std::vector<std::uint32_t>{1, 6, 1, 3, 0, 1, 1, 1}));
  const KernelRun one =
      run(".reqntid 1\n.reqnctapercluster 1\n.blocksareclusters\n", {.grid = {2}, .block = {1}});
  ASSERT_EQ(one.complaint, "");
  EXPECT_EQ(one.out[0], 2u);
}

TEST(GridOfClusters, OtherClustersAreRefused) {
  for (const std::uint32_t size : {1u, 4u})
    EXPECT_NE(run(pairs, {.grid = {4}, .block = {1}, .cluster = {size, 1, 1}})
                  .complaint.find("requires clusters of 2 x 1 x 1 blocks"),
              std::string::npos);
  EXPECT_NE(run(pairs, {.grid = {2}, .block = {8}}).complaint.find(".reqntid"), std::string::npos);
  EXPECT_NE(run(pairs, {.grid = {0}, .block = {1}}).complaint.find("expected 1 to"),
            std::string::npos);
}

// The driver takes 16383 clusters of two blocks along y, and refuses 16384.
TEST(GridOfClusters, TheLimitCountsBlocksOfTheClustersTwice) {
  const std::string down = ".reqntid 1\n.reqnctapercluster 1, 2\n.blocksareclusters\n";
  EXPECT_NE(run(down, {.grid = {1, 16384}, .block = {1}})
                .complaint.find("grid.y: expected 1 to 16383 clusters of 1 x 2 x 1 blocks "
                                "(.blocksareclusters), found 16384"),
            std::string::npos);
  EXPECT_NE(run(pairs, {.grid = {1u << 29}, .block = {1}}).complaint.find("grid.x"),
            std::string::npos);
}

TEST(GridOfClusters, AKernelWithoutItCountsBlocks) {
  const KernelRun ran = run(".reqntid 1\n.reqnctapercluster 2\n", {.grid = {4}, .block = {1}});
  ASSERT_EQ(ran.complaint, "");
  EXPECT_EQ(ran.out[0], 4u);
  EXPECT_NE(run(".reqntid 1\n.reqnctapercluster 2\n", {.grid = {3}, .block = {1}})
                .complaint.find("not a multiple"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan
