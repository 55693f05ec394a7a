// SPDX-License-Identifier: Apache-2.0
// tests/emulator/tensor_memory.h - kernels that use tensor memory.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/emulator/kernel.h"

namespace tartan::test {

inline std::string numbered(const std::string& prefix, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i) out += (i ? ", " : "") + prefix + std::to_string(i);
  return out + "}";
}

/// A kernel of a module for `target`: r0 is %tid.x, r1 the warp, `ta` an allocation of `columns`
/// columns (none: 0), `own` its address in the warp's quarter of lanes; rd0 the output.
inline std::string tensor_text(const std::string& body, int columns = 512,
                               const std::string& declarations = {},
                               const std::string& target = "sm_100a", bool frees = true) {
  std::string out = fmt::format(
      ".version 9.0\n.target {}\n.address_size 64\n{}\n.visible .entry k(.param .u64 out, .param "
      ".u64 in)\n{{\n.reg .pred p, q, alloc;\n.reg .b32 r<20>, ta, own, v<128>, w<130>;\n.reg .b64 "
      "rd<20>, da, db;\n.reg .f32 f<8>;\n.shared .align 8 .b64 done;\n.shared .align 4 .b32 "
      "slot;\nld.param.u64 rd0, [out];\nld.param.u64 rd9, [in];\nmov.u32 r0, %tid.x;\nshr.u32 r1, "
      "r0, 5;\nsetp.eq.u32 alloc, r1, 0;\n",
      target, declarations);
  if (columns)
    out += fmt::format(
        "@!alloc bra ALLOCATED;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], "
        "{};\ntcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nALLOCATED:\nbar.sync "
        "0;\nld.shared.b32 ta, [slot];\nand.b32 r2, r1, 3;\nshl.b32 r2, r2, 21;\nadd.u32 own, ta, "
        "r2;\n",
        columns);
  out += body;
  if (columns && frees)
    out += fmt::format(
        "bar.sync 0;\n@!alloc bra FREED;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 ta, "
        "{};\nFREED:\n",
        columns);
  return out + "ret;\n}\n";
}

/// Initializes `done` for one arrival, and copies so many words of the input to `image` in shared
/// memory. q: whether this is thread 0.
inline std::string fill_image(std::size_t words) {
  return fmt::format(R"(setp.eq.u32 q, r0, 0;
@q mbarrier.init.shared::cta.b64 [done], 1;
mov.u32 r5, r0;
mov.u32 r4, image;
mad.lo.u32 r6, r0, 4, r4;
mul.wide.u32 rd2, r0, 4;
add.s64 rd2, rd9, rd2;
COPY:
setp.ge.u32 p, r5, {};
@p bra COPIED;
ld.global.b32 r7, [rd2];
st.shared.b32 [r6], r7;
add.u32 r5, r5, 128;
add.u32 r6, r6, 512;
add.s64 rd2, rd2, 512;
bra COPY;
COPIED:
)",
                     words);
}

/// Runs it with `words` words of output, after `in`.
inline KernelRun run_tensor(const std::string& ptx, std::size_t words,
                            const std::vector<std::uint32_t>& in = {1},
                            const DeviceOptions& options = {.checks = Checks::all},
                            Launch launch = {.grid = {1}, .block = {128}}) {
  KernelRun run;
  auto engine = emulator::make_engine(options);
  auto module = (*engine)->load(ptx, "test.ptx");
  if (!module) return run.complaint = module.diags().text(), run;
  auto kernel = (*module)->kernel("k");
  if (!kernel) return run.complaint = kernel.diags().text(), run;
  const auto out = (*engine)->allocate(4 * words), from = (*engine)->allocate(4 * in.size());
  EXPECT_TRUE(static_cast<bool>((*engine)->fill(*out, 4 * words, 0)));
  EXPECT_TRUE(static_cast<bool>((*engine)->write(*from, std::as_bytes(std::span(in)))));
  const Status launched = (*kernel)->launch(launch, Arguments().add(*out).add(*from), nullptr);
  if (!launched) return run.complaint = launched.diags().text(), run;
  run.launched = true;
  static_cast<void>((*engine)->synchronize());
  run.out.resize(words);
  EXPECT_TRUE(static_cast<bool>((*engine)->read(*out, std::as_writable_bytes(std::span(run.out)))));
  run.findings = (*engine)->findings();
  run.report = (*engine)->report();
  return run;
}

inline std::string findings_text(const KernelRun& run) {
  std::string out = run.complaint;
  for (const Finding& each : run.findings)
    out += fmt::format("line {}: {} [{}]\n", each.line, each.message, each.id);
  return out;
}

}  // namespace tartan::test
