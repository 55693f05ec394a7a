// SPDX-License-Identifier: Apache-2.0
// tests/emulator/tensor_pair_gemm.h - a chain of tcgen05.mma of a pair of CTAs as a kernel: which
// rows, columns, scales and metadata each CTA has, and in which cells, written apart from the
// emulator. What D is comes from the model of one CTA (tensor_gemm.h).
#pragma once

#include <functional>

#include "tests/emulator/tensor_gemm.h"

namespace tartan::test::tensor {

/// Gemm::m, n are the pair's; Gemm::disabled has eight words.
struct PairGemm {
  Gemm whole;
  int issuer = 0;  // the rank whose thread issues the products
};

/// Where a CTA has row m of its half: in all lanes, in the lower ones and a copy above them, or in
/// 16 of each 32.
enum class Rows { all, twice, scattered };
inline Rows rows_of(const Gemm& g) {
  return g.m == 256 ? Rows::all : g.sparse ? Rows::scattered : Rows::twice;
}

/// What one CTA has in shared memory, as a product of its own.
inline Gemm half_of(const Gemm& g, int rank) {
  Gemm half = g;
  half.m /= 2;
  half.n /= 2;
  const auto cut = [&](Words& words) {
    const auto middle = words.begin() + static_cast<std::ptrdiff_t>(words.size() / 2);
    words = rank ? Words(middle, words.end()) : Words(words.begin(), middle);
  };
  cut(half.a_bits);
  cut(half.b_bits);
  return half;
}

/// The cell of row m of a CTA, column n of D: lane, column.
inline std::pair<int, int> cell_of(const Gemm& g, int m, int n) {
  switch (rows_of(g)) {
    case Rows::all: return {m, n};
    case Rows::twice: return n < g.n / 2 ? std::pair(m, n) : std::pair(m + 64, n - g.n / 2);
    case Rows::scattered: return {m / 16 * 32 + m % 16 + g.half, n};
  }
  return {};
}
/// The row of a CTA that a lane has of A; -1: none.
inline int row_at(const Gemm& g, int lane) {
  switch (rows_of(g)) {
    case Rows::all: return lane;
    case Rows::twice: return lane % 64;
    case Rows::scattered: return lane / 16 % 2 == g.half / 16 ? lane / 32 * 16 + lane % 16 : -1;
  }
  return {};
}
inline int d_columns(const Gemm& g) { return rows_of(g) == Rows::twice ? g.n / 2 : g.n; }

/// The cells that are written before the products, by CTA.
struct Cells {
  int column = 0, count = 0;
  std::function<std::uint32_t(int rank, int lane, int column)> value;
};

/// Scales begin at those columns, and go on by four and eight a step.
inline std::vector<Cells> cells_before(const Gemm& g, int a_scales = 384, int b_scales = 400) {
  std::vector<Cells> out;
  const int rows = g.m / 2;
  if (g.accumulates)
    out.push_back({0, d_columns(g), [&g, rows](int rank, int lane, int column) -> std::uint32_t {
                     for (int n = column; n < g.n; n += d_columns(g)) {
                       const int m = row_at(g, lane);
                       if (m >= 0 && cell_of(g, m, n) == std::pair(lane, column))
                         return g.c_bits[static_cast<std::size_t>((rank * rows + m) * g.n + n)];
                     }
                     return 0;
                   }});
  if (g.a_in_tensor)
    out.push_back(
        {256, 8 * g.steps, [&g, rows](int rank, int lane, int cell) {
           std::uint32_t word = 0;
           const int container = g.container(g.a), per = 32 / container, m = row_at(g, lane);
           for (int i = 0; i < per && m >= 0; ++i) {
             std::uint32_t bits =
                 g.a_bits[static_cast<std::size_t>((rank * rows + m) * g.depth() + cell * per + i)];
             if (container == 8 && g.a == "e2m1") bits <<= 2;
             word |= bits << i * container;
           }
           return word;
         }});
  for (int step = 0; g.sparse && step < g.steps; ++step) {
    const bool wide = g.container(g.a) >= 16;
    Words words(2 * 128 * 2);  // [rank][lane][column]
    for (int m = 0; m < g.m; ++m)
      for (int j = 0; j < g.codes(); ++j) {
        // By elements of k: two (tf32) or four for a code.
        const int at = j * (g.container(g.a) == 32 ? 2 : 4), half = g.container(g.a) == 32 ? 8 : 16;
        const int row = m % rows;
        int lane = wide ? row % 8 + 8 * (at / half) + 16 * (row / 16) : row;
        const int bit = wide ? at % half * (16 / half) + 16 * (row / 8 % 2) : at;
        if (rows == 64) lane = lane / 16 * 32 + lane % 16 + g.half;
        words[static_cast<std::size_t>((m / rows * 128 + lane) * 2 + bit / 32)] |=
            g.metadata[static_cast<std::size_t>((m * g.steps + step) * g.codes() + j)] << bit % 32;
      }
    out.push_back({480 + 2 * step, wide ? 1 : 2, [words](int rank, int lane, int column) {
                     return words[static_cast<std::size_t>((rank * 128 + lane) * 2 + column)];
                   }});
  }
  const auto scale_word = [&g](const Words& scales, int i, int step) {
    std::uint32_t word = 0x5A5A5A5A;
    for (int s = 0; s < g.scales; ++s) {
      const int shift = 8 * (s + g.scale_id);
      word &= ~(0xFFu << shift);
      word |= scales[static_cast<std::size_t>((i * g.steps + step) * g.scales + s)] << shift;
    }
    return word;
  };
  for (int step = 0; g.scaled() && step < g.steps; ++step) {
    out.push_back({a_scales + 4 * step, (rows + 31) / 32,
                   [&g, rows, step, scale_word](int rank, int lane, int column) {
                     const int i = lane % 32 + 32 * column;
                     return i < rows ? scale_word(g.a_scales, rank * rows + i, step) : 0;
                   }});
    const int lower = d_columns(g);
    out.push_back({b_scales + 8 * step, (lower + 31) / 32,
                   [&g, lower, step, scale_word](int, int lane, int column) {
                     const int i = lane % 32 + 32 * column;
                     if (i >= lower) return 0u;
                     return scale_word(g.b_scales, lower < g.n && lane >= 64 ? i + lower : i, step);
                   }});
  }
  return out;
}

/// The start of a kernel of a pair: r18 is the rank, r19 that in the pair, rd9 its own part of the
/// input, of so many bytes, and warp 0 has allocated.
inline std::string pair_start(std::size_t bytes) {
  return "mov.u32 r18, %cluster_ctarank;\nand.b32 r19, r18, 1;\nbarrier.cluster.arrive.aligned;\n"
         "barrier.cluster.wait.aligned;\n@!alloc bra ALLOCATED;\n"
         "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 512;\n"
         "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\nALLOCATED:\n"
         "bar.sync 0;\nld.shared.b32 ta, [slot];\nand.b32 r2, r1, 3;\n"
         "shl.b32 r2, r2, 21;\nadd.u32 own, ta, r2;\n" +
         fmt::format("mul.wide.u32 rd2, r19, {};\nadd.s64 rd9, rd9, rd2;\n", bytes);
}
/// Then one thread, q, of the CTA of that rank goes on: rd4 is where `image` begins, in 16 bytes.
inline std::string pair_issues(int rank) {
  return "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n"
         "fence.proxy.async.shared::cta;\nbarrier.cluster.arrive.aligned;\n"
         "barrier.cluster.wait.aligned;\ntcgen05.fence::after_thread_sync;\n" +
         fmt::format("setp.eq.and.u32 q, r19, {}, q;\n", rank) +
         "@!q bra ISSUED;\nand.b32 r4, r4, 0x3ffff;\nshr.u32 r4, r4, 4;\ncvt.u64.u32 rd4, r4;\n";
}
/// And all of both CTAs wait for it; rd1 is each thread's part of the output.
inline std::string pair_waits(int columns) {
  return "and.b32 r3, r18, 14;\nmov.u32 r4, 3;\nshl.b32 r3, r4, r3;\ncvt.u16.u32 mask, "
         "r3;\ntcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster."
         "multicast::cluster.b64 [done], mask;\nISSUED:\n"
         "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [done], 0;\n"
         "@!p bra WAIT;\ntcgen05.fence::after_thread_sync;\n" +
         fmt::format(
             "mad.lo.u32 r3, r18, 128, r0;\nmul.wide.u32 rd1, r3, {};\nadd.s64 rd1, rd0, rd1;\n",
             4 * columns);
}
inline std::string pair_ends() {
  return "tcgen05.fence::before_thread_sync;\nbarrier.cluster.arrive.aligned;\n"
         "barrier.cluster.wait.aligned;\n@!alloc bra FREED;\n"
         "tcgen05.dealloc.cta_group::2.sync.aligned.b32 ta, 512;\nFREED:\n";
}
inline std::string pair_text(const std::string& body, std::size_t image_bytes,
                             const std::string& target = "sm_100a") {
  std::string out = tensor_text(
      body, 0, fmt::format(".shared .align 1024 .b8 image[{}];\n", image_bytes), target);
  return out.insert(out.find(".reg .pred"), ".reg .b16 mask;\n");
}

/// D of both CTAs, all lanes: [rank][lane][column].
inline Plan plan(const PairGemm& pair) {
  const Gemm& g = pair.whole;
  const Gemm halves[] = {half_of(g, 0), half_of(g, 1)};
  Words of_rank[2];
  std::size_t b_at = 0;
  for (int rank = 0; rank < 2; ++rank) {
    if (!g.a_in_tensor) append(of_rank[rank], Tile(halves[rank], true).image);
    b_at = 4 * of_rank[rank].size();
    append(of_rank[rank], Tile(halves[rank], false).image);
  }
  const std::size_t image_words = of_rank[0].size();
  std::string before;
  for (const Cells& each : cells_before(g))
    for (int first = 0; first < each.count; first += 8) {
      before +=
          fmt::format("add.s64 rd2, rd9, {};\nmul.wide.u32 rd3, r0, 32;\nadd.s64 rd2, rd2, rd3;\n",
                      4 * of_rank[0].size());
      for (int rank = 0; rank < 2; ++rank)
        for (int lane = 0; lane < 128; ++lane)
          for (int i = 0; i < 8; ++i)
            of_rank[rank].push_back(first + i < each.count ? each.value(rank, lane, first + i) : 0);
      for (int i = 0; i < 8; ++i)
        before += fmt::format("ld.global.b32 v{0}, [rd2+{1}];\n", i, 4 * i);
      const int left = each.count - first, width = left > 4 ? 8 : left > 2 ? 4 : left;
      before += fmt::format("tcgen05.st.sync.aligned.32x32b.x{}.b32 [own+{}], {};\n", width,
                            each.column + first, numbered("v", width));
    }
  std::string body = pair_start(4 * of_rank[0].size()) + fill_image(image_words) + before +
                     pair_issues(pair.issuer);
  for (std::size_t i = 0; i < g.disabled.size(); ++i)
    body += fmt::format("mov.b32 r{}, {};\n", 10 + i, g.disabled[i]);
  body += fmt::format("mov.b32 r8, 0x{:x};\nadd.u32 r9, ta, {};\n", instruction_descriptor(g),
                      g.half << 16);
  const Tile a(halves[0], true), b(halves[0], false);
  for (int step = 0; step < g.steps; ++step) {
    if (!g.a_in_tensor) body += fmt::format("add.s64 da, rd4, 0x{:x};\n", a.descriptor(step));
    body += fmt::format("add.s64 db, rd4, 0x{:x};\n", b.descriptor(step) + b_at / 16);
    body += fmt::format("setp.ne.u32 p, {}, 0;\n", step || g.accumulates ? 1 : 0);
    body += fmt::format(
        "tcgen05.mma{}.cta_group::2.kind::{}{} [r9], {}, db{}, r8{}{}, p{};\n",
        g.sparse ? ".sp" : "", g.kind, g.scaled() ? ".block_scale" + g.vector : "",
        g.a_in_tensor ? fmt::format("[r9+{}]", 256 + 8 * step) : "da",
        g.sparse ? fmt::format(", [r9+{}]", 480 + 2 * step) : "",
        g.disabled.empty() ? "" : ", {r10, r11, r12, r13, r14, r15, r16, r17}",
        g.scaled() ? fmt::format(", [ta+{}], [ta+{}]", 384 + 4 * step, 400 + 8 * step) : "",
        g.scale_d ? fmt::format(", {}", g.scale_d) : "");
  }
  body += pair_waits(d_columns(g));
  if (rows_of(g) == Rows::scattered)
    body += fmt::format("shr.u32 r3, r0, 4;\nand.b32 r3, r3, 1;\nsetp.eq.u32 p, r3, {};\n",
                        g.half / 16);
  else body += "setp.eq.u32 p, r0, r0;\n";
  body += store_d(g, d_columns(g), "@p ");
  Plan out;
  out.text = pair_text(body + pair_ends(), 4 * image_words, g.target);
  out.in = of_rank[0];
  out.in.insert(out.in.end(), of_rank[1].begin(), of_rank[1].end());
  return out;
}

inline const Launch pair_launch{.grid = {2}, .block = {128}, .cluster = {2, 1, 1}};

/// "" where [rank][lane][column] are what the model says.
inline std::string difference(const Gemm& g, const Words& got) {
  const int columns = d_columns(g);
  Gemm plain = g;
  plain.disabled.clear();
  const Words expected = model(plain);
  for (int m = 0; m < g.m; ++m)
    for (int n = 0; n < g.n; ++n) {
      const int rank = m / (g.m / 2);
      const auto [lane, column] = cell_of(g, m % (g.m / 2), n);
      const auto at = static_cast<std::size_t>(m * g.n + n),
                 cell = static_cast<std::size_t>((rank * 128 + lane) * columns + column);
      const bool kept = !g.disabled.empty() &&
                        g.disabled[static_cast<std::size_t>(4 * rank + lane / 32)] >> lane % 32 & 1;
      const std::uint32_t want = kept ? g.c_bits[at] : expected[at];
      if (got[cell] != want)
        return fmt::format("row {}, column {}: {:08x}, expected {:08x}", m, n, got[cell], want);
    }
  return {};
}

/// The same of a kernel that it runs.
inline std::string difference(const PairGemm& pair,
                              const DeviceOptions& options = {.checks = Checks::all}) {
  const Plan made = plan(pair);
  const KernelRun run = run_tensor(made.text, static_cast<std::size_t>(256 * d_columns(pair.whole)),
                                   made.in, options, pair_launch);
  if (!run.launched || !run.findings.empty()) return findings_text(run);
  return difference(pair.whole, run.out);
}

}  // namespace tartan::test::tensor
