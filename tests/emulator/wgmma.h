// SPDX-License-Identifier: Apache-2.0
// tests/emulator/wgmma.h - a kernel around one form of wgmma: shared memory and registers in,
// registers out.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tartan/runtime/device.h"

namespace tartan::test {

/// Inputs and outputs of a launch. Register words are thread-major: word v of thread t at v * 128 +
/// t.
struct WgmmaCase {
  std::string mnemonic;
  int d_registers = 0;
  bool a_in_registers = false, sparse = false;
  int steps = 1;  // instructions in a row, into the same accumulators
  int selector = 0;
  std::string immediates;  // after scale-d: ", 1, 1, 0, 0"

  std::vector<std::uint32_t> d, a, metadata;  // a, metadata: of every step
  std::vector<std::uint32_t> shared;
  std::uint64_t a_descriptor = 0, b_descriptor = 0;
  std::uint32_t a_step = 0, b_step = 0;  // added to the descriptors after each step
  bool scale_d = true;                   // of the first step
};

inline std::string register_list(const std::string& prefix, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i) out += (i ? ", " : "") + prefix + std::to_string(i);
  return out + "}";
}

/// One wgmma of the case, on registers d0.., a0.., rd_a, rd_b, m and p.
inline std::string wgmma_text(const WgmmaCase& c) {
  std::string out = c.mnemonic + " " + register_list("d", c.d_registers) + ", ";
  out += (c.a_in_registers ? register_list("a", 4) : "rd_a") + ", rd_b";
  if (c.sparse) out += ", m, " + std::to_string(c.selector);
  return out + ", p" + c.immediates + ";\n";
}

inline std::string wgmma_kernel(const WgmmaCase& c, const std::string& name = "k") {
  const auto loads = [](const std::string& prefix, int count, int first) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += "ld.global.b32 " + prefix + std::to_string(i) + ", [rd_at+" +
             std::to_string((first + i) * 512) + "];\n";
    return out;
  };
  const auto at = [](const char* param) {
    return "ld.param.u64 rd_at, [" + std::string(param) + "];\nadd.s64 rd_at, rd_at, rd_thread;\n";
  };
  std::string out = ".visible .entry " + name +
                    "(.param .u64 d, .param .u64 a, .param .u64 metadata, .param .u64 memory,"
                    " .param .u32 words, .param .u64 a_desc, .param .u64 b_desc, .param .u32 "
                    "scale_d, .param .u32 a_step, .param .u32 b_step)\n{\n";
  out +=
      ".reg .pred p, q;\n.reg .b32 tid, n, i, word, to, m, scale, d<128>, a<4>;\n"
      ".reg .b64 rd_at, rd_thread, rd_word, rd_a, rd_b, rd_step;\n";
  out += R"(mov.u32 tid, %tid.x;
mul.wide.u32 rd_thread, tid, 4;
ld.param.u64 rd_at, [memory];
add.s64 rd_at, rd_at, rd_thread;
ld.param.u32 n, [words];
mov.u32 i, tid;
mov.u32 to, image;
mad.lo.u32 to, tid, 4, to;
COPY:
setp.ge.u32 q, i, n;
@q bra DONE;
ld.global.b32 word, [rd_at];
st.shared.b32 [to], word;
add.s64 rd_at, rd_at, 512;
add.u32 to, to, 512;
add.u32 i, i, 128;
bra COPY;
DONE:
fence.proxy.async;
bar.sync 0;
ld.param.u64 rd_a, [a_desc];
ld.param.u64 rd_b, [b_desc];
ld.param.u32 scale, [scale_d];
setp.ne.u32 p, scale, 0;
)";
  out += at("d") + loads("d", c.d_registers, 0);
  out += "wgmma.fence.sync.aligned;\n";
  for (int step = 0; step < c.steps; ++step) {
    if (c.a_in_registers) out += at("a") + loads("a", 4, 4 * step);
    if (c.sparse)
      out += at("metadata") + "ld.global.b32 m, [rd_at+" + std::to_string(512 * step) + "];\n";
    out += wgmma_text(c);
    out +=
        "ld.param.u32 word, [a_step];\ncvt.u64.u32 rd_step, word;\nadd.s64 rd_a, rd_a, "
        "rd_step;\nld.param.u32 word, [b_step];\ncvt.u64.u32 rd_step, word;\nadd.s64 rd_b, "
        "rd_b, rd_step;\nsetp.eq.u32 p, 0, 0;\n";
  }
  out += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" + at("d");
  for (int i = 0; i < c.d_registers; ++i)
    out += "st.global.b32 [rd_at+" + std::to_string(512 * i) + "], d" + std::to_string(i) + ";\n";
  return out + "ret;\n}\n";
}

inline std::string wgmma_module(const std::string& kernels) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 "
         "image[];\n" +
         kernels;
}

/// d after the kernel; empty if something failed (the test has then failed).
inline std::vector<std::uint32_t> run_wgmma(Device& device, const WgmmaCase& c) {
  auto module = device.load(wgmma_module(wgmma_kernel(c)));
  if (!module) return ADD_FAILURE() << module.diags().text(), std::vector<std::uint32_t>{};
  auto kernel = module->kernel("k");
  if (!kernel) return ADD_FAILURE() << kernel.diags().text(), std::vector<std::uint32_t>{};
  std::vector<Buffer> buffers;
  Arguments arguments;
  for (const auto* words : {&c.d, &c.a, &c.metadata, &c.shared}) {
    buffers.push_back(*device.allocate(4 * words->size()));
    EXPECT_TRUE(static_cast<bool>(buffers.back().write(*words)));
    arguments.add(buffers.back());
  }
  arguments.add(static_cast<std::uint32_t>(c.shared.size()));
  arguments.add(c.a_descriptor).add(c.b_descriptor);
  arguments.add(std::uint32_t{c.scale_d}).add(c.a_step).add(c.b_step);
  const Launch launch{.grid = {},
                      .block = {128},
                      .dynamic_shared = static_cast<std::uint32_t>(4 * c.shared.size())};
  const Status launched = kernel->launch(launch, arguments);
  const Status done = launched ? device.synchronize() : launched;
  if (!done) return ADD_FAILURE() << done.diags().text(), std::vector<std::uint32_t>{};
  return *buffers[0].read_all<std::uint32_t>();
}

}  // namespace tartan::test
