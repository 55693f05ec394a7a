// SPDX-License-Identifier: Apache-2.0
// What the survivors of tests/data/mutation taught: mistakes that nothing showed, each in a few
// lines, beside the same kernel without it. Open gaps expect no finding, and say "closed" when
// there is one: then write the lists anew (soak.h).
#include <gtest/gtest.h>

#include "tests/mutation/subjects.h"

namespace tartan::mutation {
namespace {

constexpr const char* head = R"(.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
	.shared .align 1024 .b8 tile[2048];
	.reg .pred %p;
	.reg .b32 %t, %a, %x, %v<4>;
	.reg .f32 %d<4>;
	.reg .b64 %out, %g, %desc;
	ld.param.u64 %out, [out];
	mov.u32 %t, %tid.x;
	mov.u32 %a, tile;
	mad.lo.u32 %a, %t, 16, %a;
	mov.u32 %v0, 0x3C003C00;
	mad.wide.u32 %g, %t, 16, %out;
	setp.eq.u32 %p, %t, 0;
)";

/// The ids of what is found in a launch of one block.
std::string found(const std::string& body, std::uint32_t threads) {
  Subject subject{.name = "gap", .ptx = head + body + "\tret;\n}\n", .kernel = "k"};
  subject.runs.push_back({.launch = {.grid = {1}, .block = {threads}},
                          .buffers = {numbers(8192, 16, 1)},
                          .arguments = [](const std::vector<Buffer>& buffers) {
                            return Result<Arguments>(Arguments().add(buffers[0]));
                          }});
  const Observation seen = observe(subject, subject.ptx, subject.runs[0], 10'000);
  std::string out;
  for (const std::string& id : seen.ids) out += (out.empty() ? "" : " ") + id;
  return seen.refused ? "refused: " + seen.message : out;
}

const std::string stores = "st.shared.v4.b32 [%a], {%v0, %v0, %v0, %v0};\n";
const std::string fence = "fence.proxy.async.shared::cta;\n";
const std::string sends =
    "@%p cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 512;\n"
    "@%p cp.async.bulk.commit_group;\n";
const std::string is_read = "@%p cp.async.bulk.wait_group.read 0;\n";

TEST(MutationGaps, ABlockThatExitsWhileABulkCopyReadsItsMemory) {
  const std::string copies = stores + fence + "bar.warp.sync -1;\n" + sends;
  EXPECT_EQ(found(copies + is_read, 32), "");
  EXPECT_EQ(found(copies, 32), "store-at-exit");
}

TEST(MutationGaps, LanesWhoseStoresABulkCopySends) {
  EXPECT_EQ(found(stores + fence + sends + is_read, 32), "asynchronous-race");
}

TEST(MutationGaps, CopiesThatWgmmaReads) {
  const std::string copy = "cp.async.cg.shared.global [%a], [%g], 16;\ncp.async.commit_group;\n";
  const std::string wait = "cp.async.wait_group 0;\n", meet = "bar.sync 0;\n";
  const std::string product = fence + R"(mov.u32 %x, tile;
	shr.u32 %x, %x, 4;
	cvt.u64.u32 %desc, %x;
	or.b64 %desc, %desc, 0x1000080000;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %desc, %desc, 0, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 0;
	st.global.v4.f32 [%g+4096], {%d0, %d1, %d2, %d3};
)";
  EXPECT_EQ(found(copy + wait + fence + meet + product, 128), "");
  EXPECT_EQ(found(copy + fence + meet + product, 128), "asynchronous-race");
  EXPECT_EQ(found(copy + wait + fence + product, 128), "asynchronous-race");
  // Refilled behind the wait of each warp, which is for the warpgroup's group.
  EXPECT_EQ(found(copy + wait + fence + meet + product + copy + wait, 128), "");
}

}  // namespace
}  // namespace tartan::mutation
