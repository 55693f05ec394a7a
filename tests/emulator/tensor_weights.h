// SPDX-License-Identifier: Apache-2.0
// tests/emulator/tensor_weights.h - weight-stationary products (tcgen05.mma.ws) as kernels: where
// D, A, metadata and the columns of B lie, written apart from the emulator. What they sum is the
// model of tensor_gemm.h, with B's columns as the mask leaves them.
#pragma once

#include "tests/emulator/tensor_gemm.h"

namespace tartan::test::tensor {

/// The zero-column mask as the manual's examples have it.
struct Zeros {
  bool given = false, masks = false;
  int used = 1, zeros = 1;           // columns of a span
  int start[4] = {}, first[4] = {};  // of each part; first 1: of zeros
  int shift = 0;

  std::uint64_t bits() const {
    std::uint64_t out = 0;
    for (int i = 0; i < 4; ++i)
      out |= static_cast<std::uint64_t>(start[i]) << 8 * i | static_cast<std::uint64_t>(first[i])
                                                                 << (32 + i);
    return out | static_cast<std::uint64_t>(masks) << 39 |
           static_cast<std::uint64_t>(zeros - 1) << 40 |
           static_cast<std::uint64_t>(used - 1) << 48 | static_cast<std::uint64_t>(shift) << 56;
  }
  /// "0011100", column 0 first.
  std::string of_part(int part, int columns) const {
    std::string out;
    bool zero = first[part];
    while (static_cast<int>(out.size()) < columns + start[part]) {
      out += zero ? std::string(static_cast<std::size_t>(zeros), '1')
                  : std::string(static_cast<std::size_t>(used), '0');
      zero = !zero;
    }
    return out.substr(static_cast<std::size_t>(start[part]), static_cast<std::size_t>(columns));
  }
};

struct Weights {
  Gemm gemm;  // its B has as many more columns as the mask shifts
  Zeros zeros;
  int most_shift = 0;  // 0 to 3
  std::string collector;
  /// Of each part of D's columns, where they differ: A in tensor memory, and metadata.
  std::vector<Words> a_of_part, metadata_of_part;

  const Words& a(int part) const {
    return a_of_part.empty() ? gemm.a_bits : a_of_part[static_cast<std::size_t>(part)];
  }
  const Words& metadata(int part) const {
    return metadata_of_part.empty() ? gemm.metadata
                                    : metadata_of_part[static_cast<std::size_t>(part)];
  }
  int parts() const { return 128 / gemm.m; }
  int of_part() const { return gemm.n / parts(); }
  std::string mask() const {
    std::string out;
    for (int part = 0; part < parts(); ++part)
      out += zeros.masks ? zeros.of_part(part, of_part())
                         : std::string(static_cast<std::size_t>(of_part()), '0');
    return out;
  }
};

/// D is in columns 0.., A from column 256 on, metadata from 480 on.
inline Plan plan(const Weights& w) {
  const Gemm& g = w.gemm;
  Gemm wide = g;
  wide.n = g.n + w.zeros.shift;
  const Tile a(g, true), b(wide, false);
  Plan out;
  if (!g.a_in_tensor) append(out.in, a.image);
  const std::size_t b_at = 4 * out.in.size();
  append(out.in, b.image);
  const std::size_t image_words = out.in.size();
  std::string before;
  const auto store_cells = [&](int column, int count, auto&& cell) {
    for (int at = 0; at < count; ++at) {
      before += fmt::format(
          "mul.wide.u32 rd3, r0, 4;\nadd.s64 rd2, rd9, rd3;\nld.global.b32 v0, [rd2+{}];\n"
          "tcgen05.st.sync.aligned.32x32b.x1.b32 [own+{}], {{v0}};\n",
          4 * out.in.size(), column + at);
      for (int lane = 0; lane < 128; ++lane) out.in.push_back(cell(lane, at));
    }
  };
  if (g.accumulates)
    store_cells(0, w.of_part(), [&](int lane, int column) {
      const int n = lane / g.m * w.of_part() + column;
      return g.c_bits[static_cast<std::size_t>(lane % g.m * g.n + n)];
    });
  const int container = g.container(g.a);
  if (g.a_in_tensor)
    store_cells(256, 8 * g.steps, [&](int lane, int cell) {
      std::uint32_t word = 0;
      for (int i = 0; i < 32 / container; ++i) {
        const int at = lane % g.m * g.depth() + cell * (32 / container) + i;
        const std::uint32_t bits = w.a(lane / g.m)[static_cast<std::size_t>(at)];
        word |= (container == 8 && g.a == "e2m1" ? bits << 2 : bits) << i * container;
      }
      return word;
    });
  for (int step = 0; g.sparse && step < g.steps; ++step)
    store_cells(480 + 2 * step, container >= 16 ? 1 : 2, [&](int lane, int column) {
      // By elements of k, of which each code has two (tf32) or four.
      const int each = container == 32 ? 2 : 4, row = lane % g.m;
      std::uint32_t word = 0;
      for (int bit = 0; bit < 32; bit += 4) {
        int m = row, k = (32 * column + bit) / 4 * each;
        if (container >= 16) {
          m = row / 16 * 16 + bit / 16 * 8 + row % 8;
          k = (row % 16 / 8 * 16 + bit % 16) / 4 * each;
        }
        const int code = (m * g.steps + step) * g.codes() + k / each;
        word |= w.metadata(lane / g.m)[static_cast<std::size_t>(code)] << bit;
      }
      return word;
    });

  std::string body = fill_image(image_words) + before +
                     "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n"
                     "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                     "tcgen05.fence::after_thread_sync;\n"
                     "@!q bra ISSUED;\nshr.u32 r4, r4, 4;\ncvt.u64.u32 rd4, r4;\n";
  body += fmt::format("mov.b32 r8, 0x{:x};\nmov.b64 rd5, 0x{:x};\nadd.u32 r9, ta, 0;\n",
                      instruction_descriptor(g) | static_cast<std::uint32_t>(w.most_shift) << 30,
                      w.zeros.bits());
  for (int step = 0; step < g.steps; ++step) {
    if (!g.a_in_tensor) body += fmt::format("add.s64 da, rd4, 0x{:x};\n", a.descriptor(step));
    body += fmt::format("add.s64 db, rd4, 0x{:x};\nsetp.ne.u32 p, {}, 0;\n",
                        b.descriptor(step) + b_at / 16, step || g.accumulates ? 1 : 0);
    body += fmt::format("tcgen05.mma.ws{}.cta_group::1.kind::{}{} [r9], {}, db{}, r8, p{};\n",
                        g.sparse ? ".sp" : "", g.kind, w.collector,
                        g.a_in_tensor ? fmt::format("[ta+{}]", 256 + 8 * step) : "da",
                        g.sparse ? fmt::format(", [ta+{}]", 480 + 2 * step) : "",
                        w.zeros.given ? ", rd5" : "");
  }
  body +=
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\nISSUED:\n" +
      wait("done", "WAIT") + "tcgen05.fence::after_thread_sync;\n" +
      fmt::format("mul.lo.u32 r3, r0, {};\nmul.wide.u32 rd1, r3, 4;\nadd.s64 rd1, rd0, rd1;\n",
                  w.of_part());
  body += store_d(g, w.of_part());
  out.text = tensor_text(
      body, 512, fmt::format(".shared .align 1024 .b8 image[{}];\n", 4 * image_words), g.target);
  return out;
}

/// What D is: [row][column].
inline Words model(const Weights& w) {
  Gemm g = w.gemm;
  const std::size_t depth = static_cast<std::size_t>(g.k_of_b() * g.steps);
  const std::string zero = w.mask();
  Words columns;
  for (std::size_t n = 0; n < static_cast<std::size_t>(g.n); ++n)
    for (std::size_t k = 0; k < depth; ++k)
      columns.push_back(
          zero[n] == '1' ? 0 : g.b_bits[(n + static_cast<std::size_t>(w.zeros.shift)) * depth + k]);
  g.b_bits = columns;
  Words out(static_cast<std::size_t>(g.m * g.n));
  for (int part = 0; part < w.parts(); ++part) {
    g.a_bits = w.a(part);
    g.metadata = w.metadata(part);
    const Words all = model(g);
    for (int m = 0; m < g.m; ++m)
      for (int n = part * w.of_part(); n < (part + 1) * w.of_part(); ++n)
        out[static_cast<std::size_t>(m * g.n + n)] = all[static_cast<std::size_t>(m * g.n + n)];
    if (w.a_of_part.empty() && w.metadata_of_part.empty()) return all;
  }
  return out;
}

inline std::size_t output_words(const Weights& w) {
  return static_cast<std::size_t>(128 * w.of_part());
}

/// "" where the kernel gives what the model says.
inline std::string difference(const Weights& w,
                              const DeviceOptions& options = {.checks = Checks::all}) {
  const Plan made = plan(w);
  const KernelRun run = run_tensor(made.text, output_words(w), made.in, options);
  if (!run.launched || !run.findings.empty()) return findings_text(run);
  const Words expected = model(w);
  for (int m = 0; m < w.gemm.m; ++m)
    for (int n = 0; n < w.gemm.n; ++n) {
      const int lane = m + n / w.of_part() * w.gemm.m;
      const std::uint32_t
          got = run.out[static_cast<std::size_t>(lane * w.of_part() + n % w.of_part())],
          want = expected[static_cast<std::size_t>(m * w.gemm.n + n)];
      if (got != want)
        return fmt::format("row {}, column {}: {:08x}, expected {:08x}", m, n, got, want);
    }
  return {};
}

}  // namespace tartan::test::tensor
