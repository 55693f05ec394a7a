// SPDX-License-Identifier: Apache-2.0
// tests/emulator/tensor_pair_kernel.h - a product of matrices by a pair of CTAs as kernels have it:
// TMA loads of both CTAs complete at an mbarrier of the even one, whose thread issues the products
// of two stages in turn and frees these in both CTAs by commits.
#pragma once

#include "tartan/runtime/tensor_map.h"
#include "tests/emulator/tensor_pair_gemm.h"

namespace tartan::test::tensor {

/// Gemm::steps is four for each stage of 128 bytes along k; rows, columns and bytes of k from
/// `rows`, `columns` and `depth` on are outside of the matrices.
struct PairKernel {
  Gemm whole;
  int rows = 0, columns = 0, depth = 0;
  int stages() const { return whole.steps / 4; }
};

/// A matrix as memory has it, row by row of so many bytes.
inline Words matrix_of(const Gemm& g, bool is_a, int extent, int bytes, int pitch) {
  const int container = g.container(is_a ? g.a : g.b), k = g.depth();
  const Words& bits = is_a ? g.a_bits : g.b_bits;
  Words out(static_cast<std::size_t>(extent * pitch / 4));
  for (int x = 0; x < extent; ++x)
    for (int bit = 0; bit < 8 * bytes; bit += container)
      out[static_cast<std::size_t>(x * pitch / 4 + bit / 32)] |=
          bits[static_cast<std::size_t>(x * k + bit / container)] << bit % 32;
  return out;
}

/// Nothing of it is outside.
inline void cut(PairKernel& kernel) {
  Gemm& g = kernel.whole;
  const auto clear = [&](Words& bits, int extent, int limit, int container) {
    for (int x = 0; x < extent; ++x)
      for (int i = 0; i < g.depth(); ++i)
        if (x >= limit || i * container >= 8 * kernel.depth)
          bits[static_cast<std::size_t>(x * g.depth() + i)] = 0;
  };
  clear(g.a_bits, g.m, kernel.rows, g.container(g.a));
  clear(g.b_bits, g.n, kernel.columns, g.container(g.b));
}

inline std::string text_of(const PairKernel& kernel) {
  const Gemm& g = kernel.whole;
  const int rows = g.m / 2, columns = g.n / 2;
  const auto whole_atoms = [](int bytes) { return (bytes + 1023) / 1024 * 1024; };
  const int b_at = whole_atoms(rows * 128), stage_bytes = b_at + whole_atoms(columns * 128);
  std::string cells;
  std::size_t words = 0;
  for (const Cells& each : cells_before(g, 128, 256))
    for (int first = 0; first < each.count; first += 8, words += 128 * 8) {
      cells += fmt::format(
          "add.s64 rd2, rd9, {};\nmul.wide.u32 rd3, r0, 32;\nadd.s64 rd2, rd2, rd3;\n", 4 * words);
      for (int i = 0; i < 8; ++i)
        cells += fmt::format("ld.global.b32 v{0}, [rd2+{1}];\n", i, 4 * i);
      const int left = each.count - first, width = left > 4 ? 8 : left > 2 ? 4 : left;
      cells += fmt::format("tcgen05.st.sync.aligned.32x32b.x{}.b32 [own+{}], {};\n", width,
                           each.column + first, numbered("v", width));
    }
  std::string body = R"(mov.u32 rank, %cluster_ctarank;
setp.eq.u32 lead, rank, 0;
setp.ne.u32 p, r0, 0;
@p bra READY;
mbarrier.init.shared::cta.b64 [full], 1;
mbarrier.init.shared::cta.b64 [full+8], 1;
mbarrier.init.shared::cta.b64 [empty], 1;
mbarrier.init.shared::cta.b64 [empty+8], 1;
mbarrier.init.shared::cta.b64 [done], 1;
fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
setp.eq.u32 alloc, r1, 1;
@!alloc bra ALLOCATED;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 512;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
ALLOCATED:
bar.sync 0;
ld.shared.b32 ta, [slot];
and.b32 r2, r1, 3;
shl.b32 r2, r2, 21;
add.u32 own, ta, r2;
mov.b16 mask, 3;
)" + fmt::format("mul.wide.u32 rd2, rank, {};\nadd.s64 rd9, rd9, rd2;\n", 4 * words) +
                     cells;
  if (words)
    body += R"(tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
tcgen05.fence::after_thread_sync;
)";
  body +=
      "setp.ne.u32 p, r0, 0;\n@p bra ISSUE;\nmov.b64 rd4, map_a;\ncvta.param.u64 rd4, rd4;\n"
      "mov.b64 rd5, map_b;\ncvta.param.u64 rd5, rd5;\nmov.u32 r4, tiles;\n"
      "mov.u32 r5, full;\nand.b32 r5, r5, 0xFEFFFFFF;\n" +
      fmt::format("mul.lo.u32 r6, rank, {};\nmul.lo.u32 r7, rank, {};\n", rows, columns);
  for (int i = 0; i < kernel.stages(); ++i) {
    const int stage = i % 2;
    if (i >= 2)
      body += wait(fmt::format("empty+{}", 8 * stage), fmt::format("EMPTY{}", i), (i / 2 - 1) % 2);
    body += fmt::format("@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [full+{}], {};\n",
                        8 * stage, 2 * 128 * (rows + columns));
    const auto load = [&](const char* map, int at, const char* row) {
      body += fmt::format(
          "add.u32 r8, r4, {};\nmov.u32 r9, {};\ncp.async.bulk.tensor.2d.shared::cluster.global."
          "tile.mbarrier::complete_tx::bytes.cta_group::2 [r8], [{}, {{r9, {}}}], [r5+{}];\n",
          stage * stage_bytes + at, 128 * i, map, row, 8 * stage);
    };
    load("rd4", 0, "r6");
    load("rd5", b_at, "r7");
  }
  body +=
      "bra ISSUED;\nISSUE:\nsetp.eq.and.u32 p, r0, 32, lead;\n@!p bra ISSUED;\n"
      "mov.u32 r4, tiles;\nand.b32 r4, r4, 0x3ffff;\nshr.u32 r4, r4, 4;\n"
      "cvt.u64.u32 rd4, r4;\n" +
      fmt::format("mov.b32 r8, 0x{:x};\n", instruction_descriptor(g));
  constexpr std::uint64_t tile = std::uint64_t{2} << 61 | std::uint64_t{1} << 46 |
                                 std::uint64_t{64} << 32 | std::uint64_t{1} << 16;
  for (int i = 0; i < kernel.stages(); ++i) {
    const int stage = i % 2;
    body += wait(fmt::format("full+{}", 8 * stage), fmt::format("FULL{}", i), i / 2 % 2) +
            "tcgen05.fence::after_thread_sync;\n";
    for (int step = 0; step < 4; ++step) {
      const auto start = static_cast<std::uint64_t>(stage * stage_bytes + 32 * step) / 16;
      body += fmt::format(
          "add.s64 da, rd4, 0x{:x};\nadd.s64 db, rd4, 0x{:x};\nsetp.ne.u32 p, {}, 0;\n"
          "tcgen05.mma.cta_group::2.kind::{}{} [ta], da, db, r8{}, p;\n",
          tile + start, tile + start + static_cast<std::uint64_t>(b_at / 16), i + step, g.kind,
          g.scaled() ? ".block_scale" + g.vector : "",
          g.scaled() ? fmt::format(", [ta+{}], [ta+{}]", 128 + 4 * (4 * i + step),
                                   256 + 8 * (4 * i + step))
                     : "");
    }
    body += fmt::format(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
        "[empty+{}], mask;\n",
        8 * stage);
  }
  body +=
      R"(tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], mask;
ISSUED:
bar.warp.sync 0xffffffff;
DONE:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [done], 0;
@!p bra DONE;
tcgen05.fence::after_thread_sync;
)";
  body += fmt::format(
      "mad.lo.u32 r3, rank, 128, r0;\nmul.wide.u32 rd1, r3, {};\nadd.s64 rd1, rd0, rd1;\n",
      4 * d_columns(g));
  body += store_d(g, d_columns(g));
  body +=
      "tcgen05.fence::before_thread_sync;\nbarrier.cluster.arrive.aligned;\n"
      "barrier.cluster.wait.aligned;\n@!alloc bra FREED;\n"
      "tcgen05.dealloc.cta_group::2.sync.aligned.b32 ta, 512;\nFREED:\n";
  std::string text = tensor_text(
      body, 0,
      fmt::format(".shared .align 1024 .b8 tiles[{}];\n.shared .align 8 .b64 full[2], empty[2];\n",
                  2 * stage_bytes),
      g.target);
  const std::string in = ".u64 in)\n";
  text.replace(text.find(in), in.size(),
               ".u64 in, .param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128])\n"
               ".reqnctapercluster 2\n");
  text.insert(text.find(".reg .pred"), ".reg .b16 mask;\n.reg .pred lead;\n.reg .b32 rank;\n");
  return text;
}

/// What it leaves: [rank][lane][column].
inline KernelRun run_pair(const PairKernel& kernel, const std::string& ptx,
                          const DeviceOptions& options = {.checks = Checks::all},
                          TensorMap::Swizzle swizzle = TensorMap::Swizzle::bytes_128) {
  const Gemm& g = kernel.whole;
  Words cells;
  for (int rank = 0; rank < 2; ++rank)
    for (const Cells& each : cells_before(g, 128, 256))
      for (int first = 0; first < each.count; first += 8)
        for (int lane = 0; lane < 128; ++lane)
          for (int i = 0; i < 8; ++i)
            cells.push_back(first + i < each.count ? each.value(rank, lane, first + i) : 0);
  cells.push_back(0);
  KernelRun run;
  auto engine = emulator::make_engine(options);
  auto module = (*engine)->load(ptx, "test.ptx");
  if (!module) return run.complaint = module.diags().text(), run;
  auto entry = (*module)->kernel("k");
  if (!entry) return run.complaint = entry.diags().text(), run;
  const auto words = static_cast<std::size_t>(256 * d_columns(g));
  const auto memory = [&](const Words& contents) {
    const auto at = (*engine)->allocate(4 * contents.size());
    EXPECT_TRUE(static_cast<bool>((*engine)->write(*at, std::as_bytes(std::span(contents)))));
    return *at;
  };
  const int pitch = (kernel.depth + 15) / 16 * 16;
  const auto map = [&](bool is_a) {
    const int extent = is_a ? kernel.rows : kernel.columns;
    const TensorMap made{
        .type = Type::u8,
        .address = memory(matrix_of(g, is_a, extent, kernel.depth, pitch)),
        .extents = {static_cast<std::uint64_t>(kernel.depth), static_cast<std::uint64_t>(extent)},
        .strides = {static_cast<std::uint64_t>(pitch)},
        .box = {128, static_cast<std::uint32_t>((is_a ? g.m : g.n) / 2)},
        .swizzle = swizzle};
    return *made.encode();
  };
  const auto out = memory(Words(words));
  const Status launched = (*entry)->launch(
      pair_launch, Arguments().add(out).add(memory(cells)).add(map(true)).add(map(false)), nullptr);
  if (!launched) return run.complaint = launched.diags().text(), run;
  run.launched = true;
  static_cast<void>((*engine)->synchronize());
  run.out.resize(words);
  EXPECT_TRUE(static_cast<bool>((*engine)->read(out, std::as_writable_bytes(std::span(run.out)))));
  run.findings = (*engine)->findings();
  return run;
}

/// "" where the kernel gives what the model says.
inline std::string difference(const PairKernel& kernel,
                              const DeviceOptions& options = {.checks = Checks::all}) {
  const KernelRun run = run_pair(kernel, text_of(kernel), options);
  if (!run.launched || !run.findings.empty()) return findings_text(run);
  return difference(kernel.whole, run.out);
}

}  // namespace tartan::test::tensor
