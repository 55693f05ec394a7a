// SPDX-License-Identifier: Apache-2.0
// tests/support/device_features.h - features that the emulator and a GPU share: cooperative
// launches, variables of modules.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tartan/runtime/device.h"

namespace tartan::test {

/// nvcc's code for grid.sync() of CUDA 13's cooperative groups: a counter in the workspace that
/// %envreg1 and %envreg2 point to, whose top bit changes when all blocks have arrived.
inline std::string grid_sync(const std::string& label) {
  return R"(
  mov.u32 %r5, %envreg2;
  mov.u32 %r6, %envreg1;
  mov.b64 %rd4, {%r5, %r6};
  barrier.sync 0;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra )" +
         label + R"(_done;
  mov.u32 %r7, %nctaid.x;
  sub.u32 %r8, 0x80000001, %r7;
  setp.eq.u32 %p2, %r2, 0;
  selp.u32 %r8, %r8, 1, %p2;
  fence.acq_rel.gpu;
  add.u64 %rd5, %rd4, 4;
  atom.add.release.gpu.u32 %r9, [%rd5], %r8;
)" + label +
         R"(_wait:
  ld.acquire.gpu.u32 %r10, [%rd5];
  xor.b32 %r10, %r10, %r9;
  setp.ge.s32 %p1, %r10, 0;
  @%p1 bra )" +
         label + R"(_wait;
)" + label +
         R"(_done:
  barrier.sync 0;
)";
}

inline constexpr std::uint32_t meeting_blocks = 40, meeting_threads = 64;

/// Every thread passes its number plus `table[1]` to the next block: write, sync, read, sync,
/// write.
inline std::string meeting_kernel() {
  return R"(.version 7.0
.target sm_80
.address_size 64
.const .align 4 .u32 table[2] = {5, 100};
.global .align 4 .u32 seen;
.visible .entry meet(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 64, %r0;
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd2, %rd0, %rd2;
  ld.const.u32 %r4, [table+4];
  st.global.u32 [seen], %r4;
  add.u32 %r4, %r3, %r4;
  st.global.u32 [%rd2], %r4;
)" + grid_sync("first") +
         R"(
  add.u32 %r11, %r3, 64;
  mov.u32 %r13, %nctaid.x;
  mul.lo.u32 %r13, %r13, 64;
  rem.u32 %r11, %r11, %r13;
  mul.wide.u32 %rd3, %r11, 4;
  add.u64 %rd3, %rd0, %rd3;
  ld.volatile.global.u32 %r12, [%rd3];
)" + grid_sync("second") +
         R"(
  st.global.u32 [%rd2], %r12;
  ret;
}
)";
}

inline void expect_blocks_meet(Device& device) {
  auto module = device.load(meeting_kernel(), "meeting.ptx");
  ASSERT_TRUE(module) << module.diags().text();
  auto kernel = module->kernel("meet");
  auto out = device.allocate(4 * meeting_blocks * meeting_threads);
  ASSERT_TRUE(kernel && out);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(
        kernel->launch({.grid = {meeting_blocks}, .block = {meeting_threads}, .cooperative = true},
                       Arguments().add(*out)));
    const auto values = out->read_all<std::uint32_t>();
    ASSERT_TRUE(values) << values.diags().text();
    for (std::uint32_t i = 0; i < values->size(); ++i)
      ASSERT_EQ((*values)[i], (i + meeting_threads) % values->size() + 100) << i;
  }
}

inline void expect_variables_are_buffers(Device& device) {
  auto module = device.load(meeting_kernel(), "meeting.ptx");
  ASSERT_TRUE(module) << module.diags().text();
  auto table = module->variable("table"), seen = module->variable("seen");
  auto kernel = module->kernel("meet");
  auto out = device.allocate(4 * meeting_threads);
  ASSERT_TRUE(table && seen && kernel && out);
  EXPECT_EQ(table->size(), 8u);
  EXPECT_EQ(seen->size(), 4u);
  EXPECT_EQ(*table->read_all<std::uint32_t>(), (std::vector<std::uint32_t>{5, 100}));
  ASSERT_TRUE(table->write(std::vector<std::uint32_t>{5, 70}));
  ASSERT_TRUE(kernel->launch({.grid = {1}, .block = {meeting_threads}, .cooperative = true},
                             Arguments().add(*out)));
  ASSERT_TRUE(device.synchronize());
  EXPECT_EQ(*seen->read_all<std::uint32_t>(), std::vector<std::uint32_t>{70});
  EXPECT_FALSE(table->write(std::vector<std::uint32_t>{1, 2, 3}));
  const auto missing = module->variable("tabel");
  ASSERT_FALSE(missing);
  EXPECT_EQ(to_string(missing.diags()[0]),
            "error: meeting.ptx has no variable tabel in global or constant memory; it has table, "
            "seen [unknown-variable]");
}

}  // namespace tartan::test
